"""What a verb prints: one result struct is printed as JSON or shown as tables, so they cannot differ."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import typer

from schemas.display import clean

_NESTED = (dict, list, tuple)
_NOTHING: tuple[Any, ...] = (None, "", [], (), {})
_ID = re.compile(r"\b[0-9a-f]{64}\b")
_SHORT = 12  # digits of an id in a table; shortened ids are ids
_WIDTH = 100  # where no terminal says its own


def finish(result: msgspec.Struct, *, as_json: bool, wrong: bool = False, text: str | None = None) -> None:
    """Print a verb's result and end it: exit code 1 where something was found wrong, else 0.

    ``text`` is the result in its own form for people, where tables of its fields are not.
    """
    if as_json:
        plain = msgspec.to_builtins(result, str_keys=True)
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode() + "\n")
    elif text is not None:
        sys.stdout.write(text)
    else:
        from rich.console import Console

        width = None if sys.stdout.isatty() else _WIDTH
        console = Console(highlight=False, emoji=False, markup=False, soft_wrap=False, width=width)
        _show(console, "", msgspec.to_builtins(result, str_keys=True))
    if wrong:
        raise typer.Exit(1)


def _show(console: Any, title: str, values: Mapping[str, Any]) -> None:
    """Own values as pairs under the title, then what is nested in them, each under a title of its own."""
    own = {
        key: value
        for key, value in values.items()
        if not isinstance(value, _NESTED) or (title and _is_cell(value)) or _is_words(value)
    }
    if title:
        console.print(f"\n{clean(title)}", style="bold")
    if own:
        console.print(_pairs(own))
    for key, value in values.items():
        if key not in own and value:
            _show_nested(console, f"{title}: {key}" if title else key, value)


def _show_nested(console: Any, title: str, value: Mapping[str, Any] | Sequence[Any]) -> None:
    named = value if isinstance(value, dict) else {str(number): item for number, item in enumerate(value)}
    rows = [item for item in named.values() if isinstance(item, dict)]
    cells = [cell for row in rows for cell in row.values()]
    if len(rows) < len(named):
        _show(console, title, named)
    elif not all(map(_is_cell, cells)) or (named is value and any(isinstance(cell, dict) for cell in cells)):
        for name, row in named.items():
            _show(console, f"{title}: {name}", row)
    else:
        console.print(f"\n{clean(title)}", style="bold")
        table = [{"": name, **row} for name, row in named.items()] if named is value else rows
        console.print(_table(table, console.width))


def _is_cell(value: Any) -> bool:
    """Whether a value can be read on one line: a single one, or a collection of such."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return not any(isinstance(item, _NESTED) for item in items)


def _is_words(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) and " " not in item for item in value)


def _pairs(values: Mapping[str, Any]) -> Any:
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in values.items():
        table.add_row(_text(key), _text(_word(value)))
    return table


def _table(rows: Sequence[Mapping[str, Any]], room: int) -> Any:
    """Rows under their keys; a column without any value is left out. Words are broken only where nothing else fits."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    values = {key: [row.get(key) for row in rows] for key in dict.fromkeys(key for row in rows for key in row)}
    columns = {
        key: column for key, column in values.items() if any(value not in _NOTHING for value in column)
    } or values
    words = [
        [_ID.sub(lambda found: found[0][:_SHORT], clean(_word(value))) for value in columns[key]] for key in columns
    ]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for (key, column), width in zip(columns.items(), _widths(list(columns), words, room), strict=True):
        right = all(isinstance(value, int | float | None) for value in column)
        table.add_column(_text(key), justify="right" if right else "left", overflow="fold", width=width)
    for cells in zip(*words, strict=True):
        table.add_row(*map(_text, cells))
    return table


def _widths(keys: Sequence[str], words: Sequence[Sequence[str]], room: int) -> list[int]:
    """The widths of columns in cells of a terminal: what they hold, or less, the widest first, whole words last."""
    from rich.cells import cell_len

    room = max(room - 3 * len(keys), len(keys))
    texts = [(clean(key), *column) for key, column in zip(keys, words, strict=True)]
    widths = [min(max(map(cell_len, column)), room) for column in texts]
    whole = [max(cell_len(piece) for text in column for piece in text.split(" ")) for column in texts]
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda at: (widths[at] > whole[at], widths[at]))
        widths[widest] -= 1
    return widths


def _word(value: Any) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}"
        case dict():
            return ", ".join(f"{key}: {_word(item)}" for key, item in value.items()) or "-"
        case list() | tuple():
            return ", ".join(map(_word, value)) or "-"
        case _:
            return str(value)


def _text(value: str) -> Any:
    from rich.text import Text

    return Text(clean(value))

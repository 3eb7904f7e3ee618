"""What a verb prints: one result struct is printed as JSON or shown as tables, so they cannot differ."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import typer

from schemas.display import clean

_NESTED = (dict, list, tuple)
_ID = re.compile(r"[0-9a-f]{64}")
_SHORT = 12  # digits of an id in a table; shortened ids are ids


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

        console = Console(highlight=False, emoji=False, markup=False, soft_wrap=False)
        _show(console, "", msgspec.to_builtins(result, str_keys=True))
    if wrong:
        raise typer.Exit(1)


def _show(console: Any, title: str, values: Mapping[str, Any]) -> None:
    """Own values as pairs under the title, then what is nested in them, each under a title of its own."""
    own = {key: value for key, value in values.items() if not isinstance(value, _NESTED) or (title and _is_cell(value))}
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
    if len(rows) < len(named):
        _show(console, title, named)
    elif all(not isinstance(cell, dict) and _is_cell(cell) for row in rows for cell in row.values()):
        console.print(f"\n{clean(title)}", style="bold")
        console.print(_table([{"": name, **row} for name, row in named.items()] if named is value else rows))
    else:
        for name, row in named.items():
            _show(console, f"{title}: {name}", row)


def _is_cell(value: Any) -> bool:
    """Whether a value can be read on one line: a single one, or a collection of such."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return not any(isinstance(item, _NESTED) for item in items)


def _pairs(values: Mapping[str, Any]) -> Any:
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in values.items():
        table.add_row(_text(key), _text(_word(value)))
    return table


def _table(rows: Sequence[Mapping[str, Any]]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        numeric = all(isinstance(row.get(column), int | float | None) for row in rows)
        table.add_column(_text(column), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        words = (_word(row.get(column)) for column in columns)
        table.add_row(*(_text(word[:_SHORT] if _ID.fullmatch(word) else word) for word in words))
    return table


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

"""Rows as a person reads them: a table where its words fit the width of the terminal, else one block of lines a row."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from schemas.display import clean

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

Row = Mapping[str, Any]

_NOTHING: tuple[Any, ...] = (None, "", [], (), {})
_ID = re.compile(r"\b[0-9a-f]{64}\b")
_SHORT = 12  # digits of an id in a table; shortened ids are ids
_WORD = 32  # cells; a longer word may be broken
_TALL = 5  # lines; a table with a longer cell is no table
_GAP = 2  # cells between columns


def lay_out(rows: Sequence[Row], room: int, *, whole: bool = False) -> "Table | Group":
    """Rows under their keys in ``room`` cells. Columns without any value are left out, unless they are to be whole."""
    from rich.console import Group
    from rich.text import Text

    table = fit(rows, room, whole=whole)
    if table is not None:
        return table
    keys = dict.fromkeys(key for row in rows for key in row)
    named = max(map(len, keys))
    parts: list[Table | Text] = []
    for row in rows:
        shown = {key: value for key, value in row.items() if whole or value not in _NOTHING}
        parts += [Text(), pairs(shown, named)]
    return Group(*parts)


def fit(rows: Sequence[Row], room: int, *, whole: bool = False) -> "Table | None":
    """The rows as a table; None where there are none, and where it would break words or make very tall lines."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    values = {key: [row.get(key) for row in rows] for key in dict.fromkeys(key for row in rows for key in row)}
    said = {key: column for key, column in values.items() if any(value not in _NOTHING for value in column)}
    columns = values if whole or not said else said
    words = [
        [_ID.sub(lambda found: found[0][:_SHORT], clean(word(value))) for value in columns[key]] for key in columns
    ]
    widths = _widths(list(columns), words, room)
    if widths is None or not rows:
        return None
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    for (key, column), width in zip(columns.items(), widths, strict=True):
        right = all(isinstance(value, int | float | None) for value in column)
        table.add_column(_text(key), justify="right" if right else "left", overflow="fold", width=width)
    for cells in zip(*words, strict=True):
        table.add_row(*map(_text, cells))
    return table


def pairs(values: Row, named: int = 0) -> "Table":
    """Names and values, a pair a line; ``named`` is the least width of the names in cells."""
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    table.add_column(style="dim", no_wrap=True, min_width=named)
    table.add_column(overflow="fold")
    for key, value in values.items():
        table.add_row(_text(key), _text(word(value)))
    return table


def word(value: Any) -> str:
    """A value on one line."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}"
        case dict() | list() | tuple() if not is_flat(value):
            return msgspec.json.encode(value).decode()
        case dict():
            return ", ".join(f"{key}: {word(item)}" for key, item in value.items()) or "-"
        case list() | tuple():
            return ", ".join(map(word, value)) or "-"
        case _:
            return str(value)


def is_flat(value: Any) -> bool:
    """Whether a value can be read on one line: a single one, or a collection of such."""
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return not any(isinstance(item, dict | list | tuple) for item in items)


def _widths(keys: Sequence[str], words: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """The widths of columns in cells: what they hold, or less, the widest first; None where whole words do not fit."""
    from rich.cells import cell_len

    texts = [(clean(key), *column) for key, column in zip(keys, words, strict=True)]
    sizes = [[cell_len(text) for text in column] for column in texts]
    whole = [
        max((min(cell_len(piece), _WORD) for text in column for piece in text.split()), default=1) for column in texts
    ]
    room -= _GAP * len(keys)
    if sum(whole) > room:
        return None
    widths = [min(max(column), room) for column in sizes]
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda at: (widths[at] > whole[at], widths[at]))
        widths[widest] -= 1
    tall = any(size > _TALL * width for column, width in zip(sizes, widths, strict=True) for size in column)
    return None if tall else widths


def _text(value: str) -> "Text":
    from rich.text import Text

    return Text(clean(value))

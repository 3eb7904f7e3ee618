"""Rows as a person reads them: a table where its words fit the width of the terminal, else a block of lines a row, or
many short rows as a line or two each.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from schemas.display import clean, clip

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
_LONG = 4_000  # characters of a value; the rest is only counted
_NAME = 120  # characters of a name
_NAMED = 40  # cells; names that are longer are broken, so that their values have room
_MANY = 12  # rows that are no blocks any more where each can be told in two lines


def lay_out(rows: Sequence[Row], room: int, *, whole: bool = False) -> "Table | Group":
    """Rows under their keys in ``room`` cells. Columns without any value are left out, unless they are to be whole."""
    from rich.console import Group
    from rich.text import Text

    table = fit(rows, room, whole=whole)
    if table is not None:
        return table
    if not whole and len(rows) > _MANY and (lines := _as_lines(rows, room)) is not None:
        return lines
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
    words = [[_shortened(value) for value in columns[key]] for key in columns]
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


def _as_lines(rows: Sequence[Row], room: int) -> "Table | None":
    """The first value of each row with all others named beside it; None where that is more than two lines of a row."""
    from rich.cells import cell_len
    from rich.table import Table

    told: list[tuple[str, str]] = []
    for row in rows:
        key, *others = row
        rest = ", ".join(f"{name}: {word(row[name])}" for name in others if row[name] not in _NOTHING)
        told.append((_shortened(row[key]), _shortened(rest)))
    width = max(cell_len(first) for first, _ in told)
    if width > _WORD or any(cell_len(rest) > 2 * (room - width - _GAP) for _, rest in told):
        return None
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for cells in told:
        table.add_row(*map(_text, cells))
    return table


def pairs(values: Row, named: int = 0) -> "Table":
    """Names and values, a pair a line; ``named`` is the least width of the names in cells."""
    from rich.cells import cell_len
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    names = list(map(title_text, values))
    short = max(map(cell_len, names), default=0) <= _NAMED
    table.add_column(
        style="dim", no_wrap=short, overflow="fold", min_width=min(named, _NAMED), max_width=None if short else _NAMED
    )
    table.add_column(overflow="fold")
    for name, value in zip(names, values.values(), strict=True):
        table.add_row(_text(name), _text(word(value)))
    return table


def title_text(name: str) -> str:
    """A name, of what comes from a log too, as it may be shown."""
    return clip(clean(name), _NAME)


def word(value: Any) -> str:
    """A value on one line, the first of it where it is long."""
    return clip(_word(value), _LONG)


def _word(value: Any) -> str:
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
            return ", ".join(f"{title_text(key)}: {word(item)}" for key, item in value.items()) or "-"
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


def _shortened(value: Any) -> str:
    """A value on one line, ids in it shortened."""
    return _ID.sub(lambda found: found[0][:_SHORT], clean(word(value)))


def _text(value: str) -> "Text":
    from rich.text import Text

    return Text(clean(value))

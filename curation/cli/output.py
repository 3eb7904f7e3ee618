"""One result, one face: the same struct is printed as JSON or shown as tables, so they cannot differ."""

import sys
from collections.abc import Sequence
from typing import Any

import msgspec
import typer

from schemas.display import clean

_NESTED = (dict, list, tuple)


def finish(result: msgspec.Struct, *, as_json: bool, wrong: bool = False) -> None:
    """Print a verb's result and end it: exit code 1 where something was found wrong, else 0."""
    plain = msgspec.to_builtins(result, str_keys=True)
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode() + "\n")
    else:
        _show(plain)
    if wrong:
        raise typer.Exit(1)


def _show(plain: dict[str, Any]) -> None:
    from rich.console import Console

    console = Console(highlight=False, emoji=False, markup=False, soft_wrap=False)
    scalars = {key: value for key, value in plain.items() if not isinstance(value, _NESTED)}
    if scalars:
        console.print(_pairs(scalars))
    for key, value in plain.items():
        if isinstance(value, dict) and any(map(_is_deep, value.values())):
            _show_each(console, key, value)
        elif isinstance(value, _NESTED) and value:
            console.print(f"\n{clean(key)}", style="bold")
            console.print(_table(value))


def _is_deep(value: Any) -> bool:
    return isinstance(value, dict) and any(isinstance(item, _NESTED) for item in value.values())


def _show_each(console: Any, title: str, values: dict[str, Any]) -> None:
    """Values that hold tables of their own stand below each other: columns of columns are not readable."""
    for name, value in values.items():
        console.print(f"\n{clean(title)}: {clean(name)}", style="bold")
        console.print(_pairs(value))


def _pairs(values: dict[str, Any]) -> Any:
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in values.items():
        table.add_row(_text(key), _cell(value))
    return table


def _table(value: dict[str, Any] | Sequence[Any]) -> Any:
    if isinstance(value, dict):
        if all(isinstance(item, dict) for item in value.values()):
            return _rows([{"": key, **item} for key, item in value.items()])
        return _pairs(value)
    if all(isinstance(item, dict) for item in value):
        return _rows(value)
    return _pairs({str(number): item for number, item in enumerate(value)})


def _rows(rows: Sequence[dict[str, Any]]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    columns = list(dict.fromkeys(key for row in rows for key in row))
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        numeric = all(isinstance(row.get(column), int | float | None) for row in rows)
        table.add_column(_text(column), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    return table


def _cell(value: Any) -> Any:
    match value:
        case None:
            return _text("-")
        case bool():
            return _text("yes" if value else "no")
        case float():
            return _text(f"{value:.4g}")
        case dict():
            return _text(", ".join(f"{key}: {item}" for key, item in value.items()) or "-")
        case list() | tuple():
            return _text(", ".join(str(item) for item in value) or "-")
        case _:
            return _text(str(value))


def _text(value: str) -> Any:
    from rich.text import Text

    return Text(clean(value))

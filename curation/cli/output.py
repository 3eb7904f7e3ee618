"""What a verb prints: one result is printed as JSON or shown as tables."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import typer

from curation.cli.tables import fit, is_flat, lay_out, pairs, title_text
from schemas.display import escape_json

_NESTED = (dict, list, tuple)
_WIDTH = 100  # where no terminal says its own


def finish(
    result: msgspec.Struct | Mapping[str, Any],
    *,
    as_json: bool,
    wrong: bool = False,
    whole: bool = False,
    as_stored: bool = False,
) -> None:
    """Print a verb's result and end it: exit code 1 where something was found wrong, else 0.

    Columns and values that say nothing are left out for a person, unless the result is to be ``whole``. Secrets are
    masked, in JSON too, unless it is asked for ``as_stored``.
    """
    from curation.masking import masked

    plain = msgspec.to_builtins(result, str_keys=True)
    if not as_stored:
        plain = masked(plain)
    if as_json:
        sys.stdout.write(escape_json(msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()) + "\n")
    else:
        _show(open_console(), "", plain, whole)
    if wrong:
        raise typer.Exit(1)


def open_console() -> Any:
    """The terminal as it is wide, or a pipe; nothing in a printed text has a meaning of its own."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDTH
    return Console(highlight=False, emoji=False, markup=False, soft_wrap=False, width=width)


def _show(console: Any, title: str, values: Mapping[str, Any], whole: bool) -> None:
    """Own values as pairs under the title, then what is nested in them, each under a title of its own."""
    own = {
        key: value
        for key, value in values.items()
        if (not isinstance(value, _NESTED) or (title and is_flat(value)) or _is_words(value))
        and (whole or value not in (None, {}))
    }
    if title:
        console.print(f"\n{title_text(title)}", style="bold")
    if own:
        console.print(pairs(own))
    for key, value in values.items():
        if key not in own and value:
            _show_nested(console, f"{title}: {key}" if title else key, value, whole)


def _show_nested(console: Any, title: str, value: Mapping[str, Any] | Sequence[Any], whole: bool) -> None:
    named = value if isinstance(value, dict) else {str(number): item for number, item in enumerate(value)}
    rows = [item for item in named.values() if isinstance(item, dict)]
    cells = [cell for row in rows for cell in row.values()]
    if len(rows) < len(named):
        _show(console, title, named, whole)
    elif named is not value:
        console.print(f"\n{title_text(title)}", style="bold")
        console.print(lay_out(rows, console.width, whole=whole))
    elif len(rows) > 1 and all(map(is_flat, rows)) and not set[str]().union(*rows[:1]).intersection(*rows):
        console.print(f"\n{title_text(title)}", style="bold")
        console.print(pairs({name: row for name, row in named.items() if row or whole}))
    elif any(isinstance(cell, dict) or not is_flat(cell) for cell in cells) or not (
        table := fit([{"": name, **row} for name, row in named.items()], console.width)
    ):
        for name, row in named.items():
            _show(console, f"{title}: {name}", row, whole)
    else:
        console.print(f"\n{title_text(title)}", style="bold")
        console.print(table)


def _is_words(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) and " " not in item for item in value)

"""What the first bytes of a file hold, although they may end in the middle of a value."""

from typing import Any

import jiter

from curation.importers.lines import BOM

_LINES = 20


def head_values(head: bytes) -> list[Any]:
    """The JSON values that the first lines begin with; the last may be cut. Lines that are no JSON are left out."""
    lines = [line for line in head.removeprefix(BOM).split(b"\n", _LINES)[:_LINES] if line.strip()]
    return [value for line in lines if (value := head_value(line)) is not None]


def head_value(head: bytes) -> Any:
    """The one JSON value that these bytes begin with, as far as it goes; None where they hold none."""
    try:
        return jiter.from_json(head.removeprefix(BOM), partial_mode="trailing-strings", cache_mode="keys")
    except ValueError:
        return None

"""The JSON Schemas that other tools may rely on, made from the structs; ``python -m schemas.published`` writes them."""

from typing import Any

import msgspec

from schemas.canonical import FORM
from schemas.rows import CompletionRow, PreferenceRow
from schemas.selection import Selection
from schemas.side_file import SideLine
from schemas.statements import Annotation, Finding, Verification
from schemas.tombstones import Tombstone
from schemas.trajectory import SCHEMA_VERSION, Trajectory

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NUMBERS = (
    f"Schema version {SCHEMA_VERSION}. Canonical form {FORM}: UTF-8, keys sorted by bytes, no spaces, absent optional "
    "fields absent; 1 and 1.0 are different values, integers are exact, strings are never normalised."
)

_PUBLISHED: dict[str, Any] = {
    "annotation": Annotation,
    "completion_row": CompletionRow,
    "finding": Finding,
    "preference_row": PreferenceRow,
    "selection": Selection,
    "side_line": SideLine,
    "tombstone": Tombstone,
    "trajectory": Trajectory,
    "verification": Verification,
}


def documents() -> dict[str, str]:
    """File name to the text of a JSON Schema, formatted the same way each time."""
    return {f"{name}.json": _text(shape) for name, shape in _PUBLISHED.items()}


def _text(shape: Any) -> str:
    schema = {"$schema": DIALECT, "$comment": NUMBERS, **msgspec.json.schema(shape)}
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"

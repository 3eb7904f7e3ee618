"""ShareGPT: ``{conversations: [{from, value}]}`` a line or in a list, the roles as a profile declares them.

Text of the environment under the role of a user stays a user's, unless the profile says that what follows a call is its
answer: ``--format sharegpt-user-answers``, which is never chosen by itself. A ``function_call`` whose text holds no
call is refused as such. The format knows no task; a ``reward`` (ETO) is an outcome, ``loss`` is kept beside.
"""

from collections.abc import Mapping
from typing import Any

from curation.importers.face import Importer, Parsed, Slice
from curation.importers.gathered import keep_bytes
from curation.importers.hf_rows import first_rows, read_row, slices
from curation.importers.row_messages import ANSWERED_BY_USER, PLAIN

FILLS: Mapping[str, str] = {
    "task": "side file",
    "tools": "recorded",
    "budget": "side file",
    "start_state": "side file",
    "attempt": "recorded",
    "outcome": "recorded",
    "stop": "side file",
    "model": "unknown",
    "usage": "unknown",
    "reasoning": "unknown",
    "branch": "unknown",
}


def sniff(head: bytes) -> str:
    """Whether the first rows hold conversations of entries that say who speaks."""
    return "rows with conversations" if any(map(_is_conversation, first_rows(head))) else ""


def _is_conversation(value: Any) -> bool:
    if not isinstance(value, dict) or "suite_name" in value:
        return False
    entries = value.get("conversations", value.get("conversation"))
    first = entries[0] if isinstance(entries, list) and entries else None
    return isinstance(first, dict) and not {"from", "role"}.isdisjoint(first)


def _build(_: Any, data: bytes, piece: Slice, __: int) -> Parsed:
    return read_row(data, piece, PLAIN)


def _build_answered(_: Any, data: bytes, piece: Slice, __: int) -> Parsed:
    return read_row(data, piece, ANSWERED_BY_USER)


def _never(head: bytes) -> str:
    return ""


IMPORTER = Importer("sharegpt", "1", sniff, slices, _build, keep_bytes)
USER_ANSWERS = Importer("sharegpt-user-answers", "1", _never, slices, _build_answered, keep_bytes)

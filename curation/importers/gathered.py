"""Pieces of a file that belong together though they stand apart in it: gathered into one slice, and taken apart again.

A first reading sees every piece once and keeps where it lies; a second takes the pieces of one slice at a time.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from curation.importers.face import MAX_RECORD_BYTES, Rejected, Slice
from curation.importers.heads import head_value
from curation.importers.json_list import read_list
from curation.importers.json_value import read_value
from curation.importers.lines import BOM, read_lines
from schemas import canonical

_HEAD = 1 << 16


class Place(NamedTuple):
    """Where a piece lies: its line or position in the list, from 1, its first byte, its length in bytes."""

    place: int
    offset: int
    length: int


class Piece(NamedTuple):
    """A piece of a gathered slice with its value, or with the code and the words of what kept it from being read."""

    at: Place
    data: bytes
    value: Any = None
    replaced: int = 0
    code: str = ""
    detail: str = ""

    def reject(self, code: str = "", detail: str = "") -> Rejected:
        """The piece as an item that is no part of an attempt, for a code, or for what kept it from being read."""
        words = (code, detail) if code else (self.code, self.detail)
        return Rejected(*words, self.data, self.at.place, self.at.offset, f"piece {self.at.place}")


def read_pieces(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """The records of a file that is JSON Lines, one JSON list, or one JSON object laid out over several lines."""
    with path.open("rb") as file:
        head = file.read(_HEAD).removeprefix(BOM).lstrip()
    line, end, rest = head.partition(b"\n")
    fault = _fault(line)
    whole = fault not in ("truncated", "not_json")
    if not end or whole:
        lines = not head.startswith(b"[") or (bool(rest.strip()) and whole)
        return (read_lines if lines else read_list)(path, limit)
    cut = fault == "truncated" and isinstance(head_value(line), dict)
    return (read_list if head.startswith(b"[") else read_value if cut else read_lines)(path, limit)


def gather(path: Path, places: Sequence[Place], about: Any, limit: int = MAX_RECORD_BYTES) -> Slice:
    """Pieces of a file as one slice, with what is to be known of them; without data where they are over the limit."""
    first = places[0]
    if sum(place.length + 1 for place in places) > limit:
        return Slice(None, first.place, first.offset)
    with path.open("rb") as file:
        found = []
        for place in places:
            file.seek(place.offset)
            found.append(file.read(place.length))
    return Slice(b"\n".join(found), first.place, first.offset, canonical.encode([places, about]))


def take_apart(piece: Slice) -> tuple[list[Piece], Any]:
    """The pieces of a gathered slice, and what is to be known of them. Raises nothing."""
    (places, about), _ = canonical.parse(piece.context)
    data, at, found = piece.data or b"", 0, []
    for place in (Place(*each) for each in places):
        written = data[at : at + place.length]
        at += place.length + 1
        try:
            found.append(Piece(place, written, *canonical.parse(written)))
        except canonical.UnreadableError as error:
            found.append(Piece(place, written, code=error.code, detail=error.detail))
    return found, about


def keep_bytes(data: bytes) -> tuple[Any, int]:
    """The ``parse`` of a format whose slices are gathered: its ``build`` takes them apart."""
    return data, 0


def _fault(line: bytes) -> str:
    """The code that a line would be refused with; "" where it is a value."""
    try:
        canonical.parse(line)
    except canonical.UnreadableError as error:
        return error.code
    return ""

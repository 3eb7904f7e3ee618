"""A session: JSON Lines that make sense only together, as one slice whose lines are parsed one by one.

A line that cannot be read is put aside with its number and its offset; the lines around it are read.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from curation.importers.face import MAX_RECORD_BYTES, Rejected, Slice
from curation.importers.lines import BOM
from schemas import canonical


class SessionLine(NamedTuple):
    """One line that is not blank: its number from 1, the byte where it starts in the slice, its bytes and its value.

    ``code`` and ``detail`` say why there is no value.
    """

    number: int
    offset: int
    data: bytes
    value: Any = None
    code: str = ""
    detail: str = ""

    def reject(self, piece: Slice, code: str = "", detail: str = "") -> Rejected:
        """The line as an item that is no part of an attempt, for a code, or for what kept it from being read."""
        words = (code, detail) if code else (self.code, self.detail)
        return Rejected(*words, self.data, self.number, piece.offset + self.offset, f"line {self.number}")


def read_session(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """The whole of a file as one slice; a file over the limit is not read."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = len(BOM) if file.read(len(BOM)) == BOM else 0
        file.seek(start)
        yield Slice(None if size - start > limit else file.read(limit), 1, start)


def parse_session(data: bytes) -> tuple[list[SessionLine], int]:
    """The lines of a session, and how many lone surrogates were replaced in them. Raises nothing."""
    lines: list[SessionLine] = []
    replaced = offset = 0
    for number, line in enumerate(data.split(b"\n"), 1):
        start, offset = offset, offset + len(line) + 1
        written = line.removesuffix(b"\r")
        if not written or written.isspace():
            continue
        try:
            value, count = canonical.parse(written)
        except canonical.UnreadableError as error:
            lines.append(SessionLine(number, start, written, None, error.code, error.detail))
        else:
            replaced += count
            lines.append(SessionLine(number, start, written, value))
    return lines, replaced

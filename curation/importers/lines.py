"""JSON Lines as slices: one line each, with its number and the byte where it starts."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from curation.importers.face import MAX_RECORD_BYTES, Slice

BOM = b"\xef\xbb\xbf"
_BLOCK = 1 << 20


def read_lines(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """The lines of a file without their ends (LF or CRLF). Blank lines have a number but are no records."""
    with path.open("rb", buffering=_BLOCK) as file:
        offset = len(BOM) if file.read(len(BOM)) == BOM else 0
        file.seek(offset)
        number = 0
        while line := file.readline(limit + 2):
            number += 1
            start, offset = offset, offset + len(line)
            whole = line.endswith(b"\n") or len(line) < limit + 2
            if not whole:
                offset += _skip_line(file)
            data = line.removesuffix(b"\n").removesuffix(b"\r")
            if not whole or len(data) > limit:
                yield Slice(None, number, start)
            elif data and not data.isspace():
                yield Slice(data, number, start)


def _skip_line(file: BinaryIO) -> int:
    skipped = 0
    while block := file.readline(_BLOCK):
        skipped += len(block)
        if block.endswith(b"\n"):
            break
    return skipped

"""One JSON value as the whole of a file."""

import os
from collections.abc import Iterator
from pathlib import Path

from curation.importers.face import MAX_RECORD_BYTES, Slice
from curation.importers.lines import BOM

_SPACE = b" \t\r\n"


def read_value(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """All that a file holds, without the white space around it, as one slice; a file over the limit is not read."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = len(BOM) if file.read(len(BOM)) == BOM else 0
        if size - start > limit:
            yield Slice(None, 1, start)
            return
        file.seek(start)
        data = file.read(size)
    body = data.lstrip(_SPACE)
    yield Slice(body.rstrip(_SPACE), 1, start + len(data) - len(body))

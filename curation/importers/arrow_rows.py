"""Rows of Parquet and Arrow files as slices of canonical JSON, a few rows in memory at a time.

Which keys a row has is lost in such files: each object is filled with the keys of all others. So the JSON of a row is
made here; it is the same whenever the file is read.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from curation.importers.face import MAX_RECORD_BYTES, Slice
from schemas import canonical

MAX_GROUP_BYTES = 2**33  # of a row group of a Parquet file, as its footer says
BROKEN = b"broken"
ARROW = b"arrow"

_PARQUET = b"PAR1"
_FILE = b"ARROW1"
_STREAM = b"\xff\xff\xff\xff"
_ROWS = 64


def kind_of(head: bytes) -> str:
    """What a head begins: a Parquet file, an Arrow file or stream, or nothing of that."""
    if head.startswith(_PARQUET):
        return "a Parquet file"
    return "an Arrow file" if head.startswith((_FILE, _STREAM)) else ""


def read_rows(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """The rows of a file; what of it cannot be read is one more slice, whose context begins with ``BROKEN``."""
    import pyarrow as pa

    number = 0
    try:
        for rows in _batches(path):
            for row in rows:
                number += 1
                data = canonical.encode(row)
                yield Slice(None if len(data) > limit else data, number, 0, ARROW)
    except (pa.ArrowException, OSError, TypeError, ValueError, OverflowError) as error:
        if not path.is_file():
            raise
        words = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        yield Slice(b"", number + 1, 0, BROKEN + words.encode("utf-8", "replace"))


def _batches(path: Path) -> Iterator[list[dict[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        head = file.read(len(_FILE))
    if head.startswith(_PARQUET):
        with pq.ParquetFile(path) as table:
            for group in range(table.metadata.num_row_groups):
                size = table.metadata.row_group(group).total_byte_size
                if size > MAX_GROUP_BYTES:
                    raise ValueError(f"row group {group} holds {size} bytes, over the limit of {MAX_GROUP_BYTES}")
            for batch in table.iter_batches(batch_size=_ROWS):
                yield batch.to_pylist()
        return
    with pa.memory_map(str(path)) as source:
        if head == _FILE:
            reader = pa.ipc.open_file(source)
            batches = (reader.get_batch(index) for index in range(reader.num_record_batches))
        else:
            batches = iter(pa.ipc.open_stream(source))
        for batch in batches:
            batch.validate(full=True)
            for start in range(0, batch.num_rows, _ROWS):
                yield batch.slice(start, _ROWS).to_pylist()

"""Stores made, and damaged, the way a disk or a person would."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from curation.store import Store
from schemas.canonical import digest, encode
from schemas.trajectory import Author, Correction, Fork, Restore, Trajectory
from tests.records import A17, A18, BAD, OK, record


def attempt(number: int) -> Trajectory:
    """One of many different records."""
    return record(f"How many A{number} are left?", "None.")


def put(store: Store, *trajectories: Trajectory) -> list[str]:
    """Write records, each an attempt of its own unless it is a fork."""
    with store.batch() as batch:
        ids = [
            batch.add_trajectory(one, None if one.fork else digest(encode(["raw", encode(one).decode()])))
            for one in trajectories
        ]
        store.write(batch)
    return ids


def fork_of(parent: str) -> Trajectory:
    """A clean fork of ``fail_A18``."""
    whole = record("stock of A17?", A17, OK)
    correction = Correction(Author("human", "someone"), ("request",))
    return Trajectory(
        whole.messages, fork=Fork(parent, 1, "clean", correction, Restore("replayed_prefix", "inventory"))
    )


def failing() -> Trajectory:
    """A record with a wrong call."""
    return record("stock of A17?", A18, BAD, "Sorry.")


def newest(folder: Path, pattern: str) -> Path:
    """The file that was written last."""
    return max(folder.glob(pattern), key=lambda file: (file.stat().st_mtime_ns, file.name))


def cut(file: Path, size: int = 7) -> None:
    """Take the last bytes off a file."""
    file.write_bytes(file.read_bytes()[:-size])


def forge(folder: Path, identity: str, old: str, new: str, column: str = "record") -> None:
    """Change a value of one stored row by writing its data file again, without telling the log."""
    for file in folder.glob("*.parquet"):
        table = pq.read_table(file)
        rows = table.to_pylist()
        if any(row["id"] == identity for row in rows):
            for row in rows:
                if row["id"] == identity:
                    row[column] = _replaced(row[column], old, new)
            _write_at_size(file, pa.Table.from_pylist(rows, table.schema), file.stat().st_size)
            return
    raise AssertionError(f"{identity} is in no file of {folder}")


def _replaced(value: str | bytes, old: str, new: str) -> str | bytes:
    text = value.decode() if isinstance(value, bytes) else value
    assert old in text
    changed = text.replace(old, new)
    return changed.encode() if isinstance(value, bytes) else changed


def _write_at_size(file: Path, table: pa.Table, size: int) -> None:
    """Write a Parquet file of exactly this many bytes: a gap before the footer is in nobody's way."""
    pq.write_table(table, file, compression="zstd", compression_level=19, write_statistics=False, store_schema=False)
    data = file.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    assert len(data) <= size, "the forged file is larger than the first one"
    file.write_bytes(data[:-footer] + bytes(size - len(data)) + data[-footer:])

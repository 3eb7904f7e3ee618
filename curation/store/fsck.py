"""Reading everything again: hashes, columns, files, history, links, and what is erased."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from curation.errors import StoreError
from curation.store import clearing, files
from curation.store.tables import (
    STATEMENTS,
    TABLES,
    Row,
    record_batch,
    selection_row,
    sighting_row,
    statement_row,
    tombstone_row,
    trajectory_row,
)
from schemas.canonical import digest
from schemas.objects import Sighting
from schemas.selection import Selection
from schemas.tombstones import Tombstone
from schemas.trajectory import decode

_KEPT = frozenset(("CREATE TABLE", "WRITE"))
_ROWS = 1_000
_AGAIN = "an erasure was cut off; run `curate forget --yes`, which ends it"


class Problem(NamedTuple):
    """One thing that is not as it should be: an id or a file, its table, and what is wrong."""

    id: str
    table: str
    problem: str


class Checked(NamedTuple):
    """How many rows were read and hashed, what was wrong, and how much of which kind is erased, which is not wrong."""

    rows: int
    problems: list[Problem]
    erased: dict[str, int]


def check(uri: str) -> Checked:
    """Read every row of every table of a store and check it against its name, its log and what it refers to.

    Nothing is repaired. A table whose newest log entry is torn is read at the last version that is whole.
    """
    rows = 0
    problems: list[Problem] = []
    seen: dict[str, set[str]] = {}
    links: list[tuple[str, str, str, str]] = []
    erased, kinds = _erased(uri)
    for table in TABLES:
        ids = seen.setdefault(table, set())
        try:
            delta, _ = files.open_whole(uri, table)
        except StoreError as error:
            problems.append(Problem(table, table, str(error)))
            continue
        problems.extend(_history(uri, delta, table))
        for path in files.data_files(delta):
            try:
                for batch in _batches(uri, table, path):
                    rows += batch.num_rows
                    problems.extend(_wrong_rows(table, batch, ids))
                    problems.extend(_not_gone(table, batch, erased))
                    ids.update(batch["id"].to_pylist())
                    links.extend(_links(table, batch))
            except (OSError, ValueError) as error:
                problems.append(Problem(path, table, f"torn or missing file: {error}"))
        problems.extend(_beside(uri, table, delta, erased))
    problems.extend(
        Problem(identity, table, f"refers to {wanted} that is not in {target}")
        for identity, table, target, wanted in links
        if wanted not in seen[target]
    )
    forks = [(wanted, identity) for identity, table, target, wanted in links if table == target == "trajectories"]
    problems.extend(_hanging(forks, {problem.id for problem in problems}))
    return Checked(rows, problems, kinds)


def _history(uri: str, table: DeltaTable, name: str) -> Iterator[Problem]:
    for entry in files.log_entries(uri, name):
        if not files.is_whole(uri, name, entry):
            yield Problem(entry, name, "torn log entry: its commit is not readable")
    try:
        history = table.history()
    except (DeltaError, ValueError) as error:
        yield Problem(name, name, f"the history cannot be read: {str(error).partition(chr(10))[0]}")
        return
    for commit in history:
        operation = commit.get("operation", "?")
        if commit.get(files.ERASURE) and operation == "WRITE":
            continue
        if operation not in _KEPT or commit.get("operationParameters", {}).get("mode") == "Overwrite":
            yield Problem(
                f"version {commit.get('version')}", name, f"the table was changed by {operation}, not appended to"
            )


def _erased(uri: str) -> tuple[frozenset[str], dict[str, int]]:
    """The digests that are erased, and how many of which kind; none where the tombstones cannot be read."""
    try:
        kinds = clearing.read_kinds(uri)
    except (StoreError, OSError, duckdb.Error):
        return frozenset(), {}
    return frozenset(kinds), dict(sorted(Counter(kinds.values()).items()))


def _not_gone(table: str, batch: pa.RecordBatch, erased: frozenset[str]) -> Iterator[Problem]:
    for identity in batch.filter(clearing.touched(table, batch, erased))["id"].to_pylist() if erased else ():
        yield Problem(identity, table, f"it is of what is erased, and still here: {_AGAIN}")


def _beside(uri: str, table: str, delta: DeltaTable, erased: frozenset[str]) -> Iterator[Problem]:
    """Files that are part of no table and hold what is erased."""
    for path in files.left_over(uri, table, delta) if erased else ():
        with suppress(OSError, ValueError):
            if clearing.holds_erased(uri, table, path, erased):
                yield Problem(path, table, f"a file beside the table holds what is erased: {_AGAIN}")


def _batches(uri: str, table: str, path: str) -> Iterator[pa.RecordBatch]:
    with files.storage(uri, table).open_input_file(path) as source:
        for batch in pq.ParquetFile(source).iter_batches(batch_size=_ROWS):
            yield batch.select(TABLES[table].names).cast(TABLES[table])


def _wrong_rows(table: str, batch: pa.RecordBatch, known: set[str]) -> Iterator[Problem]:
    """Rows that are not what their id names, that stand twice, or whose columns do not repeat their record."""
    named = []
    met: set[str] = set()
    for number, (identity, data) in enumerate(zip(batch["id"].to_pylist(), _contents(table, batch), strict=True)):
        if (actual := digest(data)) != identity:
            yield Problem(identity, table, f"id_mismatch: its bytes are those of {actual}")
        else:
            named.append(number)
        if identity in known or identity in met:
            yield Problem(identity, table, "the same id stands in two rows")
        met.add(identity)
    if table != "objects":
        yield from _wrong_columns(table, batch.take(pa.array(named, pa.int64())))


def _wrong_columns(table: str, batch: pa.RecordBatch) -> Iterator[Problem]:
    rows = []
    for identity, record, attempt in zip(
        batch["id"].to_pylist(),
        batch["record"].to_pylist(),
        batch["attempt_id"].to_pylist() if table == "trajectories" else [None] * batch.num_rows,
        strict=True,
    ):
        try:
            rows.append(_row_of(table, record, attempt))
        except msgspec.DecodeError as error:
            yield Problem(identity, table, f"its record is not of this version's shape: {error}")
            return
    if not record_batch(table, rows).equals(batch):
        for number, row in enumerate(rows):
            if not record_batch(table, [row]).equals(batch.slice(number, 1)):
                yield Problem(row["id"], table, "its columns do not say what its record says")


def _row_of(table: str, record: str, attempt: str | None) -> Row:
    match table:
        case "trajectories":
            return trajectory_row(decode(record), record.encode(), attempt)
        case "sightings":
            return sighting_row(msgspec.json.decode(record, type=Sighting))
        case "tombstones":
            return tombstone_row(msgspec.json.decode(record, type=Tombstone))
        case "selections":
            return selection_row(msgspec.json.decode(record, type=Selection))
        case _:
            return statement_row(msgspec.json.decode(record, type=STATEMENTS[table]))


def _contents(table: str, batch: pa.RecordBatch) -> list[bytes]:
    if table == "objects":
        return list(batch["bytes"].to_pylist())
    return [record.encode() for record in batch["record"].to_pylist()]


def _links(table: str, batch: pa.RecordBatch) -> Iterator[tuple[str, str, str, str]]:
    if table == "sightings":
        batch = batch.filter(pc.not_equal(pc.fill_null(batch["code"], ""), clearing.CODE))
    for column, target in _LINKS.get(table, {}).items():
        for identity, wanted in zip(batch["id"].to_pylist(), batch[column].to_pylist(), strict=True):
            if wanted is not None:
                yield identity, table, target, wanted


def _hanging(forks: Iterable[tuple[str, str]], bad: set[str]) -> Iterator[Problem]:
    """Every fork that has a bad record among its ancestors."""
    children = defaultdict(list)
    for parent, child in forks:
        children[parent].append(child)
    pending = [(record, child) for record in sorted(bad) for child in children[record]]
    told = set()
    while pending:
        record, fork = pending.pop()
        if (record, fork) not in told:
            told.add((record, fork))
            yield Problem(fork, "trajectories", f"is a fork of {record}, which is bad")
            pending.extend((record, child) for child in children[fork])


_LINKS: dict[str, dict[str, str]] = {
    "sightings": {"raw": "objects"},
    "trajectories": {"tools": "objects", "parent": "trajectories"},
}
"""Columns that name a row of another table which must be there. Statements may come before their trajectory."""

"""What one verb writes: rows per table, each id once, spilled to staged Parquet files as they grow.

Compression and writing run in a second thread, so that reading and digesting go on meanwhile. Nothing is visible until
``Store.write`` commits the batch.
"""

import queue
import threading
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from curation.store.files import StagedFile, Writer
from curation.store.tables import (
    TABLES,
    Row,
    check_name,
    object_row,
    record_batch,
    selection_row,
    statement_row,
    statement_table,
    tombstone_row,
    trajectory_row,
)
from schemas.canonical import encode
from schemas.objects import Object
from schemas.selection import Selection
from schemas.statements import Statement
from schemas.tombstones import Tombstone
from schemas.trajectory import Trajectory

_SPILL_BYTES = 8 * 2**20
_SPILL_ROWS = 20_000


class Batch:
    """Rows to be written together. Adding what it holds already does nothing."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._ids: dict[str, set[str]] = {table: set() for table in TABLES}
        self._rows: dict[str, list[Row]] = {table: [] for table in TABLES}
        self._made: dict[str, list[pa.RecordBatch]] = {table: [] for table in TABLES}
        self._weight = dict.fromkeys(TABLES, 0)
        self._spooler: _Spooler | None = None
        self.attempts: dict[str, str] = {}
        """The trajectory that each attempt of this batch is recorded by."""
        self.erasing = False
        """Whether what the tombstones name is to be taken out of the data files too."""
        self.lifted: set[str] = set()
        """What was erased and may come back, as tombstones of this batch say."""

    def add_trajectory(self, trajectory: Trajectory, attempt_id: str | None = None) -> str:
        """Add a record and return its id. ``attempt_id`` is absent for a fork."""
        record = encode(trajectory)
        identity = self._add("trajectories", trajectory_row(trajectory, record, attempt_id), len(record))
        if attempt_id is not None:
            self.attempts[attempt_id] = identity
        return identity

    def add_object(self, item: Object) -> str:
        """Add bytes and return their name. Raises StoreError where the name is not that of the bytes."""
        if item.id in self._ids["objects"]:
            return item.id
        check_name("object", item.id, item.bytes)
        return self._add("objects", object_row(item), len(item.bytes))

    def add_statement(self, statement: Statement) -> str:
        """Add an annotation, finding or verification and return its id."""
        return self._add(statement_table(statement), statement_row(statement), 1_000)

    def add_selection(self, selection: Selection) -> str:
        """Add a build's decision and return its id."""
        return self._add("selections", selection_row(selection), 1_000)

    def add_tombstone(self, tombstone: Tombstone) -> str:
        """Add that something is erased, or may come back, and return the tombstone's id."""
        if tombstone.lifted:
            self.lifted.add(tombstone.erased)
        return self._add("tombstones", tombstone_row(tombstone), 1_000)

    def add_rows(self, table: str, rows: pa.RecordBatch) -> None:
        """Add rows that were made elsewhere, each id once."""
        held = self._ids[table]
        new = []
        for number, identity in enumerate(rows.column("id").to_pylist()):
            if identity not in held:
                held.add(identity)
                new.append(number)
        if len(new) < rows.num_rows:
            rows = rows.take(pa.array(new, pa.int64()))
        if table == "trajectories":
            self.attempts.update(zip(rows.column("attempt_id").to_pylist(), rows.column("id").to_pylist(), strict=True))
        self._made[table].append(rows)
        self._grow(table, rows.nbytes)

    def has(self, table: str, identity: str) -> bool:
        """Whether this batch holds a row of that id."""
        return identity in self._ids[table]

    def ids(self, table: str) -> set[str]:
        """The ids of a table's rows in this batch."""
        return self._ids[table]

    def leave_out(self, table: str, identities: set[str]) -> None:
        """Take rows for what is stored already."""
        self._ids[table] -= identities

    def finish(self) -> dict[str, list[StagedFile]]:
        """Write out what is left and return the staged files of each table."""
        for table in TABLES:
            self._spill(table)
        files = self._spooler.finish() if self._spooler else {}
        self._spooler = None
        return files

    def close(self) -> None:
        """Stop writing; what was staged stays invisible."""
        if self._spooler:
            self._spooler.finish()
            self._spooler = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _add(self, table: str, row: Row, weight: int) -> str:
        identity: str = row["id"]
        if identity not in self._ids[table]:
            self._ids[table].add(identity)
            self._rows[table].append(row)
            self._grow(table, weight)
        return identity

    def _grow(self, table: str, weight: int) -> None:
        self._weight[table] += weight
        if self._weight[table] >= _SPILL_BYTES or len(self._rows[table]) >= _SPILL_ROWS:
            self._spill(table)

    def _spill(self, table: str) -> None:
        batches = self._made[table]
        if self._rows[table]:
            batches.append(record_batch(table, self._rows[table]))
        self._rows[table], self._made[table], self._weight[table] = [], [], 0
        if not batches:
            return
        if self._spooler is None:
            self._spooler = _Spooler(self._uri)
        self._spooler.put(table, pa.Table.from_batches(batches))


class _Spooler:
    """A thread that writes record batches to one staged file a table."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._queue: queue.Queue[tuple[str, pa.Table] | None] = queue.Queue(maxsize=2)
        self._files: dict[str, list[StagedFile]] = {}
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def put(self, table: str, rows: pa.Table) -> None:
        """Hand rows over; waits while two lots are under way."""
        if self._error is not None:
            raise self._error
        self._queue.put((table, rows))

    def finish(self) -> dict[str, list[StagedFile]]:
        """Wait until all is written; the staged files by table."""
        self._queue.put(None)
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._files

    def _run(self) -> None:
        writers: dict[str, Any] = {}
        while (item := self._queue.get()) is not None:
            if self._error is not None:
                continue
            table, rows = item
            try:
                if table not in writers:
                    writers[table] = Writer(self._uri, table)
                writers[table].write(rows)
            except BaseException as error:
                self._error = error
        for table, writer in writers.items():
            try:
                self._files[table] = [writer.close()]
            except BaseException as error:
                self._error = self._error or error

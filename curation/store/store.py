"""A store: opened by its address, read by id or by SQL, written by one function."""

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from curation.errors import CurationError, ErasedError, MovedError, NotFoundError, StoreError, UsageError
from curation.queries import SETTINGS, Bounds, stream
from curation.store import clearing, files, returning, views
from curation.store.batch import Batch
from curation.store.files import StagedFile
from curation.store.tables import TABLES, check_name
from schemas.trajectory import Trajectory, decode

_CHUNK = 500
_GONE = ("No files found", "Cannot open file", "No such file")
_DAMAGE = (views.MISMATCH, "Failed to read file", "TProtocolException", "No magic bytes")


class Store:
    """The eight tables at one address (a local folder or any object store's URI), as of when it was opened.

    ``write`` and ``refresh`` bring the view up to date; nothing else changes what is read. What another process erases
    meanwhile cannot be read any more (MovedError).
    """

    def __init__(self, uri: str) -> None:
        self.uri = uri.rstrip("/")
        self._load()

    @classmethod
    def create(cls, uri: str) -> Self:
        """A new, empty store; one whose creation was cut off is completed. Raises StoreError where there is one."""
        if files.is_local(uri):
            Path(uri).mkdir(parents=True, exist_ok=True)
        missing = [table for table in TABLES if not files.is_table(uri.rstrip("/"), table)]
        if not missing:
            raise StoreError(
                f"{uri!r} is a store already: import into it (`curate show` lists what it holds), or name a new place "
                "with --store URI"
            )
        for table in missing:
            files.create_table(uri.rstrip("/"), table)
        return cls(uri)

    @classmethod
    def open(cls, uri: str) -> Self:
        """The store at that address. Raises StoreError where there is none."""
        return cls(uri)

    @property
    def torn(self) -> dict[str, list[str]]:
        """Data files and newest log entries that are missing or cut short, by table.

        What they hold is in no query; where there are any, only single records can be read and nothing is written.
        """
        return self._torn

    def delta(self, table: str) -> DeltaTable:
        """A table as Delta Lake sees it."""
        return self._tables[table]

    def is_empty(self, table: str) -> bool:
        """Whether a table holds no row."""
        return not files.data_files(self._tables[table])

    def sql(self, query: str, params: Sequence[Any] | None = None) -> pa.Table:
        """The result of one query over the tables and views. Raises UsageError with DuckDB's words.

        Raises StoreError where a data file is torn, as counting what is left would be a wrong number, and where content
        that the query reads is not what its id names.
        """
        self.refuse_torn()
        return self._query(query, params)

    def ask(self, query: str, bounds: Bounds) -> Iterator[pa.RecordBatch]:
        """The result of a query that somebody wrote, in batches, the first of which is empty.

        Raises as ``sql`` does, and UsageError where the query is over a bound.
        """
        self.refuse_torn()
        connection = views.connect(self.uri, self._tables, self._torn, verify=True, settings=SETTINGS)
        try:
            _refuse_change(connection, query)
            yield from stream(connection, query, _CHUNK, bounds, as_it_comes=False)
        except duckdb.Error as error:
            raise _explained(error) from error

    def stream(self, query: str, params: Mapping[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
        """The result of one query in batches of so many rows, without holding it; ``params`` are bound by name.

        Content comes as it is written, for readers that check it (``check_name``) while they decode it. Another stream
        on this store ends it. Raises as ``sql`` does.
        """
        self.refuse_torn()
        try:
            yield from self._unverified.sql(query, params=dict(params)).to_arrow_reader(rows)
        except duckdb.Error as error:
            raise _explained(error) from error

    def trajectory(self, identity: str) -> Trajectory:
        """The record of that id, verified. Raises NotFoundError, or StoreError where its bytes are not its name's.

        In a torn store a record that is in whole files can still be read.
        """
        rows = self._query("SELECT record FROM trajectories WHERE id = ?", [identity])
        if not rows.num_rows:
            raise self._missing("trajectories", identity)
        return _verified(identity, rows["record"][0].as_py())

    def trajectories(self, identities: Sequence[str]) -> Iterator[tuple[str, Trajectory]]:
        """Records by id, verified, in the order asked for, a few hundred in memory at a time."""
        for start in range(0, len(identities), _CHUNK):
            chunk = list(identities[start : start + _CHUNK])
            rows = self.sql("SELECT id, record FROM trajectories WHERE id IN (SELECT unnest(?))", [chunk])
            found = dict(zip(rows["id"].to_pylist(), rows["record"].to_pylist(), strict=True))
            for identity in chunk:
                if identity not in found:
                    raise self._missing("trajectories", identity)
                yield identity, _verified(identity, found[identity])

    def object(self, identity: str) -> bytes:
        """The bytes of that name, verified. Raises NotFoundError or StoreError."""
        rows = self._query("SELECT bytes FROM objects WHERE id = ?", [identity])
        if not rows.num_rows:
            raise self._missing("objects", identity)
        data: bytes = rows["bytes"][0].as_py()
        check_name("object", identity, data)
        return data

    def find(self, table: str, column: str, prefix: str, limit: int) -> list[str]:
        """The first ids in a column that start with ``prefix``; of a torn store, those in whole files."""
        rows = self._query(
            f"SELECT DISTINCT {column} AS id FROM {table} WHERE starts_with({column}, ?) ORDER BY id LIMIT {limit:d}",
            [prefix],
        )
        return list(rows["id"].to_pylist())

    def batch(self) -> Batch:
        """An empty batch to be filled and given to ``write``."""
        return Batch(self.uri)

    def write(self, batch: Batch) -> dict[str, int]:
        """Commit a batch, one table after the other, referenced tables first; how many rows of each were new.

        Rows whose id is there already are left out, also when another process writes the same ones meanwhile: what the
        batch has afterwards is what it brought. What was erased and is made again by right (``returning``) is erased no
        more. Raises StoreError, before anything is committed, where the store is torn; and, before any trajectory is
        visible, where another process has meanwhile stored other bytes for an attempt of this batch, or erased what it
        is about.

        With a batch that is ``erasing``, what stands in tombstones is taken out of every table, and the data files that
        held it are deleted: the only thing that is ever taken away.
        """
        self.refuse_torn()
        staged, written = batch.finish(), dict[str, int]()
        try:
            for table, more in self._lift(batch, staged).items():
                staged.setdefault(table, []).extend(more)
            for table in TABLES:
                written[table] = self._put(table, staged.get(table, []), batch)
        except ErasedError:
            for table in staged.keys() - written.keys():
                for file in staged[table]:
                    files.delete(self.uri, table, file.path)
            raise
        except duckdb.Error as error:
            raise _explained(error) from error
        self._load()
        return written

    def sweep(self) -> list[str]:
        """Delete the files of no table that hold what is erased; those that cannot be read are left, and named.

        A process that is writing, or was killed while it did, leaves such files; they are in no query.
        """
        erased = clearing.read_erased(self.uri)
        return [path for table in TABLES if erased for path in clearing.sweep(self.uri, table, erased)]

    def refresh(self) -> None:
        """Bring the view up to date with what other processes wrote and erased."""
        self._load()

    def refuse_torn(self) -> None:
        """Raise StoreError that names the first torn data file or log entry, if there is one."""
        for table, paths in self._torn.items():
            if paths:
                raise StoreError(_torn_words(table, paths))

    def _missing(self, table: str, identity: str) -> CurationError:
        if torn := self._torn[table]:
            return StoreError(f"{identity!r} is in no whole file of {self.uri!r}; {_torn_words(table, torn)}")
        if identity in clearing.read_erased(self.uri):
            return NotFoundError(f"{identity!r} was erased; `curate show {identity[:16]}` prints its tombstone")
        return NotFoundError(f"nothing of id {identity!r} in table {table!r} of {self.uri!r}")

    def _load(self) -> None:
        opened = {table: self._settled(table) for table in TABLES}
        self._tables = {name: table for name, (table, _) in opened.items()}
        self._torn = {name: torn for name, (_, torn) in opened.items()}
        for connection in ("_connection", "_unverified"):
            self.__dict__.pop(connection, None)

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        return views.connect(self.uri, self._tables, self._torn, verify=True)

    @cached_property
    def _unverified(self) -> duckdb.DuckDBPyConnection:
        return views.connect(self.uri, self._tables, self._torn, verify=False)

    def _query(self, query: str, params: Sequence[Any] | None) -> pa.Table:
        try:
            _refuse_change(self._connection, query)
            return self._connection.sql(query, params=list(params or ())).to_arrow_table()
        except duckdb.Error as error:
            raise _explained(error) from error

    def _lift(self, batch: Batch, staged: Mapping[str, Sequence[StagedFile]]) -> dict[str, list[StagedFile]]:
        """The tombstones that lift what this batch makes again. Raises ErasedError where it may not."""
        erased = clearing.read_erased(self.uri) - batch.lifted
        if batch.erasing or not erased:
            return {}
        about: dict[str, set[str]] = {}
        for table in TABLES:
            for file in staged.get(table, ()):
                try:
                    for name in clearing.names_erased(self.uri, table, file.path, erased):
                        about.setdefault(name, set()).add(table)
                except FileNotFoundError as error:  # who erases has deleted it
                    raise _erased(table) from error
        refused = returning.lift(self.uri, batch, about, erased) if about else set[str]()
        for name in sorted(refused):
            raise _erased(min(about[name]))
        return batch.finish()

    def _put(self, table: str, staged: list[StagedFile], batch: Batch) -> int:
        if not staged and not batch.erasing:
            return 0
        looked: set[str] = set()
        for _ in files.attempts():
            seen, torn = self._settled(table)
            if torn:
                raise StoreError(_torn_words(table, torn))
            with self._unless_moved(table, seen):
                if table == "trajectories":
                    self._refuse_rivals(seen, batch.attempts)
                if known := self._known(table, seen, batch.ids(table), looked):
                    staged = self._without(table, staged, known)
                    batch.leave_out(table, known)
                looked.update(files.data_files(seen))
                erased = clearing.read_erased(self.uri)
                self._refuse_erased(table, staged, erased)
                cleared = clearing.clear(self.uri, table, seen, erased) if batch.erasing else clearing.Cleared()
                rows = sum(file.rows for file in staged)
                if not (rows or cleared.replaced) or files.try_commit(
                    self.uri, table, seen, [*(staged if rows else ()), *cleared.files], cleared.replaced
                ):
                    for path in cleared.replaced:
                        files.delete(self.uri, table, path)
                    return rows
                for file in cleared.files:
                    files.delete(self.uri, table, file.path)
        raise StoreError(f"table {table!r} could not be written")

    @contextmanager
    def _unless_moved(self, table: str, seen: DeltaTable) -> Iterator[None]:
        """Pass over files that are gone where another process has replaced them: the table is to be looked at again."""
        try:
            yield
        except (duckdb.IOException, FileNotFoundError) as error:
            if files.open_whole(self.uri, table)[0].version() == seen.version():
                raise _moved(error) from error

    def _settled(self, table: str) -> tuple[DeltaTable, list[str]]:
        """A table as it is now, and its torn files; those that an erasure replaces meanwhile are none."""
        while True:
            opened, entries = files.open_whole(self.uri, table)
            torn = [*entries, *files.torn_files(self.uri, table, opened)]
            if not torn or files.open_whole(self.uri, table)[0].version() == opened.version():
                return opened, torn

    def _refuse_erased(self, table: str, staged: list[StagedFile], erased: frozenset[str]) -> None:
        """Refuse rows about what is erased."""
        for file in staged if erased else ():
            with suppress(FileNotFoundError):
                if not clearing.holds_erased(self.uri, table, file.path, erased):
                    continue
            raise _erased(table)

    def _known(self, table: str, seen: DeltaTable, ids: set[str], looked: Set[str]) -> set[str]:
        """Which of these ids are in the table's data files, but for those that were looked at before."""
        if looked >= files.data_files(seen).keys():
            return set()
        connection = duckdb.connect(config={"threads": 2})
        connection.register("wanted", pa.table({"id": sorted(ids)}))
        views.attach(connection, self.uri, table, seen, looked)
        return {row[0] for row in connection.execute(f"SELECT id FROM {table} SEMI JOIN wanted USING (id)").fetchall()}

    def _refuse_rivals(self, seen: DeltaTable, attempts: Mapping[str, str]) -> None:
        """Refuse what another process has stored for one of these attempts since this store was opened."""
        before = files.data_files(self._tables["trajectories"])
        if not attempts or before.keys() >= files.data_files(seen).keys():
            return
        connection = duckdb.connect(config={"threads": 2})
        ours = pa.table({"attempt_id": list(attempts), "ours": list(attempts.values())})
        connection.register("attempts", ours)
        views.attach(connection, self.uri, "trajectories", seen, before)
        rival = connection.execute(
            "SELECT attempt_id, id FROM trajectories JOIN attempts USING (attempt_id) WHERE id <> ours LIMIT 1"
        ).fetchone()
        if rival is not None:
            raise StoreError(
                f"another process has meanwhile stored attempt {rival[0]} as {rival[1]}: nothing of this import is "
                "visible; run the same command again"
            )

    def _without(self, table: str, staged: list[StagedFile], known: set[str]) -> list[StagedFile]:
        writer = files.Writer(self.uri, table)
        values = pa.array(sorted(known))
        for file in staged:
            for rows in files.read_staged(self.uri, table, file):
                kept = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=values)))
                if kept.num_rows:
                    writer.write(pa.Table.from_batches([kept]))
        return [writer.close()]


def _refuse_change(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    if [statement.type for statement in connection.extract_statements(query)] != [duckdb.StatementType.SELECT]:
        raise UsageError(f"one SELECT statement is wanted, not {query!r}: a store is never changed by SQL")


def _explained(error: duckdb.Error) -> CurationError:
    """A failed query as damage of the store, where it is that, or as the query's own mistake."""
    words = str(error)
    if any(sign in words for sign in _GONE):
        return _moved(error)
    if any(sign in words for sign in _DAMAGE):
        return StoreError(f"{words.splitlines()[0]}; `curate fsck` names all that is damaged")
    return UsageError(f"query failed: {words}")


def _moved(error: Exception) -> MovedError:
    return MovedError(
        f"a data file is gone ({str(error).splitlines()[0]}): where another process erases, run the same command "
        "again; else `curate fsck` names it"
    )


def _erased(table: str) -> ErasedError:
    return ErasedError(
        f"another process has meanwhile erased what rows of table {table!r} are about: they are not written; run the "
        "same command again; if no other process erases, one was cut off: `curate forget --yes` ends that"
    )


def _verified(identity: str, record: str) -> Trajectory:
    check_name("trajectory", identity, record.encode())
    try:
        return decode(record)
    except msgspec.ValidationError as error:
        raise StoreError(f"trajectory {identity!r} is not of this version's shape: {error}") from error


def _torn_words(table: str, torn: Sequence[str]) -> str:
    if torn[0].endswith(".json"):
        return files.torn_entry_words(table, list(torn))
    return (
        f"table {table!r} has a torn or missing file {torn[0]!r}: restore it from a copy, or import the logs into a "
        "new store; single records in other files stay readable with `curate show ID`"
    )

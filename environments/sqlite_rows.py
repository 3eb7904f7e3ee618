"""The rows of a database as one tree of hashes a table, kept up to date while tools write.

Temporary triggers note every row that comes or goes in a temporary table, so that a transaction that is taken back
takes its notes back too. Where triggers cannot see everything (there are triggers or virtual tables of the user's own,
or a table of very many columns) all rows are read again after every write, and after a blob was opened to be written.
"""

import sqlite3
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from environments.row_tree import EMPTY, Tree, fold
from environments.sqlite_image import Connection, objects_of

_NOTES = "_noted_rows"
_PACK = "_packed_row"
_TABLES = "SELECT name, type, wr FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')"
_COLUMNS = "SELECT name, pk, hidden FROM pragma_table_xinfo(?) ORDER BY cid"
_ORDINARY, _STORED = 0, 3  # columns that lie in the file; _STORED ones are generated
_OWN_KEY = "SELECT 1 FROM pragma_index_list(?) WHERE origin = 'pk'"
_TRIGGERS = "SELECT name, name GLOB '_noted_*' FROM temp.sqlite_schema WHERE type = 'trigger'"

Row = tuple[Any, ...]
Trees = Mapping[str, Tree]


class Table(NamedTuple):
    """A table's stored columns, and the positions of its primary key in them, where that says of each row which it is
    and where it lies: rows lie in the order of their numbers, and what a world answers may follow it.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[int, ...]

    def key_of(self, row: Row) -> Row | None:
        """What tells this row apart, if anything does."""
        return tuple(row[place] for place in self.key) or None


class Change(NamedTuple):
    """A row as it was at first and as it is now; absent is None."""

    before: Row | None
    after: Row | None


class Mark(NamedTuple):
    """What was known of the rows at some time."""

    seen: tuple[Any, ...]
    tracked: bool
    tables: dict[str, Table]
    trees: dict[str, Tree]
    changes: dict[tuple[str, Row], Change] | None


class Rows:
    """What the tables hold. ``changes`` are those since the start, by table and key; None where they are not known."""

    def __init__(self, connection: Connection, known: Trees | None = None) -> None:
        """``known``: the trees of exactly these rows, from an earlier reading of the same image."""
        self._connection = connection
        self._seen: tuple[Any, ...] = ()
        self._tracked = False
        self.tables: dict[str, Table] = {}
        self.trees: dict[str, Tree] = {}
        self.changes: dict[tuple[str, Row], Change] | None = None
        connection.create_function(_PACK, -1, packed, deterministic=True)
        self._read_schema()
        self.trees = dict(known) if known is not None else self._read_all()
        self.start_over()

    def mark(self) -> "Mark":
        """What is known now, for ``go_back`` after everything since was taken back."""
        changes = None if self.changes is None else dict(self.changes)
        return Mark(self._seen, self._tracked, self.tables, dict(self.trees), changes)

    def go_back(self, mark: "Mark") -> None:
        """Know what was known at the mark."""
        self._seen, self._tracked, self.tables, self.trees, self.changes = mark

    def start_over(self) -> None:
        """Count changes from here on."""
        self.changes = {} if self._tracked else None

    def refresh(self) -> None:
        """Follow what was written. Raises sqlite3.Error, UnicodeError."""
        if self._schema() != self._seen:
            self._read_schema()
            self.trees, self.changes = self._read_all(), None
        elif self._tracked:
            self._follow()

    def _schema(self) -> tuple[Any, ...]:
        pragmas = ("schema_version", "recursive_triggers")
        found = [self._connection.read(f"PRAGMA main.{pragma}")[0][0] for pragma in pragmas]
        found.append(self._connection.blobs_opened)
        return (*found,) if self._tracked else (*found, self._connection.total_changes)

    def _read_schema(self) -> None:
        found = self._connection.read(_TABLES)
        self.tables = {name: self._table(name, bool(own)) for name, _, own in found if not name.startswith("sqlite_")}
        most = self._connection.getlimit(sqlite3.SQLITE_LIMIT_FUNCTION_ARG)
        self._tracked = (
            all(kind != "trigger" for kind, *_ in objects_of(self._connection))
            and all(ours for _, ours in self._connection.read(_TRIGGERS))
            and all(kind == "table" for _, kind, _ in found)
            and all(len(table.columns) <= most for table in self.tables.values())
        )
        self._connection.execute("PRAGMA recursive_triggers = ON")
        self._note_writes()
        self._seen = self._schema()

    def _table(self, name: str, lies_by_key: bool) -> Table:
        columns = [row for row in self._connection.read(_COLUMNS, name) if row[2] in (_ORDINARY, _STORED)]
        keyed = sorted((place, number) for number, (_, place, _) in enumerate(columns) if place)
        placed = lies_by_key or not self._connection.read(_OWN_KEY, name)
        generated = any(hidden == _STORED for *_, hidden in columns)
        key = tuple(number for _, number in keyed) if placed and not generated else ()
        return Table(name, tuple(column for column, *_ in columns), key)

    def _note_writes(self) -> None:
        run = self._connection.execute
        for name in [name for name, ours in self._connection.read(_TRIGGERS) if ours]:
            run(f"DROP TRIGGER temp.{quoted(name)}")
        run(f"CREATE TEMP TABLE IF NOT EXISTS {_NOTES} (source TEXT, before BLOB, after BLOB)")
        run(f"DELETE FROM {_NOTES}")
        for number, table in enumerate(self.tables.values() if self._tracked else ()):
            before, after = (_call_of(prefix, table) for prefix in ("old", "new"))
            name = "'" + table.name.replace("'", "''") + "'"
            for event, values in (
                ("INSERT", f"NULL, {after}"),
                ("UPDATE", f"{before}, {after}"),
                ("DELETE", f"{before}, NULL"),
            ):
                run(
                    f"CREATE TEMP TRIGGER _noted_{event}_{number} AFTER {event} ON main.{quoted(table.name)} "
                    f"BEGIN INSERT INTO {_NOTES} VALUES ({name}, {values}); END"
                )
        self._connection.commit()

    def _read_all(self) -> dict[str, Tree]:
        found = {}
        for table in self.tables.values():
            columns = ", ".join(map(quoted, table.columns))
            rows = self._connection.each(f"SELECT {columns} FROM main.{quoted(table.name)}")
            found[table.name] = fold(EMPTY, [_hash(packed(*row)) for row in rows])
        return found

    def _follow(self) -> None:
        notes = self._connection.read(f"SELECT source, before, after FROM {_NOTES} ORDER BY rowid")
        if not notes:
            return
        self._connection.execute(f"DELETE FROM {_NOTES}")
        self._connection.commit()
        for name in {name for name, *_ in notes}:
            gone = [_hash(before) for source, before, _ in notes if source == name and before is not None]
            come = [_hash(after) for source, _, after in notes if source == name and after is not None]
            self.trees[name] = fold(self.trees[name], come, gone)
        for name, before, after in notes:
            self._remember(self.tables[name], _unpack(before), None)
            self._remember(self.tables[name], None, _unpack(after))

    def _remember(self, table: Table, before: Row | None, after: Row | None) -> None:
        row = before if after is None else after
        if row is None or self.changes is None:
            return
        key = table.key_of(row)
        if key is None:
            self.changes = None
            return
        first = self.changes.get((table.name, key), Change(before, None))
        self.changes[table.name, key] = Change(first.before, after)


def quoted(name: str) -> str:
    """A name as SQL text."""
    return '"' + name.replace('"', '""') + '"'


def _call_of(prefix: str, table: Table) -> str:
    return f"{_PACK}({', '.join(f'{prefix}.{quoted(column)}' for column in table.columns)})"


def packed(*row: Any) -> bytes:
    """Bytes that tell integer, real, text, blob and null apart."""
    return msgspec.msgpack.encode(row)


def _unpack(data: bytes | None) -> Row | None:
    return None if data is None else tuple(msgspec.msgpack.decode(data))


def _hash(data: bytes) -> bytes:
    return sha256(data).digest()

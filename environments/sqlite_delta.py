"""What has changed in a database since an image of it, as a changeset of SQLite's session extension.

Needs apsw (the extra ``sqlite``). A changeset holds rows that their primary key names and places: those of tables with
an INTEGER PRIMARY KEY or WITHOUT ROWID. Where the schema changed, or other rows did, there is none, nor where ANALYZE
keeps figures that no trigger sees: pages or a whole image take its place.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any

import msgspec

from environments.protocol import SnapshotError
from environments.sqlite_image import objects_of
from environments.sqlite_rows import Change, Row, Table, packed, quoted
from environments.sqlite_state import PRAGMAS, SqliteState, sequence_of
from schemas.canonical import encode
from schemas.trajectory import Record

FORM = "sqlite-changeset/1"


class Delta(Record, frozen=True):
    """A changeset, and what no changeset holds: the two numbers of the header, and the last AUTOINCREMENT numbers."""

    changeset: bytes
    user_version: int
    application_id: int
    sequence: tuple[tuple[str, int], ...]


def delta_of(state: SqliteState) -> bytes | None:
    """The delta from where the state's changes are counted, or None where there can be none."""
    state.rows.refresh()
    changes = state.rows.changes
    analyzed = any(name.startswith("sqlite_stat") for _, name, *_ in objects_of(state.connection))
    if changes is None or analyzed or find_spec("apsw") is None:
        return None
    changeset = _changeset(state, changes)
    if changeset is None:
        return None
    version, application = (state.connection.read(f"PRAGMA main.{pragma}")[0][0] for pragma in PRAGMAS)
    try:
        sequence = msgspec.convert(sequence_of(state.connection), tuple[tuple[str, int], ...])
    except msgspec.ValidationError:
        return None
    return encode(Delta(changeset, version, application, sequence))


def apply_delta(state: SqliteState, data: bytes) -> None:
    """Bring a state from the image to what the delta says. Raises SnapshotError."""
    if find_spec("apsw") is None:
        raise SnapshotError("a changeset needs apsw: install the extra 'sqlite'")
    import apsw

    run, read = state.connection.execute, state.connection.read
    checked = read("PRAGMA foreign_keys")[0][0]
    run("PRAGMA foreign_keys = OFF")  # a changeset says all that changed; nothing may cascade from it
    try:
        delta = msgspec.json.decode(data, type=Delta)
        come: list[tuple[Table, Row]] = []
        for item in apsw.Changeset.iter(delta.changeset):
            table = state.rows.tables.get(item.name)
            if table is None or not table.key or item.column_count != len(table.columns):
                raise SnapshotError(f"the changeset is of another schema: table {item.name!r}")
            before: Row = () if item.old is None else _take(state, table, tuple(item.old[place] for place in table.key))
            if item.new is not None:
                come.append(
                    (table, tuple(old if new is apsw.no_change else new for old, new in zip_longest(before, item.new)))
                )
        for table, row in come:
            run(*_insert(table, row, "main."))
        for pragma in PRAGMAS:
            run(f"PRAGMA main.{pragma} = {getattr(delta, pragma)}")
        if delta.sequence or sequence_of(state.connection):
            run("DELETE FROM main.sqlite_sequence")
            for numbers in delta.sequence:
                run("INSERT INTO main.sqlite_sequence VALUES (?, ?)", numbers)
        state.connection.commit()
        run(f"PRAGMA foreign_keys = {checked}")
    except (msgspec.MsgspecError, apsw.Error, sqlite3.Error, OverflowError) as error:
        raise SnapshotError(f"the changeset cannot be applied: {error}") from None


def _changeset(state: SqliteState, changes: dict[tuple[str, Row], Change]) -> bytes | None:
    """The changes as a session records them that sees them made in a database of nothing else."""
    import apsw

    tables = state.rows.tables
    touched = {name for name, _ in changes}
    try:
        with closing(apsw.Connection(":memory:")) as scratch:
            for kind, name, _, sql in objects_of(state.connection):
                if kind == "table" and name in touched:
                    scratch.execute(sql)
            moved = sorted(
                (name, packed(*key), change)
                for (name, key), change in changes.items()
                if change.before is None or change.after is None or packed(*change.before) != packed(*change.after)
            )
            before = [(tables[name], change.before) for name, _, change in moved if change.before is not None]
            after = [(tables[name], change.after) for name, _, change in moved if change.after is not None]
            _fill(scratch, before)
            session = apsw.Session(scratch, "main")
            session.attach()
            scratch.execute("BEGIN")
            for name in touched:
                scratch.execute(f"DELETE FROM {quoted(name)}")
            _fill(scratch, after)
            scratch.execute("COMMIT")
            return bytes(session.changeset())
    except apsw.Error:  # a collation or function of the user's own, which is not there
        return None


def _fill(scratch: Any, rows: Iterable[tuple[Table, Row]]) -> None:
    for table, row in rows:
        scratch.execute(*_insert(table, row))


def _insert(table: Table, row: Row, schema: str = "") -> tuple[str, Row]:
    columns = ", ".join(map(quoted, table.columns))
    holes = ", ".join("?" * len(row))
    return f"INSERT INTO {schema}{quoted(table.name)} ({columns}) VALUES ({holes})", row


def _take(state: SqliteState, table: Table, key: Row) -> Row:
    """Remove and return the row of a key."""
    where = " AND ".join(f"{quoted(table.columns[place])} IS ?" for place in table.key)
    columns = ", ".join(map(quoted, table.columns))
    found = state.connection.read(f"SELECT {columns} FROM main.{quoted(table.name)} WHERE {where}", *key)
    if len(found) != 1:
        raise SnapshotError(f"the changeset changes {len(found)} rows of {table.name!r} by the key {key!r}")
    state.connection.execute(f"DELETE FROM main.{quoted(table.name)} WHERE {where}", key)
    return found[0]

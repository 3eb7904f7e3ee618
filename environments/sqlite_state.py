"""State in an in-memory SQLite database.

File bytes are no digest: the same rows lie in other bytes after a delete and a re-insert. The digest is taken over
what a query can see: schema, rows whatever their order, ``user_version``, ``application_id`` and ``sqlite_sequence``.
"""

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

from environments.protocol import SnapshotError
from environments.sqlite_image import Connection, connect, objects_of, only, restore_image
from environments.sqlite_rows import Rows, Trees, quoted
from schemas.canonical import encode

ALGORITHM = "sqlite-rows/2"
FORM = "sqlite-image/1"
PRAGMAS = ("user_version", "application_id")

_SEQUENCE = "sqlite_sequence"


class SqliteState:
    """A database. ``trail`` names the tables that only tell what happened, such as audit rows.

    ``known``: the trees of exactly these rows, from an earlier reading of the same image.
    """

    form = FORM

    def __init__(self, connection: Connection, known: Trees | None = None, trail: frozenset[str] = frozenset()) -> None:
        self.connection = connection
        self._trail = trail
        try:
            self.rows = Rows(connection, known)
        except (sqlite3.Error, UnicodeError) as error:
            connection.close()
            raise SnapshotError(f"the rows cannot be read: {error}") from None

    def digest(self) -> str:
        """SHA-256 over schema, pragmas and the rows of every table, the algorithm's name in front.

        Raises SnapshotError for text that is not UTF-8.
        """
        return self._digest(frozenset())

    def settled(self) -> str:
        """The same without the rows of the trail tables."""
        return self._digest(self._trail)

    def image(self) -> bytes:
        """The serialised database."""
        return self.connection.serialize()

    def close(self) -> None:
        """Drop the database."""
        self.connection.close()

    @contextmanager
    def taken_back(self) -> Iterator[None]:
        """Take back whatever the block does to the database: the cheapest fork, one at a time.

        Raises SnapshotError where the block has ended the transaction by SQL text, so that nothing can be taken back.
        """
        self.rows.refresh()
        mark = self.rows.mark()
        try:
            with self.connection.taken_back():
                yield
        finally:
            self.rows.go_back(mark)

    def _digest(self, left_out: frozenset[str]) -> str:
        state = hashlib.sha256()
        try:
            self.rows.refresh()
            for line in self._lines(left_out):
                state.update(line + b"\n")
        except (sqlite3.Error, UnicodeError) as error:
            raise SnapshotError(f"the rows cannot be read: {error}") from None
        return f"{ALGORITHM}:{state.hexdigest()}"

    def _lines(self, left_out: frozenset[str]) -> Iterator[bytes]:
        read = self.connection.read
        for pragma in PRAGMAS:
            yield encode([pragma, read(f"PRAGMA main.{pragma}")[0][0]])
        objects = [row for row in objects_of(self.connection) if row[1] != _SEQUENCE]
        yield from (encode(["schema", *row]) for row in objects)
        for name in sorted(self.rows.trees.keys() - left_out):
            yield encode(["table", name, self.rows.trees[name].digest.hex()])
        for name in (row[1] for row in objects if row[0] == "table" and row[1].startswith("sqlite_")):
            yield encode(["table", name, sorted(map(repr, read(f"SELECT * FROM {quoted(name)}")))])
        numbers = sequence_of(self.connection)
        yield encode([_SEQUENCE, sorted(repr(row) for row in numbers if row[0] not in left_out)])


class FixedState(SqliteState):
    """A database of a schema that never changes, given as an SQL script."""

    schema: ClassVar[str]
    trail: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, connection: Connection | None = None) -> None:
        super().__init__(connection or self._empty(), trail=self.trail)

    @classmethod
    def restore(cls, image: bytes) -> Self:
        """The database of an image that anyone may have written.

        Its schema must be ours to the letter, so no foreign trigger, view or virtual table ever runs.
        Raises SnapshotError.
        """
        empty = cls._empty()
        expected = objects_of(empty)
        empty.close()
        return cls(restore_image(image, only(expected)))

    @classmethod
    def _empty(cls) -> Connection:
        connection = connect()
        connection.executescript(cls.schema)
        return connection


def sequence_of(connection: Connection) -> list[tuple[Any, ...]]:
    """Name and last number of each table with AUTOINCREMENT that has given one."""
    if not connection.read("SELECT 1 FROM main.sqlite_schema WHERE name = ?", _SEQUENCE):
        return []
    return connection.read(f"SELECT name, seq FROM main.{_SEQUENCE} ORDER BY name")

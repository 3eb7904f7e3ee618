"""State in an in-memory SQLite database.

File bytes are no digest: the same rows lie in other bytes after a delete and a re-insert. The digest is taken over
what a query can see: schema, rows in sorted order, ``user_version`` and ``application_id``.
"""

import hashlib
import sqlite3
from collections.abc import Iterator
from typing import Any, ClassVar, Self

from environments.protocol import SnapshotError
from schemas.canonical import encode

ALGORITHM = "sqlite-rows/1"
FORM = "sqlite-image/1"

_HEADER = b"SQLite format 3\x00"
_JOURNAL_VERSIONS = slice(18, 20)  # write and read version of the file; 2 means WAL, which memory cannot open
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"


class SqliteState:
    """A database of a fixed schema. ``trail`` names the tables that only tell what happened, such as audit rows."""

    form = FORM
    schema: ClassVar[str]
    trail: ClassVar[frozenset[str]] = frozenset()

    def __init__(self) -> None:
        self.connection = _connect()
        self.connection.executescript(self.schema)

    @classmethod
    def restore(cls, image: bytes) -> Self:
        """The database of an image that anyone may have written.

        Its schema must be ours to the letter, so no foreign trigger, view or virtual table ever runs.
        Raises SnapshotError.
        """
        state = cls()
        expected = state._rows(_SCHEMA)
        try:
            if not image.startswith(_HEADER):
                raise SnapshotError("the image is no SQLite database")
            mended = bytearray(image)
            mended[_JOURNAL_VERSIONS] = b"\x01\x01"
            state.connection.deserialize(bytes(mended))
            if state._rows(_SCHEMA) != expected:
                raise SnapshotError("the image has another schema than this world")
            damage = state._rows("PRAGMA integrity_check(1)")
            if damage != [("ok",)]:
                raise SnapshotError(f"the image is damaged: {damage[0][0]}")
        except sqlite3.Error as error:
            state.close()
            raise SnapshotError(f"the image cannot be read: {error}") from None
        except SnapshotError:
            state.close()
            raise
        return state

    def digest(self) -> str:
        """SHA-256 over schema, pragmas and the sorted rows of every table, the algorithm's name in front.

        Raises SnapshotError for text that is not UTF-8, which only a foreign image can hold.
        """
        return self._digest(frozenset())

    def settled(self) -> str:
        """The same without the rows of the trail tables."""
        return self._digest(self.trail)

    def image(self) -> bytes:
        """The serialised database."""
        return self.connection.serialize()

    def close(self) -> None:
        """Drop the database."""
        self.connection.close()

    def _digest(self, left_out: frozenset[str]) -> str:
        state = hashlib.sha256()
        try:
            for line in self._lines(left_out):
                state.update(line + b"\n")
        except (sqlite3.Error, UnicodeError) as error:
            raise SnapshotError(f"the rows cannot be read: {error}") from None
        return f"{ALGORITHM}:{state.hexdigest()}"

    def _lines(self, left_out: frozenset[str]) -> Iterator[bytes]:
        for pragma in ("user_version", "application_id"):
            yield encode([pragma, self._rows(f"PRAGMA {pragma}")[0][0]])
        objects = self._rows(_SCHEMA)
        yield from (encode(["schema", *row]) for row in objects)
        for table in (name for kind, name, *_ in objects if kind == "table" and name not in left_out):
            yield encode(["table", table])
            rows = self._rows(f'SELECT * FROM "{table.replace(chr(34), chr(34) * 2)}"')
            if table == "sqlite_sequence":
                rows = [row for row in rows if row[0] not in left_out]
            yield from sorted(encode([_exact(value) for value in row]) for row in rows)

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(query).fetchall()


def _connect() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA page_size = 1024")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    return connection


def _exact(value: Any) -> Any:
    """A column value such that different values have different canonical bytes (infinity is not null)."""
    match value:
        case bytes():
            return ["blob", value.hex()]
        case float():
            return ["real", value.hex()]
        case _:
            return value

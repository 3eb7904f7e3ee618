"""Databases in memory, and the images that they are read from: a user's own file or script, or what anyone wrote."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from environments.protocol import SnapshotError, StartError
from schemas.named_file import open_named

HEADER = b"SQLite format 3\x00"

_JOURNAL_VERSIONS = slice(18, 20)  # write and read version of the file; 2 means WAL, which memory cannot open
_NO_LOG = b"\x01\x01"
_STILL = ("CREATE TABLE ", "CREATE INDEX ", "CREATE UNIQUE INDEX ")
_OBJECTS = "SELECT type, name, tbl_name, sql FROM main.sqlite_schema ORDER BY type, name"


class Connection(sqlite3.Connection):
    """A connection whose commits can be held back, so that everything can be taken back at once.

    While they are, ``commit`` and ``rollback`` mean a savepoint instead of the transaction. SQL text that says COMMIT,
    and ``executescript``, which says it too, end the holding back.
    """

    blobs_opened = 0  # to be written: no trigger sees that
    _held = False
    _judging = False

    def blobopen(self, *place: Any, readonly: bool = False, **more: Any) -> sqlite3.Blob:
        """A handle on one value, counted where it can be written to."""
        self.blobs_opened += not readonly
        return super().blobopen(*place, readonly=readonly, **more)

    def create_function(self, *given: Any, **more: Any) -> None:
        """Register a function that SQL may call."""
        if not self._judging:
            super().create_function(*given, **more)

    def prepare_for_judging(self, prepare: "Prepare") -> None:
        """Let the connection be prepared without functions: an index of a foreign image would call them."""
        self._judging = True
        prepare(self)
        self._judging = False

    @contextmanager
    def taken_back(self) -> Iterator[None]:
        """Take back whatever the block does. Raises SnapshotError where the block has ended the transaction itself."""
        self.commit()
        self.execute("SAVEPOINT taken_back")
        self.execute("SAVEPOINT committed")
        self._held = True
        try:
            yield
        finally:
            self._held = False
            try:
                self.execute("ROLLBACK TO taken_back")
                self.execute("RELEASE taken_back")
            except sqlite3.OperationalError as error:
                raise SnapshotError(f"a transaction was ended by SQL text and cannot be taken back: {error}") from None

    def commit(self) -> None:
        """Commit, or pass the point to which ``rollback`` goes."""
        if self._held:
            self.execute("RELEASE committed")
            self.execute("SAVEPOINT committed")
        else:
            super().commit()

    def rollback(self) -> None:
        """Take back what was not committed."""
        if self._held:
            self.execute("ROLLBACK TO committed")
        else:
            super().rollback()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None, /
    ) -> Literal[False]:
        if kind is None:
            self.commit()
        else:
            self.rollback()
        return False

    def each(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """The rows of a query one by one as plain tuples, whatever factories a tool has set."""
        cursor = self.cursor()
        cursor.row_factory = None
        text_factory, self.text_factory = self.text_factory, str
        try:
            yield from cursor.execute(query, values)
        finally:
            self.text_factory = text_factory

    def read(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query as plain tuples."""
        return list(self.each(query, *values))


def connect(image: bytes = b"") -> Connection:
    """An empty database in memory, or a copy of an image in it. Raises sqlite3.Error."""
    connection = sqlite3.connect(":memory:", factory=Connection)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA recursive_triggers = ON")  # else a row that REPLACE removes goes unseen
    if image:
        connection.deserialize(_mended(image))
    else:
        connection.execute("PRAGMA page_size = 1024")
    return connection


def objects_of(connection: Connection) -> list[tuple[Any, ...]]:
    """What a database consists of: type, name, table and SQL of each object, sorted."""
    return connection.read(_OBJECTS)


Judge = Callable[[list[tuple[Any, ...]]], str | None]
Prepare = Callable[[sqlite3.Connection], object]


def only(expected: list[tuple[Any, ...]]) -> Judge:
    """Let these objects pass and no others, to the letter."""
    return lambda found: None if found == expected else "has another schema than this world"


def extended(expected: list[tuple[Any, ...]]) -> Judge:
    """Let other tables and indexes pass too, but of what runs by itself only what is expected, to the letter."""

    def judge(found: list[tuple[Any, ...]]) -> str | None:
        foreign = next((row for row in found if row not in expected and not _lies_still(row)), None)
        if foreign is None:
            return None
        return f"has another schema than this world: {foreign[0]} {foreign[1]!r} is not of its start; make it there"

    return judge


def restore_image(image: bytes, judge: Judge, prepare: Prepare | None = None) -> Connection:
    """The database of an image that anyone may have written, its schema judged before anything of it runs.

    ``prepare`` gives the collations that its indexes need; its functions are left out. Raises SnapshotError.
    """
    if not image.startswith(HEADER) or len(image) < _JOURNAL_VERSIONS.stop:
        raise SnapshotError("the image is no SQLite database")
    try:
        connection = connect(image)
    except sqlite3.Error as error:
        raise SnapshotError(f"the image cannot be read: {error}") from None
    try:
        objection = judge(objects_of(connection))
        if objection:
            raise SnapshotError(f"the image {objection}")
        if prepare is not None:
            connection.prepare_for_judging(prepare)
        damage = connection.read("PRAGMA integrity_check(1)")
        if damage != [("ok",)]:
            raise SnapshotError(f"the image is damaged: {damage[0][0]}")
    except sqlite3.Error as error:
        connection.close()
        raise SnapshotError(f"the image cannot be read: {error}") from None
    except SnapshotError:
        connection.close()
        raise
    return connection


def read_start(path: Path) -> bytes:
    """The image of a user's own database file, with what its write-ahead log holds, or of an SQL script run once.

    Raises StartError.
    """
    try:
        with open_named(path) as file:
            is_database = file.read(len(HEADER)) == HEADER
        if is_database:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as source:
                return _mended(source.serialize())
        with closing(sqlite3.connect(":memory:")) as scratch:
            scratch.executescript(path.read_text(encoding="utf-8"))
            return scratch.serialize()
    except (OSError, UnicodeError, sqlite3.Error) as error:
        raise StartError(f"{path}: opens as neither an SQLite database nor an SQL script: {error}") from None


def _mended(image: bytes) -> bytes:
    if image[_JOURNAL_VERSIONS] == _NO_LOG:
        return image
    return image[: _JOURNAL_VERSIONS.start] + _NO_LOG + image[_JOURNAL_VERSIONS.stop :]


def _lies_still(row: tuple[Any, ...]) -> bool:
    """Whether an object is a table or index of SQLite's own, by how SQLite itself begins what it keeps of those."""
    sql = row[3]
    return sql is None or (isinstance(sql, str) and sql.startswith(_STILL))

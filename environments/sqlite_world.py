"""Worlds from your own SQLite database: a start file or script, and functions on a connection that are its tools.

::

    def cancel_order(db: sqlite3.Connection, order: str) -> dict:
        "Cancel an order"
        changed = db.execute("DELETE FROM orders WHERE id = ?", (order,)).rowcount
        return {"cancelled": order} if changed else {"error": "unknown_order"}

    world = SqliteWorld("shop", Path(__file__).with_name("shop.db"), writes=[cancel_order])

Saved as ``my_shop.py`` it is the environment ``my_shop:world``. Every session works on a copy in memory; what a tool
leaves open when it returns is committed, what it leaves open when it raises is rolled back. A task's parameters may say
``{"start": NAME}`` for one of the further ``starts``; a path never comes from a log. What lies outside of the database
(attached files, temporary tables, pragmas of the connection that ``prepare`` does not set) is no part of the state.
Triggers, views and virtual tables run by themselves, so a snapshot with one that no start has is not restored.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import wraps
from pathlib import Path
from sqlite3 import Connection
from typing import Any, NamedTuple, Unpack

from environments.blobs import MAX_IMAGE, base_of, image_of
from environments.functions import Declared, FunctionSession, FunctionWorld
from environments.protocol import Blobs, CheckResult, Controls, SnapshotError, StartError, title_of
from environments.session import restore
from environments.shop import parameters_of
from environments.sqlite_delta import FORM as DELTA_FORM
from environments.sqlite_delta import apply_delta, delta_of
from environments.sqlite_image import Connection as Database
from environments.sqlite_image import Prepare, connect, extended, objects_of, read_start, restore_image
from environments.sqlite_pages import FORM as PAGES_FORM
from environments.sqlite_pages import pages_of, patch
from environments.sqlite_rows import Trees
from environments.sqlite_state import FORM, SqliteState
from schemas.canonical import digest
from schemas.objects import Snapshot
from schemas.trajectory import Message, Record, Task

WHOLE_BELOW = 2**20  # bytes of an image that is kept whole at every snapshot
_KEPT = 3  # images whose rows were read and are not read again

_OURS = tuple(f"environments.sqlite_{part}" for part in ("delta", "image", "pages", "rows", "state", "world"))


class Parameters(Record, frozen=True):
    """What a task may set: the name of one of the world's starts."""

    start: str = ""


class Base(NamedTuple):
    """An image whose bytes were judged and whose rows were read: what the deltas of later snapshots begin at."""

    name: str
    image: bytes
    trees: Trees


class SqliteSession(FunctionSession[SqliteState]):
    """A world of a SqliteWorld."""

    def __init__(self, world: "SqliteWorld", state: SqliteState, base: Base, controls: Controls, blobs: Blobs) -> None:
        super().__init__(world, state, controls, blobs)
        self._base = base
        self._base_is_kept = False

    def subject(self) -> Connection:
        """The connection."""
        return self.state.connection

    def snapshot(self) -> Snapshot:
        """The whole state: what has changed since its base where that can be said, else its image."""
        if self._closed or len(self._base.image) < WHOLE_BELOW:
            return super().snapshot()
        form, data = self._changed()
        blob, base = self._blobs.put(data), self._base
        if form == FORM:
            self._base = Base(blob, data, dict(self.state.rows.trees))
            self.state.rows.start_over()
        elif not self._base_is_kept:
            self._blobs.put(base.image)
        self._base_is_kept = True
        spec, name = self.spec, None if form == FORM else base.name
        return Snapshot(spec.id, spec.version, spec.code_digest, self.state.digest(), form, blob, name)

    def _changed(self) -> tuple[str, bytes]:
        """A form and its bytes: what has changed since the base, or the image where that is more than half of it."""
        delta = delta_of(self.state)
        if delta is not None and 2 * len(delta) < len(self._base.image):
            return DELTA_FORM, delta
        image = self.state.image()
        pages = pages_of(self._base.image, image)
        return (FORM, image) if pages is None else (PAGES_FORM, pages)

    def check(self, task: Task, messages: Sequence[Message] = ()) -> CheckResult:
        """What the world's check says; whatever it writes is taken back."""
        try:
            with self.state.taken_back():
                return super().check(task, messages)
        except SnapshotError as error:
            self.close()
            return CheckResult(
                "unknown", f"the check of {title_of(task)} changed the state for good: {error}", reads=()
            )


class SqliteWorld(FunctionWorld):
    """An environment named ``name``.

    ``start`` is a database file or an SQL script, ``starts`` further ones by name. ``prepare(db)`` is run on every
    connection before its first call (``PRAGMA foreign_keys = ON``, functions and collations, a row factory). ``trail``
    names the tables that only tell what happened, such as audit rows. Raises TypeError.
    """

    def __init__(
        self,
        name: str,
        start: str | Path,
        *,
        starts: Mapping[str, str | Path] | None = None,
        prepare: Prepare | None = None,
        trail: Iterable[str] = (),
        **declared: Unpack[Declared],
    ) -> None:
        modules = _OURS if prepare is None else (*_OURS, prepare.__module__)
        super().__init__(name, modules, _each_atomic(declared))
        named = {"": start, **(starts or {})}
        self._paths = {key: Path(path).absolute() for key, path in named.items()}
        self._prepare = prepare
        self._trail = frozenset(trail)
        self._starts: dict[str, Base] = {}
        self._bases: dict[str, Base] = {}
        self._expected: list[tuple[Any, ...]] | None = None

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> SqliteSession:
        """A world at a task's start, or at a snapshot. Raises StartError, SnapshotError."""
        match start:
            case Task():
                base = self._start(start)
                state = self._begin(base)
            case Snapshot(base=None):
                base = self._bases.get(start.blob) or self._judged(start.blob, image_of(start, blobs))
                state = restore(start, self.spec, blobs, FORM, lambda _: self._begin(base))
            case Snapshot(form=form, base=str(name)) if form == PAGES_FORM:
                base = self._bases.get(name) or Base(name, base_of(start, blobs), {})
                state = restore(start, self.spec, blobs, PAGES_FORM, lambda pages: self._patched(base, pages))
            case Snapshot(base=str(name)):
                base = self._bases.get(name) or self._judged(name, base_of(start, blobs))
                state = restore(start, self.spec, blobs, DELTA_FORM, lambda delta: self._begin(base, delta))
        return SqliteSession(self, state, base, controls, blobs)

    def _begin(self, base: Base, delta: bytes = b"") -> SqliteState:
        state = SqliteState(self._prepared(base.image), base.trees, self._trail)
        if delta:
            try:
                apply_delta(state, delta)
            except SnapshotError:
                state.close()
                raise
        return state

    def _prepared(self, image: bytes) -> Database:
        connection = connect(image)
        if self._prepare is not None:
            self._prepare(connection)
        return connection

    def _patched(self, base: Base, pages: bytes) -> SqliteState:
        image = patch(base.image, pages)
        state = self._begin(self._judged(digest(image), image))
        state.rows.changes = None  # none of them is counted from the base
        return state

    def _start(self, task: Task) -> Base:
        """The image of a task's start, read once in a process."""
        name = parameters_of(task, Parameters).start
        if name not in self._paths:
            known = ", ".join(sorted(filter(None, self._paths))) or "none but the default"
            raise StartError(f"{title_of(task)}: start {name!r} is none of this world; it has: {known}")
        if name not in self._starts:
            image = read_start(self._paths[name])
            if len(image) > MAX_IMAGE:
                raise StartError(f"{self._paths[name]}: {len(image)} bytes, over the limit of {MAX_IMAGE}")
            self._starts[name] = self._kept(digest(image), image, self._prepared(image))
        return self._starts[name]

    def _judged(self, name: str, image: bytes) -> Base:
        """The base of an image that anyone may have written. Raises SnapshotError."""
        if self._expected is None:
            images = (read_start(path) for path in self._paths.values())
            self._expected = [row for image in images for row in _objects(image)]
        return self._kept(name, image, restore_image(image, extended(self._expected), self._prepare))

    def _kept(self, name: str, image: bytes, connection: Database) -> Base:
        """A base with its rows read; the last few are kept."""
        with closing(SqliteState(connection)) as state:
            base = Base(name, image, state.rows.trees)
        self._bases[name] = base
        for old in [*self._bases][:-_KEPT]:
            del self._bases[old]
        return base


def _objects(image: bytes) -> list[tuple[Any, ...]]:
    with closing(connect(image)) as connection:
        return objects_of(connection)


def _each_atomic(declared: Declared) -> Declared:
    """The same with every tool in a transaction: committed where it returns, rolled back where it raises."""
    return {
        **declared,
        "reads": [*map(_atomic, declared.get("reads", ()))],
        "writes": [*map(_atomic, declared.get("writes", ()))],
        "external": [*map(_atomic, declared.get("external", ()))],
        "tools": [tool._replace(run=_atomic(tool.run)) for tool in declared.get("tools", ())],
    }


def _atomic(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(db: Connection, **arguments: Any) -> Any:
        with db:
            return function(db, **arguments)

    return run

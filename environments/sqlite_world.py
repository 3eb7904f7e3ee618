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
(attached files, pragmas of the connection that ``prepare`` does not set) is no part of the state.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection
from typing import Any, NamedTuple

from environments.blobs import MAX_IMAGE, base_of, image_of
from environments.protocol import (
    Blobs,
    CallResult,
    CheckResult,
    Claim,
    Controls,
    Determinism,
    Effect,
    EnvSpec,
    Fault,
    SnapshotError,
    StartError,
    Undo,
)
from environments.session import ToolSession, restore
from environments.shop import parameters_of
from environments.signatures import UnfitArgumentsError, tool_of
from environments.sources import code_digest
from environments.sqlite_delta import FORM as DELTA_FORM
from environments.sqlite_delta import apply_delta, delta_of
from environments.sqlite_image import Connection as Database
from environments.sqlite_image import connect, extended, objects_of, read_start, restore_image
from environments.sqlite_pages import FORM as PAGES_FORM
from environments.sqlite_pages import pages_of, patch
from environments.sqlite_rows import Trees
from environments.sqlite_state import FORM, SqliteState
from environments.tools import Answer, Tool, Toolbox, refusal
from schemas.canonical import digest
from schemas.objects import Snapshot
from schemas.trajectory import Message, Record, Task, ToolCall

WHOLE_BELOW = 2**20  # bytes of an image that is kept whole at every snapshot
_KEPT = 3  # images whose rows were read and are not read again

Function = Callable[..., Any]
Check = Callable[[Connection, Task, Sequence[Message]], bool | CheckResult]

_OURS = tuple(f"environments.{name}" for name in ("session", "signatures", "sqlite_state", "sqlite_world", "tools"))


class Parameters(Record, frozen=True):
    """What a task may set: the name of one of the world's starts."""

    start: str = ""


class Base(NamedTuple):
    """An image whose bytes were judged and whose rows were read: what the deltas of later snapshots begin at."""

    name: str
    image: bytes
    trees: Trees


class SqliteSession(ToolSession[SqliteState]):
    """A world of a SqliteWorld."""

    def __init__(self, world: "SqliteWorld", state: SqliteState, base: Base, controls: Controls, blobs: Blobs) -> None:
        super().__init__(world.spec, world.toolbox, state, controls, blobs)
        self._check = world.check
        self._base = base
        self._base_is_kept = False

    def call(self, batch: Sequence[ToolCall], at: str | None = None) -> tuple[CallResult, ...]:
        """Execute calls in order; those of external tools are refused, because nothing could take them back."""
        return tuple(self._refused(call) or super(SqliteSession, self).call((call,), at)[0] for call in batch)

    def answer(self, call: ToolCall) -> Answer:
        """What one call is answered, its writes committed."""
        try:
            with self.state.connection as connection:
                return self._toolbox.answer(call, connection, self.spec)
        except UnfitArgumentsError as error:
            return refusal("schema_error", at=error.at, rule="type")

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
        """What the world's check says, whatever it writes taken back; an exception in it is no verdict."""
        if self._check is None:
            return super().check(task, messages)
        try:
            with self.state.taken_back():
                checked = self._check(self.state.connection, task, messages)
        except Exception as error:
            return CheckResult("unknown", f"the check of {task.id!r} itself failed ({type(error).__name__})", reads=())
        if isinstance(checked, CheckResult):
            return checked
        words = f"task {task.id!r} is {'met' if checked else 'not met'}"
        return CheckResult("passed" if checked else "failed", words, reads=("state", "hidden_answer"))

    def _refused(self, call: ToolCall) -> CallResult | None:
        if self.spec.effects.get(call.name) != "external":
            return None
        return CallResult(
            "refused", "", detail=f"tool {call.name!r} is declared external: it reaches beyond this world"
        )


class SqliteWorld:
    """An environment named ``name`` in version ``version``.

    ``start`` is a database file or an SQL script, ``starts`` further ones by name. ``prepare(db)`` is run on every
    connection before its first call (``PRAGMA foreign_keys = ON``, functions of your own, a row factory). ``trail``
    names the tables that only tell what happened, such as audit rows. Functions are named under what they do to the
    database; ``tools`` are described in full. Exceptions of ``errors`` are answers, any other is a fault of the
    environment. ``check(db, task, messages)`` says whether the task is done. What else a world may declare is said at
    EnvSpec. Raises TypeError, StartError.
    """

    def __init__(
        self,
        name: str,
        start: str | Path,
        *,
        starts: Mapping[str, str | Path] | None = None,
        reads: Iterable[Function] = (),
        writes: Iterable[Function] = (),
        external: Iterable[Function] = (),
        tools: Iterable[Tool] = (),
        errors: tuple[type[Exception], ...] = (),
        prepare: Callable[[Connection], object] | None = None,
        trail: Iterable[str] = (),
        check: Check | None = None,
        version: str = "1",
        tasks: str | None = None,
        determinism: Determinism = "pure",
        faults: tuple[Fault, ...] = (),
        claims: tuple[Claim, ...] = (),
        undo: Mapping[str, Undo] | None = None,
        rules: tuple[str, ...] = (),
        unordered: tuple[str, ...] = (),
    ) -> None:
        groups: tuple[tuple[Effect, list[Function]], ...] = (
            ("read", [*reads]),
            ("write", [*writes]),
            ("external", [*external]),
        )
        functions = [function for _, group in groups for function in group]
        self.toolbox = Toolbox(*(tool_of(one, effect, errors) for effect, group in groups for one in group), *tools)
        self.check = check
        self._paths = {
            "": Path(start).absolute(),
            **{key: Path(path).absolute() for key, path in (starts or {}).items()},
        }
        self._prepare = prepare
        self._trail = frozenset(trail)
        self._starts: dict[str, Base] = {}
        self._bases: dict[str, Base] = {}
        self._expected: list[tuple[Any, ...]] | None = None
        made = [*functions, *(tool.run for tool in tools), *filter(inspect.isfunction, (check, prepare))]
        self.spec = EnvSpec(
            id=name,
            version=version,
            code_digest=code_digest(*_OURS, *{one.__module__ for one in made}),
            determinism=determinism,
            effects=self.toolbox.effects,
            faults=faults,
            errors=("error",),
            claims=claims,
            undo=undo or {},
            rules=rules,
            unordered=unordered,
            tasks=tasks,
        )

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
        connection = connect(base.image)
        if self._prepare is not None:
            self._prepare(connection)
        state = SqliteState(connection, base.trees, self._trail)
        if delta:
            try:
                apply_delta(state, delta)
            except SnapshotError:
                state.close()
                raise
        return state

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
            raise StartError(f"task {task.id!r}: start {name!r} is none of this world; it has: {known}")
        if name not in self._starts:
            image = read_start(self._paths[name])
            if len(image) > MAX_IMAGE:
                raise StartError(f"{self._paths[name]}: {len(image)} bytes, over the limit of {MAX_IMAGE}")
            self._starts[name] = self._kept(digest(image), image, connect(image))
        return self._starts[name]

    def _judged(self, name: str, image: bytes) -> Base:
        """The base of an image that anyone may have written. Raises SnapshotError."""
        if self._expected is None:
            images = (read_start(path) for path in self._paths.values())
            self._expected = [row for image in images for row in _objects(image)]
        return self._kept(name, image, restore_image(image, extended(self._expected)))

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

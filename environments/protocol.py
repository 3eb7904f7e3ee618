"""What an environment is: something that opens a world, executes calls in it, and says what state it is in.

An ``Environment`` is a stateless factory. ``open`` of a snapshot is restore and fork in one. A ``Session`` is one world
with one owner; what it answers is the only source of observations.
"""

import re
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, NamedTuple, Protocol, Self

from environments.clock import FIXED_CLOCK, RECORDED, WALL, moment, zone_of
from schemas.objects import Snapshot, ToolSpec
from schemas.statements import Result
from schemas.trajectory import Message, Reads, Record, RestoreKind, Task, ToolCall

Status = Literal["ok", "tool_error", "schema_error", "unknown_tool", "timeout", "environment_fault", "refused"]
Effect = Literal["read", "write", "external"]
Determinism = Literal["pure", "seeded", "clocked", "external"]

Examples = Sequence[tuple[str, Mapping[str, Any]]]
"""Calls to try: pairs of a tool's name and its arguments."""

_RANGES = {
    "seed": (0, 2**32 - 1),
    "hash_seed": (0, 2**32 - 1),
    "timeout_s": (1e-6, 31_536_000),
    "cpu_s": (0, 31_536_000),
    "memory_bytes": (2**20, 2**50),
    "file_bytes": (0, 2**50),
    "max_output": (1, 2**26),
}


class Controls(Record, frozen=True):
    """What is held fixed while calls execute.

    ``clock`` is an ISO time that stands still; ``recorded``: at every call the time at which the log says it was made,
    else the last one known, at first 2026-01-01T00:00:00+00:00; or ``wall``. A time without an offset is in the time
    zone. ``seed`` is that of ``random`` in every world, and of ``numpy.random`` where a call does not import it first;
    ``hash_seed`` the order of Python's sets.
    ``folder`` is the working folder while worlds are open, by default a new one that is removed afterwards. A call has
    ``timeout_s``; ``cpu_s`` is processor time beyond that. ``memory_bytes`` is address space beyond what loading the
    environment took, ``file_bytes`` the size of any file that is written, ``max_output`` is in characters.

    Raises ControlError for a value that cannot be held.
    """

    clock: str = FIXED_CLOCK
    seed: int = 0
    hash_seed: int = 0
    locale: str = "C.UTF-8"
    time_zone: str = "UTC"
    folder: str | None = None
    timeout_s: float = 10.0
    cpu_s: int = 30
    memory_bytes: int = 2 * 2**30
    file_bytes: int = 64 * 2**20
    max_output: int = 1_000_000

    def __post_init__(self) -> None:
        for name, (low, high) in _RANGES.items():
            if not low <= getattr(self, name) <= high:
                raise ControlError(f"control {name}={getattr(self, name)!r}: give a number from {low} to {high}")
        try:
            zone_of(self.time_zone)
        except ValueError:
            raise ControlError(
                f"control time_zone={self.time_zone!r}: this machine knows none; give one such as UTC or Asia/Shanghai"
            ) from None
        try:
            if self.clock not in (RECORDED, WALL):
                moment(self.clock, self.time_zone)
        except ValueError:
            raise ControlError(
                f"control clock={self.clock!r}: give an ISO time such as {FIXED_CLOCK}, {RECORDED}, or {WALL}"
            ) from None


class CallResult(Record, frozen=True):
    """What executing one call gave: the raw answer text, how it ended, and the logical digests around it.

    After a time-out ``state_after`` is absent: the state is unknown and the session is closed. ``shown`` is what a
    model would see where the ``mediator`` named changes the raw answer first. ``clock`` is the ISO time that the call
    was given, absent on the wall clock. ``detail`` says to a person why there is no answer; it is never an observation.
    """

    status: Status
    raw: str
    state_before: str | None = None
    state_after: str | None = None
    truncated: bool = False
    shown: str | None = None
    mediator: str = ""
    clock: str | None = None
    detail: str = ""


class CheckResult(Record, frozen=True):
    """What a task's own check says of a state, and what the check read: nothing where it gave no answer."""

    result: Result
    detail: str = ""
    reads: tuple[Reads, ...] = ("state",)

    @property
    def withholds(self) -> bool:
        """Whether the check looked and does not accept what it saw, be it that the run is not at its end yet."""
        return self.result in ("failed", "partial") or (self.result == "unknown" and bool(self.reads))


class Fault(NamedTuple):
    """The shape of an answer that is the environment's own failure: a top-level field and its value, and a class."""

    field: str
    value: str
    kind: str


class Claim(NamedTuple):
    """Wording of a final message that asserts an effect, and the tool that must have answered for it to be true."""

    pattern: re.Pattern[str]
    tool: str


class Undo(NamedTuple):
    """The call that takes a write back: its tool, and where each argument comes from.

    A source is ``("arguments", NAME)`` of the write itself or ``("answer", NAME)`` of what it returned.
    """

    tool: str
    arguments: Mapping[str, tuple[Literal["arguments", "answer"], str]]


class EnvSpec(NamedTuple):
    """What an environment declares of itself; without a declaration nothing is inferred from wording.

    ``answers_malformed``: a call that does not parse is answered by the environment itself. ``errors`` are the shapes
    of answers that report a failed call (field names at the top level of a JSON answer). ``unordered`` are JSON
    pointers (``*`` stands for any one key) of arrays that are sets. ``restore`` is the best way back to an earlier
    state: its snapshots, a prefix replayed from the task's start, compensating calls, or none. ``recorded_only``: it
    gives recorded answers back and can confirm nothing. ``tasks`` is the namespace of the tasks it opens, where it
    opens no others. ``offers`` is a pattern of the agents whose runs were offered every tool, for logs that list none.
    """

    id: str
    version: str
    code_digest: str
    determinism: Determinism
    effects: Mapping[str, Effect]
    faults: tuple[Fault, ...] = ()
    errors: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    undo: Mapping[str, Undo] = {}
    rules: tuple[str, ...] = ()
    unordered: tuple[str, ...] = ()
    answers_malformed: bool = False
    restore: RestoreKind = "snapshot"
    recorded_only: bool = False
    tasks: str | None = None
    offers: re.Pattern[str] | None = None

    @property
    def name(self) -> str:
        """Id and version, as statements and forks name it."""
        return f"{self.id}@{self.version}"


class Blobs(Protocol):
    """Where bytes are kept by their SHA-256."""

    def get(self, digest: str) -> bytes:
        """The bytes of that name. Raises KeyError where there are none."""

    def put(self, data: bytes) -> str:
        """Keep bytes and return their name."""


class Session(Protocol):
    """One world. A context manager; ``close`` may be called twice."""

    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools a model is offered here."""

    def call(self, batch: Sequence[ToolCall], at: str | None = None) -> tuple[CallResult, ...]:
        """Execute calls in order, serially, never retried; one result a call.

        ``at`` is the ISO time at which the log says that they were made, for controls whose clock is ``recorded``.
        """

    def state_digest(self) -> str:
        """The logical digest of the whole state, with its algorithm's name in front (``sqlite-rows/2:...``)."""

    def settled_digest(self) -> str:
        """The same without the trail that any call leaves (audit rows): equal where two pasts end in one world."""

    def snapshot(self) -> Snapshot:
        """The whole state, its bytes put into the blobs. Raises SnapshotError where the state is unknown."""

    def check(self, task: Task, messages: Sequence[Message] = ()) -> CheckResult:
        """The task's own grading of the present state and, where it reads them, of the messages that led to it.

        Only ever called in a fork that is closed afterwards.
        """

    def close(self) -> None:
        """Give the world up."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...


class Environment(Protocol):
    """A factory of worlds; stateless.

    Its attribute ``examples``, where there is one, holds calls to try at the default start.
    """

    spec: EnvSpec

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> Session:
        """A world at a task's start state, or at a snapshot whose logical digest is recomputed and compared.

        Raises SnapshotError where they differ, StartError where the task's parameters open no state here.
        """


class EnvironmentFailure(Exception):  # noqa: N818 - a family of errors, not one
    """Base of what an environment cannot do."""


class ControlError(EnvironmentFailure):
    """A control that cannot be held: its name, its value, and what can be given instead."""


class SnapshotError(EnvironmentFailure):
    """A snapshot that cannot be taken, or that does not restore to its digest."""


class StartError(EnvironmentFailure):
    """A start state that this environment cannot open."""


def title_of(task: Task) -> str:
    """A task as a message names it."""
    return "a task without an id" if task.id is None else f"task {task.id!r}"


def fault_of(spec: EnvSpec, answer: Any) -> Fault | None:
    """The declared fault that a parsed answer has the shape of, if any."""
    if not isinstance(answer, dict):
        return None
    return next((fault for fault in spec.faults if answer.get(fault.field) == fault.value), None)

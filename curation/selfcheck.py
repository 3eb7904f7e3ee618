"""The same calls executed in other circumstances: what of their answers moves, and whether a batch depends on order.

Nothing is started before it is asked for, and each process executes the calls of one path once.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from curation.clocks import NO_CLOCKS, Clocks
from curation.worlds import World
from environments.protocol import Blobs, CallResult, EnvironmentFailure, Session, SnapshotError
from environments.worker import Worker
from schemas.objects import Snapshot
from schemas.trajectory import Task, ToolCall

Batches = Sequence[tuple[ToolCall, ...]]


class Selfcheck:
    """Calls that other processes can execute too, from the same start.

    ``batches`` are the calls executed at each message of the path, none at most of them, ``clocks`` says when they were
    made. A context manager: it closes the worlds that it opened, and no process.
    """

    def __init__(
        self, world: World, start: Task | Snapshot, batches: Batches, blobs: Blobs, clocks: Clocks = NO_CLOCKS
    ) -> None:
        self._world = world
        self._start = start
        self._batches = batches
        self._blobs = blobs
        self._clocks = clocks
        self._opened = ExitStack()
        self._others = [_Path(worker, self) for worker in world.witnesses]

    def answers(self, message: int, call: str) -> Iterator[CallResult]:
        """The answers to a call of a message, from one process after another; none from one that cannot give it."""
        for path in self._others:
            result = path.results(message).get(call)
            if result is not None:
                yield result

    def order_matters(self, message: int) -> bool:
        """Whether the calls of a message, in reverse order in the same circumstances, are answered otherwise or leave
        another state (but for the trail of calls); also where they could not be executed.
        """
        ahead, back = _Path(self._world.worker, self), _Path(self._world.worker, self)
        given, reverse = (
            {uid: result.raw for uid, result in results.items()}
            for results in (ahead.results(message), back.results(message, backwards=True))
        )
        if given != reverse or len(given) < len(self._batches[message]):
            return True
        state = ahead.settled()
        return state is None or state != back.settled()

    def open(self, worker: Worker) -> Session | None:
        """A world of that process at the start of the path; none where it opens none."""
        try:
            return self._opened.enter_context(worker.open(self._start, self._blobs))
        except EnvironmentFailure:
            return None

    def batch(self, message: int) -> tuple[ToolCall, ...]:
        """The calls that are executed at a message."""
        return self._batches[message]

    def time(self, message: int) -> str | None:
        """When the calls of a message were made, as far as that is known."""
        return self._clocks.at(message)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._opened.close()


class _Path:
    """The path as one process executes it, up to the message that was last asked for."""

    def __init__(self, worker: Worker, check: Selfcheck) -> None:
        self._worker = worker
        self._check = check
        self._session: Session | None = None
        self._done = 0
        self._last: dict[str, CallResult] = {}

    def results(self, message: int, *, backwards: bool = False) -> dict[str, CallResult]:
        """Call uid to its result, of the calls of a message; nothing where no world opens."""
        if self._done == 0:
            self._session = self._check.open(self._worker)
        while self._session is not None and self._done <= message:
            batch = self._check.batch(self._done)
            ordered = batch[::-1] if backwards and self._done == message else batch
            given = self._session.call(ordered, self._check.time(self._done))
            self._last = dict(zip((call.uid for call in ordered), given, strict=True))
            self._done += 1
        return self._last

    def settled(self) -> str | None:
        """The state without the trail of calls, None where it is unknown."""
        try:
            return None if self._session is None else self._session.settled_digest()
        except SnapshotError:
            return None

"""Worlds in a child process that can be killed.

One call at a time goes over the line, so each has its own time-out. A call that does not come back, or takes the
process with it, is a result and not an exception: status ``timeout`` or ``environment_fault``, no state after it, and
every later call of that world ``refused``. Nothing is retried. The next ``open`` starts a fresh process.
"""

from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

from environments.blobs import base_of, image_of
from environments.process import LostWorldError, Process
from environments.protocol import (
    Blobs,
    CallResult,
    CheckResult,
    Controls,
    EnvironmentFailure,
    SnapshotError,
    StartError,
)
from environments.wire import (
    Ask,
    Done,
    Execute,
    Executed,
    Fetch,
    Fetched,
    Grade,
    Graded,
    Open,
    Reply,
    Request,
    Taken,
    Tools,
)
from schemas.objects import Snapshot, ToolSpec
from schemas.trajectory import Message, Task, ToolCall

R = TypeVar("R", bound=Reply)


class Worker:
    """An environment by name, in a process of its own that serves many sessions.

    The process sees the module search path of this one with the current folder, and of the environment variables only
    PYTHONHASHSEED, TZ, LC_ALL and TMPDIR (the working folder), set by the controls. The environment is loaded in the
    current folder; its worlds live in the working folder. A call has the controls' ``timeout_s``; starting, opening,
    digests, snapshots and checks have ``patience_s`` each. Whatever the process started is ended with it; on Linux also
    what left for a session of its own, unless the process crashed first. It is no sandbox: code of a world may read
    files and use the network.
    """

    def __init__(self, name: str, controls: Controls | None = None, *, patience_s: float = 60.0) -> None:
        self.name = name
        self.controls = controls or Controls()
        self.patience_s = patience_s
        self._process: Process | None = None
        self._opened = 0

    def open(self, start: Task | Snapshot, blobs: Blobs) -> "RemoteSession":
        """A world at a task's start state or at a snapshot.

        Raises UnknownEnvironmentError, ControlError, StartError, SnapshotError; a world that hangs or crashes while it
        opens is a StartError.
        """
        self._opened += 1
        match start:
            case Task():
                request = Open(self._opened, task=start)
            case Snapshot():
                image, base = image_of(start, blobs), base_of(start, blobs)
                request = Open(self._opened, snapshot=start, image=image, base=base)
        try:
            if self._process is None or self._process.ended:
                self._process = Process(self.name, self.controls, self.patience_s)
            return RemoteSession(self._process, request, blobs)
        except LostWorldError as error:
            raise StartError(f"{self.name}: no world opens: {error}") from None

    def close(self) -> None:
        """End the process and with it every world."""
        if self._process is not None:
            self._process.end("the worker is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class RemoteSession:
    """One world in a worker's process, with the face of any session."""

    def __init__(self, process: Process, request: Open, blobs: Blobs) -> None:
        self._process = process
        self._number = request.session
        self._blobs = blobs
        self._gone = ""
        self._known: str | None = process.ask(request, Done, process.patience_s).digest

    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools a model is offered here."""
        return self._ask(Ask(self._number, "tools"), Tools).tools

    def call(self, batch: Sequence[ToolCall], at: str | None = None) -> tuple[CallResult, ...]:
        """Execute calls in order, each within the controls' time-out; after one that is lost the rest is refused."""
        return tuple(self._execute(call, at) for call in batch)

    def state_digest(self) -> str:
        """The logical digest of the whole state. Raises SnapshotError where the state is unknown."""
        return self._ask(Ask(self._number, "state"), Done).digest

    def settled_digest(self) -> str:
        """The logical digest without the trail of calls. Raises SnapshotError where the state is unknown."""
        return self._ask(Ask(self._number, "settled"), Done).digest

    def snapshot(self) -> Snapshot:
        """The whole state, its image put into the blobs. Raises SnapshotError where the state is unknown."""
        taken = self._ask(Ask(self._number, "snapshot"), Taken)
        self._keep(taken.image, taken.snapshot.blob)
        base = taken.snapshot.base
        if base is not None and not self._has(base):
            self._keep(self._ask(Fetch(self._number, base), Fetched).data, base)
        return taken.snapshot

    def check(self, task: Task, messages: Sequence[Message] = ()) -> CheckResult:
        """The task's own grading; a check that fails to answer says nothing."""
        try:
            return self._ask(Grade(self._number, task, tuple(messages)), Graded).result
        except EnvironmentFailure as error:
            return CheckResult("unknown", f"the check gave no result: {error}", reads=())

    def close(self) -> None:
        """Give the world up."""
        if not self._gone:
            with suppress(EnvironmentFailure):
                self._ask(Ask(self._number, "close"), Done)
            self._gone = "the session is closed"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _keep(self, data: bytes, said: str) -> None:
        name = self._blobs.put(data)
        if name != said:
            raise SnapshotError(f"the image of a snapshot is {name}, not {said} as it says")

    def _has(self, name: str) -> bool:
        try:
            self._blobs.get(name)
        except KeyError:
            return False
        return True

    def _execute(self, call: ToolCall, at: str | None) -> CallResult:
        if self._gone:
            return CallResult("refused", "", detail=self._gone)
        before = self._known
        try:
            result = self._ask(Execute(self._number, call, at), Executed, self._process.timeout_s).result
        except LostWorldError as error:
            return CallResult(error.status, "", before, detail=str(error))
        except EnvironmentFailure as error:
            self._gone = str(error)
            return CallResult("environment_fault", "", before, detail=self._gone)
        self._known = result.state_after
        return result

    def _ask(self, request: Request, kind: type[R], seconds: float | None = None) -> R:
        if self._gone:
            raise LostWorldError(self._gone, "refused")
        try:
            return self._process.ask(request, kind, seconds or self._process.patience_s)
        except LostWorldError as error:
            self._gone = str(error)
            raise

"""A session over any state that has a digest and an image: what every world written in Python has in common."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

from msgspec.structs import replace

from environments.blobs import image_of
from environments.clock import Clock
from environments.protocol import Blobs, CallResult, CheckResult, Controls, EnvSpec, SnapshotError, title_of
from environments.tools import Answer, Toolbox
from schemas.objects import Snapshot, ToolSpec
from schemas.trajectory import Message, Task, ToolCall


class State(Protocol):
    """What a world remembers. ``form`` names the encoding of ``image``."""

    form: str

    def digest(self) -> str:
        """The logical digest of everything, its algorithm's name in front."""

    def settled(self) -> str:
        """The same without the trail that calls leave."""

    def image(self) -> bytes:
        """Bytes from which the state can be restored."""

    def close(self) -> None:
        """Give up what it holds."""


S = TypeVar("S", bound=State)


class ToolSession(Generic[S]):
    """A world in this process: a state, and tools that run on it.

    Nothing here can be killed, and an exception of a tool reaches the caller: run worlds that may hang or crash in
    environments.worker. Override ``answer`` for what happens before a tool runs, ``check`` for a task's grading.
    """

    def __init__(self, spec: EnvSpec, toolbox: Toolbox, state: S, controls: Controls, blobs: Blobs) -> None:
        self.spec = spec
        self.state = state
        self.controls = controls
        self.clock = Clock(controls.clock, controls.time_zone)
        self._toolbox = toolbox
        self._blobs = blobs
        self._known = state.digest()
        self._closed = False

    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools a model is offered here."""
        return self._toolbox.specs

    def call(self, batch: Sequence[ToolCall], at: str | None = None) -> tuple[CallResult, ...]:
        """Execute calls in order; a closed session refuses them."""
        return tuple(self._execute(call) for call in batch)

    def answer(self, call: ToolCall) -> Answer:
        """What one call is answered."""
        return self._toolbox.answer(call, self.state, self.spec)

    def state_digest(self) -> str:
        """The logical digest of the whole state."""
        return self.state.digest()

    def settled_digest(self) -> str:
        """The logical digest without the trail that calls leave."""
        return self.state.settled()

    def snapshot(self) -> Snapshot:
        """The whole state, its image put into the blobs. Raises SnapshotError where the session is closed."""
        if self._closed:
            raise SnapshotError(f"{self.spec.name}: the session is closed; take the snapshot before closing it")
        blob = self._blobs.put(self.state.image())
        spec = self.spec
        return Snapshot(spec.id, spec.version, spec.code_digest, self.state.digest(), self.state.form, blob)

    def check(self, task: Task, messages: Sequence[Message] = ()) -> CheckResult:
        """Unknown: a world that grades its tasks says so itself."""
        return CheckResult("unknown", f"{self.spec.name} has no check for {title_of(task)}", reads=())

    def close(self) -> None:
        """Give the world up."""
        if not self._closed:
            self._closed = True
            self.state.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _execute(self, call: ToolCall) -> CallResult:
        if self._closed:
            return CallResult("refused", "", detail="the session is closed")
        before = self._known
        status, text = self.answer(call)
        self._known = self.state.digest()
        return bounded(CallResult(status, text, before, self._known), self.controls.max_output)


def bounded(result: CallResult, limit: int) -> CallResult:
    """A result whose answer has at most ``limit`` characters; a cut one says that it is cut."""
    return result if len(result.raw) <= limit else replace(result, raw=result.raw[:limit], truncated=True)


def restore(snapshot: Snapshot, spec: EnvSpec, blobs: Blobs, form: str, load: Callable[[bytes], S]) -> S:
    """The state that a snapshot holds, its logical digest recomputed and found equal.

    Another code digest is no mismatch: the version says what its author holds to be one world, and what is restored is
    compared either way. Raises SnapshotError.
    """
    theirs = (snapshot.environment, snapshot.version, snapshot.form)
    if theirs != (spec.id, spec.version, form):
        raise SnapshotError(f"snapshot {snapshot.digest} is of {theirs}, this world is {(spec.id, spec.version, form)}")
    state = load(image_of(snapshot, blobs))
    try:
        found = state.digest()
        if found != snapshot.digest:
            raise SnapshotError(f"snapshot {snapshot.digest} restores to {found}: its bytes are not that state")
    except SnapshotError:
        state.close()
        raise
    return state

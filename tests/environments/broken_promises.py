"""Worlds that each break one promise, or declare that they do not make it."""

import itertools
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from environments.blobs import MemoryBlobs
from environments.json_state import JsonState
from environments.protocol import Blobs, CheckResult, Controls, Determinism, EnvSpec, SnapshotError, Undo
from environments.python_state import PythonSession, PythonState, PythonWorld
from environments.session import ToolSession
from environments.tools import Answer, Tool, Toolbox
from schemas.objects import Snapshot
from schemas.trajectory import Message, Task, ToolCall

State = dict[str, int]
Key = Annotated[str, msgspec.Meta(pattern="^[0-9]{40}$")]
LEFT = Path(__file__).with_name("left_outside")
_counted = itertools.count()


def count(state: State) -> int:
    """Count."""
    state["n"] += 1
    return state["n"]


def peek(state: State) -> int:
    """Look."""
    return state["n"]


def peek_and_count(state: State) -> int:
    """Look, and count the looks."""
    return count(state)


def divide(state: State, by: int) -> int:
    """Divide."""
    return state["n"] // by


def guess(state: State, word: str) -> str:
    """Find the word out."""
    raise LookupError(word)


def open_door(state: State, key: Key) -> bool:
    """Open with a key that nobody is told."""
    return bool(state["n"])


def order(state: State) -> list[str]:
    """Names in no order."""
    return list({"a", "b", "c", "d", "e", "f", "g", "h"})


def drift(state: State) -> str:
    """Keep what differs in every process."""
    state["n"] = hash("n") % 10**9
    return "kept"


def anywhere() -> State:
    """A start that differs in every process."""
    return {"n": hash("n") % 10**9}


def now(state: State) -> float:
    """The time."""
    return time.time()


def remember(state: State) -> int:
    """How often it was asked, kept outside of the state."""
    return next(_counted)


def send(state: State) -> str:
    """Reach outside."""
    LEFT.write_text("sent")
    return "sent"


def toss(state: State, task: Task, messages: Sequence[Message]) -> bool:
    return uuid.uuid4().int % 2 == 0


def world(*, determinism: Determinism = "pure", **tools: object) -> PythonWorld:
    return PythonWorld("w", {"n": 0}, determinism=determinism, **tools)  # type: ignore[arg-type]


sound = world(reads=[peek], writes=[count])
false_read = world(reads=[peek_and_count])
idle_write = world(writes=[peek])
empty = world()
locked = world(reads=[open_door])
always_breaks = world(reads=[guess])
breaks = world(reads=[divide], examples=[("divide", {"by": 0})])
unordered = world(reads=[order])
unordered_and_says_so = world(reads=[order], determinism="external")
drifts = world(writes=[drift])
starts_anywhere = PythonWorld("w", anywhere, reads=[peek])
timed = world(reads=[now])
timed_and_says_so = world(reads=[now], determinism="clocked")
forgetful = world(reads=[remember])
outside = world(reads=[peek], external=[send], examples=[("send", {})])
tossed = PythonWorld("w", {"n": 0}, reads=[peek], check=toss)
undeclared = world(reads=[peek], undo={"peek": Undo("count", {})}, rules=("no_such_rule@1",), examples=[("peek", {})])


class Amnesiac(PythonSession):
    """A session whose writes count for more the older it is."""

    calls = 0

    def answer(self, call: ToolCall) -> Answer:
        self.calls += 1
        answer = super().answer(call)
        if call.name == "count":
            self.state.value["n"] += self.calls
        return Answer(answer.status, "done")


class Forgets:
    """What its sessions remember outside of the state shows in the state alone."""

    spec = sound.spec

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> Amnesiac:
        inner = sound.open(start, controls, blobs)
        return Amnesiac(sound, inner.state, controls, blobs)


class Keeps:
    """Its snapshots restore only in the process in which they were taken."""

    spec = sound.spec

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> PythonSession:
        if isinstance(start, Snapshot) and start.blob not in self.taken:
            raise SnapshotError("it was taken elsewhere")
        return sound.open(start, controls, Noted(self.taken, blobs))


class Noted(MemoryBlobs):
    """Blobs whose names are noted."""

    def __init__(self, names: set[str], blobs: Blobs) -> None:
        super().__init__()
        self.names, self.put_there, self.get = names, blobs.put, blobs.get  # type: ignore[method-assign]

    def put(self, data: bytes) -> str:
        name = self.put_there(data)
        self.names.add(name)
        return name


class Once(PythonSession):
    """A session that cannot be closed twice, and goes on after it."""

    def close(self) -> None:
        if self._closed:
            raise RuntimeError("closed already")
        self._closed = True


class Meddling(PythonSession):
    """A session whose check writes."""

    def check(self, task: Task, messages: Sequence[Message] = ()) -> CheckResult:
        self.state.value["n"] += 1
        return CheckResult("passed")


class OneState:
    """Its worlds are one and the same."""

    spec = sound.spec

    def __init__(self) -> None:
        self.one = PythonState({"n": 0})

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> Meddling:
        return Meddling(sound, self.one, controls, blobs)


class Tally(PythonSession):
    """A session that counts what it refuses."""

    def answer(self, call: ToolCall) -> Answer:
        answer = super().answer(call)
        self.state.value["n"] += answer.status == "unknown_tool"
        return answer


class CountsRefusals:
    spec = sound.spec

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> Tally:
        inner = sound.open(start, controls, blobs)
        return Tally(sound, inner.state, controls, blobs)


class Open(PythonSession):
    """A session that is never closed."""

    def close(self) -> None:
        self._closed = False


class StaysOpen:
    spec = sound.spec

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> Open:
        inner = sound.open(start, controls, blobs)
        return Open(sound, inner.state, controls, blobs)


class ClosesOnce:
    spec = sound.spec

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> Once:
        inner = sound.open(start, controls, blobs)
        return Once(sound, inner.state, controls, blobs)


class Agreeable(ToolSession[JsonState[State]]):
    """A session that answers whatever it is asked."""

    def answer(self, call: ToolCall) -> Answer:
        return Answer("ok", "1")


class TakesAnything:
    """It reads no parameters, answers tools it does not have, and has no snapshots."""

    spec = EnvSpec("w", "1", "0", "pure", {}, restore="none")

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> Agreeable:
        box = Toolbox(Tool("peek", "", {"type": "object"}, "read", peek))
        return Agreeable(self.spec, box, JsonState({"n": 0}), controls, blobs)

"""Recorded answers given back: ``cassette:FILE.jsonl`` stands in for a world that cannot be reached any more.

A line is ``{"state": ..., "name": ..., "arguments": ..., "answer": ..., "status": ...}``: the answer that a call got in
a state. A state is the chain of the task's identity and all calls and answers since. A call that is not recorded in the
state is refused, and so is one that is recorded with different answers. Nothing is executed, so nothing is verified.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import UNSET

from environments.catalogue import Family
from environments.protocol import (
    Blobs,
    CallResult,
    Controls,
    EnvironmentFailure,
    EnvSpec,
    SnapshotError,
    StartError,
    title_of,
)
from environments.session import ToolSession, bounded, restore
from environments.sources import code_digest
from environments.tools import Toolbox
from schemas.canonical import UnreadableError, digest, encode, parse
from schemas.named_file import open_named
from schemas.objects import Snapshot, ToolSpec
from schemas.trajectory import Json, Message, Record, Task, ToolCall, Trajectory

FORM = "cassette/1"
MAX_BYTES = 256 * 2**20

Answered = Literal["ok", "tool_error", "schema_error", "unknown_tool"]


class Line(Record, frozen=True):
    """What a call was answered in a state. Arguments that do not parse are kept as ``text``."""

    state: str
    name: str
    answer: str
    status: Answered = "ok"
    arguments: Json = UNSET
    text: str = ""

    @property
    def asked(self) -> str:
        """The digest of state and call."""
        return _asked(self.state, self.name, self.arguments, self.text)

    @property
    def after(self) -> str:
        """The state that the answer leads to."""
        return _named([self.asked, self.answer])


class Place:
    """Where on the tape a session is."""

    form = FORM

    def __init__(self, state: str) -> None:
        self.state = state

    def digest(self) -> str:
        """The chain of all that was asked and answered so far."""
        return self.state

    def settled(self) -> str:
        """The same: what other calls left behind is not known."""
        return self.state

    def image(self) -> bytes:
        """The digest itself: the tape holds the rest."""
        return self.state.encode()

    def close(self) -> None:
        """Nothing is held."""


class CassetteSession(ToolSession[Place]):
    """A tape that is played; it moves on with each answer."""

    def __init__(self, cassette: "Cassette", place: Place, controls: Controls, blobs: Blobs) -> None:
        super().__init__(cassette.spec, Toolbox(), place, controls, blobs)
        self._cassette = cassette

    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools that were called, by name only."""
        return tuple(ToolSpec(name) for name in self.spec.effects)

    def call(self, batch: Sequence[ToolCall], at: str | None = None) -> tuple[CallResult, ...]:
        """The recorded answers; the first call that has none is refused, and the tape stays where it is."""
        return super().call(batch, at) if self._closed else tuple(self._play(call) for call in batch)

    def _play(self, call: ToolCall) -> CallResult:
        state = self.state.state
        found = self._cassette.lines.get(_asked(state, call.name, call.arguments, _unparsed(call)), ())
        if len(found) != 1:
            many = f"with {len(found)} different answers" if found else "not"
            return CallResult("refused", "", state, state, detail=f"{call.name} is {many} recorded in this state")
        self.state = Place(found[0].after)
        result = CallResult(found[0].status, found[0].answer, state, self.state.state)
        return bounded(result, self.controls.max_output)


class Cassette:
    """The environment of one file. Raises EnvironmentFailure where it is none."""

    def __init__(self, path: Path) -> None:
        data = _read(path)
        self.lines: dict[str, tuple[Line, ...]] = {}
        self._states: set[str] = set()
        for line in _lines(data, path):
            known = self.lines.get(line.asked, ())
            if line not in known:
                self.lines[line.asked] = (*known, line)
            self._states |= {line.state, line.after}
        recorded = [line for lines in self.lines.values() for line in lines]
        self.spec = EnvSpec(
            id=f"cassette:{path.name}",
            version=digest(data)[:12],
            code_digest=code_digest(__name__),
            determinism="pure",
            effects=dict.fromkeys(sorted({line.name for line in recorded}), "write"),
            answers_malformed=any(line.arguments is UNSET for line in recorded),
            recorded_only=True,
        )

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> CassetteSession:
        """The tape at a task's start, or where a snapshot was taken. Raises StartError, SnapshotError."""
        match start:
            case Task():
                place = Place(start_of(start))
                if place.state not in self._states:
                    raise StartError(f"{title_of(start)}: {self.spec.id} holds no call from its start")
            case Snapshot():
                place = restore(start, self.spec, blobs, FORM, self._load)
        return CassetteSession(self, place, controls, blobs)

    def _load(self, image: bytes) -> Place:
        state = image.decode(errors="replace")
        if state not in self._states:
            raise SnapshotError(f"the image is no state that {self.spec.id} holds")
        return Place(state)


def start_of(task: Task) -> str:
    """The state in which a task starts."""
    return _named(["start", task.namespace, task.id, task.variant, _json(task.parameters)])


def cassette_of(trajectories: Iterable[Trajectory]) -> bytes:
    """A cassette of what the calls of trajectories were answered, equal answers in one state once."""
    lines = (encode(line) for trajectory in trajectories for line in lines_of(trajectory))
    return b"".join(line + b"\n" for line in dict.fromkeys(lines))


def lines_of(trajectory: Trajectory) -> Iterator[Line]:
    """What the calls of a trajectory were answered, up to its first call without a text answer."""
    state = start_of(trajectory.task)
    for call, answer in _answered(trajectory.messages):
        text = answer and (answer.content if answer.raw is None else answer.raw)
        if answer is None or not isinstance(text, str):
            return
        status: Answered = "ok" if answer.error is None else "tool_error"
        line = Line(state, call.name, text, status, call.arguments, _unparsed(call))
        yield line
        state = line.after


def open_file(rest: str) -> Cassette:
    """The cassette of ``:FILE``. Raises EnvironmentFailure."""
    return Cassette(Path(rest.removeprefix(":")))


FAMILY = Family(open_file, lambda rest: (f"cassette{rest}",))


def _answered(messages: Sequence[Message]) -> Iterator[tuple[ToolCall, Message | None]]:
    answers = {message.answers.uid: message for message in messages if message.answers is not None}
    for message in messages:
        for call in message.tool_calls:
            yield call, answers.get(call.uid)


def _asked(state: str, name: str, arguments: Json, text: str) -> str:
    return digest(encode([state, name, _json(arguments), text]))


def _named(parts: list[object]) -> str:
    return f"{FORM}:{digest(encode(parts))}"


def _json(value: Json) -> object:
    return None if value is UNSET else [value]


def _unparsed(call: ToolCall) -> str:
    return call.arguments_text if call.arguments is UNSET else ""


def _read(path: Path) -> bytes:
    try:
        with open_named(path) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise EnvironmentFailure(f"{path}: no cassette can be read ({error.strerror})") from error
    if len(data) > MAX_BYTES:
        raise EnvironmentFailure(f"{path}: over the limit of {MAX_BYTES} bytes; split it by task")
    return data


def _lines(data: bytes, path: Path) -> Iterator[Line]:
    decoder = msgspec.json.Decoder(Line)
    for number, line in enumerate(data.splitlines(), 1):
        try:
            yield decoder.decode(encode(parse(line)[0]))
        except (msgspec.MsgspecError, UnreadableError) as error:
            raise EnvironmentFailure(f"{path}, line {number}: {error}") from error

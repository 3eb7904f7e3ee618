"""Depots that cannot all be set back: worlds without snapshots, with calls that take back, and that only go on."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from environments.booking import TOOLS as BOOKING_TOOLS
from environments.booking import Booking, BookingSession
from environments.protocol import Blobs, CheckResult, Controls, EnvSpec, SnapshotError, StartError, Undo
from environments.session import ToolSession
from environments.tools import Answer, conclude
from schemas.objects import Snapshot
from schemas.trajectory import Message, RestoreKind, Task, ToolCall, text_of
from tests.forks.parcels import TOOLS, UNDO, Depot, Parcels


class Unsnapped(ToolSession[Parcels]):
    def snapshot(self) -> Snapshot:
        raise SnapshotError("this depot keeps no copies")

    def check(self, task: Task, messages: Sequence[Message] = ()) -> CheckResult:
        """What was last said in the conversation: by its content and its role, as the task wants them."""
        if task.id is None:
            return CheckResult("unknown", reads=())
        last = messages[-1]
        met = task.id in text_of(last.content) and last.role == task.variant
        if not met and task.namespace == "unsure":
            return CheckResult("unknown", reads=())
        return CheckResult("passed" if met else "failed", f"{len(messages)} messages", ("state", "hidden_answer"))


class Limited(Depot):
    """It declares snapshots that it cannot take."""

    session: type[ToolSession[Parcels]] = Unsnapped
    restore: RestoreKind = "snapshot"

    def __init__(self) -> None:
        self.spec: EnvSpec = Depot.spec._replace(restore=self.restore)

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> ToolSession[Parcels]:
        return self.session(self.spec, TOOLS, super().open(start, controls, blobs).state, controls, blobs)


class Replayed(Limited):
    restore = "replayed_prefix"


class Compensated(Limited):
    restore = "compensation"


class Misled(Compensated):
    """What it declares takes nothing back."""

    def __init__(self) -> None:
        super().__init__()
        useless = Undo("find", {"order": ("arguments", "order")})
        self.spec = self.spec._replace(undo={"send": useless})


class Bare(Compensated):
    """It declares nothing that takes a call back."""

    def __init__(self) -> None:
        super().__init__()
        self.spec = self.spec._replace(undo={})


class Forward(Limited):
    restore = "none"


class Recorded(Limited):
    def __init__(self) -> None:
        super().__init__()
        self.spec = self.spec._replace(recorded_only=True)


class Outward(Limited):
    """Its only write reaches outside."""

    def __init__(self) -> None:
        super().__init__()
        self.spec = self.spec._replace(effects={"send": "external", "find": "read"}, undo={"send": UNDO})


class UnsteadySession(Unsnapped):
    def answer(self, call: ToolCall) -> Answer:
        status, text = super().answer(call)
        return Answer(status, f"{text} {self.controls.hash_seed}" if call.name == "find" else text)


class Unsteady(Replayed):
    """Every process of it answers a look-up otherwise."""

    session = UnsteadySession


class DownSession(Unsnapped):
    def answer(self, call: ToolCall) -> Answer:
        if call.name == "find" and self.controls.hash_seed % 3 == 1:
            return conclude({"error": "timeout"}, self.spec)
        return super().answer(call)


class Down(Replayed):
    """One process of it is down when something is looked up."""

    session = DownSession

    def __init__(self) -> None:
        super().__init__()
        self.spec = self.spec._replace(faults=Booking().spec.faults)


class LiveSession(Unsnapped):
    """It works on a file that every process shares and that outlives them."""

    file: Path

    def answer(self, call: ToolCall) -> Answer:
        self.state.value = json.loads(self.file.read_text())
        answer = super().answer(call)
        self.file.write_text(json.dumps(self.state.value))
        return answer


class Live(Forward):
    session = LiveSession

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> ToolSession[Parcels]:
        assert isinstance(start, Task)
        assert isinstance(start.parameters, msgspec.Raw)
        parameters: dict[str, Any] = msgspec.json.decode(start.parameters)
        file = Path(parameters["file"])
        session = LiveSession(self.spec, TOOLS, Parcels(json.loads(file.read_text())), controls, blobs)
        session.file = file
        return session


class Trailed(Booking):
    """Bookings leave an audit trail, so that no state digest ever comes back."""

    def __init__(self) -> None:
        super().__init__()
        self.spec = self.spec._replace(restore="compensation")


class WatchedSession(BookingSession):
    def answer(self, call: ToolCall) -> Answer:
        with self.state.connection as at:
            at.execute("INSERT INTO audit (tool, sku) VALUES (?, ?)", (call.name, call.arguments_text))
        status, _ = super().answer(call)
        return Answer(status, '{"noted":true}')


class Watched(Booking):
    """It notes every call in its trail, and says no more than that."""

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> WatchedSession:
        return WatchedSession(self.spec, BOOKING_TOOLS, super().open(start, controls, blobs).state, controls, blobs)


class Dated(Booking):
    """A world whose start opens only as long as a file is there, and that declares nothing that takes a call back."""

    def __init__(self) -> None:
        super().__init__()
        self.spec = self.spec._replace(undo={})

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> Any:
        if isinstance(start, Task) and not Path(start.variant or "").exists():
            raise StartError("the start is not kept any more")
        return super().open(start, controls, blobs)

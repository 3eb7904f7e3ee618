"""A world whose answers move with the clock, the hash seed and chance, to be loaded by module:attribute."""

import os
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from environments.booking import Booking, BookingSession
from environments.json_state import JsonState
from environments.protocol import Blobs, Controls, EnvSpec, StartError
from environments.session import ToolSession, restore
from environments.sources import code_digest
from environments.tools import Tool, Toolbox
from schemas.objects import Snapshot
from schemas.trajectory import Task

State = JsonState[dict[str, list[str]]]


def send(state: State, text: str = "") -> dict[str, str]:
    state.value["sent"].append(text)
    return {"text": text, "drafted": "2024-05-15 15:00:00", "sent": str(datetime.now())}


def people(state: State) -> list[str]:
    return list({"ann@a.org", "bob@b.org"})


def steps(state: State) -> list[str]:
    return ["open", "close"]


def ticket(state: State) -> dict[str, str]:
    return {"ticket": str(uuid.uuid4()), "kind": "desk"}


def folder(state: State) -> str:
    return str(Path.cwd())


def hash_seed(state: State) -> str:
    return os.environ["PYTHONHASHSEED"]


def sent(state: State) -> list[str]:
    return state.value["sent"]


_TEXT: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = Toolbox(
    Tool("send", "", _TEXT, "write", send),
    *(
        Tool(run.__name__, "", {"type": "object"}, "read", run)
        for run in (people, steps, ticket, folder, hash_seed, sent)
    ),
)


class Restless:
    def __init__(self) -> None:
        rules = ("clock@1", "set_order@1")
        self.spec = EnvSpec("restless", "1", code_digest(__name__), "external", TOOLS.effects, rules=rules)

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> ToolSession[State]:
        if isinstance(start, Snapshot):
            kind = dict[str, list[str]]
            state = restore(start, self.spec, blobs, State.form, lambda image: State.restore(image, kind))
            return ToolSession(self.spec, TOOLS, state, controls, blobs)
        return ToolSession(self.spec, TOOLS, State({"sent": []}), controls, blobs)


class Once(Booking):
    """Bookings in a start state that opens only as long as a file is there, which the first opening removes."""

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> BookingSession:
        if isinstance(start, Task) and isinstance(start.parameters, msgspec.Raw):
            try:
                Path(msgspec.json.decode(start.parameters, type=str)).unlink()
            except FileNotFoundError:
                raise StartError("it was opened once") from None
        return super().open(Task() if isinstance(start, Task) else start, controls, blobs)


restless = Restless()
once = Once()

"""A world that hangs, crashes, floods and leaves processes behind, to be loaded by module:attribute."""

import os
import subprocess
import sys
import time
from typing import Any

from environments.json_state import JsonState
from environments.protocol import Blobs, Controls, EnvSpec, SnapshotError
from environments.session import ToolSession, restore
from environments.sources import code_digest
from environments.tools import Tool, Toolbox
from schemas.objects import Snapshot
from schemas.trajectory import Task

State = JsonState[dict[str, int]]


def count(state: State) -> int:
    state.value["n"] += 1
    return state.value["n"]


def hang(state: State) -> None:
    time.sleep(3600)


def leave(state: State) -> None:
    os._exit(3)


def leave_politely(state: State) -> None:
    sys.exit(0)


def stumble(state: State) -> int:
    return 1 // 0


def refuse(state: State) -> None:
    raise SnapshotError("a tool has no business with snapshots")


def flood(state: State) -> str:
    return "x" * 5_000_000


def hoard(state: State) -> int:
    return len(bytearray(3 * 2**30))


def chatter(state: State) -> str:
    print("\x00\x00\x00\x02{}" * 100, flush=True)
    os.write(1, b"noise")
    os.write(0, b"noise")
    return "said"


def scatter(state: State) -> list[str]:
    return list({"a", "b", "c", "d", "e", "f", "g", "h"})


def surroundings(state: State) -> dict[str, Any]:
    return {"names": sorted(os.environ), "zone": time.tzname[0], "encoding": sys.getfilesystemencoding()}


def detach(state: State) -> int:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"]).pid


def fork(state: State, ending: str) -> str:
    child = os.fork()
    if child:
        return f"parent of {child}"
    if ending == "exit":
        sys.exit(0)
    return "child" if ending == "return" else str(1 // 0)


_SCHEMA = {"type": "object", "properties": {"ending": {"type": "string"}}}
TOOLS = Toolbox(
    *(
        Tool(run.__name__, "", _SCHEMA, "write", run)
        for run in (
            *(count, hang, leave, leave_politely, stumble, refuse, flood, hoard),
            *(chatter, scatter, surroundings, detach, fork),
        )
    )
)


class Rough:
    def __init__(self) -> None:
        self.spec = EnvSpec("rough", "1", code_digest(__name__), "external", TOOLS.effects)

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> ToolSession[State]:
        match start:
            case Task(id="hang"):
                time.sleep(3600)
            case Task(id="crash"):
                os._exit(4)
            case Task(id="stumble"):
                raise ZeroDivisionError("no start")
            case Snapshot():
                kind = dict[str, int]
                state = restore(start, self.spec, blobs, State.form, lambda image: State.restore(image, kind))
                return ToolSession(self.spec, TOOLS, state, controls, blobs)
        return ToolSession(self.spec, TOOLS, State({"n": 0}), controls, blobs)


rough = Rough()
number = 7

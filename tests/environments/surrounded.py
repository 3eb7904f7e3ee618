"""A world that says what it sees of the time, of chance, of its folder and of its limits."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

from environments.json_state import JsonState
from environments.protocol import Blobs, CheckResult, Controls, EnvSpec
from environments.session import ToolSession
from environments.sources import code_digest
from environments.tools import Tool, Toolbox
from schemas.objects import Snapshot
from schemas.trajectory import Message, Task

State = JsonState[dict[str, str]]
LOADED = datetime.now().isoformat()


def now(state: State) -> list[Any]:
    return [datetime.now().isoformat(), time.time(), str(date.today()), time.strftime("%H:%M:%S %z")]


def loaded(state: State) -> list[str]:
    return [LOADED]


def opened(state: State) -> list[str]:
    return [state.value["opened"]]


def nap(state: State) -> bool:
    before, started = time.time(), time.monotonic()
    time.sleep(0.05)
    return time.time() == before and time.monotonic() > started


def draw(state: State) -> float:
    return random.random()


def draw_numpy(state: State) -> float:
    import numpy.random

    return float(numpy.random.random())


def folder(state: State) -> list[Any]:
    return [str(Path.cwd()), [path.name for path in Path().iterdir()], os.environ["TMPDIR"]]


def leave_file(state: State, size: int = 1) -> int:
    return Path("left").write_bytes(bytes(size))


def hoard(state: State, size: int) -> int:
    return len(bytearray(size))


def escape(state: State) -> int:
    """A daemon in a session of its own, whose parent is gone."""
    start = """
import subprocess, sys
quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(3600)"], start_new_session=True, **quiet).pid)
"""
    return int(subprocess.run([sys.executable, "-c", start], capture_output=True, check=True).stdout)


def work(state: State) -> bool:
    until = time.process_time() + 0.35
    while time.process_time() < until:
        pass
    return True


def hang(state: State) -> None:
    time.sleep(3600)


TOOLS = Toolbox(
    *(
        Tool(run.__name__, "", {"type": "object", "properties": {"size": {"type": "integer"}}}, "read", run)
        for run in (
            *(now, loaded, opened, nap, draw, draw_numpy, folder, leave_file),
            *(hoard, escape, hang, work),
        )
    )
)


class Session(ToolSession[State]):
    def check(self, task: Task, messages: Sequence[Message] = ()) -> CheckResult:
        while task.id == "endless":
            pass
        return CheckResult("passed", datetime.now().isoformat())


class Surrounded:
    spec = EnvSpec("surrounded", "1", code_digest(__name__), "clocked", TOOLS.effects)

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> Session:
        return Session(self.spec, TOOLS, State({"opened": datetime.now().isoformat()}), controls, blobs)

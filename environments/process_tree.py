"""Ending a process with everything that descends from it, daemons in sessions of their own included.

On Linux the process takes in the orphans of its descendants, so each of them is at some point its direct child, which
it alone could reap: killing direct children until none lives reaches all and can hit no stranger. Elsewhere, and where
the process ended by itself first, what left its process group survives.
"""

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 2000
_PAUSE_S = 0.001


def adopt_orphans() -> None:
    """Make this process the parent of what its descendants leave behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_tree(pid: int) -> None:
    """Kill an unreaped child, which leads a process group, its group, and its descendants where it adopts orphans."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGSTOP)  # it starts and reaps nothing more
        end_children(pid)
        os.killpg(pid, signal.SIGKILL)


def end_children(pid: int) -> None:
    """Kill a process's children, and their orphans as they become its own, until none lives (at most about 2 s)."""
    for _ in range(_ROUNDS):
        living = _living_children(pid)
        if not living:
            return
        for child in living:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def _living_children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path("/proc", str(pid), "task").glob("*/children"):
        with suppress(OSError):
            found.extend(int(child) for child in task.read_text().split())
    return [child for child in found if _lives(child)]


def _lives(pid: int) -> bool:
    try:
        state = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"

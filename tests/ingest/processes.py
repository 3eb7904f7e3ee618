"""Imports in processes of their own: the memory they take, and what they leave when they are killed."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from curation.store import Store

CURATE = Path(sys.executable).with_name("curate")
ROOT = Path(__file__).parents[2]

# A process counts the memory of the one that started it as its own until it runs a program: a small one starts it.
_MEASURED = """
import os, sys
child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, used = os.wait4(child, 0)
with open(sys.argv[1], "w") as file:
    file.write(str(used.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
"""
_IN_PORTIONS = """
import sys
from curation import ingest
from curation.cli.main import main

unit, size = sys.argv.pop(1), int(sys.argv.pop(1))
for name in (f"_PORTION_{unit}", f"_CHUNK_{unit}"):
    assert getattr(ingest, name)
    setattr(ingest, name, size)
main()
"""


class Measured(NamedTuple):
    """What an import printed, and the memory of the largest of its processes in KiB."""

    printed: dict[str, Any]
    peak: int


def import_measured(store: Store, *arguments: str | Path, portion_bytes: int = 0) -> Measured:
    """Run an import to its end, in portions of its own or of so many bytes."""
    curate = _in_portions("BYTES", portion_bytes) if portion_bytes else [CURATE]
    with tempfile.NamedTemporaryFile("r") as peak:
        command = [*curate, "import", *arguments, "--store", store.uri, "--json"]
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _MEASURED, peak.name, *command],
            capture_output=True,
            check=False,
            cwd=ROOT,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return Measured(json.loads(done.stdout), int(peak.read()))


def start_import(store: Store, *arguments: str | Path, portion: int) -> "subprocess.Popen[bytes]":
    """An import in a group of processes of its own, committed in portions of so many records."""
    command = [*_in_portions("RECORDS", portion), "import", *arguments, "--store", store.uri, "--json"]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def kill_after(importing: "subprocess.Popen[bytes]", store: Store, files: int, seconds: float = 0.0) -> bool:
    """Kill an import with all its processes once it has made so many files in the store; whether it still ran."""
    wanted = count_files(store) + files
    while importing.poll() is None and count_files(store) < wanted:
        time.sleep(0.001)
    time.sleep(seconds)
    if importing.poll() is None:
        os.killpg(importing.pid, signal.SIGKILL)
    return finish(importing) == -signal.SIGKILL


def finish(importing: "subprocess.Popen[bytes]") -> int:
    """Wait for an import to end, without an error; its exit code."""
    _, said = importing.communicate()
    assert importing.returncode in (0, 1, -signal.SIGKILL), said.decode()
    assert said == b"", said.decode()
    return importing.returncode


def count_files(store: Store) -> int:
    """How many files lie in the folder of a store."""
    return sum(len(files) for _, _, files in os.walk(store.uri))


def contents(store: Store) -> dict[str, list[str]]:
    """The ids of every row of every table of a store: each is the digest of what the row holds."""
    tables: Sequence[str] = ("objects", "sightings", "annotations", "verifications", "findings", "trajectories")
    return {table: store.sql(f"SELECT id FROM {table} ORDER BY id")["id"].to_pylist() for table in tables}


def _in_portions(unit: Literal["RECORDS", "BYTES"], size: int) -> list[str]:
    return [sys.executable, "-c", _IN_PORTIONS, unit, str(size)]

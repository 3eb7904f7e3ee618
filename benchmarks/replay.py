"""Where the time of replaying recorded calls goes, as shares of one run over the same AgentDojo logs.

    python benchmarks/replay.py RUNS_FOLDER [--json] [--calls 1000] [--environment agentdojo@v1.2.1]

The same calls (the runs' own, repeated until there are enough) are executed in one process after the other, each time
with one thing more around them:

- ``tools``: the package's own executor alone, on start states that lie ready
- ``session``: opening the start state, statuses, and the logical digest of the state after every call
- ``worker``: the line to a process that can be killed
- ``replay``: comparing every answer, and the task's check in a fork
- ``store``: reading the records from a store and writing the statements, on two processes

``outside_tools`` is the share of ``replay`` that is not ``tools``; ``both_cores`` how many processors were at work
while the store was replayed. Loading the package does not count, but for ``store``, whose workers load it.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from copy import deepcopy
from itertools import cycle
from pathlib import Path
from typing import Any

from curation.importers.agentdojo import IMPORTER
from curation.importers.face import Parsed
from curation.ingest import IngestOptions, find_sources, ingest
from curation.jobs.replaying import replay_attempts
from curation.replay import replay
from curation.store import Store
from curation.worlds import open_worlds
from environments.blobs import MemoryBlobs
from environments.catalogue import find, members
from environments.protocol import Controls, Environment
from environments.worker import Worker
from schemas.trajectory import Trajectory, trajectory_id

Runs = Sequence[Trajectory]


def main() -> None:
    """Run every part and print seconds and shares."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--json", action="store_true")
    options.add_argument("--calls", type=int, default=1000)
    options.add_argument("--environment", default="agentdojo@v1.2.1")
    given = options.parse_args()
    measured = measure(given.folder, given.calls, given.environment)
    if given.json:
        print(json.dumps(measured, indent=2))
    else:
        for name, value in measured.items():
            print(f"{name:20}{value:>12}")


def measure(folder: Path, calls: int, environment: str) -> dict[str, float]:
    """Seconds of every part over at least so many calls, and the shares."""
    worlds = {find(name).spec.tasks or "": name for name in members(environment)}
    known = [run for run in read_runs(folder) if run.task.namespace in worlds]
    if not any(map(calls_of, known)):
        sys.exit(f"no run of {environment} with a call in {folder}")
    runs = list(_enough(known, calls))
    names = [worlds[run.task.namespace or ""] for run in runs]
    tools = _tools(runs, names)
    session = _sessions(runs, [find(name) for name in names])
    worker, replayed = _workers(runs, names)
    stored, processors = _stored(folder, environment)
    return {
        "calls": sum(map(calls_of, runs)),
        "runs": len(runs),
        "tools_seconds": round(tools, 3),
        "session_seconds": round(session, 3),
        "worker_seconds": round(worker, 3),
        "replay_seconds": round(replayed, 3),
        "store_seconds": round(stored, 3),
        "outside_tools": round(1 - tools / replayed, 3),
        "both_cores": round(processors, 2),
    }


def read_runs(folder: Path) -> list[Trajectory]:
    """The runs of a folder of AgentDojo files, in order of their paths."""
    items = (item for path in sorted(folder.rglob("*.json")) for item in IMPORTER.read(path))
    return [item.trajectory for item in items if isinstance(item, Parsed)]


def calls_of(run: Trajectory) -> int:
    """How many calls a run holds."""
    return sum(len(message.tool_calls) for message in run.messages)


def _enough(runs: Runs, calls: int) -> Iterator[Trajectory]:
    for run in cycle(runs):
        if calls <= 0:
            return
        calls -= calls_of(run)
        yield run


def _tools(runs: Runs, names: Sequence[str]) -> float:
    from agentdojo.agent_pipeline.tool_execution import ToolsExecutor
    from agentdojo.functions_runtime import FunctionCall

    worlds: list[Any] = [find(name) for name in names]
    starts = [deepcopy(world.start(run.task)) for world, run in zip(worlds, runs, strict=True)]
    asked = [
        [
            {"role": "assistant", "content": None, "tool_calls": [FunctionCall(function=call.name, args=arguments)]}
            for message in run.messages
            for call in message.tool_calls
            if isinstance(arguments := json.loads(call.arguments_text), dict)
        ]
        for run in runs
    ]
    executor = ToolsExecutor()
    began = time.perf_counter()
    for world, start, calls in zip(worlds, starts, asked, strict=True):
        for call in calls:
            executor.query("", world.runtime, start, [call])
    return time.perf_counter() - began


def _sessions(runs: Runs, worlds: Sequence[Environment | Worker]) -> float:
    blobs, controls = MemoryBlobs(), Controls()
    began = time.perf_counter()
    for run, world in zip(runs, worlds, strict=True):
        opened = world.open(run.task, blobs) if isinstance(world, Worker) else world.open(run.task, controls, blobs)
        with opened as session:
            for message in run.messages:
                session.call(message.tool_calls)
    return time.perf_counter() - began


def _workers(runs: Runs, names: Sequence[str]) -> tuple[float, float]:
    with ExitStack() as stack:
        worlds = {name: stack.enter_context(open_worlds(name, processes=1))[0] for name in set(names)}
        for name, world in worlds.items():  # loads the package
            for process in (world.worker, *world.witnesses[:2]):
                process.open(runs[names.index(name)].task, MemoryBlobs()).close()
        worker = _sessions(runs, [worlds[name].worker for name in names])
        began = time.perf_counter()
        for run, name in zip(runs, names, strict=True):
            replay(trajectory_id(run), run, worlds[name], MemoryBlobs())
        return worker, time.perf_counter() - began


def _stored(folder: Path, environment: str) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as name:
        store = Store.create(str(Path(name) / "store"))
        ingest(store, find_sources([folder], "auto"), IngestOptions())
        began, before = time.perf_counter(), _processor_time()
        replay_attempts(store, environment)
        seconds = time.perf_counter() - began
        return seconds, (_processor_time() - before) / seconds


def _processor_time() -> float:
    return sum(os.times()[:4])


if __name__ == "__main__":
    main()

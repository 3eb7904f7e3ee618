"""The processes that worlds run in: one environment by name, each process with a hash seed of its own."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from msgspec.structs import replace

from environments.catalogue import find
from environments.protocol import Blobs, Controls, EnvSpec, Session
from environments.worker import Worker
from schemas.objects import Snapshot
from schemas.trajectory import Task

PROCESSES = 3  # two runs of every new call, and one that settles a disagreement


class World(NamedTuple):
    """A process that opens worlds of one environment, and what that environment declares."""

    spec: EnvSpec
    worker: Worker

    def open(self, start: Task | Snapshot, blobs: Blobs) -> Session:
        """A world at a task's start state or a snapshot. Raises StartError, SnapshotError."""
        return self.worker.open(start, blobs)


@contextmanager
def open_worlds(name: str, controls: Controls | None = None, processes: int = PROCESSES) -> Iterator[tuple[World, ...]]:
    """Processes of the environment of that name, ended with the block; each starts when it is first needed.

    Raises UnknownEnvironmentError.
    """
    spec = find(name).spec
    given = controls or Controls()
    with ExitStack() as stack:
        yield tuple(
            World(spec, stack.enter_context(Worker(name, replace(given, hash_seed=given.hash_seed + number))))
            for number in range(processes)
        )

"""The processes that worlds run in: one environment by name, each process with a hash seed of its own."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from msgspec.structs import replace

from environments.catalogue import find
from environments.clock import RECORDED
from environments.protocol import Blobs, Controls, EnvSpec, Session
from environments.worker import Worker
from schemas.objects import Snapshot
from schemas.trajectory import Task

PROCESSES = 3  # two runs of every new call, and one that settles a disagreement
WITNESSES = 6  # hash seeds until a set of two items has moved in all but one of a hundred cases

_ELSEWHEN = ("2031-07-19T08:43:27.654321+00:00", "2043-11-28T21:16:52.123456+00:00")  # no field of a time is equal


class World(NamedTuple):
    """A process that opens worlds of one environment, and what that environment declares.

    ``witnesses`` are processes of the same environment with other hash seeds, clocks and folders: what moves there is
    no part of an answer that can be held against a log.
    """

    spec: EnvSpec
    worker: Worker
    witnesses: tuple[Worker, ...] = ()

    def open(self, start: Task | Snapshot, blobs: Blobs) -> Session:
        """A world at a task's start state or a snapshot. Raises StartError, SnapshotError."""
        return self.worker.open(start, blobs)


@contextmanager
def open_worlds(name: str, controls: Controls | None = None, processes: int = PROCESSES) -> Iterator[tuple[World, ...]]:
    """Processes of the environment of that name, ended with the block; each starts when it is first needed.

    Raises UnknownEnvironmentError.
    """
    spec = find(name).spec
    given = controls or Controls(clock=RECORDED)
    with ExitStack() as stack:

        def start(number: int, clock: str, folder: str | None) -> Worker:
            changed = replace(given, hash_seed=given.hash_seed + number, clock=clock, folder=folder)
            return stack.enter_context(Worker(name, changed))

        def witnesses(number: int) -> tuple[Worker, ...]:
            first = processes + number * WITNESSES
            return tuple(start(first + nth, _ELSEWHEN[nth % 2], None) for nth in range(WITNESSES))

        yield tuple(
            World(spec, start(number, given.clock, given.folder), witnesses(number)) for number in range(processes)
        )

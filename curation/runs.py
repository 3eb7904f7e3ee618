"""New calls executed apart: one snapshot opened in several processes, the same calls in each, and whether all agree."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from curation.worlds import World
from environments.protocol import Blobs, CallResult, CheckResult
from schemas.objects import Snapshot
from schemas.trajectory import Message, Task


class Run(NamedTuple):
    """What one process gave: a result a call, up to the first call that was not answered.

    ``settled`` and ``checked`` say what became of the world; absent where a call was not answered.
    """

    results: tuple[CallResult, ...]
    settled: str | None = None
    checked: CheckResult | None = None


class Agreement(NamedTuple):
    """The run that most runs are equal to in answers, states and check, and how many of how many those are."""

    run: Run
    agreed: int
    runs: int

    @property
    def complete(self) -> bool:
        """Whether all runs are equal."""
        return self.agreed == self.runs

    @property
    def flaw(self) -> str:
        """How many of how many runs are equal, or nothing where all are."""
        return "" if self.complete else f"{self.agreed} of {self.runs}"


def execute_apart(
    snapshot: Snapshot, turns: Sequence[Message], task: Task, worlds: Sequence[World], blobs: Blobs
) -> Agreement:
    """Execute the calls of some turns from a snapshot in the first two worlds; the others settle a disagreement.

    Each run is a world of its own, checked against the task after its last call and closed.
    """
    runs = [_run(snapshot, turns, task, world, blobs) for world in worlds[:2]]
    if len(set(runs)) > 1:
        runs.extend(_run(snapshot, turns, task, world, blobs) for world in worlds[2:])
    run, agreed = Counter(runs).most_common(1)[0]
    return Agreement(run, agreed, len(runs))


def _run(snapshot: Snapshot, turns: Sequence[Message], task: Task, world: World, blobs: Blobs) -> Run:
    results: list[CallResult] = []
    with world.open(snapshot, blobs) as session:
        for turn in turns:
            for result in session.call(turn.tool_calls):
                results.append(result)
                if result.status not in ("ok", "tool_error") or result.truncated:
                    return Run(tuple(results))
        return Run(tuple(results), session.settled_digest(), session.check(task))

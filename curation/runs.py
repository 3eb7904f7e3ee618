"""New calls executed apart: several processes at one branch point, the same calls in each, and whether all agree."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from curation.arrival import Way, arrive, check_at
from curation.worlds import World
from environments.protocol import Blobs, CallResult, CheckResult
from schemas.trajectory import Answers, Message


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


def execute_apart(way: Way, turns: Sequence[Message], worlds: Sequence[World], blobs: Blobs) -> Agreement:
    """Execute the calls of some turns at a branch point in the first two worlds; the others settle a disagreement.

    Each run is a world of its own, checked against the task after its last call and closed. Raises NoWayError,
    StartError and SnapshotError where a world does not get to the branch point.
    """
    runs = [_run(way, turns, world, blobs) for world in worlds[:2]]
    if len(set(runs)) > 1:
        runs.extend(_run(way, turns, world, blobs) for world in worlds[2:])
    run, agreed = Counter(runs).most_common(1)[0]
    return Agreement(run, agreed, len(runs))


def answer_turns(turns: Sequence[Message], results: Sequence[CallResult]) -> Iterator[Message]:
    """Assistant messages, each followed by what its calls were answered: the shown text, and the raw one where a
    mediator changed it.
    """
    answers = iter(results)
    for turn in turns:
        yield turn
        for call in turn.tool_calls:
            result = next(answers)
            shown, raw = (result.raw, None) if result.shown is None else (result.shown, result.raw)
            yield Message("tool", shown, answers=Answers(call.uid, "position"), raw=raw)


def _run(way: Way, turns: Sequence[Message], world: World, blobs: Blobs) -> Run:
    trajectory = way.parent.trajectory
    results: list[CallResult] = []
    with arrive(way, world, blobs) as arrival:
        session = arrival.session
        for turn in turns:
            for result in session.call(turn.tool_calls, way.time):
                results.append(result)
                if result.status not in ("ok", "tool_error") or result.truncated:
                    return Run(tuple(results))
        messages = (*trajectory.messages[: way.point], *answer_turns(turns, results))
        return Run(tuple(results), session.settled_digest(), check_at(way, session, messages))

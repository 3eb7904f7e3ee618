"""Whether an environment keeps its promises, and what it may therefore verify.

Calls are tried in processes that differ in hash seed, clock and folder. Nothing that was not tested counts as kept.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec
from msgspec.structs import replace

from environments.catalogue import find
from environments.promises import PROMISES, Outcome, verdict
from environments.protocol import Controls, EnvSpec
from environments.trials import Bench, Trial, run, try_out
from environments.worker import Worker

_OTHER_CLOCKS = ("2031-07-19T08:43:27.654321+00:00", "2043-11-28T21:16:52.123456+00:00")
_HOPELESS_S = 1e-6
_NOTHING_SEEN = "none that was seen: no tool answered"


class Line(msgspec.Struct):
    """One promise: whether it was kept, and what was seen or why nothing was."""

    test: str
    result: Outcome
    detail: str


class Verifies(msgspec.Struct):
    """What an environment may verify, for each kind of thing."""

    answers: str
    forks: str
    outcomes: str


class Conformance(msgspec.Struct):
    """The examination of one environment: what was tried, each promise, and what may be verified here."""

    environment: str
    code_digest: str
    determinism: str
    tools: int
    calls: int
    passed: int
    failed: int
    not_tested: int
    tests: list[Line]
    may_verify: Verifies


def examine(
    name: str, controls: Controls | None = None, trials: Sequence[Trial] = (), rules: Collection[str] = ()
) -> Conformance:
    """Examine an environment by executing calls in it: those of ``trials`` (starts and calls, as a log has them), those
    of its own attribute ``examples`` (pairs of a tool's name and its arguments), and some made from its schemas.

    ``rules`` are the names of the normalisation rules that there are. Raises UnknownEnvironmentError, ControlError, and
    StartError where neither the default task nor any of a trial opens.
    """
    environment = find(name)
    spec, held = environment.spec, controls or Controls()
    with ExitStack() as stack:

        def start(number: int, **changes: Any) -> Worker:
            seed = (held.hash_seed + number) % 2**32
            return stack.enter_context(Worker(name, replace(held, hash_seed=seed, **changes)))

        here, there = start(0), start(1, folder=None)
        other = next(clock for clock in _OTHER_CLOCKS if clock != held.clock)
        later, hurried = start(2, folder=None, clock=other), start(3, folder=None, timeout_s=_HOPELESS_S)
        tried = try_out(here, environment, trials)
        runs = (tuple(run(worker, trial) for trial in tried.trials) for worker in (here, there, later))
        bench = Bench(environment, held, rules, tried, here, there, hurried, *runs)
        lines = [Line(title, *verdict(test, bench)) for title, test in PROMISES.items()]
    counts = Counter(line.result for line in lines)
    return Conformance(
        spec.name,
        spec.code_digest,
        spec.determinism,
        len(tried.tools),
        sum(len(trial.calls) for trial in tried.trials),
        counts["passed"],
        counts["failed"],
        counts["not_tested"],
        lines,
        _verifies(spec, {line.test: line.result for line in lines}),
    )


def _verifies(spec: EnvSpec, results: Mapping[str, Outcome]) -> Verifies:
    return Verifies(_answers_of(spec, results), _forks_of(spec, results), _outcomes_of(results))


def _answers_of(spec: EnvSpec, results: Mapping[str, Outcome]) -> str:
    if spec.recorded_only:
        return "none: it gives recorded answers back"
    if "failed" in (results["starts"], results["answers"], results["other process"]):
        return "none until the failed tests pass"
    if results["answers"] == "not_tested":
        return _NOTHING_SEEN
    rules = f" or after {', '.join(spec.rules)}" if spec.rules else ""
    if results["other process"] == "not_tested":
        return f"recorded answers by bytes{rules}, of the tools that did not move"
    if results["other time"] == "passed":
        return f"recorded answers by bytes{rules}"
    return f"recorded answers by bytes{rules}, at the recorded time where they hold one"


def _forks_of(spec: EnvSpec, results: Mapping[str, Outcome]) -> str:
    if spec.recorded_only:
        return "none: a new call has no recorded answer"
    if "failed" in (results["snapshots"], results["reads"], results["other process"]):
        return "none until the failed tests pass"
    if results["answers"] == "not_tested" or (spec.restore == "snapshot" and results["snapshots"] == "not_tested"):
        return _NOTHING_SEEN
    ways = {
        "snapshot": "clean and recovery, from snapshots",
        "replayed_prefix": "clean and recovery, by a prefix replayed from the task's start",
        "compensation": "after compensating calls that lead back to an equal state",
        "none": "recovery only, forward from the present state",
    }
    return ways[spec.restore]


def _outcomes_of(results: Mapping[str, Outcome]) -> str:
    match results["task checks"]:
        case "passed":
            return "outcomes of tasks, by their own checks"
        case "failed":
            return "none until the failed tests pass"
    return "none that was seen: no task that was tried has a check here"

"""Calls tried in an environment, and what came of them in several processes."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from environments.blobs import MemoryBlobs
from environments.protocol import CallResult, Controls, Environment, EnvironmentFailure, EnvSpec, Session
from environments.samples import Sampler, given, make_call, rounds
from environments.worker import Worker
from schemas.objects import ToolSpec
from schemas.trajectory import Message, Task, ToolCall

MOST_CALLS = 80  # that are made up; given ones are all executed
_MOST_BROKEN = 3


class Trial(NamedTuple):
    """A start, calls to execute there, in order, and the messages of a log that they are from."""

    task: Task
    calls: tuple[ToolCall, ...]
    messages: tuple[Message, ...] = ()


class Run(NamedTuple):
    """What the calls of a trial gave, and the settled digest after them where the state is known."""

    results: tuple[CallResult, ...]
    settled: str | None


class Tried(NamedTuple):
    """What an environment offers, calls to try, and the calls that broke a world, with what happened."""

    tools: tuple[ToolSpec, ...]
    trials: tuple[Trial, ...]
    broken: tuple[str, ...]


class Bench(NamedTuple):
    """What the tests look at. ``apart`` ran in another process than ``runs``, ``later`` also at another time."""

    environment: Environment
    controls: Controls
    rules: Collection[str]
    tried: Tried
    here: Worker
    there: Worker
    hurried: Worker
    runs: tuple[Run, ...]
    apart: tuple[Run, ...]
    later: tuple[Run, ...]

    @property
    def spec(self) -> EnvSpec:
        """What the environment declares."""
        return self.environment.spec

    @property
    def start(self) -> Task:
        """A start that opens."""
        return self.tried.trials[0].task


def try_out(worker: Worker, environment: Environment, trials: Sequence[Trial]) -> Tried:
    """Trials: those given, the environment's examples, and calls made up at the first start from what was answered."""
    spec = environment.spec
    start = trials[0].task if trials else Task()
    examples = _inside(given(getattr(environment, "examples", ())), spec)
    own = [trial._replace(calls=_inside(trial.calls, spec)) for trial in trials]
    own += [Trial(start, examples)] if examples else []
    sampler = Sampler(0)
    for trial in own:
        for result in run(worker, trial).results:
            sampler.learn(result.raw)
    made: list[ToolCall] = []
    broken: list[str] = []
    session = worker.open(start, MemoryBlobs())
    tools = session.tools()
    for number, tool in enumerate(rounds(tools, spec.effects, MOST_CALLS)):
        call = make_call(number, tool.name, sampler.arguments(tool))
        [result] = session.call((call,))
        sampler.learn(result.raw)
        if result.state_after is not None:
            made.append(call)
            continue
        broken.append(f"{call.name} {call.arguments_text[:80]}: {result.status} {result.detail}")
        if len(broken) == _MOST_BROKEN:
            break
        session = worker.open(start, MemoryBlobs())
    session.close()
    return Tried(tools, (*own, Trial(start, tuple(made))), tuple(broken))


def _inside(calls: Sequence[ToolCall], spec: EnvSpec) -> tuple[ToolCall, ...]:
    """The calls that reach nothing outside."""
    return tuple(call for call in calls if spec.effects.get(call.name) != "external")


def run(worker: Worker, trial: Trial) -> Run:
    """Execute a trial in a world of its own."""
    with worker.open(trial.task, MemoryBlobs()) as session:
        return Run(session.call(trial.calls), settled(session))


def settled(session: Session) -> str | None:
    """The settled digest, None where the state is unknown."""
    try:
        return session.settled_digest()
    except EnvironmentFailure:
        return None

"""Wrong calls executed where right ones stood: one way through a run, and a fork of its state for each of them.

The run's own calls are executed once; every wrong call starts from a snapshot of the state that its right call met.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from curation.clocks import NO_CLOCKS, Clocks
from curation.power import CheckName, Probe
from curation.worlds import World
from environments.protocol import Blobs, CallResult, CheckResult, EnvironmentFailure, Session
from schemas.objects import Snapshot
from schemas.trajectory import Message, ToolCall, Trajectory, answers_of

_ANSWERED = frozenset(("ok", "tool_error", "schema_error", "unknown_tool"))


class Probed(NamedTuple):
    """The probes of a run, and how many wrong calls were not probed, by a code of schemas.reasons.UNPROBED."""

    probes: tuple[Probe, ...] = ()
    unprobed: Mapping[str, int] = {}


class _Place(NamedTuple):
    """A right call of a run: where it stands, the state it met and what it gave.

    ``accepted``: with its message the check passes, and did not before.
    """

    message: int
    position: int
    call: ToolCall
    snapshot: Snapshot
    right: CallResult
    settled: str
    accepted: bool = False


class _Run(NamedTuple):
    """A run that passed its task, when its calls were made, and the process in which it is executed."""

    trajectory: Trajectory
    clocks: Clocks
    world: World
    blobs: Blobs


def probe(
    trajectory: Trajectory,
    chosen: Mapping[str, Sequence[ToolCall]],
    world: World,
    blobs: Blobs,
    clocks: Clocks = NO_CLOCKS,
) -> Probed:
    """What the wrong calls chosen for a run's calls do in their places.

    ``chosen`` maps the uid of a right call to its wrong ones. After a wrong call come the other calls of the run, then
    the task's check; a run that does not pass its own check in this world says nothing of its checks, so none of it
    counts.
    """
    run = _Run(trajectory, clocks, world, blobs)
    found: list[Probe] = []
    unprobed: Counter[str] = Counter()
    places = _reproduce(run, chosen)
    for place in places or ():
        for wrong in chosen[place.call.uid]:
            made = _probe(run, place, wrong)
            if made is None:
                unprobed["not_answered"] += 1
            else:
                found.append(made)
    if places is None:
        unprobed["not_reproduced"] = sum(map(len, chosen.values()))
    return Probed(tuple(found), unprobed)


def _reproduce(run: _Run, chosen: Mapping[str, Sequence[ToolCall]]) -> tuple[_Place, ...] | None:
    """The places of the chosen calls, by executing the run; None where it does not come to pass its own check."""
    try:
        with run.world.open(run.trajectory.task, run.blobs) as session:
            places = tuple(_places(run, session, chosen))
            checked = _check(run, session.snapshot(), run.trajectory.messages)
    except EnvironmentFailure:
        return None
    return places if checked.result == "passed" else None


def _places(run: _Run, session: Session, chosen: Mapping[str, Sequence[ToolCall]]) -> Iterator[_Place]:
    messages, answers = run.trajectory.messages, answers_of(run.trajectory)
    for index, message in enumerate(messages):
        places: list[_Place] = []
        for position, call in enumerate(message.tool_calls):
            snapshot = session.snapshot() if call.uid in chosen else None
            (right,) = session.call((call,), run.clocks.at(index))
            if snapshot is not None:
                places.append(_Place(index, position, call, snapshot, right, session.settled_digest()))
        if places:
            until = 1 + max(answers[call.uid] for call in message.tool_calls if call.uid in answers)
            before = _check(run, places[0].snapshot, messages[:index])
            after = _check(run, session.snapshot(), messages[:until])
            for place in places:
                yield place._replace(accepted=before.withholds and after.result == "passed")


def _probe(run: _Run, place: _Place, wrong: ToolCall) -> Probe | None:
    """What a wrong call does; None where it is not answered, or what comes after it is lost."""
    try:
        return _executed(run, place, wrong)
    except EnvironmentFailure:
        return None


def _executed(run: _Run, place: _Place, wrong: ToolCall) -> Probe | None:
    messages = run.trajectory.messages
    with run.world.open(place.snapshot, run.blobs) as session:
        (result,) = session.call((wrong,), run.clocks.at(place.message))
        if result.status not in _ANSWERED:
            return None
        passed: dict[CheckName, bool] = {"no_error": result.status == "ok", "match": _matches(session, result, place)}
        made = Probe(place.message, place.call, wrong, passed)
        given = {wrong.uid: result}
        beside = messages[place.message].tool_calls[place.position + 1 :]
        if not _go_on(run, session, ((place.message, call) for call in beside), given):
            return made
        if place.accepted:
            until = 1 + max(index for uid, index in answers_of(run.trajectory).items() if uid in given)
            step = _check(run, session.snapshot(), _spliced(messages[:until], wrong, given))
            if step.result == "passed" or step.withholds:
                passed["step"] = step.result == "passed"
        if not _go_on(run, session, _calls(messages, place.message + 1), given):
            return made
        checked = _check(run, session.snapshot(), _spliced(messages, wrong, given))
    passed |= _verdict("task", checked)
    return made._replace(reads=checked.reads)


def _verdict(name: CheckName, checked: CheckResult) -> dict[CheckName, bool]:
    """Whether a check passes, nothing where it cannot tell."""
    return {name: checked.result == "passed"} if checked.result in ("passed", "failed", "partial") else {}


def _matches(session: Session, result: CallResult, place: _Place) -> bool:
    """Whether a wrong call's answer, and the world after it, are those of the right one."""
    if (result.status, result.raw) != (place.right.status, place.right.raw):
        return False
    return result.state_after == place.right.state_after or session.settled_digest() == place.settled


def _calls(messages: Sequence[Message], start: int) -> Iterator[tuple[int, ToolCall]]:
    for index, message in enumerate(messages):
        if index >= start:
            yield from ((index, call) for call in message.tool_calls)


def _go_on(run: _Run, session: Session, calls: Iterable[tuple[int, ToolCall]], given: dict[str, CallResult]) -> bool:
    """Execute further calls of the run, each with its message; whether all were answered."""
    for index, call in calls:
        (given[call.uid],) = session.call((call,), run.clocks.at(index))
        if given[call.uid].status not in _ANSWERED:
            return False
    return True


def _check(run: _Run, snapshot: Snapshot, messages: Sequence[Message]) -> CheckResult:
    with run.world.open(snapshot, run.blobs) as fork:
        return fork.check(run.trajectory.task, messages)


def _spliced(messages: Sequence[Message], wrong: ToolCall, given: Mapping[str, CallResult]) -> tuple[Message, ...]:
    """The run's messages with the wrong call in its place, and with the answers that were given in this world."""
    return tuple(_splice(message, wrong, given) for message in messages)


def _splice(message: Message, wrong: ToolCall, given: Mapping[str, CallResult]) -> Message:
    if message.answers is not None and message.answers.uid in given:
        return replace(message, content=given[message.answers.uid].raw, raw=None, error=None)
    if any(call.uid == wrong.uid for call in message.tool_calls):
        return replace(
            message, tool_calls=tuple(wrong if call.uid == wrong.uid else call for call in message.tool_calls)
        )
    return message

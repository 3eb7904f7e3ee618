"""Executing the calls of a record again, in recorded order, and saying of each whether its answer is the real one.

What is executed stays in step with the record only as far as the state is known: after a time-out, a fault on a write,
or a write without an answer, nothing further is executed, and says so.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from curation.clocks import NO_CLOCKS, Clocks
from curation.match import Verdict, match_message
from curation.selfcheck import Selfcheck
from curation.worlds import World
from environments.protocol import Blobs, CallResult, EnvSpec, Session, SnapshotError, StartError
from schemas.canonical import digest
from schemas.objects import Snapshot
from schemas.statements import Annotation, Execution, Verification
from schemas.trajectory import Author, Message, Task, ToolCall, Trajectory, answers_of

CHECKED = Author("rule", "replay.outcome", "1")
REPLAYED_OUTCOME = "replay.outcome"

_IN_DOUBT = frozenset(("environment_fault", "fault_in_replay", "no_recorded_answer", "order_unknown"))


class Step(NamedTuple):
    """One recorded call with the verdict on its answer; ``executed`` is absent where the call was not run."""

    message: int
    call: ToolCall
    answer: int | None
    verdict: Verdict
    executed: CallResult | None = None

    @property
    def confirmed(self) -> bool:
        """Whether the recorded answer is the real one."""
        return self.verdict.result == "passed"


class Replayed(NamedTuple):
    """What executing a record again said: one execution verification a call and, where every call is confirmed and the
    task can be checked, the task's. ``outcome`` is what the task's check gave, also where a call is not confirmed: then
    it is told beside the log's outcome and verifies nothing.
    """

    verifications: tuple[Verification, ...]
    outcome: Annotation | None = None


def replay(
    trajectory_id: str, trajectory: Trajectory, world: World, blobs: Blobs, clocks: Clocks = NO_CLOCKS
) -> Replayed:
    """Execute the calls of a record again, on a recorded clock at the times of ``clocks``; the task's check runs in a
    fork of the final state.

    A start state that the environment cannot open leaves every call ``not_run(start_unavailable)``.
    """
    spec = world.spec
    try:
        session = world.open(trajectory.task, blobs)
    except StartError as error:
        verdict = Verdict("not_run", "start_unavailable", detail=str(error))
        return Replayed(tuple(verification_of(trajectory_id, step, spec) for step in _unrun(trajectory, verdict)))
    with session, selfcheck_of(trajectory, trajectory.task, world, blobs, clocks=clocks) as selfcheck:
        steps = _with_start_doubted(tuple(walk(session, trajectory, spec, selfcheck=selfcheck, clocks=clocks)))
        found = tuple(verification_of(trajectory_id, step, spec) for step in steps)
        task = _check(trajectory_id, trajectory, session, world, blobs)
    if task is None:
        return Replayed(found)
    outcome = Annotation(trajectory_id, REPLAYED_OUTCOME, task.result, CHECKED, task.reads)
    return Replayed((*found, task) if all(step.confirmed for step in steps) else found, outcome)


def selfcheck_of(
    trajectory: Trajectory,
    start: Task | Snapshot,
    world: World,
    blobs: Blobs,
    position: int = 0,
    clocks: Clocks = NO_CLOCKS,
) -> Selfcheck:
    """The calls that ``walk`` executes from a message on, for other processes to execute from the same start."""
    batches = [
        () if index < position else _runnable(message.tool_calls, world.spec)
        for index, message in enumerate(trajectory.messages)
    ]
    return Selfcheck(world, start, batches, blobs, clocks)


def walk(
    session: Session,
    trajectory: Trajectory,
    spec: EnvSpec,
    start: int = 0,
    stop: int | None = None,
    selfcheck: Selfcheck | None = None,
    clocks: Clocks = NO_CLOCKS,
) -> Iterator[Step]:
    """Execute the calls of the messages from ``start`` to before ``stop``, a message's calls as one batch.

    Without a ``selfcheck`` nothing is known to move, so that no volatile rule forgives anything, and calls of one
    message whose answers the log holds in another order count as made in their own.
    """
    answers = answers_of(trajectory)
    known = True
    for index, message in enumerate(trajectory.messages[:stop]):
        if index < start:
            continue
        batch = _runnable(message.tool_calls, spec) if known else ()
        given = session.call(batch, clocks.at(index)) if batch else ()
        results = dict(zip((call.uid for call in batch), given, strict=False))
        doubt = None if selfcheck is None else _order_doubt(index, batch, answers, selfcheck)
        for call in message.tool_calls:
            at = answers.get(call.uid)
            answer = None if at is None else trajectory.messages[at]
            result = results.get(call.uid) if known or doubt else None
            others = () if selfcheck is None else selfcheck.answers(index, call.uid)
            verdict = doubt if doubt and result else _verdict(call, answer, result, spec, known, others)
            yield Step(index, call, at, verdict, result)
            known = known and _state_known_after(call, verdict, result, spec)


def verification_of(trajectory_id: str, step: Step, spec: EnvSpec) -> Verification:
    """The execution verification of a recorded call, said by the environment."""
    verdict, result = step.verdict, step.executed
    return Verification(
        trajectory_id,
        "execution",
        verdict.result,
        author_of(spec),
        message=step.message,
        call=step.call.uid,
        detail=verdict.detail,
        execution=Execution(
            spec.name,
            spec.code_digest,
            match=verdict.match,
            reason=verdict.reason,
            rules=verdict.rules,
            status=None if result is None else result.status,
            answer=None if result is None else digest(result.raw.encode()),
            state_before=None if result is None else result.state_before,
            state_after=None if result is None else result.state_after,
        ),
        evidence=tuple(
            msgspec.structs.replace(evidence, message=step.answer, call=step.call.uid) for evidence in verdict.evidence
        ),
        reads=("state",),
    )


def author_of(spec: EnvSpec) -> Author:
    """The environment as the author of what it confirmed."""
    return Author("environment", spec.id, spec.version)


def _runnable(calls: Sequence[ToolCall], spec: EnvSpec) -> tuple[ToolCall, ...]:
    external = (index for index, call in enumerate(calls) if spec.effects.get(call.name) == "external")
    return tuple(call for call in calls[: next(external, None)] if _executable(call, spec))


def _executable(call: ToolCall, spec: EnvSpec) -> bool:
    return spec.answers_malformed or call.arguments is not msgspec.UNSET


def _order_doubt(
    index: int,
    batch: Sequence[ToolCall],
    answers: Mapping[str, int],
    selfcheck: Selfcheck,
) -> Verdict | None:
    """The verdict on the calls of a message that the log answers in an order that is not theirs, if that counts."""
    answered = [answers[call.uid] for call in batch if call.uid in answers]
    if answered == sorted(answered) or not selfcheck.order_matters(index):
        return None
    return Verdict(
        "unverifiable", "order_unknown", detail="in reverse order the calls give other answers or another state"
    )


def _verdict(
    call: ToolCall,
    answer: Message | None,
    result: CallResult | None,
    spec: EnvSpec,
    known: bool,
    others: Iterable[CallResult],
) -> Verdict:
    if not known:
        return Verdict("not_run", "state_unknown")
    if spec.effects.get(call.name) == "external":
        return Verdict("not_run", "external_effect")
    if not _executable(call, spec):
        return Verdict("not_run", "not_executable")
    if result is None:
        return Verdict("not_run", "state_unknown")
    if answer is None:
        return Verdict("unverifiable", "no_recorded_answer")
    return match_message(answer, result, spec, others)


def _state_known_after(call: ToolCall, verdict: Verdict, result: CallResult | None, spec: EnvSpec) -> bool:
    """Whether our world is still the record's: a fault on either side may have come before or after a write."""
    if verdict.reason == "not_executable":
        return True
    if result is None or result.state_after is None or result.status == "refused":
        return False
    return verdict.reason not in _IN_DOUBT or spec.effects.get(call.name) != "write"


def _unrun(trajectory: Trajectory, verdict: Verdict) -> Iterator[Step]:
    answers = answers_of(trajectory)
    for index, message in enumerate(trajectory.messages):
        for call in message.tool_calls:
            yield Step(index, call, answers.get(call.uid), verdict)


def _with_start_doubted(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    if not steps or steps[0].verdict.match != "different":
        return steps
    first = steps[0].verdict
    detail = f"{first.detail}; initial state not reproducible, or the answer is not that of this call"
    return (steps[0]._replace(verdict=first._replace(detail=detail)), *steps[1:])


def _check(
    trajectory_id: str, trajectory: Trajectory, session: Session, world: World, blobs: Blobs
) -> Verification | None:
    try:
        with world.open(session.snapshot(), blobs) as fork:
            checked = fork.check(trajectory.task, trajectory.messages)
    except (SnapshotError, StartError):
        return None
    if checked.result in ("unknown", "not_applicable"):
        return None
    author = author_of(world.spec)
    return Verification(trajectory_id, "task", checked.result, author, detail=checked.detail, reads=checked.reads)

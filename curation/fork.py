"""Executing a plan: the way to the branch point once more, then the new calls, and the record of what was answered.

Every answer in a fork is what the environment gave to the call before it; nothing here takes an answer from elsewhere.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from curation.fork_plan import Plan, Refusal, refuse_wrong_fork
from curation.replay import Step, author_of, verification_of, walk
from curation.runs import Agreement, execute_apart
from curation.worlds import World
from environments.protocol import Blobs, CallResult, EnvSpec, SnapshotError, StartError
from schemas.canonical import digest, encode
from schemas.objects import Object, Snapshot, make_object
from schemas.statements import Execution, Verification
from schemas.trajectory import (
    Answers,
    Fork,
    Message,
    Restore,
    ToolCall,
    Trajectory,
    trajectory_id,
)


class Forked(NamedTuple):
    """An executed fork with what was confirmed of it and the snapshot it starts from.

    ``settled`` is the logical digest, without the trail of calls, after the last new call. ``accepted``: the task's
    check passes there and did not before. ``flaw`` says where the runs were not alike ("2 of 3"); such a fork is stored
    with a failed execution.
    """

    id: str
    trajectory: Trajectory
    verifications: tuple[Verification, ...]
    objects: tuple[Object, ...]
    settled: str | None
    accepted: bool
    flaw: str = ""

    @property
    def verified(self) -> bool:
        """Whether the new calls were answered alike in every run."""
        return not self.flaw


class _Branch(NamedTuple):
    """The world at the branch point."""

    snapshot: Snapshot
    steps: tuple[Step, ...]
    passed: bool


def execute(plan: Plan, worlds: Sequence[World], blobs: Blobs) -> Forked | Refusal:
    """The fork of a plan, executed in at least two worlds (processes) of one environment.

    A fork whose new calls are not answered alike in all of them is a fork with a failed execution.
    """
    try:
        branch = _reach(plan, worlds[0], blobs)
        if isinstance(branch, Refusal):
            return branch
        agreement = execute_apart(branch.snapshot, plan.turns, plan.parent.trajectory.task, worlds, blobs)
    except (StartError, SnapshotError) as error:
        return Refusal("no_checkpoint", str(error))
    refusal = _refuse_answers(agreement)
    if refusal is not None:
        return refusal
    spec = worlds[0].spec
    objects = (make_object("snapshot", encode(branch.snapshot)), make_object("blob", blobs.get(branch.snapshot.blob)))
    trajectory = _record(plan, spec, objects[0].id, len(branch.steps), agreement.run.results)
    identity = trajectory_id(trajectory)
    checked = agreement.run.checked
    accepted = agreement.complete and checked is not None and checked.result == "passed" and not branch.passed
    verifications = (
        *_inherited(plan, identity),
        *(verification_of(identity, step, spec) for step in branch.steps),
        *_executed(identity, trajectory, agreement, spec),
        *_accepted(identity, trajectory, agreement, accepted, spec),
    )
    wrong = refuse_wrong_fork(trajectory, verifications, plan.parent.verifications)
    return wrong or Forked(
        identity, trajectory, verifications, objects, agreement.run.settled, accepted, agreement.flaw
    )


def refuse_effect(plan: Plan, recovery: Forked, clean: Forked | None) -> Refusal | None:
    """Refuse a recovery that leaves something of the mistake, or does more than to take it back.

    Nothing is left where the task's check accepts the state, or where the world is the one that the clean fork ends in.
    Without a verified clean fork only the right call alone, after a mistake that changed nothing, is let by.
    """
    comparable = clean is not None and clean.verified
    if recovery.accepted or not (comparable or plan.mistake_wrote or len(plan.turns) > 1):
        return None
    if clean is not None and comparable and clean.settled == recovery.settled:
        return None
    left = f"the recovery leaves the world in state {_short(recovery.settled)}"
    if clean is None or not comparable:
        return Refusal("effect_not_undone", f"{left}, and there is no verified clean fork to compare it with")
    return Refusal("effect_not_undone", f"{left}, without the mistake it would be in {_short(clean.settled)}")


def _short(state: str | None) -> str:
    """The first digits of a logical digest."""
    return "unknown" if state is None else state.rpartition(":")[2][:12]


def _reach(plan: Plan, world: World, blobs: Blobs) -> _Branch | Refusal:
    trajectory = plan.parent.trajectory
    with world.open(plan.checkpoint, blobs) as session:
        steps = tuple(walk(session, trajectory, world.spec, plan.position, plan.branch_point))
        doubtful = next((step for step in steps if not step.confirmed), None)
        if doubtful is not None:
            verdict = doubtful.verdict
            why = f"call {doubtful.call.uid}: {verdict.match}({verdict.reason or verdict.detail})"
            return Refusal("unconfirmed_prefix", why)
        return _Branch(session.snapshot(), steps, session.check(trajectory.task).result == "passed")


def _refuse_answers(agreement: Agreement) -> Refusal | None:
    if agreement.run.checked is not None:
        return None
    if not agreement.complete:
        return Refusal("flaky", agreement.flaw)
    last = agreement.run.results[-1]
    if last.truncated:
        return Refusal("answer_truncated", f"{len(last.raw)} characters")
    if last.status in ("unknown_tool", "schema_error", "refused"):
        return Refusal("invalid_call", f"{last.status}: {last.raw}")
    return Refusal("environment_fault", f"the new call: {last.status}")


def _record(plan: Plan, spec: EnvSpec, snapshot: str, replayed: int, results: Sequence[CallResult]) -> Trajectory:
    parent = plan.parent.trajectory
    restore = Restore("replayed_prefix" if replayed else "snapshot", spec.name, snapshot, replayed)
    return Trajectory(
        (*parent.messages[: plan.branch_point], *_answered(plan.turns, results)),
        task=parent.task,
        # The corrected call is not that policy's: what described it goes.
        conditions=replace(parent.conditions, model=None, sampling=UNSET, seed=None, agent=None),
        fork=Fork(plan.parent.trajectory_id, plan.branch_point, plan.kind, plan.correction, restore),
    )


def _answered(turns: Sequence[Message], results: Sequence[CallResult]) -> Iterator[Message]:
    answers = iter(results)
    for turn in turns:
        yield turn
        for call in turn.tool_calls:
            yield Message("tool", next(answers).raw, answers=Answers(call.uid, "position"))


def _inherited(plan: Plan, fork: str) -> Iterator[Verification]:
    """What was confirmed of the parent before the checkpoint: the fork holds the same messages there."""
    for item in plan.parent.verifications:
        if item.layer == "execution" and item.message is not None and item.message < plan.position:
            yield replace(item, trajectory=fork, detail="confirmed on the parent", supersedes=())


def _executed(fork: str, trajectory: Trajectory, agreement: Agreement, spec: EnvSpec) -> Iterator[Verification]:
    for (message, call), result in zip(_new_calls(trajectory), agreement.run.results, strict=True):
        yield Verification(
            fork,
            "execution",
            "passed" if agreement.complete else "failed",
            author_of(spec),
            message=message,
            call=call.uid,
            detail="" if agreement.complete else f"flaky {agreement.flaw}",
            execution=Execution(
                spec.name,
                spec.code_digest,
                status=result.status,
                answer=digest(result.raw.encode()),
                state_before=result.state_before,
                state_after=result.state_after,
                runs=agreement.runs,
                agreed=agreement.agreed,
            ),
            reads=("state",),
        )


def _accepted(
    fork: str, trajectory: Trajectory, agreement: Agreement, accepted: bool, spec: EnvSpec
) -> Iterator[Verification]:
    """The task's check passes only after the new calls: a check of the last decision, not of a finished task."""
    checked = agreement.run.checked
    if accepted and checked is not None:
        last = max(message for message, _ in _new_calls(trajectory))
        yield Verification(
            fork, "step", "passed", author_of(spec), message=last, detail=checked.detail, reads=checked.reads
        )


def _new_calls(trajectory: Trajectory) -> list[tuple[int, ToolCall]]:
    point = 0 if trajectory.fork is None else trajectory.fork.branch_point
    return [
        (index, call)
        for index, message in enumerate(trajectory.messages)
        if index >= point
        for call in message.tool_calls
    ]

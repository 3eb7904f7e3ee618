"""Executing a plan: the way to the branch point once more, then the new calls, and the record of what was answered.

Every answer in a fork is what the environment gave to the call before it; nothing here takes an answer from elsewhere.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from curation.arrival import NoWayError, Way, arrive, check_at, shorten, way_of
from curation.diagnosis.evidence import Case
from curation.fork_plan import Plan, Refusal, refuse_wrong_fork
from curation.replay import Step, author_of, verification_of
from curation.runs import Agreement, answer_turns, execute_apart
from curation.worlds import World
from environments.protocol import Blobs, CallResult, EnvSpec, Session, SnapshotError, StartError
from schemas.canonical import digest, encode
from schemas.objects import Object, Snapshot, make_object
from schemas.statements import Execution, Verification
from schemas.trajectory import (
    Fork,
    Restore,
    ToolCall,
    Trajectory,
    trajectory_id,
)


class Forked(NamedTuple):
    """An executed fork with what was confirmed of it and, where there is one, the snapshot it starts from.

    ``settled`` is the logical digest, without the trail of calls, after the last new call. ``accepted``: the task's
    check passes there and failed before. ``way`` leads other worlds to its branch point, ``results`` are what its new
    calls were answered there. ``flaw`` says where the runs were not alike ("2 of 3"); such a fork is stored
    with a failed execution.
    """

    id: str
    trajectory: Trajectory
    verifications: tuple[Verification, ...]
    objects: tuple[Object, ...]
    settled: str | None
    accepted: bool
    way: Way
    results: tuple[CallResult, ...]
    flaw: str = ""

    @property
    def verified(self) -> bool:
        """Whether the new calls were answered alike in every run."""
        return not self.flaw


class _Branch(NamedTuple):
    """The branch point as the first world found it: how the others get there, and what was confirmed on the way.

    ``unmet``: the task's check says there that the task is not done.
    """

    way: Way
    restore: Restore
    objects: tuple[Object, ...]
    position: int
    steps: tuple[Step, ...]
    unmet: bool


def execute(plan: Plan, worlds: Sequence[World], blobs: Blobs) -> Forked | Refusal:
    """The fork of a plan, executed in at least two worlds (processes) of one environment.

    A fork whose new calls are not answered alike in all of them is a fork with a failed execution.
    """
    try:
        branch = _reach(plan, worlds[0], blobs)
        agreement = execute_apart(branch.way, plan.turns, worlds, blobs)
    except NoWayError as error:
        return error.refusal
    except (StartError, SnapshotError) as error:
        return Refusal("no_checkpoint", str(error))
    refusal = _refuse_answers(agreement)
    if refusal is not None:
        return refusal
    spec = worlds[0].spec
    trajectory = _record(plan, branch.restore, agreement.run.results)
    identity = trajectory_id(trajectory)
    checked = agreement.run.checked
    accepted = agreement.complete and checked is not None and checked.result == "passed" and branch.unmet
    verifications = (
        *_inherited(plan.parent, branch.position, identity),
        *(verification_of(identity, step, spec) for step in branch.steps),
        *_executed(plan, identity, trajectory, agreement, spec),
        *_accepted(identity, trajectory, agreement, accepted, spec),
    )
    wrong = refuse_wrong_fork(trajectory, verifications, plan.parent.verifications)
    return wrong or Forked(
        identity,
        trajectory,
        verifications,
        branch.objects,
        agreement.run.settled,
        accepted,
        branch.way,
        agreement.run.results,
        agreement.flaw,
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
    left = f"the recovery leaves the world in state {shorten(recovery.settled)}"
    if clean is None or not comparable:
        return Refusal("effect_not_undone", f"{left}, and there is no verified clean fork to compare it with")
    return Refusal("effect_not_undone", f"{left}, without the mistake it would be in {shorten(clean.settled)}")


def executed(
    fork: str,
    message: int,
    call: ToolCall,
    result: CallResult,
    spec: EnvSpec,
    runs: int,
    agreed: int,
    informative: bool | None = None,
) -> Verification:
    """The execution verification of a new call, by how many of how many worlds answered it alike."""
    return Verification(
        fork,
        "execution",
        "passed" if agreed == runs else "failed",
        author_of(spec),
        message=message,
        call=call.uid,
        detail="" if agreed == runs else f"flaky {agreed} of {runs}",
        execution=Execution(
            spec.name,
            spec.code_digest,
            status=result.status,
            answer=digest(result.raw.encode()),
            state_before=result.state_before,
            state_after=result.state_after,
            runs=runs,
            agreed=agreed,
            informative=informative,
        ),
        reads=("state",),
    )


def _reach(plan: Plan, world: World, blobs: Blobs) -> _Branch:
    """Go to the branch point once: all other worlds open its snapshot or, where none can be had, go the same way."""
    way, spec = way_of(plan), world.spec
    with arrive(way, world, blobs) as arrival:
        snapshot = _snapshot(arrival.session) if way.kind == "snapshot" else None
        checked = check_at(way, arrival.session, way.parent.trajectory.messages[: way.point])
    walked = len(arrival.steps)
    if snapshot is None:
        way = way._replace(kind="replayed_prefix") if way.kind == "snapshot" else way
        restore, objects = Restore(way.kind, spec.name, None, walked), tuple[Object, ...]()
    else:
        kept = (make_object("blob", blobs.get(name)) for name in snapshot.blobs)
        objects = (make_object("snapshot", encode(snapshot)), *kept)
        restore = Restore("replayed_prefix" if walked else "snapshot", spec.name, objects[0].id, walked)
        way = way._replace(start=snapshot, position=way.point)
    return _Branch(way, restore, objects, arrival.position, arrival.steps, checked.withholds)


def _snapshot(session: Session) -> Snapshot | None:
    try:
        return session.snapshot()
    except SnapshotError:
        return None


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


def _record(plan: Plan, restore: Restore, results: Sequence[CallResult]) -> Trajectory:
    parent = plan.parent.trajectory
    return Trajectory(
        (*parent.messages[: plan.branch_point], *answer_turns(plan.turns, results)),
        task=parent.task,
        # The corrected call is not that policy's: what described it goes.
        conditions=replace(parent.conditions, model=None, sampling=UNSET, seed=None, agent=None),
        fork=Fork(plan.parent.trajectory_id, plan.branch_point, plan.kind, plan.correction, restore),
    )


def _inherited(parent: Case, position: int, fork: str) -> Iterator[Verification]:
    """What was confirmed of the parent before the calls that were executed again: the fork holds the same messages."""
    for item in parent.verifications:
        if item.layer == "execution" and item.message is not None and item.message < position:
            yield replace(item, trajectory=fork, detail="confirmed on the parent", supersedes=())


def _informative(plan: Plan, call: ToolCall, result: CallResult, spec: EnvSpec, settled: str | None) -> bool | None:
    """Whether the wrong call, in the state of the corrected one, was answered otherwise or left another state.

    None where that is not known: for other calls than the corrected one, where the wrong one ran in another state, and
    where only states differ that hold a trail of calls, which any two calls leave: without it (``settled``, at the end
    of the fork) the state is another digest.
    """
    corrected = plan.wrong if plan.kind == "clean" else plan.turns[-1].tool_calls[-1].uid
    runs = {item.call: item.execution for item in plan.parent.verifications if item.layer == "execution"}
    wrong = runs.get(plan.wrong)
    if plan.wrong is None or call.uid != corrected or wrong is None or wrong.environment != spec.name:
        return None
    if None in (wrong.answer, wrong.state_after, result.state_after) or wrong.state_before != result.state_before:
        return None
    if wrong.answer != digest(result.raw.encode()):
        return True
    if wrong.state_after == result.state_after:
        return False
    return True if settled == result.state_after else None


def _executed(
    plan: Plan, fork: str, trajectory: Trajectory, agreement: Agreement, spec: EnvSpec
) -> Iterator[Verification]:
    for (message, call), result in zip(_new_calls(trajectory), agreement.run.results, strict=True):
        informative = _informative(plan, call, result, spec, agreement.run.settled)
        yield executed(fork, message, call, result, spec, agreement.runs, agreement.agreed, informative)


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

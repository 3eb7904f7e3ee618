"""How a world gets to a branch point: opened at a checkpoint, the record executed again from there, each call checked.

What an environment cannot restore is never assumed: where calls have to take the wrong decision back, the state must
be the one before it, and a world that can only go forward must be where the record starts or where it stood.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from curation.diagnosis.evidence import Case
from curation.fork_plan import Plan, Refusal, state_at
from curation.replay import Step, selfcheck_of, walk
from curation.selfcheck import Selfcheck
from curation.worlds import World
from environments.protocol import Blobs, CheckResult, EnvSpec, Session
from schemas.objects import Snapshot
from schemas.trajectory import Message, RestoreKind, Task

LOST = frozenset(("timeout", "environment_fault"))  # after such an answer the world is not known any more


class NoWayError(Exception):
    """A world does not get to the branch point; ``refusal`` says why."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"{refusal.code}: {refusal.detail}")
        self.refusal = refusal


class Way(NamedTuple):
    """How any world of an environment gets to the branch point ``point`` of a trajectory.

    It is opened at ``start``, the state before message ``position``, and executes the calls from there to ``point``. In
    a compensation the decision at ``point`` is executed too, then the turns of ``undo``.
    """

    parent: Case
    kind: RestoreKind
    start: Task | Snapshot
    position: int
    point: int
    undo: tuple[Message, ...] = ()

    @property
    def time(self) -> str | None:
        """When the wrong decision was made, as far as that is known: what takes its place is executed then."""
        return self.parent.clocks.at(self.point)


class Arrival(NamedTuple):
    """A world at the branch point, and the calls from message ``position`` on, executed and confirmed again."""

    session: Session
    position: int
    steps: tuple[Step, ...]


def way_of(plan: Plan) -> Way:
    """The way that a plan goes."""
    return Way(plan.parent, plan.restore, plan.checkpoint, plan.position, plan.branch_point, plan.undo)


@contextmanager
def arrive(way: Way, world: World, blobs: Blobs) -> Iterator[Arrival]:
    """A world of its own at the branch point, closed with the block.

    Raises NoWayError where a call on the way is not answered as in the record or the state is another one, StartError
    and SnapshotError where no world opens.
    """
    with ExitStack() as stack:
        session, selfcheck = stack.enter_context(world.open(way.start, blobs)), None
        if way.kind == "none":
            position = _present_position(way, session)  # and nothing is executed elsewhere to compare with
        else:
            position = way.position
            again = selfcheck_of(way.parent.trajectory, way.start, world, blobs, position, way.parent.clocks)
            selfcheck = stack.enter_context(again)
        steps = tuple(_confirmed(way, session, world.spec, position, way.point, selfcheck))
        if way.kind == "compensation":
            _compensate(way, session, world.spec, selfcheck)
        yield Arrival(session, position, steps)


def check_at(way: Way, session: Session, messages: Sequence[Message]) -> CheckResult:
    """What the task's check says of a world at or after the branch point that is closed next.

    A world that cannot be set back is not checked: it goes on after us, with all that a check may have done there.
    """
    if way.kind == "none":
        return CheckResult("unknown", "the world goes on after a check", reads=())
    return session.check(way.parent.trajectory.task, messages)


def shorten(state: str | None) -> str:
    """The first digits of a logical digest."""
    return "unknown" if state is None else state.rpartition(":")[2][:12]


def _confirmed(
    way: Way, session: Session, spec: EnvSpec, start: int, stop: int, selfcheck: Selfcheck | None
) -> Iterator[Step]:
    for step in walk(session, way.parent.trajectory, spec, start, stop, selfcheck, way.parent.clocks):
        verdict, place = step.verdict, f"call {step.call.uid}"
        if step.executed is not None and step.executed.status in LOST and verdict.reason == "fault_in_replay":
            raise NoWayError(Refusal("environment_fault", f"{place}, executed again: {step.executed.status}"))
        if not step.confirmed:
            why = f"{place}: {verdict.match}({verdict.reason or verdict.detail})"
            raise NoWayError(Refusal("unconfirmed_prefix", why))
        yield step


def _present_position(way: Way, session: Session) -> int:
    """From which message on the record has to be executed in a world that is as it is and cannot be set back."""
    known = way.parent.verifications
    present, start, branch = session.state_digest(), state_at(known, way.position), state_at(known, way.point)
    if start in (None, present):
        return way.position
    if present != branch:
        states = f"{shorten(start)} where the record starts and {shorten(branch)} at message {way.point}"
        raise NoWayError(Refusal("no_checkpoint", f"the world is in state {shorten(present)}, but {states}"))
    confirmed = {item.call for item in known if item.layer == "execution" and item.result == "passed"}
    for message in way.parent.trajectory.messages[: way.point]:
        for call in message.tool_calls:
            if call.uid not in confirmed:
                raise NoWayError(Refusal("not_replayed", f"call {call.uid}"))
    return way.point


def _compensate(way: Way, session: Session, spec: EnvSpec, selfcheck: Selfcheck | None) -> None:
    """Execute the wrong decision and what takes it back; the world must be the one before, but for the trail."""
    before = session.settled_digest()
    for _ in _confirmed(way, session, spec, way.point, way.point + 1, selfcheck):
        pass
    for turn in way.undo:
        for call, result in zip(turn.tool_calls, session.call(turn.tool_calls, way.time), strict=True):
            if result.state_after is None:
                raise NoWayError(
                    Refusal("environment_fault", f"{call.name}, which takes the call back: {result.status}")
                )
    after = session.settled_digest()
    if after != before:
        made = ", ".join(call.name for turn in way.undo for call in turn.tool_calls) or "no call"
        raise NoWayError(
            Refusal("compensated_unequal", f"state {shorten(before)} before it, {shorten(after)} after it and {made}")
        )

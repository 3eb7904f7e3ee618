"""What a fork will execute and from which state, or why there will be none. Pure: nothing is run here.

One failure gives two plans. *clean*: from the state before the wrong call, the right one in its place. *recovery*: from
the state after the wrong call and its answer, first what takes its effect back, then the right one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import UNSET

from curation.correction import compensation, corrected_message, same_action, turns_of
from curation.diagnosis.arguments import arguments_of, read_json
from curation.diagnosis.derivation import underivable
from curation.diagnosis.evidence import Case, read_case
from curation.diagnosis.reversal import restores
from curation.proposals import Proposal, ProposedCall
from environments.protocol import EnvSpec
from schemas.objects import Snapshot
from schemas.statements import Execution, Verification
from schemas.trajectory import (
    Correction,
    ForkKind,
    Message,
    RestoreKind,
    Task,
    ToolCall,
    Trajectory,
    answers_of,
    call_uid,
    text_of,
)

Checkpoints = Mapping[int, Task | Snapshot]


class Refusal(NamedTuple):
    """Why no fork is made: a code of schemas.reasons.REPAIR, and the value and place it is about."""

    code: str
    detail: str = ""


class Plan(NamedTuple):
    """A fork to be executed.

    The world is opened at ``checkpoint``, the state before message ``position`` of the parent; the calls from there to
    ``branch_point`` are executed and confirmed again; then come ``turns``, assistant messages each answered in full.
    ``mistake_wrote``: the wrong call's effect is there at the branch point and has to be gone in the end. ``wrong`` is
    the one call that is corrected, where it is one. ``restore`` is how a world gets back to the branch point; in a
    compensation the wrong decision is executed as well, and after it the turns of ``undo``, which take it back.
    """

    parent: Case
    kind: ForkKind
    branch_point: int
    checkpoint: Task | Snapshot
    position: int
    turns: tuple[Message, ...]
    correction: Correction
    mistake_wrote: bool = False
    wrong: str | None = None
    restore: RestoreKind = "snapshot"
    undo: tuple[Message, ...] = ()


class _Branch(NamedTuple):
    point: int
    turns: tuple[Message, ...]
    correction: Correction
    mistake_wrote: bool = False


def plan(kind: ForkKind, case: Case, proposal: Proposal, spec: EnvSpec, checkpoints: Checkpoints) -> Plan | Refusal:
    """The plan of one fork of a failure, or the first reason against it.

    The case's verifications are the effective ones. ``checkpoints`` maps a message index to what opens the state before
    that message; 0 is the start state.
    """
    wrong = wrong_calls(case, proposal)
    if isinstance(wrong, Refusal):
        return wrong
    if spec.recorded_only:
        return Refusal("recorded_only", spec.name)
    if spec.restore == "none" and kind == "clean":
        return Refusal("forward_only", spec.name)
    unseen = _never_executed(case, wrong)
    if unseen is not None:
        return Refusal("not_replayed", f"call {unseen.uid}")
    branch = _clean(case, wrong, proposal) if kind == "clean" else _recovery(case, wrong, proposal, spec)
    if isinstance(branch, Refusal):
        return branch
    underived = _underived(case, wrong, proposal, branch.point)
    if underived:
        return Refusal("not_derivable", underived)
    position = _checkpoint(case, branch.point, spec, checkpoints)
    if isinstance(position, Refusal):
        return position
    restore, undo = _restored(kind, case, wrong, spec)
    if isinstance(undo, Refusal):
        return undo
    reaching = (call.name for turn in (*undo, *branch.turns) for call in turn.tool_calls)
    outside = next((name for name in reaching if spec.effects.get(name) == "external"), None)
    if outside is not None:
        return Refusal("external_effect", outside)
    one = wrong[0].uid if len(wrong) == 1 else None
    return Plan(case, kind, branch.point, checkpoints[position], position, *branch[1:], one, restore, undo)


def wrong_calls(case: Case, proposal: Proposal) -> tuple[ToolCall, ...] | Refusal:
    """The calls that a proposal corrects, none where the decision was text; or why it corrects nothing here."""
    wrong = _named_calls(case, proposal)
    if isinstance(wrong, Refusal):
        return wrong
    return _refuse_record(case, wrong) or _refuse_same(wrong, proposal) or wrong


def state_at(verifications: tuple[Verification, ...], message: int) -> str | None:
    """The logical digest of the state before a message, by the calls executed around it; None where it is unknown."""
    ran = [(at, execution) for at, execution in _executions(verifications) if execution.reason != "not_executable"]
    before = [execution.state_after for at, execution in ran if at < message]
    return before[-1] if before else next((execution.state_before for _, execution in ran), None)


def refuse_wrong_fork(
    fork: Trajectory, verifications: tuple[Verification, ...], parent: tuple[Verification, ...]
) -> Refusal | None:
    """Refuse a fork whose first new call was executed in another state than its branch point has in the parent.

    ``verifications`` are the fork's, ``parent`` those of the trajectory it leaves; where these hold no execution there
    is nothing to compare. The answer of a clean fork in a recovery, and the reverse, is caught here. Compensating calls
    may leave their trail in the state: there it must only be another one than the wrong decision left.
    """
    if fork.fork is None:
        return Refusal("wrong_fork", "the trajectory is no fork")
    point = fork.fork.branch_point
    target = next(
        (item.execution for item in verifications if item.call == call_uid(point, 0) and item.execution), None
    )
    given, wanted = None if target is None else target.state_before, state_at(parent, point)
    if given is not None and fork.fork.restore.kind == "compensation" and wanted not in (None, given):
        wanted = given if given != state_at(parent, point + 1) else wanted
    if given is None or wanted not in (None, given):
        return Refusal("wrong_fork", f"executed in {given}, but the state at message {point} is {wanted}")
    return None


def corrected_decisions(trajectory: Trajectory) -> list[int]:
    """The decisions of a fork that its correction made: what takes an effect back, and last the corrected call.

    Those of a policy that went on after it are not among them.
    """
    fork = trajectory.fork
    if fork is None:
        return []
    own = enumerate(trajectory.messages[fork.branch_point :], fork.branch_point)
    return [
        index
        for index, message in own
        if message.tool_calls and (fork.continued_by is None or message.actor != fork.continued_by)
    ]


def _named_calls(case: Case, proposal: Proposal) -> tuple[ToolCall, ...] | Refusal:
    messages = case.trajectory.messages
    if not proposal.calls:
        return Refusal("no_proposal")
    if not 0 <= proposal.message < len(messages) or messages[proposal.message].role != "assistant":
        return Refusal("no_call", f"message {proposal.message} is no decision")
    calls = messages[proposal.message].tool_calls
    wrong = tuple(call for call in calls if proposal.call in (None, call.uid))
    if proposal.call is not None and not wrong:
        return Refusal("no_call", f"message {proposal.message} holds no call {proposal.call}")
    return wrong


def _refuse_record(case: Case, wrong: tuple[ToolCall, ...]) -> Refusal | None:
    uids = {call.uid for call in wrong}
    for item in case.verifications:
        if item.layer != "execution":
            continue
        if item.result == "failed":
            return Refusal("contradicted_record", f"call {item.call}: {item.detail}")
        if item.call in uids and item.execution is not None and item.execution.reason == "environment_fault":
            return Refusal("environment_fault", f"call {item.call}")
    return None


def _refuse_same(wrong: tuple[ToolCall, ...], proposal: Proposal) -> Refusal | None:
    same = next((call for call in wrong if same_action(call, proposal.calls[-1])), None)
    return None if same is None else Refusal("same_call", f"call {same.uid}")


def _never_executed(case: Case, wrong: tuple[ToolCall, ...]) -> ToolCall | None:
    """The first wrong call whose answer was never compared with the environment's own."""
    executed = {item.call for item in case.verifications if item.execution is not None}
    return next((call for call in wrong if call.uid not in executed), None)


def _underived(case: Case, wrong: tuple[ToolCall, ...], proposal: Proposal, point: int) -> str:
    """The proposed values that follow from nothing before the branch point; a person's need not."""
    if proposal.author.kind == "human":
        return ""
    schemas = {tool.name: tool.parameters for tool in case.tools or ()}
    seen, written = case.trajectory.messages[:point], arguments_of(wrong[0]) if wrong else None
    found = (
        f"{name}{path}"
        for name, arguments in proposal.calls
        for path in underivable(read_json(bytes(arguments)), seen, schemas.get(name), written)
    )
    return ", ".join(found)


def _clean(case: Case, wrong: tuple[ToolCall, ...], proposal: Proposal) -> _Branch:
    message = case.trajectory.messages[proposal.message]
    corrected = corrected_message(proposal.message, message, wrong, proposal.calls[-1])
    return _Branch(proposal.message, (corrected,), Correction(proposal.author, proposal.reads))


def _recovery(case: Case, wrong: tuple[ToolCall, ...], proposal: Proposal, spec: EnvSpec) -> _Branch | Refusal:
    messages, answers = case.trajectory.messages, answers_of(case.trajectory)
    if not wrong:
        return Refusal("no_call", f"message {proposal.message} is text alone; nothing answered it")
    for call in wrong:
        if call.arguments is UNSET and not spec.answers_malformed:
            return Refusal("not_answered_here", f"call {call.uid}")
        if call.uid not in answers:
            return Refusal("no_answer", f"call {call.uid}")
    wrote = tuple(_writes(case, wrong))
    actions, reads = proposal.calls, proposal.reads
    if len(actions) == 1:
        undone = _undone(case, [call for call, done in wrote if done.status == "ok"], spec)
        actions = (*(action for _, action in undone if action is not None), *actions)
    if len(actions) > len(proposal.calls):
        reads = tuple(dict.fromkeys((*reads, "observation")))
    point = _after_answers(messages, proposal.message)
    if _restores_first(case, point, wrote[0][0], proposal) if wrote else _recovers(messages[point:], actions):
        return Refusal("recovered_in_log", f"message {point}")
    return _Branch(point, turns_of(point, actions), Correction(proposal.author, reads), bool(wrote))


def _restored(
    kind: ForkKind, case: Case, wrong: tuple[ToolCall, ...], spec: EnvSpec
) -> tuple[RestoreKind, tuple[Message, ...] | Refusal]:
    """How a world gets back to the branch point, and the turns that compensate the wrong decision on the way."""
    if spec.restore != "compensation":
        return spec.restore, ()
    if kind == "recovery" or not wrong:
        return "replayed_prefix", ()
    message = int(wrong[0].uid.partition(".")[0])
    wrote = [call for call, _ in _writes(case, case.trajectory.messages[message].tool_calls)]
    undone = list(_undone(case, wrote, spec))
    open_ended = next((call for call, action in undone if action is None), None)
    if open_ended is not None:
        return "compensation", Refusal("compensated_unequal", f"nothing declared takes {open_ended.name!r} back")
    return "compensation", turns_of(message, [action for _, action in undone if action is not None])


def _undone(case: Case, writes: Sequence[ToolCall], spec: EnvSpec) -> Iterator[tuple[ToolCall, ProposedCall | None]]:
    """Writes, the last one first, each with the declared call that takes it back; None where there is none."""
    messages, answers = case.trajectory.messages, answers_of(case.trajectory)
    for call in reversed(writes):
        answer = messages[answers[call.uid]] if call.uid in answers else None
        text = "" if answer is None else answer.raw or text_of(answer.content)
        yield call, compensation(call, text, spec)


def _writes(case: Case, calls: tuple[ToolCall, ...]) -> Iterator[tuple[ToolCall, Execution]]:
    """The calls around which the state was seen to change, whatever their tool declares and however they ended."""
    executed = {item.call: item.execution for item in case.verifications if item.execution is not None}
    for call in calls:
        execution = executed.get(call.uid)
        if execution is not None and execution.state_before != execution.state_after:
            yield call, execution


def _after_answers(messages: tuple[Message, ...], decision: int) -> int:
    calls = {call.uid for call in messages[decision].tool_calls}
    for index, message in enumerate(messages[decision + 1 :], decision + 1):
        if message.role != "tool" or message.answers is None or message.answers.uid not in calls:
            return index
    return len(messages)


def _recovers(rest: tuple[Message, ...], actions: tuple[ProposedCall, ...]) -> bool:
    decisions = [message.tool_calls for message in rest if message.role != "tool"][: len(actions)]
    return len(decisions) == len(actions) and all(
        len(calls) == 1 and same_action(calls[0], action) for calls, action in zip(decisions, actions, strict=True)
    )


def _restores_first(case: Case, point: int, write: ToolCall, proposal: Proposal) -> bool:
    """Whether the log goes on with a call that brings the state before the mistake back, and then the right call."""
    messages = case.trajectory.messages
    undo = messages[point].tool_calls if point < len(messages) else ()
    if len(undo) != 1 or not restores(read_case(case), write, undo[0]):
        return False
    return _recovers(messages[_after_answers(messages, point) :], proposal.calls[-1:])


def _checkpoint(case: Case, point: int, spec: EnvSpec, checkpoints: Checkpoints) -> int | Refusal:
    """The latest checkpoint, where the calls on the way from there to the branch point can be or are confirmed."""
    usable = (at for at, start in checkpoints.items() if spec.restore == "snapshot" or isinstance(start, Task))
    position = max((at for at in usable if at <= point), default=None)
    before = [(at, call) for at, message in enumerate(case.trajectory.messages[:point]) for call in message.tool_calls]
    if position is None:
        writes = sorted({call.name for _, call in before if spec.effects.get(call.name, "read") != "read"})
        return Refusal("effects_since_checkpoint", ", ".join(writes)) if writes else Refusal("no_checkpoint")
    results = {item.call: item for item in case.verifications if item.layer == "execution"}
    for at, call in before:
        known = results.get(call.uid)
        if known is None and at >= position:
            continue  # executing the way from the checkpoint confirms it, or refuses the fork
        if known is None:
            return Refusal("not_replayed", f"call {call.uid}")
        if known.result != "passed":
            return Refusal("unconfirmed_prefix", f"call {call.uid}: {_why(known)}")
    return position


def _why(known: Verification) -> str:
    if known.execution is None:
        return known.result
    return f"{known.execution.match}({known.execution.reason})"


def _executions(verifications: tuple[Verification, ...]) -> Iterator[tuple[int, Execution]]:
    for item in sorted((item for item in verifications if item.layer == "execution" and item.call), key=_place):
        if item.execution is not None:
            yield _place(item)[0], item.execution


def _place(item: Verification) -> tuple[int, int]:
    message, _, position = (item.call or "").partition(".")
    return int(message), int(position)

"""What a fork will execute and from which state, or why there will be none. Pure: nothing is run here.

One failure gives two plans. *clean*: from the state before the wrong call, the right one in its place. *recovery*: from
the state after the wrong call and its answer, first what takes its effect back, then the right one.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import UNSET

from curation.correction import Action, compensation, corrected_message, same_action, turns_of
from curation.diagnosis.derivation import derives
from curation.proposals import Proposal
from environments.protocol import EnvSpec
from schemas.objects import Snapshot
from schemas.statements import Execution, Verification
from schemas.trajectory import Correction, ForkKind, Message, Task, ToolCall, Trajectory, answers_of, call_uid, text_of

Checkpoints = Mapping[int, Task | Snapshot]


class Subject(NamedTuple):
    """A stored trajectory with its effective verifications; ``revised`` if a better reading of it is stored."""

    id: str
    trajectory: Trajectory
    verifications: tuple[Verification, ...]
    revised: bool = False


class Refusal(NamedTuple):
    """Why no fork is made: a code of schemas.reasons.REPAIR, and the value and place it is about."""

    code: str
    detail: str = ""


class Plan(NamedTuple):
    """A fork to be executed.

    The world is opened at ``checkpoint``, the state before message ``position`` of the parent; the calls from there to
    ``branch_point`` are executed and confirmed again; then come ``turns``, assistant messages each answered in full.
    """

    parent: Subject
    kind: ForkKind
    branch_point: int
    checkpoint: Task | Snapshot
    position: int
    turns: tuple[Message, ...]
    correction: Correction


class _Branch(NamedTuple):
    point: int
    turns: tuple[Message, ...]
    correction: Correction


def plan(
    kind: ForkKind, subject: Subject, proposal: Proposal, spec: EnvSpec, checkpoints: Checkpoints
) -> Plan | Refusal:
    """The plan of one fork of a failure, or the first reason against it.

    ``checkpoints`` maps a message index to what opens the state before that message; 0 is the start state.
    """
    wrong = _wrong_call(subject, proposal)
    if isinstance(wrong, Refusal):
        return wrong
    refusal = _refuse_record(subject, wrong) or _refuse_proposal(subject, wrong, proposal)
    if refusal is not None:
        return refusal
    branch = _clean(subject, wrong, proposal) if kind == "clean" else _recovery(subject, wrong, proposal, spec)
    if isinstance(branch, Refusal):
        return branch
    position = _checkpoint(subject, branch.point, spec, checkpoints)
    if isinstance(position, Refusal):
        return position
    return Plan(subject, kind, branch.point, checkpoints[position], position, branch.turns, branch.correction)


def state_at(verifications: tuple[Verification, ...], message: int) -> str | None:
    """The logical digest of the state before a message, by the calls executed around it; None where it is unknown."""
    ran = [(at, execution) for at, execution in _executions(verifications) if execution.reason != "not_executable"]
    before = [execution.state_after for at, execution in ran if at < message]
    return before[-1] if before else next((execution.state_before for _, execution in ran), None)


def refuse_wrong_fork(
    fork: Trajectory, verifications: tuple[Verification, ...], parent: tuple[Verification, ...]
) -> Refusal | None:
    """Refuse a fork whose first new call was executed in another state than its branch point has in the parent.

    ``verifications`` are the fork's, ``parent`` those of the trajectory it leaves. The answer of a clean fork in a
    recovery, and the reverse, is caught here.
    """
    if fork.fork is None:
        return Refusal("wrong_fork", "the trajectory is no fork")
    point = fork.fork.branch_point
    target = next(
        (item.execution for item in verifications if item.call == call_uid(point, 0) and item.execution), None
    )
    given, wanted = None if target is None else target.state_before, state_at(parent, point)
    if given is None or given != wanted:
        return Refusal("wrong_fork", f"executed in {given}, but the state at message {point} is {wanted}")
    return None


def _wrong_call(subject: Subject, proposal: Proposal) -> ToolCall | Refusal | None:
    messages = subject.trajectory.messages
    if not 0 <= proposal.message < len(messages) or messages[proposal.message].role != "assistant":
        return Refusal("no_call", f"message {proposal.message} is no decision")
    if proposal.call is None:
        return None
    calls = messages[proposal.message].tool_calls
    found = next((call for call in calls if call.uid == proposal.call), None)
    return found or Refusal("no_call", f"message {proposal.message} holds no call {proposal.call}")


def _refuse_record(subject: Subject, wrong: ToolCall | None) -> Refusal | None:
    if subject.revised:
        return Refusal("parent_revised", subject.id)
    for item in subject.verifications:
        if item.layer != "execution":
            continue
        if item.result == "failed":
            return Refusal("contradicted_record", f"call {item.call}: {item.detail}")
        if (
            wrong is not None
            and item.call == wrong.uid
            and item.execution
            and item.execution.reason == "environment_fault"
        ):
            return Refusal("environment_fault", f"call {item.call}")
    return None


def _refuse_proposal(subject: Subject, wrong: ToolCall | None, proposal: Proposal) -> Refusal | None:
    if not proposal.calls:
        return Refusal("no_proposal")
    if wrong is not None and same_action(wrong, proposal.calls[-1]):
        return Refusal("same_call", f"call {wrong.uid}")
    if proposal.author.kind == "human":
        return None
    for action in proposal.calls:
        underived = derives(action, subject.trajectory, proposal.message)
        if underived:
            return Refusal("not_derivable", underived)
    return None


def _clean(subject: Subject, wrong: ToolCall | None, proposal: Proposal) -> _Branch:
    message = subject.trajectory.messages[proposal.message]
    corrected = corrected_message(proposal.message, message, wrong, proposal.calls[-1])
    return _Branch(proposal.message, (corrected,), Correction(proposal.author, proposal.reads))


def _recovery(subject: Subject, wrong: ToolCall | None, proposal: Proposal, spec: EnvSpec) -> _Branch | Refusal:
    messages = subject.trajectory.messages
    if wrong is None:
        return Refusal("no_call", f"message {proposal.message} is text alone; nothing answered it")
    if wrong.arguments is UNSET and not spec.answers_malformed:
        return Refusal("not_answered_here", f"call {wrong.uid}")
    answer = answers_of(subject.trajectory).get(wrong.uid)
    if answer is None:
        return Refusal("no_answer", f"call {wrong.uid}")
    actions, reads = proposal.calls, proposal.reads
    if len(actions) == 1 and _changed_state(subject, wrong, spec):
        undo = compensation(wrong, messages[answer].raw or text_of(messages[answer].content), spec)
        if undo is not None:
            actions, reads = (undo, *actions), tuple(dict.fromkeys((*reads, "observation")))
    point = _after_answers(messages, proposal.message)
    if _recovers(messages[point:], actions):
        return Refusal("recovered_in_log", f"message {point}")
    return _Branch(point, turns_of(point, actions), Correction(proposal.author, reads))


def _changed_state(subject: Subject, wrong: ToolCall, spec: EnvSpec) -> bool:
    found = next((item.execution for item in subject.verifications if item.call == wrong.uid and item.execution), None)
    return (
        spec.effects.get(wrong.name) == "write"
        and found is not None
        and found.status == "ok"
        and found.state_before != found.state_after
    )


def _after_answers(messages: tuple[Message, ...], decision: int) -> int:
    calls = {call.uid for call in messages[decision].tool_calls}
    own = (
        message.role == "tool" and message.answers is not None and message.answers.uid in calls
        for message in messages[decision + 1 :]
    )
    return decision + 1 + next((offset for offset, mine in enumerate(own) if not mine), len(messages) - decision - 1)


def _recovers(rest: tuple[Message, ...], actions: tuple[Action, ...]) -> bool:
    decisions = [message.tool_calls for message in rest if message.role != "tool"][: len(actions)]
    return len(decisions) == len(actions) and all(
        len(calls) == 1 and same_action(calls[0], action) for calls, action in zip(decisions, actions, strict=True)
    )


def _checkpoint(subject: Subject, point: int, spec: EnvSpec, checkpoints: Checkpoints) -> int | Refusal:
    """The latest checkpoint whose way to the branch point can be trusted."""
    position = max((at for at in checkpoints if at <= point), default=None)
    before = [
        (index, call)
        for index, message in enumerate(subject.trajectory.messages[:point])
        for call in message.tool_calls
    ]
    if position is None:
        writes = sorted({call.name for _, call in before if spec.effects.get(call.name, "read") != "read"})
        return Refusal("effects_since_checkpoint", ", ".join(writes)) if writes else Refusal("no_checkpoint")
    results = {item.call: item for item in subject.verifications if item.layer == "execution"}
    for index, call in before:
        known = results.get(call.uid)
        if known is None and index >= position:
            continue  # executing the way from the checkpoint will confirm it
        if known is None or known.result != "passed":
            return Refusal("unconfirmed_prefix", f"call {call.uid}: {_why(known)}")
    return position


def _why(known: Verification | None) -> str:
    if known is None or known.execution is None:
        return "not replayed"
    return f"{known.execution.match}({known.execution.reason})"


def _executions(verifications: tuple[Verification, ...]) -> Iterator[tuple[int, Execution]]:
    found = [item for item in verifications if item.layer == "execution" and item.execution and item.call]
    for item in sorted(found, key=_place):
        if item.execution is not None:
            yield _place(item)[0], item.execution


def _place(item: Verification) -> tuple[int, int]:
    message, _, position = (item.call or "").partition(".")
    return int(message), int(position)

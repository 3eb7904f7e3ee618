"""Calls that are known to be right, by which repair is measured: would it change them, and could it make them?"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from curation.diagnosis.evidence import Case, confirmed
from curation.fork_plan import Refusal, plan
from curation.proposals import Proposal, ProposedCall
from environments.protocol import EnvSpec
from schemas.statements import Finding
from schemas.trajectory import Author, ToolCall

_ANYBODY = Author("rule", "known-right", "1")


class RightCall(NamedTuple):
    """A call and the decision that it is of."""

    message: int
    call: ToolCall


def known_right(case: Case, findings: Iterable[Finding]) -> Iterator[RightCall]:
    """The calls of an attempt that passed its task whose answers are confirmed and no errors.

    A passed attempt may hold a call that it did not need; only a person's finding says so of one.
    """
    if case.outcome != "success":
        return
    wrong = {finding.call or finding.message for finding in findings if finding.author.kind == "human"}
    executions = {item.call: item.execution for item in case.verifications if item.execution is not None}
    for index, message in enumerate(case.trajectory.messages):
        for call in message.tool_calls:
            run = executions.get(call.uid)
            fine = run is not None and confirmed(run) and run.status in (None, "ok")
            if fine and wrong.isdisjoint((index, call.uid)):
                yield RightCall(index, call)


def refuse_right(case: Case, right: RightCall, spec: EnvSpec) -> Refusal | None:
    """Why repair would refuse this very call as a correction by anybody but a person, or None.

    It is handed in for a decision that holds, in its place, a call of which nothing can be kept.
    """
    index, call = right
    message = case.trajectory.messages[index]
    broken = replace(call, arguments_text="", arguments=UNSET)
    calls = tuple(broken if item.uid == call.uid else item for item in message.tool_calls)
    messages = list(case.trajectory.messages)
    messages[index] = replace(message, tool_calls=calls)
    assert call.arguments is not UNSET  # noqa: S101 - a call that was answered without an error has arguments
    proposal = Proposal(
        case.trajectory_id, index, call.uid, (ProposedCall(call.name, call.arguments),), _ANYBODY, ("request", "schema")
    )
    asked = case._replace(trajectory=replace(case.trajectory, messages=tuple(messages)))
    made = plan("clean", asked, proposal, spec, {0: case.trajectory.task})
    return made if isinstance(made, Refusal) else None

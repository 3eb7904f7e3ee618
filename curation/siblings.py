"""Corrections out of other attempts of the same task: what a sibling did where it knew exactly the same.

At equal information both had seen the same requests, actions and answers. That the sibling's run went well is no
evidence at this decision: its call is executed and judged like any other proposal.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import UNSET

from curation.correction import same_action
from curation.diagnosis.evidence import Case, confirmed
from curation.proposals import Proposal, ProposedCall
from schemas.statements import Finding
from schemas.trajectory import Author, Reads, ToolCall

VERSION = "1"
_NOT_THE_CALL = frozenset(("environment", "budget_stop", "omission", "undetermined"))


class Sibling(NamedTuple):
    """A decision of another attempt of the task, taken at the same information.

    ``findings`` are the effective ones of its attempt. ``saw_more``: something else than the messages informed it.
    """

    case: Case
    message: int
    findings: tuple[Finding, ...] = ()
    saw_more: bool = False


def propose_from(case: Case, finding: Finding, siblings: Sequence[Sibling]) -> Proposal | None:
    """The call of the first sibling that can stand for a wrong one, or None.

    The two decisions must differ in one call, which is the wrong one here, and which there is confirmed by execution,
    no error, and without a finding.
    """
    if finding.call is None or finding.label in _NOT_THE_CALL:
        return None
    for sibling in siblings:
        right = _stands_for(case, finding, sibling)
        if right is not None:
            more: tuple[Reads, ...] = ("observation",) if sibling.saw_more else ()
            author = Author("sibling", sibling.case.trajectory_id, VERSION)
            return Proposal(
                case.trajectory_id, finding.message, finding.call, (right,), author, ("request", "schema", *more)
            )
    return None


def _stands_for(case: Case, finding: Finding, sibling: Sibling) -> ProposedCall | None:
    mine = case.trajectory.messages[finding.message].tool_calls
    theirs = sibling.case.trajectory.messages[sibling.message].tool_calls
    wrong = [call for call in mine if not _is_among(call, theirs)]
    right = [call for call in theirs if not _is_among(call, mine)]
    if [call.uid for call in wrong] != [finding.call] or len(right) != 1:
        return None
    if any(item.message == sibling.message and item.label != "undetermined" for item in sibling.findings):
        return None
    return _as_proposed(right[0]) if _is_fine(sibling.case, right[0]) else None


def _is_fine(case: Case, call: ToolCall) -> bool:
    executions = (item.execution for item in case.verifications if item.call == call.uid and item.execution is not None)
    return any(confirmed(run) and run.status in (None, "ok") for run in executions)


def _is_among(call: ToolCall, others: Sequence[ToolCall]) -> bool:
    action = _as_proposed(call)
    return action is not None and any(same_action(other, action) for other in others)


def _as_proposed(call: ToolCall) -> ProposedCall | None:
    return None if call.arguments is UNSET else ProposedCall(call.name, call.arguments)

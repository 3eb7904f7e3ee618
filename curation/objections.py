"""What a person's correction says of the decision it corrects: that it was wrong. A finding beside the forks.

A model's proposal is advice and a rule's follows from a finding; neither says anything here.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from curation.diagnosis.arguments import arguments_of, leaves, read_json
from curation.diagnosis.evidence import Case, Reading, read_case, shown
from curation.diagnosis.format import call_as_text
from curation.fork_plan import Refusal, wrong_calls
from curation.proposals import Proposal, ProposedCall
from schemas.canonical import encode
from schemas.statements import Evidence, Finding, Label, slot
from schemas.trajectory import ToolCall

CORRECTED = "corrected_by_person"


def objections(case: Case, findings: Iterable[Finding], proposals: Iterable[Proposal]) -> tuple[Finding, ...]:
    """The findings that have to be written so that these persons' corrections of a trajectory hold.

    ``findings`` are those that hold. One author's findings about a trajectory are replaced as a whole, so what these
    persons said before of other decisions is said again; what they said of the same ones is not. None for a proposal
    that corrects no decision of the record: another message, the same call, an answer that is not the real one.
    """
    reading = read_case(case)
    said: dict[tuple[Any, ...], dict[tuple[int, str | None, Label], Finding]] = {}
    for proposal in proposals:
        found = _objection(reading, proposal) if proposal.author.kind == "human" else None
        if found is not None:
            said.setdefault(slot(found), {})[found.message, found.call, found.label] = found
    kept = [
        replace(item, supersedes=())
        for item in findings
        if slot(item) in said and not any(key[:2] == (item.message, item.call) for key in said[slot(item)])
    ]
    return (*kept, *(finding for by_place in said.values() for finding in by_place.values()))


def _objection(reading: Reading, proposal: Proposal) -> Finding | None:
    wrong = wrong_calls(reading.case, proposal)
    if isinstance(wrong, Refusal):
        return None
    right = proposal.calls[-1]
    label = _label(reading, proposal.message, wrong, right)
    evidence = tuple(_evidence(label, proposal.message, wrong, right))
    call = wrong[0].uid if len(wrong) == 1 else None
    author, reads = proposal.author, proposal.reads
    return Finding(reading.case.trajectory_id, proposal.message, label, author, CORRECTED, call, evidence, reads)


def _label(reading: Reading, message: int, wrong: tuple[ToolCall, ...], right: ProposedCall) -> Label:
    """By what the correction changes."""
    if not wrong:
        return "omission" if call_as_text(reading, message) is None else "format"
    if any(call.arguments is UNSET for call in wrong):
        return "format"
    return "argument" if any(call.name == right.name for call in wrong) else "tool_choice"


def _evidence(label: Label, message: int, wrong: tuple[ToolCall, ...], right: ProposedCall) -> Iterator[Evidence]:
    if not wrong:
        yield Evidence("absence", message, value=right.name, note="text instead of a call")
    kept = {path: encode(value) for path, value in leaves(read_json(bytes(right.arguments)))}
    for call in wrong:
        changed = [(path, value) for path, value in leaves(arguments_of(call)) if kept.get(path) != encode(value)]
        if label == "argument" and call.name == right.name and changed:
            for path, value in changed:
                yield Evidence("call", message, call.uid, path=path, value=shown(str(value)))
        else:
            written = call.arguments_text if label == "format" else call.name
            yield Evidence("call", message, call.uid, value=shown(written))

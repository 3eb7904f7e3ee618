"""The diagnosis of one trajectory: what every rule finds, in the order of the decisions, and what was checked.

The earliest confirmed deviation is the first finding. How the run stopped stays apart from it. A failed run in which
nothing is confirmed is ``undetermined``, which is a result. What the model says of itself weighs nothing.
"""

from collections.abc import Iterator
from typing import get_args

from curation.diagnosis import argument, claims, environment, stop, tool_choice
from curation.diagnosis import format as format_
from curation.diagnosis.evidence import Case, Diagnosis, Reading, read_case
from curation.diagnosis.layers import check_layers
from schemas.statements import Finding, Label

_RULES = (format_.find, tool_choice.find, argument.find, environment.find, claims.find, stop.find)
_LABELS: tuple[Label, ...] = get_args(Label)


def diagnose(case: Case) -> Diagnosis:
    """Findings and the verifications of the layers syntax and semantics. Pure; the same case gives the same diagnosis.

    An answer that is not its call's real one contradicts the record: nothing is held against the model from there on,
    what it did before stays.
    """
    reading = read_case(case)
    found = sorted((finding for rule in _RULES for finding in rule(reading)), key=_order)
    return Diagnosis(tuple(_settle(reading, found)), tuple(check_layers(reading)))


def _settle(reading: Reading, found: list[Finding]) -> Iterator[Finding]:
    contradicted = [(index, call.uid) for index, call in reading.calls if reading.ending(call.uid) == "contradicted"]
    if contradicted:
        first, uid = contradicted[0]
        yield from (finding for finding in found if _order(finding)[:2] < (first, int(uid.partition(".")[2])))
        yield reading.finding("undetermined", first, "contradicted_record", (), ("observation",), uid)
    elif found:
        yield from found
    elif reading.case.outcome == "failure":
        yield reading.finding("undetermined", reading.last_decision, "nothing_confirmed", ())


def _order(finding: Finding) -> tuple[int, int, int]:
    position = -1 if finding.call is None else int(finding.call.partition(".")[2])
    return finding.message, position, _LABELS.index(finding.label)

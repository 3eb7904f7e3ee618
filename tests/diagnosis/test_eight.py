"""The right reading of each of the eight shared records, before and after a replay."""

from pathlib import Path

import pytest

from curation.diagnosis.diagnose import diagnose
from curation.diagnosis.evidence import Case, read_case
from curation.diagnosis.recovery import recoveries
from curation.importers import openai_chat
from curation.importers.face import Parsed
from curation.proposals import propose
from schemas.statements import Finding
from tests.diagnosis.toy import case_of, executed

READINGS = {
    "fail_A18": [("argument", 1, "unseen_value")],
    "first_ok": [],
    "recovered": [("argument", 1, "unseen_value")],
    "pasted_old_error": [("undetermined", 1, "contradicted_record")],
    "pasted_result": [("undetermined", 1, "contradicted_record")],
    "timeout": [("environment", 1, "timeout")],
    "misread": [("result_interpretation", 3, "claim_without_action")],
    "bad_json": [("format", 1, "call_as_text"), ("format", 2, "call_as_text")],
}


def cases(path: Path) -> dict[str, Case]:
    found = {}
    for item in openai_chat.IMPORTER.read(path):
        assert isinstance(item, Parsed)
        outcome = next(fact.value for fact in item.facts if fact.field == "outcome")
        assert item.key is not None
        found[item.key] = case_of(item, outcome="success" if outcome == "passed" else "failure")
    return found


def replayed(name: str, case: Case) -> Case:
    """The case with what a replay in the inventory says of its calls."""
    match name:
        case "fail_A18":
            verdicts = [executed(case, "1.0", status="tool_error")]
        case "recovered":
            verdicts = [executed(case, "1.0", status="tool_error"), executed(case, "3.0")]
        case "pasted_old_error" | "pasted_result":
            verdicts = [executed(case, "1.0", "different")]
        case "timeout":
            verdicts = [executed(case, "1.0", "unverifiable")]
        case "bad_json":
            verdicts = []
        case _:
            verdicts = [executed(case, "1.0")]
    return case._replace(verifications=tuple(verdicts))


def brief(finding: Finding) -> tuple[str, int, str]:
    return finding.label, finding.message, finding.detail


@pytest.mark.parametrize("name", READINGS)
def test_each_record_has_its_right_reading(eight: Path, name: str) -> None:
    found = diagnose(replayed(name, cases(eight)[name])).findings
    assert [brief(finding) for finding in found] == READINGS[name]


def test_a_replay_is_needed_for_the_pasted_ones_alone(eight: Path) -> None:
    without = {name: [brief(item) for item in diagnose(case).findings] for name, case in cases(eight).items()}
    pasted = {"pasted_old_error", "pasted_result"}
    assert {name for name in READINGS if without[name] != READINGS[name]} == pasted


def test_a_wrong_value_points_at_the_request_and_at_the_call(eight: Path) -> None:
    case = cases(eight)["fail_A18"]
    (finding,) = diagnose(case).findings
    asked, called = finding.evidence
    request = case.trajectory.messages[0].content
    assert isinstance(request, str)
    assert request[asked.start : asked.end] == "A17" == asked.value
    assert (called.call, called.path, called.value) == ("1.0", "/sku", "A18")
    assert finding.reads == ("request", "schema")


def test_what_a_rule_can_justify(eight: Path) -> None:
    proposed = {}
    for name, case in cases(eight).items():
        case = replayed(name, case)
        for finding in diagnose(case).findings:
            if (proposal := propose(case, finding)) is not None:
                (call,) = proposal.calls
                proposed[name] = (proposal.message, proposal.call, call.name, bytes(call.arguments), proposal.reads)
    right = (1, "1.0", "get_stock", b'{"sku":"A17"}', ("request", "schema"))
    assert proposed == {"fail_A18": right, "recovered": right}


def test_the_proposal_does_not_change_with_what_came_after_the_call(eight: Path) -> None:
    """The pair of such a fork is comparable only because the rule reads the prefix."""
    case = cases(eight)["fail_A18"]
    cut = case.trajectory.messages[:2]
    short = case._replace(trajectory=type(case.trajectory)(cut), stop=None, outcome="unknown", spec=None)
    (finding,) = diagnose(short).findings
    (full,) = diagnose(case).findings
    assert finding == full
    assert propose(short, finding) == propose(case, full)


def test_the_recovery_in_the_log_is_found(eight: Path) -> None:
    case = replayed("recovered", cases(eight)["recovered"])
    (recovery,) = recoveries(read_case(case), diagnose(case).findings)
    assert recovery == (1, "1.0", 3, "3.0")
    silent = replayed("fail_A18", cases(eight)["fail_A18"])
    assert recoveries(read_case(silent), diagnose(silent).findings) == ()


def test_a_stop_is_not_a_cause(eight: Path) -> None:
    case = cases(eight)["bad_json"]
    assert case.trajectory.stop_text == "format error: not valid json; then budget exhausted"
    assert {finding.label for finding in diagnose(case).findings} == {"format"}


def test_syntax_and_semantics_are_stated_of_every_call(eight: Path) -> None:
    stated = {
        name: [(item.layer, item.result, item.call) for item in diagnose(case).verifications]
        for name, case in cases(eight).items()
    }
    assert stated["recovered"] == [
        ("syntax", "passed", "1.0"),
        ("semantics", "passed", "1.0"),
        ("syntax", "passed", "3.0"),
        ("semantics", "passed", "3.0"),
    ]
    assert stated["bad_json"] == [("syntax", "failed", None)] * 2

"""What a rule says from the request alone holds whatever came after the call, and whatever the model said itself."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from curation.diagnosis.diagnose import diagnose
from curation.diagnosis.evidence import Case
from curation.proposals import Proposal, propose
from schemas.statements import Finding
from tests.diagnosis.toy import call, case
from tests.eight import say

ASKED = "How many A17 are left?"


def read(one: Case) -> tuple[Finding, Proposal | None]:
    """What the prefix gives for the first call, without the name of the trajectory."""
    finding = next(item for item in diagnose(one).findings if item.reads == ("request", "schema"))
    proposal = propose(one, finding)
    return replace(finding, trajectory=""), proposal and proposal._replace(trajectory="")


@pytest.mark.parametrize(
    "later",
    [
        [],
        [{"role": "user", "content": "And B17, or C17?"}],
        [{"role": "user", "content": "Sorry, A18 is right after all."}],
        [say("A17 or B17?"), {"role": "user", "content": "Not A17."}],
        call("get_stock", {"sku": "B17"}, {"sku": "B17", "stock": 3}, "c2"),
    ],
)
def test_what_comes_later_changes_nothing(tmp_path: Path, later: list[dict[str, Any]]) -> None:
    wrong = call("get_stock", {"sku": "A18"}, {"error": "unknown_sku", "sku": "A18"})
    alone = read(case(tmp_path, ASKED, *call("get_stock", {"sku": "A18"})))
    assert alone[1] is not None
    assert read(case(tmp_path, ASKED, *wrong, *later)) == alone


def test_what_the_model_said_itself_is_no_source(tmp_path: Path) -> None:
    wrong = call("get_stock", {"sku": "A18"}, {"error": "unknown_sku", "sku": "A18"})
    silent = diagnose(case(tmp_path, ASKED, say("I look it up."), *wrong)).findings
    named = diagnose(case(tmp_path, ASKED, say("I look up A18."), *wrong)).findings
    assert [(item.label, item.message, item.detail) for item in named] == [("argument", 2, "unseen_value")]
    assert [replace(item, trajectory="") for item in named] == [replace(item, trajectory="") for item in silent]

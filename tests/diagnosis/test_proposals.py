"""Corrections by rule and by people."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.diagnosis.diagnose import diagnose
from curation.diagnosis.evidence import read_case
from curation.diagnosis.recovery import recoveries
from curation.errors import UsageError
from curation.proposals import propose, read_proposals
from environments.protocol import Undo
from schemas.statements import Finding
from schemas.trajectory import Author
from tests.diagnosis.toy import INVENTORY, call, case, executed
from tests.eight import Message

UNKNOWN = {"error": "unknown_sku", "sku": "A18"}
STOCK = {"sku": "A17", "city": "Hangzhou", "stock": 2}
LINE = {
    "trajectory": "ab12",
    "message": 1,
    "calls": [{"name": "get_stock", "arguments": {"sku": "A17"}}],
    "author": "Mia",
}


def write(folder: Path, *lines: Any) -> Path:
    path = folder / "proposals.jsonl"
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def test_a_persons_correction_is_read(tmp_path: Path) -> None:
    (line,) = read_proposals(write(tmp_path, LINE, ""))
    proposal = line.proposal("ab12cd")
    assert (proposal.trajectory, proposal.message, proposal.call) == ("ab12cd", 1, None)
    assert [(item.name, bytes(item.arguments)) for item in proposal.calls] == [("get_stock", b'{"sku":"A17"}')]
    assert proposal.author == Author("human", "Mia")


def test_without_a_word_on_it_an_author_has_read_the_error(tmp_path: Path) -> None:
    told, silent = read_proposals(write(tmp_path, LINE | {"reads": ["request"]}, LINE))
    assert told.proposal("x").reads == ("request",)
    assert "observation" in silent.proposal("x").reads


def test_an_author_need_not_be_a_person(tmp_path: Path) -> None:
    author = {"kind": "model", "name": "m", "version": "2"}
    (line,) = read_proposals(write(tmp_path, LINE | {"author": author, "call": "1.1"}))
    assert line.proposal("x").author == Author("model", "m", "2")
    assert line.proposal("x").call == "1.1"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{", "truncated"),
        ('{"message": 1, "message": 2}', "duplicate_key"),
        ({**LINE, "calls": []}, "calls"),
        ({**LINE, "calls": [{"name": "", "arguments": {}}]}, "name"),
        ({**LINE, "calls": [{"name": "book", "arguments": "A17"}]}, "arguments"),
        ({**LINE, "message": -1}, "message"),
        ({**LINE, "reads": ["everything"]}, "everything"),
        ({**LINE, "why": "because"}, "why"),
        ({**LINE, "key": "one"}, "either"),
        ({key: LINE[key] for key in ("message", "calls", "author")}, "either"),
        ({key: LINE[key] for key in ("message", "calls", "trajectory")}, "author"),
    ],
)
def test_a_line_that_is_no_proposal_is_named(tmp_path: Path, line: Any, words: str) -> None:
    path = write(tmp_path, LINE, line)
    with pytest.raises(UsageError) as caught:
        read_proposals(path)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert words in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.jsonl"):
        read_proposals(tmp_path / "none.jsonl")


def recovered(folder: Path, request: str, *between: Message, right: dict[str, Any] | None = None) -> Any:
    one = case(
        folder,
        request,
        *call("get_stock", {"sku": "A18"}, UNKNOWN),
        *between,
        *call("get_stock", right or {"sku": "A17"}, STOCK, "c2"),
        outcome="success",
    )
    last = f"{3 + len(between)}.0"
    return one._replace(verifications=(executed(one, "1.0", status="tool_error"), executed(one, last)))


def test_a_recovery_whose_value_could_be_known_before_is_proposed(tmp_path: Path) -> None:
    """Of two candidates the rule takes none by itself; the model's own later call has read the error, and says so."""
    one = recovered(tmp_path, "I think A17, or else B17 in Hangzhou")
    assert diagnose(one).findings == ()
    finding = diagnose(case(tmp_path, "the one")).findings[0]
    told = type(finding)(one.trajectory_id, 1, "argument", Author("human", "Mia"), call="1.0")
    proposal = propose(one, told)
    assert proposal is not None
    assert bytes(proposal.calls[0].arguments) == b'{"sku":"A17"}'
    assert "observation" in proposal.reads


def test_a_recovery_out_of_the_blue_is_not_proposed_for_the_time_before(tmp_path: Path) -> None:
    one = recovered(tmp_path, "How many are left of the one we talked about?")
    (finding,) = diagnose(one).findings
    assert finding.detail == "not_derivable"
    assert [item.recovered_call for item in recoveries(read_case(one), (finding,))] == ["3.0"]
    assert propose(one, finding) is None


@pytest.mark.parametrize(
    ("written", "later", "same"),
    [
        ('{"sku": "A17"', {"sku": "A17"}, True),
        ('{"sku": "A17", "city": Hangzhou}', {"sku": "A17", "city": "杭州"}, True),
        ('{"sku": "A17"', {"sku": "B17"}, False),
        ('{"sku": "A17", "qty"', {"sku": "A17", "qty": 2}, False),
        ('{"sku": "A17", "qty": 2', {"sku": "A17", "qty": 2}, True),
        ("{", {"sku": "A17"}, False),
    ],
)
def test_a_malformed_call_is_recovered_by_what_it_held_itself(
    tmp_path: Path, written: str, later: dict[str, Any], same: bool
) -> None:
    one = case(
        tmp_path,
        "Check A17 first, 2 of them, 杭州. Only if it is out of stock check B17.",
        *call("get_stock", written, {"error": "invalid_json"}),
        *call("get_stock", later, STOCK, "c2"),
        outcome="success",
    )
    one = one._replace(verifications=(executed(one, "1.0", status="schema_error"), executed(one, "3.0")))
    finding = diagnose(one).findings[0]
    assert (finding.label, finding.call) == ("format", "1.0")
    proposal = propose(one, finding)
    assert (proposal is not None) == same == bool(recoveries(read_case(one), (finding,)))


def test_a_call_that_breaks_the_schema_is_recovered_by_the_name_it_held(tmp_path: Path) -> None:
    for sku, same in (("A17", True), ("B17", False)):
        one = case(
            tmp_path,
            "Check A17 first. Only if it is out of stock check B17.",
            *call("get_stock", {"item": "A17"}, {"error": "schema"}),
            *call("get_stock", {"sku": sku}, STOCK, "c2"),
            outcome="success",
        )
        one = one._replace(verifications=(executed(one, "1.0", status="schema_error"), executed(one, "3.0")))
        (finding,) = diagnose(one).findings
        assert finding.detail == "schema_violation"
        assert (propose(one, finding) is not None) == same


@pytest.mark.parametrize(("request_text", "proposed"), [("Book a large lot of A17", False), ("Book one A17", True)])
def test_an_article_is_no_source_of_a_later_number(tmp_path: Path, request_text: str, proposed: bool) -> None:
    one = case(
        tmp_path,
        request_text,
        *call("book", {"sku": "A17", "qty": 50}, {"error": "out_of_stock"}),
        *call("book", {"sku": "A17", "qty": 1}, {"status": "booked"}, "c2"),
        tools=None,
        outcome="success",
    )
    one = one._replace(verifications=(executed(one, "1.0", status="tool_error"), executed(one, "3.0")))
    told = Finding(one.trajectory_id, 1, "argument", Author("human", "Mia"), call="1.0")
    assert (propose(one, told) is not None) == proposed


def test_what_a_user_said_in_between_is_no_recovery(tmp_path: Path) -> None:
    one = recovered(tmp_path, "The usual one?", {"role": "user", "content": "I mean A17"})
    assert recoveries(read_case(one), diagnose(one).findings) == ()


def test_an_unconfirmed_call_is_no_recovery(tmp_path: Path) -> None:
    one = recovered(tmp_path, "A17?")
    bare = one._replace(verifications=())
    assert recoveries(read_case(bare), diagnose(bare).findings) == ()


def test_the_same_call_again_is_no_recovery(tmp_path: Path) -> None:
    one = recovered(tmp_path, "The usual one?", right={"sku": "A18"})
    assert recoveries(read_case(one), diagnose(one).findings) == ()


@pytest.mark.parametrize("declared", [True, False])
def test_taking_the_effect_back_is_no_recovery_yet(tmp_path: Path, declared: bool) -> None:
    """By the environment's declaration or by the states; the right call after it is the recovery."""
    move = {"item": "A18", "shelf": "s-2"}
    calls = [
        *call("move", move, {"item": "A18", "before": "s-1"}),
        *call("move", move | {"shelf": "s-1"}, {"item": "A18", "before": "s-2"}, "c2"),
        *call("move", {"item": "A17", "shelf": "s-2"}, {"item": "A17", "before": "s-1"}, "c3"),
    ]
    undo = Undo("move", {"item": ("arguments", "item"), "shelf": ("answer", "before")})
    spec = INVENTORY._replace(effects={"move": "write"}, undo={"move": undo} if declared else {})
    one = case(tmp_path, "Move A17 to s-2", *calls, tools=None, spec=spec, outcome="unknown")
    (finding,) = diagnose(one).findings
    states = [("a", "b"), ("b", "c" if declared else "a"), ("c", "d")]
    checked = tuple(
        executed(one, f"{message}.0", state=before, after=after)
        for message, (before, after) in zip((1, 3, 5), states, strict=True)
    )
    found = recoveries(read_case(one._replace(verifications=checked)), (finding,))
    assert [(item.call, item.recovered_call) for item in found] == [("1.0", "5.0")]


def test_two_wrong_values_are_swapped_together(tmp_path: Path) -> None:
    tools = [
        {
            "type": "function",
            "function": {"name": "move", "description": "", "parameters": {"properties": {"sku": {}, "shelf": {}}}},
        }
    ]
    one = case(tmp_path, "Move A17 to shelf-3", *call("move", {"sku": "A18", "shelf": "shelf-4"}, {}), tools=tools)
    (finding,) = diagnose(one).findings
    proposal = propose(one, finding)
    assert proposal is not None
    assert bytes(proposal.calls[0].arguments) == b'{"shelf":"shelf-3","sku":"A17"}'

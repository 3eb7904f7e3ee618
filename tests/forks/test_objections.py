"""A person's correction is a finding: what it says, what it leaves standing, and what a build makes of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.diagnosis.evidence import Case
from curation.jobs.diagnosing import diagnose_attempts
from curation.jobs.forking import ForkResult, fork_attempt
from curation.jobs.repairing import repair_attempts
from curation.jobs.replaying import replay_attempts
from curation.objections import CORRECTED, objections
from curation.proposals import Proposal, ProposalLine, ProposedCall
from curation.worlds import World
from schemas.canonical import raw
from schemas.objects import ToolSpec
from schemas.selection import Kind
from schemas.trajectory import Author, AuthorKind, Reads, Trajectory
from tests.builders.desk import Desk
from tests.records import A17, A18, BAD, EIGHT, OK, REQUEST, Call, record

Worlds = tuple[World, ...]
Replayed = Callable[[Trajectory, Worlds], Case]

ADA = Author("human", "Ada")
READ_ALL: tuple[Reads, ...] = ("request", "schema", "observation")
B17: Call = ("get_stock", {"sku": "B17"})
C17: Call = ("get_stock", {"sku": "C17"})
IN_HANGZHOU: Call = ("get_stock", {"sku": "A17", "city": "Hangzhou"})
BOOK: Call = ("book", {"sku": "A17"})
NO_BOOKING = {"error": "unknown_tool", "tool": "book"}
OK_B17 = {"sku": "B17", "city": "Hangzhou", "stock": 4}
OK_C17 = {"sku": "C17", "city": "Beijing", "stock": 1}


def proposal(trajectory: str, message: int, *calls: Call, by: Author = ADA, call: str | None = None) -> Proposal:
    made = tuple(ProposedCall(name, raw(arguments)) for name, arguments in calls)
    return Proposal(trajectory, message, call, made, by, READ_ALL)


@pytest.mark.parametrize(
    ("turns", "right", "label", "call", "evidence"),
    [
        ((A18, BAD), A17, "argument", "1.0", [("call", "1.0", "/sku", "A18")]),
        ((A17, OK), IN_HANGZHOU, "argument", "1.0", [("call", "1.0", None, "get_stock")]),
        ((BOOK, NO_BOOKING), A17, "tool_choice", "1.0", [("call", "1.0", None, "book")]),
        ((("get_stock", '{"sku"'), BAD), A17, "format", "1.0", [("call", "1.0", None, '{"sku"')]),
        (("There are none.",), A17, "omission", None, [("absence", None, None, "get_stock")]),
        (
            ([A18, A17], BAD, OK), B17, "argument", None,
            [("call", "1.0", "/sku", "A18"), ("call", "1.1", "/sku", "A17")],
        ),
    ],
)  # fmt: skip
def test_the_label_says_what_the_correction_changes(
    inventory: Worlds, replayed: Replayed, turns: Any, right: Call, label: str, call: str | None, evidence: Any
) -> None:
    case = replayed(record(REQUEST, *turns), inventory)
    (found,) = objections(case, (), [proposal(case.trajectory_id, 1, right)])
    assert (found.message, found.label, found.detail, found.call) == (1, label, CORRECTED, call)
    assert [(item.kind, item.call, item.path, item.value) for item in found.evidence] == evidence
    assert (found.author, found.reads) == (ADA, READ_ALL)


def test_a_call_written_as_text_is_malformed(inventory: Worlds, replayed: Replayed) -> None:
    case = replayed(EIGHT["bad_json"], inventory)._replace(tools=(ToolSpec("get_stock", "", raw({})),))
    (found,) = objections(case, (), [proposal(case.trajectory_id, 1, A17)])
    assert (found.label, found.message) == ("format", 1)


@pytest.mark.parametrize("kind", ["model", "rule", "sibling", "environment"])
def test_advice_is_no_finding(inventory: Worlds, replayed: Replayed, kind: AuthorKind) -> None:
    case = replayed(EIGHT["fail_A18"], inventory)
    assert objections(case, (), [proposal(case.trajectory_id, 1, A17, by=Author(kind, "Ada"))]) == ()


@pytest.mark.parametrize(
    ("name", "message", "right", "call"),
    [
        ("fail_A18", 1, A18, None),  # the wrong call itself
        ("fail_A18", 0, A17, None),  # no decision
        ("fail_A18", 1, A17, "1.4"),  # no such call
        ("pasted_result", 1, A17, None),  # the answer is not the real one
        ("timeout", 1, A18, None),  # the world failed
    ],
)
def test_what_corrects_no_decision_of_the_record_says_nothing(
    inventory: Worlds, replayed: Replayed, name: str, message: int, right: Call, call: str | None
) -> None:
    case = replayed(EIGHT[name], inventory)
    assert objections(case, (), [proposal(case.trajectory_id, message, right, call=call)]) == ()


# Through the store


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def process(desk: Desk) -> None:
    desk.flush()
    replay_attempts(desk.store, "booking")
    diagnose_attempts(desk.store)


def fork(desk: Desk, trajectory: str, message: int, *calls: Call, by: Author = ADA) -> ForkResult:
    return fork_attempt(desk.store, "booking", proposal(trajectory, message, *calls, by=by))


def standing(desk: Desk, trajectory: str) -> list[tuple[str, int, str]]:
    rows = desk.store.sql(
        "SELECT author_name, message, label FROM effective_findings WHERE trajectory = ? ORDER BY ALL", [trajectory]
    )
    return [(row["author_name"], row["message"], row["label"]) for row in rows.to_pylist()]


def judged(desk: Desk, kind: Kind) -> dict[tuple[int, bool], list[str]]:
    """Why each decision is refused, by its message and whether a fork answers for it; nothing where it is kept."""
    build = desk.build(kind)
    return {
        (line["message"], line["child"] is not None): list(line["failed"])
        for line in desk.lines(kind)
        if line["build"] == build.build
    }


def test_the_corrected_decision_is_no_first_action_any_more_and_its_recovery_is_a_row(desk: Desk) -> None:
    attempt = desk.attempt("Stock of A17 or B17?", B17, OK_B17, "There are 4.", confirm=False)
    process(desk)
    assert judged(desk, "first_action") == {(1, False): []}
    fork(desk, attempt, 1, A17)
    assert standing(desk, attempt) == [("Ada", 1, "argument")]
    first = judged(desk, "first_action")
    assert "finding_on_target" in first[1, False]
    assert first[1, True] == []
    assert judged(desk, "recovery") == {(1, True): []}
    assert judged(desk, "preference") == {(1, True): ["corrector_saw_more"]}


def test_a_models_word_changes_nothing(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A17, OK, "There are 2.", confirm=False)
    process(desk)
    fork(desk, attempt, 1, IN_HANGZHOU, by=Author("model", "m", "2"))
    assert standing(desk, attempt) == []
    assert judged(desk, "first_action")[1, False] == []
    assert "no_error_before" in judged(desk, "recovery")[1, True]


@pytest.fixture
def twice(desk: Desk) -> str:
    """An attempt with two decisions that a person would have taken otherwise, and no rule's word on them."""
    attempt = desk.attempt("Stock of A17, B17 or C17?", B17, OK_B17, C17, OK_C17, "1.", confirm=False)
    process(desk)
    assert standing(desk, attempt) == []
    return attempt


def test_a_second_correction_by_the_same_person_leaves_the_first(desk: Desk, twice: str) -> None:
    fork(desk, twice, 1, A17)
    fork(desk, twice, 3, A17)
    assert standing(desk, twice) == [("Ada", 1, "argument"), ("Ada", 3, "argument")]
    fork(desk, twice, 3, IN_HANGZHOU)
    fork(desk, twice, 3, A17, by=Author("human", "Bob"))
    assert standing(desk, twice) == [("Ada", 1, "argument"), ("Ada", 3, "argument"), ("Bob", 3, "argument")]


def test_corrections_of_one_file_stand_beside_earlier_ones(desk: Desk, twice: str) -> None:
    fork(desk, twice, 1, A17)
    line = {
        "trajectory": twice,
        "message": 3,
        "calls": [{"name": "get_stock", "arguments": {"sku": "A17"}}],
        "author": "Ada",
    }
    done = repair_attempts(desk.store, "booking", [msgspec.convert(line, ProposalLine)])
    assert (done.failures, done.proposed, done.verified) == (1, 1, 2)
    assert standing(desk, twice) == [("Ada", 1, "argument"), ("Ada", 3, "argument")]


def test_repairing_again_leaves_what_came_of_a_correction(desk: Desk, twice: str) -> None:
    fork(desk, twice, 1, A17)
    facts = desk.store.sql("SELECT field, value FROM effective_annotations WHERE field LIKE 'repair.%' ORDER BY ALL")
    done = repair_attempts(desk.store, "booking")
    assert (done.failures, done.proposed, done.refused) == (0, 0, {})
    again = desk.store.sql("SELECT field, value FROM effective_annotations WHERE field LIKE 'repair.%' ORDER BY ALL")
    assert again.to_pylist() == facts.to_pylist() != []


def test_a_rule_that_finds_anew_leaves_a_persons_word(desk: Desk, twice: str) -> None:
    fork(desk, twice, 1, A17)
    diagnose_attempts(desk.store)
    assert standing(desk, twice) == [("Ada", 1, "argument")]


@pytest.mark.parametrize("order", [(1, 3), (3, 1)])
def test_a_fork_after_a_corrected_decision_is_no_first_action(desk: Desk, twice: str, order: tuple[int, int]) -> None:
    for message in order:
        fork(desk, twice, message, A17)
    first = judged(desk, "first_action")
    assert first[1, True] == []
    assert first[3, True] == ["error_in_prompt"]

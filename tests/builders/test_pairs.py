"""What makes a pair of two attempts, and what never does."""

import json

import pytest
from msgspec.structs import replace

from schemas.statements import Result
from tests.builders.desk import Desk
from tests.records import A17, A18, BAD, OK, REQUEST, record


@pytest.mark.parametrize("outcome", [None, "unknown", "partial"])
def test_an_attempt_of_unknown_outcome_is_no_negative(outcome: Result | None, desk: Desk) -> None:
    silent = desk.attempt(REQUEST, A18, {"sku": "A18"}, outcome=outcome)
    desk.attempt(REQUEST, A17, OK, run="b", outcome="passed")
    assert desk.build("preference").kinds["preference"].candidates == 0
    assert [line["failed"] for line in desk.lines("preference", silent)] == [["no_candidate:nothing_went_wrong"]]


def test_different_answers_to_one_prompt_are_a_pair_that_names_the_prompt_and_the_first_difference(desk: Desk) -> None:
    wrong = desk.attempt(REQUEST, A18, BAD, "There are none.")
    right = desk.attempt(REQUEST, A17, OK, "There are two.", run="b")
    desk.find(wrong)
    desk.build("preference")
    (row,) = map(json.loads, desk.rows("preference"))
    assert (row["trajectory_id"], row["message"]) == (right, 1)
    assert (row["rejected_trajectory_id"], row["rejected_message"]) == (wrong, 1)
    decisions = desk.store.sql("SELECT decisions[1].context AS context FROM trajectories")["context"].to_pylist()
    assert decisions == [row["context_digest"]] * 2
    assert [message["content"] for message in row["prompt"]] == [REQUEST]
    assert all(len(row[side]) == 1 and row[side][0]["role"] == "assistant" for side in ("chosen", "rejected"))


def test_two_answers_that_do_the_same_are_no_pair_whatever_came_back(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A18, BAD, "Sorry.")
    desk.find(attempt)
    desk.fork(attempt, "clean", 1, A18, {"sku": "A18", "stock": 1})
    desk.build("preference")
    (line,) = desk.lines("preference", attempt)
    assert "equivalent_actions" in line["failed"]
    assert not line["kept"]


@pytest.mark.parametrize("side", ["wrong", "right"])
@pytest.mark.parametrize("hides", ["request", "answer"])
def test_what_one_side_did_not_log_makes_no_pair_with_a_side_that_looks_equal(
    side: str, hides: str, desk: Desk
) -> None:
    def seen(hidden: bool) -> tuple[object, ...]:
        first, asked, told = record(REQUEST, ("get_city", {"sku": "A17"}), {"city": "Hangzhou"}).messages
        mark = "compaction" if hidden else None
        if hides == "request":
            return replace(first, hidden=mark), asked, told
        return first, asked, replace(told, hidden=mark)

    wrong = desk.attempt(*seen(side == "wrong"), A18, BAD)
    right = desk.attempt(*seen(side == "right"), A17, OK, run="b")
    desk.find(wrong, 3)
    desk.build("preference")
    (line,) = desk.lines("preference", wrong)
    assert (line["partner"] or right, line["kept"]) == (right, False)
    assert "partial_context" in line["failed"]

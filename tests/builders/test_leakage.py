"""Whatever a log and a corrector write, a first-action row holds nothing first seen after its branch point."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builders import first_action
from builders.candidate import Candidate, Facts, Subject, Target
from builders.checks import failures
from curation.diagnosis.derivation import derives
from curation.masking import Mask
from schemas.canonical import encode, raw
from schemas.statements import Execution, Verification
from schemas.trajectory import (
    Author,
    Correction,
    Fork,
    Message,
    Restore,
    ToolCall,
    Trajectory,
    trajectory_id,
)
from tests.builders.desk import PERSON, Desk
from tests.records import A17, A18, BAD, OK, REQUEST, Call, record

WORDS = st.text(alphabet="abcxyz019_-", min_size=3, max_size=8)
TOOLS = '[{"type":"function","function":{"name":"get_stock","parameters":{"type":"object"}}}]'


def subject(trajectory: Trajectory) -> Subject:
    """A trajectory whose calls are all confirmed."""
    identity = trajectory_id(trajectory)
    executed = [
        Verification(
            identity,
            "execution",
            "passed",
            Author("environment", "world@1"),
            index,
            call.uid,
            execution=Execution("world@1", status="ok", answer="a", state_before="s", state_after="s"),
        )
        for index, message in enumerate(trajectory.messages)
        for call in message.tool_calls
    ]
    return Subject(identity, encode(trajectory).decode(), None, encode(executed).decode())


def past(text: str) -> list[Message]:
    """What an answer says, and says with its joined words apart."""
    return [Message("tool", json.dumps({"error": text})), Message("tool", text.replace("_", " "))]


# A value that the model wrote itself is no news in the answer, nor is one that the request gives in other words.
@example(request=[], wrong="c1-90", right="c1-90", answer=["c1-90"], said=["c1-90"], reused=True)
@example(request=["c1-90-"], wrong="xyz", right="c1-90", answer=["c1-90"], said=[], reused=False)
@example(request=["c1-90-"], wrong="xyz", right="c1-90", answer=["c1-90"], said=["c1-90"], reused=False)
@example(request=["100", "-90"], wrong="xyz", right="190", answer=["190"], said=[], reused=False)
@given(
    request=st.lists(WORDS, max_size=3),
    wrong=WORDS,
    right=WORDS,
    answer=st.lists(WORDS, max_size=3),
    said=st.lists(WORDS, max_size=3),
    reused=st.booleans(),
)
def test_no_word_of_what_came_later_is_in_a_row(
    request: list[str], wrong: str, right: str, answer: list[str], said: list[str], reused: bool
) -> None:
    parent = record(" ".join(request), ("get_stock", {"sku": wrong}), {"error": " ".join(answer)}, "No.")
    text = " ".join([*said, *(answer if reused else [])])
    swapped = Message(
        "assistant",
        text,
        tool_calls=(ToolCall("1.0", "get_stock", "", arguments=raw({"sku": right})),),
    )
    fork = Trajectory(
        (parent.messages[0], swapped),
        fork=Fork(trajectory_id(parent), 1, "clean", Correction(Author("human", "Ada")), Restore("snapshot")),
    )
    before = subject(parent)
    candidate = Candidate(
        "first_action", Facts(), subject(fork), Target(1, 1), before, 1, tools=TOOLS, ancestors=(before,)
    )
    later = {*answer, wrong} - {*request} - ({wrong} if right == wrong else set())
    known = {right} if derives({"sku": right}, parent.messages[:1]) else set()
    leaked = later & ({*text.split()} | ({right} - known))
    refused = {difference.check for difference in failures(candidate)}
    respelled = right != wrong and not known and derives({"sku": right}, past(" ".join(answer)))
    assert ("feedback_leaked" in refused) == bool(leaked or respelled)
    if not refused:
        _, row = first_action.render(candidate, Mask({}))
        assert all(f'"{word}"'.encode() not in row for word in later - known)


def order(sku: str, quantity: int) -> Call:
    """A call with a name and a short number."""
    return "order", {"sku": sku, "quantity": quantity}


@pytest.mark.parametrize(
    ("right", "later", "leaks"),
    [
        (order("A17", 2), ({"error": "too_many", "stock": 2},), True),
        (order("A17", 3), ({"error": "too_many", "stock": 2},), False),
        (order("B7", 5), (BAD, Message("user", "Then B7.")), True),
        (order("B77", 5), ({"error": "no", "id": "item_B77"},), True),
        (order("item_B77", 5), ({"error": "no", "id": "B77"},), True),
    ],
)
def test_a_short_or_respelled_value_that_came_later_is_a_leak(right: Call, later: Any, leaks: bool, desk: Desk) -> None:
    """Of a person, who may give what nobody said before."""
    attempt = desk.attempt(REQUEST, order("A18", 5), *later)
    desk.find(attempt)
    desk.fork(attempt, "clean", 1, right, OK, by=PERSON)
    failed = desk.build("first_action").kinds["first_action"].failed
    assert failed.get("feedback_leaked", 0) == leaks


@pytest.mark.parametrize(("point", "value"), [(1, "B77"), (1, "2"), (3, "B77")])
def test_what_came_later_in_any_ancestor_leaks_into_no_fork_of_a_fork(point: int, value: str, desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A18, BAD, A18, BAD, Message("user", "I meant B77, 2 of it."))
    desk.find(attempt)
    first = desk.fork(attempt, "clean", point, ("get_stock", {"sku": "A19"}), {"error": "unknown_sku"})
    desk.find(first, point)
    last = desk.fork(first, "clean", point, ("get_stock", {"sku": value}), OK, by=PERSON)
    desk.build("first_action", "preference")
    for kind in ("first_action", "preference"):
        (line,) = [line for line in desk.lines(kind) if line["child"] == last]
        assert "feedback_leaked" in line["failed"]


@pytest.mark.parametrize(
    ("field", "value", "leaks"),
    [
        ("strata.was_A18", "yes", True),
        ("strata.unknown_sku", "yes", True),
        ("strata.answer", "unknown sku", True),
        ("strata.item", "A18", True),
        ("strata.level", "easy", False),
        ("strata.wanted", "A17", False),
    ],
)
def test_what_a_side_file_says_of_a_task_does_not_tell_the_mistake(
    field: str, value: str, leaks: bool, desk: Desk
) -> None:
    attempt = desk.attempt(REQUEST, A18, BAD)
    desk.find(attempt)
    desk.annotate(attempt, field, value)
    desk.fork(attempt, "clean", 1, A17, OK)
    failed = desk.build("first_action").kinds["first_action"].failed
    assert failed.get("feedback_leaked", 0) == leaks

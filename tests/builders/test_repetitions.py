"""A call whose answer the prompt holds already is no example; a repetition with a reason is one."""

from typing import Any

import pytest
from msgspec.structs import replace

from schemas.trajectory import MessageError
from tests.builders.desk import Desk
from tests.records import A17, A18, BAD, OK, REQUEST, Call

IN_CITY: Call = ("get_stock", {"sku": "A17", "city": "Hangzhou"})
CITY_FIRST: Call = ("get_stock", {"city": "Hangzhou", "sku": "A17"})
States = list[tuple[str | None, str | None]]
UNKNOWN = (None, None)


def refused(desk: Desk, *turns: Any, states: States, **executed: Any) -> bool:
    """Whether the last call of an attempt is refused as a repetition; ``states`` are those of each call."""
    attempt = desk.attempt(REQUEST, *turns, confirm=False)
    calls = [call.uid for message in desk.records[attempt].messages for call in message.tool_calls]
    for uid, state in zip(calls, states, strict=True):
        desk.confirm(attempt, only=[uid], state=state, **(executed if uid == calls[0] else {}))
    desk.build("first_action")
    failed = {line["message"]: line["failed"] for line in desk.lines("first_action")}
    assert all("repeated_call" not in codes for message, codes in failed.items() if message < max(failed))
    return "repeated_call" in failed[max(failed)]


@pytest.mark.parametrize(
    ("turns", "states"),
    [
        ((A17, OK, A17, OK), [("s", "s")] * 2),
        ((A17, OK, "Let me check once more.", A17, OK), [("s", "s")] * 2),
        ((A17, OK, IN_CITY, OK, A17, OK), [("s", "s")] * 3),
        ((A17, OK, [A17, IN_CITY], OK, OK), [("s", "s")] * 3),
        ((IN_CITY, OK, CITY_FIRST, OK), [("s", "s")] * 2),
        ((A17, OK, A17, OK), [("s", "t"), ("t", "t")]),
        ((A17, OK, A17, OK), [UNKNOWN] * 2),
        ((A17, OK, A17, OK), [("s", "s"), UNKNOWN]),
    ],
    ids=["at once", "said", "later", "among others", "other order", "a write that holds", "unknown", "half known"],
)
def test_a_call_that_was_answered_with_nothing_changed_since_is_refused(
    turns: tuple[Any, ...], states: States, desk: Desk
) -> None:
    assert refused(desk, *turns, states=states)


@pytest.mark.parametrize(
    ("turns", "states"),
    [
        ((A17, OK, IN_CITY, OK), [("s", "s")] * 2),
        ((A17, OK, IN_CITY, OK, A17, OK), [("s", "s"), ("s", "t"), ("t", "t")]),
        ((A17, OK, IN_CITY, OK, A17, OK), [("s", "t"), ("t", "s"), ("s", "t")]),
        ((A17, OK, A17, OK), [("s", "t"), ("t", "u")]),
        ((A18, BAD, A18, {"sku": "A18"}), [("s", "s")] * 2),
        ((A17, OK, IN_CITY, OK, A17, OK), [UNKNOWN] * 3),
        ((A17, OK, [IN_CITY, A17], OK, OK), [UNKNOWN] * 3),
    ],
    ids=["other", "changed", "undone", "changes again", "after an error", "unknown between", "unknown beside"],
)
def test_a_repetition_with_a_reason_is_no_refusal(turns: tuple[Any, ...], states: States, desk: Desk) -> None:
    assert not refused(desk, *turns, states=states)


@pytest.mark.parametrize("status", ["timeout", "environment_fault", "schema_error"])
def test_after_a_failed_execution_a_call_may_be_repeated(status: str, desk: Desk) -> None:
    assert not refused(desk, A17, OK, A17, OK, states=[("s", "s")] * 2, status=status)


def test_after_an_error_that_only_the_log_marks_a_call_may_be_repeated(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A17, OK, A17, OK, run="b")
    *before, answer, again, last = desk.records[attempt].messages
    marked = replace(answer, error=MessageError("gave up"))
    other = desk.add(replace(desk.records[attempt], messages=(*before, marked, again, last)))
    desk.confirm(other)
    desk.build("first_action")
    assert not [line for line in desk.lines("first_action", other) if "repeated_call" in line["failed"]]


def test_a_repetition_may_be_the_rejected_side_of_a_pair(desk: Desk) -> None:
    repeating = desk.attempt(REQUEST, A17, OK, A17, OK)
    desk.find(repeating, 3)
    other = desk.attempt(REQUEST, A17, OK, IN_CITY, {"stock": 2}, run="b")
    assert desk.build("preference").kinds["preference"].kept == 1
    (line,) = [line for line in desk.lines("preference") if line["kept"]]
    assert (line["trajectory"], line["partner"]) == (repeating, other)

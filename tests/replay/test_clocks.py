from typing import Any

import pytest

from curation.clocks import called_at
from curation.replay import walk
from curation.worlds import open_worlds
from environments.blobs import MemoryBlobs
from environments.protocol import Controls
from schemas.canonical import raw
from schemas.trajectory import Message
from tests.records import call, record


@pytest.mark.parametrize(
    ("extra", "expected"),
    [
        ({"timestamp": "2024-05-15T15:00:00Z"}, "2024-05-15T15:00:00+00:00"),
        ({"created_at": "2024-05-15 15:00"}, "2024-05-15T15:00:00"),
        ({"created": 1715785200}, "2024-05-15T15:00:00+00:00"),
        ({"created": 1715785200500}, "2024-05-15T15:00:00.500000+00:00"),
        ({"timestamp": "yesterday", "created": 1715785200.5}, "2024-05-15T15:00:00.500000+00:00"),
        ({"timestamp": 12}, None),
        ({"timestamp": True}, None),
        ({"timestamp": {"at": 1}}, None),
        ({"timestamp": "2" * 5000}, None),
        ({"duration": 3}, None),
    ],
)
def test_the_time_of_a_message(extra: dict[str, Any], expected: str | None) -> None:
    assert called_at(Message("assistant", "", extra=raw(extra))) == expected
    assert called_at(Message("assistant", "")) is None


def test_calls_are_given_the_time_that_the_log_says_and_then_the_answer_is_equal_in_every_byte() -> None:
    made = Message(
        "assistant",
        "",
        tool_calls=(call(1, 0, "send", {"text": "hi"}),),
        extra=raw({"timestamp": "2024-06-01T10:20:30Z"}),
    )
    attempt = record("Send.", made)
    with (
        open_worlds("tests.replay.restless:restless", Controls(clock="recorded"), processes=1) as (world,),
        world.open(attempt.task, MemoryBlobs()) as session,
    ):
        (step,) = walk(session, attempt, world.spec)
    assert step.executed is not None
    assert step.executed.raw == '{"text":"hi","drafted":"2024-05-15 15:00:00","sent":"2024-06-01 10:20:30"}'

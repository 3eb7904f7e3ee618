"""What a world's own movement excuses in a log, and what it does not."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.replay import replay
from curation.worlds import World, open_worlds
from environments.blobs import MemoryBlobs
from schemas.statements import Verification
from schemas.trajectory import Answers, Message, Trajectory, trajectory_id
from tests.records import Call, record

HELLO = ("send", {"text": "hello"})
SENT = {"text": "hello", "drafted": "2024-05-15 15:00:00", "sent": "2024-06-01 10:20:30.123456"}


@pytest.fixture(scope="module")
def restless() -> Iterator[World]:
    with open_worlds("tests.replay.restless:restless", processes=1) as (world,):
        yield world


@pytest.fixture(scope="module")
def booking() -> Iterator[World]:
    with open_worlds("booking", processes=1) as (world,):
        yield world


def answer(call: str, content: str) -> Message:
    return Message("tool", content, answers=Answers(call, "id"))


def run(trajectory: Trajectory, world: World) -> tuple[Verification, ...]:
    return replay(trajectory_id(trajectory), trajectory, world, MemoryBlobs()).verifications


def verdicts(found: tuple[Verification, ...]) -> list[tuple[str | None, str | None, tuple[str, ...]]]:
    return [(item.execution.match, item.execution.reason, item.execution.rules) for item in found if item.execution]


def test_a_timestamp_that_moves_is_forgiven_and_one_that_stands_is_not(restless: World) -> None:
    honest = record("Send.", HELLO, SENT)
    (found,) = run(honest, restless)
    assert verdicts((found,)) == [("equal_normalised", None, ("clock@1",))]
    assert [(item.value, item.note) for item in found.evidence] == [
        (SENT["sent"], "clock@1: place 2 moves between executions")
    ]
    altered = record("Send.", HELLO, {**SENT, "drafted": "2024-05-15 16:00:00"})
    assert verdicts(run(altered, restless)) == [("different", None, ())]
    other_text = record("Send.", HELLO, {**SENT, "text": "bye"})
    assert verdicts(run(other_text, restless)) == [("different", None, ())]


def test_the_order_of_a_set_is_forgiven_and_that_of_a_list_is_not(restless: World) -> None:
    names = ["ann@a.org", "bob@b.org"]
    both = set()
    for order in (names, names[::-1]):
        attempt = record("Who?", ("people", {}), answer("1.0", json.dumps(order, separators=(",", ":"))))
        both.update(verdicts(run(attempt, restless)))
    assert both == {("equal_bytes", None, ()), ("equal_normalised", None, ("set_order@1",))}
    swapped = record("Steps?", ("steps", {}), answer("1.0", '["close","open"]'))
    (found,) = run(swapped, restless)
    assert verdicts((found,)) == [("different", None, ())]
    assert "declared, but not seen to move: clock@1 and set_order@1" in found.detail


def test_movement_that_no_rule_declares_is_unknown_with_its_place_and_hides_nothing_else(restless: World) -> None:
    logged = {"ticket": "6f1c2a34-0000-4000-8000-123456789abc", "kind": "desk"}
    (found,) = run(record("A ticket.", ("ticket", {}), logged), restless)
    assert verdicts((found,)) == [("unverifiable", "volatile_only", ())]
    assert found.result == "unknown"
    assert "'6f1c2a34-0000-4000-8000-123456789abc'" in found.detail
    altered = record("A ticket.", ("ticket", {}), {**logged, "kind": "till"})
    assert verdicts(run(altered, restless)) == [("different", None, ())]


@pytest.mark.parametrize("tool", ["hash_seed", "folder"])
def test_the_other_processes_have_another_hash_seed_and_folder(restless: World, tool: str) -> None:
    attempt = record("Where?", (tool, {}), answer("1.0", "elsewhere"))
    assert verdicts(run(attempt, restless)) == [("unverifiable", "volatile_only", ())]


def test_other_processes_execute_the_same_path(restless: World) -> None:
    """A clean log, a difference late in it, and more than one of them."""
    attempt = record(
        "Send twice, then look.",
        HELLO,
        SENT,
        ("send", {"text": "again"}),
        {**SENT, "text": "again"},
        ("sent", {}),
        answer("5.0", '["hello","again"]'),
        ("sent", {}),
        answer("7.0", '["hello"]'),
    )
    assert [match for match, _, _ in verdicts(run(attempt, restless))] == [
        *("equal_normalised", "equal_normalised", "equal_bytes", "different"),
    ]


def test_clean_logs_start_no_other_process(booking: World) -> None:
    stock = {"sku": "A17", "city": "Hangzhou", "stock": 2}
    assert verdicts(run(record("Stock?", ("get_stock", {"sku": "A17"}), stock), booking)) == [("equal_bytes", None, ())]
    assert [worker for worker in booking.witnesses if worker._process is not None] == []


BOOK = ("book", {"sku": "A17", "qty": 2})
LOOK = ("get_stock", {"sku": "A17"})


def booked(stock: int) -> str:
    return json.dumps({"status": "booked", "sku": "A17", "qty": 2, "stock": stock}, separators=(",", ":"))


def seen(stock: int) -> str:
    return json.dumps({"sku": "A17", "city": "Hangzhou", "stock": stock}, separators=(",", ":"))


def test_a_batch_that_depends_on_an_order_that_the_log_does_not_tell_is_unknown(booking: World) -> None:
    answers = {"1.0": booked(0), "1.1": seen(0)}
    told = record("Book.", [BOOK, LOOK], *(answer(uid, answers[uid]) for uid in ("1.0", "1.1")))
    assert verdicts(run(told, booking)) == [("equal_bytes", None, ())] * 2
    untold = record(
        "Book.", [BOOK, LOOK], *(answer(uid, answers[uid]) for uid in ("1.1", "1.0")), LOOK, answer("4.0", seen(0))
    )
    assert verdicts(run(untold, booking)) == [
        ("unverifiable", "order_unknown", ()),
        ("unverifiable", "order_unknown", ()),
        ("not_run", "state_unknown", ()),
    ]


def test_a_batch_whose_order_shows_in_the_state_alone_is_unknown(restless: World) -> None:
    orders: list[Call] = [("send", {"text": text}) for text in ("hello", "again")]
    late, early = (answer(f"1.{place}", json.dumps(SENT)) for place in (1, 0))
    found = run(record("Send both.", orders, late, early), restless)
    assert {reason for _, reason, _ in verdicts(found)} == {"order_unknown"}


def test_the_trail_of_a_batch_does_not_count_as_its_order(booking: World) -> None:
    booked_each = [
        json.dumps({"status": "booked", "sku": sku, "qty": 1, "stock": left}, separators=(",", ":"))
        for sku, left in (("A17", 1), ("B18", 2))
    ]
    pair: list[Call] = [("book", {"sku": sku, "qty": 1}) for sku in ("A17", "B18")]
    attempt = record("Book both.", pair, answer("1.1", booked_each[1]), answer("1.0", booked_each[0]))
    assert verdicts(run(attempt, booking)) == [("equal_bytes", None, ())] * 2


def test_a_batch_that_cannot_be_executed_again_is_unknown(tmp_path: Path) -> None:
    """A world of one opening: no other is there to be asked about the order."""
    once = tmp_path / "once"
    once.touch()
    attempt = record("Look.", [LOOK, LOOK], answer("1.1", seen(2)), answer("1.0", seen(2)), parameters=str(once))
    with open_worlds("tests.replay.restless:once", processes=1) as (world,):
        found = run(attempt, world)
    assert {reason for _, reason, _ in verdicts(found)} == {"order_unknown"}


def test_a_batch_that_does_not_depend_on_order_needs_none(booking: World) -> None:
    attempt = record(
        "Look twice.", [LOOK, LOOK], answer("1.1", seen(2)), answer("1.0", seen(2)), LOOK, answer("4.0", seen(2))
    )
    assert verdicts(run(attempt, booking)) == [("equal_bytes", None, ())] * 3

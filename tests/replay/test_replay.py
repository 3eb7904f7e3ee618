from collections.abc import Iterator

import pytest

from curation.replay import replay
from curation.worlds import World, open_worlds
from environments.blobs import MemoryBlobs
from schemas.statements import Verification
from schemas.trajectory import Author, Trajectory, trajectory_id
from tests.records import A17, BAD, EIGHT, OK, REQUEST, record

TIMEOUT = {"error": "timeout"}


@pytest.fixture(scope="module")
def inventory() -> Iterator[World]:
    with open_worlds("inventory", processes=1) as (world,):
        yield world


@pytest.fixture(scope="module")
def booking() -> Iterator[World]:
    with open_worlds("booking", processes=1) as (world,):
        yield world


def run(trajectory: Trajectory, world: World) -> tuple[Verification, ...]:
    return replay(trajectory_id(trajectory), trajectory, world, MemoryBlobs()).verifications


def verdicts(found: tuple[Verification, ...]) -> list[tuple[str | None, str | None, str | None]]:
    return [(item.call, item.execution.match, item.execution.reason) for item in found if item.execution is not None]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fail_A18", [("1.0", "equal_bytes", None)]),
        ("first_ok", [("1.0", "equal_bytes", None)]),
        ("recovered", [("1.0", "equal_bytes", None), ("3.0", "equal_bytes", None)]),
        ("pasted_old_error", [("1.0", "different", None)]),
        ("pasted_result", [("1.0", "different", None)]),
        ("timeout", [("1.0", "unverifiable", "environment_fault")]),
        ("misread", [("1.0", "equal_bytes", None)]),
        ("bad_json", []),
    ],
)
def test_the_eight(inventory: World, name: str, expected: list[tuple[str, str, str | None]]) -> None:
    found = run(EIGHT[name], inventory)
    assert verdicts(found) == expected
    assert {item.layer for item in found} <= {"execution"}
    assert {item.author for item in found} <= {Author("environment", "inventory", "1")}


def test_a_pasted_answer_is_contradicted_field_by_field_and_the_start_is_doubted(inventory: World) -> None:
    (found,) = run(EIGHT["pasted_old_error"], inventory)
    assert found.result == "failed"
    assert [evidence.path for evidence in found.evidence] == ["/city", "/error", "/sku", "/stock"]
    assert {evidence.message for evidence in found.evidence} == {2}
    assert "initial state not reproducible" in found.detail


def test_an_unknown_tool_is_a_step_that_changes_nothing(booking: World) -> None:
    attempt = record(
        "Book one A17.",
        ("check_stock", {"sku": "A17"}),
        {"error": "unknown_tool", "tool": "check_stock"},
        ("book", {"sku": "A17", "qty": 1}),
        {"status": "booked", "sku": "A17", "qty": 1, "stock": 1},
        "Booked.",
        parameters={"wanted": {"bookings": {"A17": 1}}},
    )
    unknown, booked, task = run(attempt, booking)
    assert verdicts((unknown, booked)) == [("1.0", "equal_bytes", None), ("3.0", "equal_bytes", None)]
    assert unknown.execution is not None
    assert unknown.execution.status == "unknown_tool"
    assert unknown.execution.state_before == unknown.execution.state_after
    assert (task.layer, task.result, task.reads) == ("task", "passed", ("state", "hidden_answer"))


def test_an_unknown_tool_with_another_answer_is_different_and_no_fault(booking: World) -> None:
    attempt = record("Stock?", ("check_stock", {"sku": "A17"}), {"error": "no such tool"}, A17, OK)
    assert verdicts(run(attempt, booking)) == [("1.0", "different", None), ("3.0", "equal_bytes", None)]


def test_the_task_is_checked_in_a_fork_and_only_where_every_call_is_confirmed(booking: World) -> None:
    wanted = {"wanted": {"bookings": {"B17": 1}}}
    booked = {"status": "booked", "sku": "B18", "qty": 1, "stock": 2}
    attempt = record("Book a B17.", ("book", {"sku": "B18", "qty": 1}), booked, parameters=wanted)
    assert [item.result for item in run(attempt, booking) if item.layer == "task"] == ["failed"]
    doubtful = record("Book a B17.", ("book", {"sku": "B18", "qty": 1}), {"status": "ok"}, parameters=wanted)
    assert [item.layer for item in run(doubtful, booking)] == ["execution"]


def test_after_a_logged_fault_of_a_read_the_state_is_known_after_that_of_a_write_it_is_not(booking: World) -> None:
    book = ("book", {"sku": "A17", "qty": 1})
    read = record("Stock?", A17, TIMEOUT, A17, OK)
    assert verdicts(run(read, booking)) == [
        ("1.0", "unverifiable", "environment_fault"),
        ("3.0", "equal_bytes", None),
    ]
    write = record("Book.", book, TIMEOUT, A17, OK, book, TIMEOUT)
    assert verdicts(run(write, booking)) == [
        ("1.0", "unverifiable", "environment_fault"),
        ("3.0", "not_run", "state_unknown"),
        ("5.0", "not_run", "state_unknown"),
    ]


def test_after_a_fault_in_replay_of_a_write_the_state_is_unknown(booking: World) -> None:
    booked = {"status": "booked", "sku": "A17", "qty": 1, "stock": 1}
    attempt = record("Book.", ("book", {"sku": "A17", "qty": 1}), booked, A17, OK, parameters={"timeouts": [1]})
    assert verdicts(run(attempt, booking)) == [
        ("1.0", "unverifiable", "fault_in_replay"),
        ("3.0", "not_run", "state_unknown"),
    ]


def test_a_tool_that_reaches_outside_is_never_executed(booking: World) -> None:
    effects = {**booking.spec.effects, "book": "external"}
    outside = booking._replace(spec=booking.spec._replace(effects=effects))
    attempt = record("Book.", [A17, ("book", {"sku": "A17", "qty": 1}), A17], OK, {"status": "booked"}, OK, A17, OK)
    assert verdicts(run(attempt, outside)) == [
        ("1.0", "equal_bytes", None),
        ("1.1", "not_run", "external_effect"),
        ("1.2", "not_run", "state_unknown"),
        ("5.0", "not_run", "state_unknown"),
    ]


def test_a_call_without_an_answer_is_executed_and_only_a_write_makes_the_state_unknown(booking: World) -> None:
    read = record("Stock?", [A17, A17], OK, A17, OK)
    assert verdicts(run(read, booking)) == [
        ("1.0", "equal_bytes", None),
        ("1.1", "unverifiable", "no_recorded_answer"),
        ("3.0", "equal_bytes", None),
    ]
    write = record("Book.", ("book", {"sku": "A17", "qty": 1}), A17, OK)
    assert verdicts(run(write, booking)) == [
        ("1.0", "unverifiable", "no_recorded_answer"),
        ("2.0", "not_run", "state_unknown"),
    ]


def test_a_malformed_call_is_executed_only_where_the_environment_answers_such_calls(
    inventory: World, booking: World
) -> None:
    answer = {"error": "bad_arguments", "at": "", "rule": "json"}
    attempt = record(REQUEST, ("get_stock", '{"sku": "A17"'), answer, A17, OK)
    assert verdicts(run(attempt, booking)) == [("1.0", "equal_bytes", None), ("3.0", "equal_bytes", None)]
    assert verdicts(run(attempt, inventory)) == [("1.0", "not_run", "not_executable"), ("3.0", "equal_bytes", None)]


def test_calls_of_one_message_are_executed_in_their_order(booking: World) -> None:
    attempt = record(
        "Book all A17, then look.",
        [("book", {"sku": "A17", "qty": 2}), A17],
        {"status": "booked", "sku": "A17", "qty": 2, "stock": 0},
        {"sku": "A17", "city": "Hangzhou", "stock": 0},
    )
    assert verdicts(run(attempt, booking)) == [("1.0", "equal_bytes", None), ("1.1", "equal_bytes", None)]


def test_a_start_that_cannot_be_opened_runs_nothing(inventory: World) -> None:
    attempt = record(REQUEST, A17, OK, parameters={"no_such_parameter": 1})
    assert verdicts(run(attempt, inventory)) == [("1.0", "not_run", "start_unavailable")]


def test_a_world_set_up_otherwise_differs_at_once(inventory: World) -> None:
    attempt = record(REQUEST, A17, OK, A17, BAD, parameters={"stock": {"A17": {"city": "Hangzhou", "stock": 9}}})
    first, second = run(attempt, inventory)
    assert (first.result, second.result) == ("failed", "failed")
    assert "initial state not reproducible" in first.detail
    assert "initial state" not in second.detail

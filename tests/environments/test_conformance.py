from pathlib import Path

import pytest

from environments.cassette import cassette_of
from environments.catalogue import UnknownEnvironmentError
from environments.conformance import Conformance, examine
from environments.protocol import Controls, StartError
from environments.trials import Trial
from schemas.trajectory import Answers, Message, Task, Trajectory
from tests.environments.broken_promises import LEFT
from tests.environments.calls import call, task

BROKEN = "tests.environments.broken_promises"


def results(found: Conformance) -> dict[str, str]:
    return {line.test: line.result for line in found.tests}


def failed(world: str) -> dict[str, str]:
    found = examine(f"{BROKEN}:{world}")
    assert found.failed == sum(result == "failed" for result in results(found).values())
    return {line.test: line.detail for line in found.tests if line.result == "failed"}


@pytest.mark.parametrize("name", ["inventory", "booking", f"{BROKEN}:sound"])
def test_a_sound_world_breaks_no_promise_and_may_verify(name: str) -> None:
    found = examine(name)
    assert found.failed == 0, found.tests
    assert found.passed + found.not_tested == len(found.tests)
    assert found.may_verify.answers == "recorded answers by bytes"
    assert found.may_verify.forks == "clean and recovery, from snapshots"


def test_a_read_that_writes_and_a_tape_verify_no_fork(tmp_path: Path) -> None:
    assert examine(f"{BROKEN}:false_read").may_verify.forks == "none until the failed tests pass"
    asked = call("get_stock", sku="A17")
    messages = (Message("assistant", tool_calls=(asked,)), Message("tool", "2", answers=Answers(asked.uid, "id")))
    (tmp_path / "tape.jsonl").write_bytes(cassette_of([Trajectory(messages, task=Task())]))
    found = examine(f"cassette:{tmp_path / 'tape.jsonl'}", trials=[Trial(Task(), (asked,))])
    assert found.may_verify.answers == "none: it gives recorded answers back"
    assert found.may_verify.forks == "none: a new call has no recorded answer"


def test_examining_twice_finds_the_same() -> None:
    assert examine("booking") == examine("booking")


@pytest.mark.parametrize(
    ("world", "test", "seen"),
    [
        ("false_read", "reads", "peek_and_count {} changes the state and is declared read"),
        ("breaks", "answers", "ZeroDivisionError"),
        ("unordered", "other process", "order answers differently in another process"),
        ("drifts", "other process", "the calls end in another state in another process"),
        ("starts_anywhere", "starts", "two processes start the same task in different states"),
        ("OneState", "task checks", "a check in a fork changes the state of its parent"),
        ("timed", "other time", "now answers differently at another time; declare determinism as clocked"),
        ("forgetful", "snapshots", "remember answers differently after it was restored"),
        ("Forgets", "snapshots", "the calls end in another state after it was restored"),
        ("Keeps", "snapshots", "it was taken elsewhere"),
        ("always_breaks", "answers", "LookupError"),
        ("undeclared", "declarations", "undo of 'peek', which is no write"),
        ("undeclared", "declarations", "undo by 'count', which is no tool"),
        ("undeclared", "declarations", "rule 'no_such_rule@1' does not exist"),
        ("ClosesOnce", "closing", "RuntimeError: closed already"),
        ("CountsRefusals", "malformed calls", "an unknown tool: no_such_tool changes the state"),
        ("StaysOpen", "closing", "a call after closing is unknown_tool, not refused"),
        ("StaysOpen", "closing", "a snapshot after closing is no SnapshotError"),
        ("TakesAnything", "starts", "parameters 7 and {'no such parameter': 1} open a world"),
        ("TakesAnything", "malformed calls", "an unknown tool: no_such_tool is ok, not unknown_tool"),
        ("TakesAnything", "declarations", "tool 'peek' has no effect declared"),
    ],
)
def test_a_broken_promise_is_found_and_named(world: str, test: str, seen: str) -> None:
    assert seen in failed(world)[test]


def test_a_check_that_says_something_else_each_time_is_found() -> None:
    trials = [Trial(Task(), (call("peek"),) * number) for number in range(20)]
    found = examine(f"{BROKEN}:tossed", trials=trials)
    assert results(found)["task checks"] == "failed"
    assert found.may_verify.outcomes == "none until the failed tests pass"


def test_what_a_world_declares_that_it_does_not_promise_is_no_failure() -> None:
    timed = examine(f"{BROKEN}:timed_and_says_so")
    assert results(timed)["other time"] == "not_tested"
    assert timed.failed == 0
    assert "at the recorded time" in timed.may_verify.answers
    moving = examine(f"{BROKEN}:unordered_and_says_so")
    assert results(moving)["other process"] == "not_tested"
    assert "of the tools that did not move" in moving.may_verify.answers


def test_a_write_that_was_never_seen_to_change_anything_is_not_tested() -> None:
    found = examine(f"{BROKEN}:idle_write")
    assert results(found)["writes"] == "not_tested"
    assert "peek" in next(line.detail for line in found.tests if line.test == "writes")


def test_external_tools_are_never_executed() -> None:
    found = examine(f"{BROKEN}:outside", trials=[Trial(Task(), (call("send"),))])
    assert results(found)["external tools"] == "not_tested"
    assert not LEFT.exists()


@pytest.mark.parametrize("name", ["empty", "locked"])
def test_where_no_tool_ran_nothing_is_said_to_be_kept(name: str) -> None:
    found = examine(f"{BROKEN}:{name}")
    untested = {test for test, result in results(found).items() if result == "not_tested"}
    assert untested >= {"answers", "reads", "other process", "other time"}
    assert found.may_verify.answers == found.may_verify.forks == "none that was seen: no tool answered"
    assert found.failed == 0


def test_where_every_tool_broke_nothing_was_compared_and_each_fault_is_told_once() -> None:
    found = examine(f"{BROKEN}:always_breaks")
    untested = {test for test, result in results(found).items() if result == "not_tested"}
    assert untested >= {"snapshots", "other process", "other time"}
    assert found.may_verify.forks == "none that was seen: no tool answered"
    said = next(line.detail for line in found.tests if line.test == "answers")
    assert said.count("LookupError") == 1


def test_a_world_without_snapshots_may_only_go_forward() -> None:
    found = examine(f"{BROKEN}:TakesAnything")
    assert results(found)["snapshots"] == "not_tested"
    assert found.may_verify.forks == "recovery only, forward from the present state"


def test_starts_and_calls_of_a_log_are_tried_too() -> None:
    start = task(stock={"X": {"city": "Bern", "stock": 5}}, wanted={"bookings": {"X": 2}})
    found = examine("booking", trials=[Trial(start, (call("book", sku="X", qty=2),)), Trial(start, ())])
    assert results(found)["task checks"] == "passed"
    checked = next(line.detail for line in found.tests if line.test == "task checks")
    assert checked.startswith("1 passed and 3 failed")
    assert found.may_verify.outcomes == "outcomes of tasks, by their own checks"


def test_the_controls_hold_where_the_examination_changes_nothing() -> None:
    found = examine("booking", Controls(clock="wall", time_zone="Asia/Shanghai"))
    assert results(found)["other process"] == "passed"


def test_what_cannot_be_opened_is_not_examined() -> None:
    with pytest.raises(UnknownEnvironmentError):
        examine("shop")
    with pytest.raises(StartError):
        examine("booking", trials=[Trial(task(stok=1), ())])

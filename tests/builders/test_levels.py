"""How far a decision must be confirmed to be trained is asked for, and what its attempt came to is told."""

import json
from typing import Any

import msgspec
import pytest

from curation.errors import UsageError
from schemas.rows import Wanted
from schemas.selection import KINDS, Kind, Selection
from schemas.statements import Power, Result, Verification
from schemas.trajectory import Author
from tests.builders.desk import ENVIRONMENT, Desk
from tests.records import A17, A18, BAD, OK, REQUEST


def fill(desk: Desk) -> dict[str, str]:
    """One right decision at each level, each of another task; the trajectory by its level."""
    found = {level: desk.attempt(REQUEST, A17, OK, task=level, run=level) for level in ("execution", "step", "task")}
    desk.say(Verification(found["step"], "step", "passed", ENVIRONMENT, 1, reads=("state",)))
    desk.say(Verification(found["task"], "task", "passed", ENVIRONMENT, reads=("state",)))
    return found


@pytest.mark.parametrize(
    ("level", "kept"),
    [("execution", {"execution", "step", "task"}), ("step", {"step", "task"}), ("task", {"task"})],
)
def test_decisions_below_the_level_that_is_asked_for_are_refused_with_both_levels(
    level: Wanted, kept: set[str], desk: Desk
) -> None:
    found = fill(desk)
    result = desk.build("first_action", level=level).kinds["first_action"]
    lines = {line["trajectory"]: line for line in desk.lines("first_action")}
    assert {name for name, trajectory in found.items() if lines[trajectory]["kept"]} == kept
    assert result.kept == len(kept)
    for name in found.keys() - kept:
        (difference,) = msgspec.json.decode(lines[found[name]]["record"], type=Selection).detail
        assert (difference.check, difference.left, difference.right) == ("level_below_wanted", name, level)


@pytest.mark.parametrize("kind", KINDS)
def test_the_level_holds_for_every_kind(kind: Kind, desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A18, BAD, A17, OK)
    desk.find(attempt)
    desk.fork(attempt, "clean", 1, A17, OK)
    assert desk.build(kind).kinds[kind].kept == 1
    demanding = desk.build(kind, level="step").kinds[kind]
    assert (demanding.kept, demanding.failed["level_below_wanted"]) == (0, demanding.candidates)


def test_the_level_is_part_of_a_build_and_of_its_manifest(desk: Desk) -> None:
    fill(desk)
    plain = desk.build("first_action")
    asked = desk.build("first_action", level="execution")
    assert json.loads((desk.out / "manifest.json").read_bytes())["options"]["level"] == "execution"
    demanding = desk.build("first_action", level="task")
    assert json.loads((desk.out / "manifest.json").read_bytes())["options"]["level"] == "task"
    assert plain.build == asked.build != demanding.build


def test_an_unknown_level_is_refused(desk: Desk) -> None:
    with pytest.raises(UsageError, match="unknown level 'syntax'; known: execution, step, task"):
        desk.build("first_action", level="syntax")


@pytest.mark.parametrize(
    ("outcome", "told"),
    [("passed", "success"), ("failed", "failure"), ("partial", "partial"), ("unknown", "unknown"), (None, "unknown")],
)
def test_a_row_says_how_its_attempt_ended(outcome: Result | None, told: str, desk: Desk) -> None:
    desk.attempt(REQUEST, A17, OK, outcome=outcome)
    desk.build("first_action")
    assert [json.loads(row)["outcome"] for row in desk.rows("first_action")] == [told]


def test_a_fork_has_no_outcome_and_a_pair_tells_that_of_its_chosen_side(desk: Desk) -> None:
    failed = desk.attempt(REQUEST, A18, BAD, outcome="failed")
    desk.find(failed)
    desk.fork(failed, "clean", 1, ("get_stock", {"sku": "A17", "city": "Hangzhou"}), OK)
    right = desk.attempt(REQUEST, A17, OK, run="b", outcome="passed")
    desk.build("preference")
    told: dict[str, Any] = {row["trajectory_id"]: row["outcome"] for row in map(json.loads, desk.rows("preference"))}
    assert told.pop(right) == "success"
    assert list(told.values()) == [None]


@pytest.mark.parametrize("call", [None, "1.0"])
@pytest.mark.parametrize(("said", "level"), [((), "execution"), (("passed",), "step")])
def test_what_is_measured_of_a_check_at_a_call_changes_no_level(
    call: str | None, said: tuple[Result, ...], level: str, desk: Desk
) -> None:
    attempt = desk.attempt(REQUEST, A17, OK)
    for result in said:
        desk.say(Verification(attempt, "step", result, ENVIRONMENT, 1, call, reads=("state",)))
    for check in ("no_error", "step", "task"):
        measured = Power(check, "get_stock", 3, 2)
        desk.say(Verification(attempt, "step", "unknown", Author("rule", f"placebo.{check}"), 1, "1.0", power=measured))
    desk.build("first_action")
    (row,) = map(json.loads, desk.rows("first_action"))
    assert (row["level"], row["placebo_rate"]) == (level, None)

"""Splits that are held out give no rows, whatever they are called, and are counted."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from builders.held_out import text_digest
from schemas.canonical import digest, encode, raw
from schemas.rows import HELD_OUT
from schemas.statements import Annotation
from schemas.trajectory import Author, Message, Part, Trajectory
from tests.builders.desk import PERSON, SIDE_FILE, Desk
from tests.records import A17, OK, REQUEST, record


def fill(desk: Desk, *splits: str | None) -> None:
    """One attempt a split, each of another task with a text of its own."""
    for number, split in enumerate(splits):
        attempt = desk.attempt(f"{number}. {REQUEST}", A17, OK, run=str(number), task=f"t{number}")
        if split is not None:
            desk.annotate(attempt, "split", split)


@pytest.mark.parametrize("split", [*HELD_OUT, "Validation", " TEST ", "dev\n", "\u00a0eval"])
def test_test_and_validation_splits_are_held_out_unless_told_otherwise(split: str, desk: Desk) -> None:
    fill(desk, split, "train", None)
    result = desk.build("first_action")
    assert result.kinds["first_action"].refused == {"test_split": 1}
    assert result.kinds["first_action"].kept == 2


@pytest.mark.parametrize(("name", "held"), [("fold 3", 2), (" FOLD 3", 2), ("train", 1), ("other", 0)])
def test_the_splits_to_hold_out_are_named(name: str, held: int, desk: Desk) -> None:
    fill(desk, "Fold 3", "fold 3 ", "test", "train")
    result = desk.build("first_action", held_out=[name])
    assert result.kinds["first_action"].refused.get("test_split", 0) == held == result.held_out_attempts
    assert result.kinds["first_action"].kept == 4 - held


def test_a_build_and_its_manifest_count_what_is_held_out(desk: Desk) -> None:
    """A task is held out where all its attempts are: by the split or the group of one of them."""
    fill(desk, "dev", "train", None)
    for run, task in (("x", "t0"), ("y", "t1"), ("z", "alone")):
        attempt = desk.attempt(f"{run}. {REQUEST}", A17, OK, run=run, task=task)
        if run != "x":
            desk.annotate(attempt, "group", "shelf 7")
    tested = desk.attempt(REQUEST, A17, OK, run="tested", task="tested")
    desk.annotate(tested, "group", "shelf 7")
    desk.annotate(tested, "split", "test")
    result = desk.build("first_action")
    assert (result.held_out_attempts, result.held_out_tasks) == (6, 4)
    assert result.held_out_attempts == result.kinds["first_action"].refused["test_split"]
    assert (result.tasks, result.tasks_kept) == (5, 1)
    manifest = json.loads((desk.out / "manifest.json").read_bytes())
    assert (manifest["held_out_attempts"], manifest["held_out_tasks"]) == (6, 4)
    assert manifest["options"]["held_out"] == sorted(HELD_OUT)


@pytest.mark.parametrize("author", [SIDE_FILE, PERSON, Author("log")])
def test_whoever_says_a_held_out_split_is_believed_until_he_takes_it_back(author: Author, desk: Desk) -> None:
    """Even where a better statement, or one of the same rank, says another split."""
    attempt = desk.attempt(REQUEST, A17, OK)
    said = Annotation(attempt, "split", "test", author)
    others = (SIDE_FILE, PERSON, Author("log"), replace(author, name="another"))
    desk.say(said, *(Annotation(attempt, "split", "train", other) for other in others if other != author))
    result = desk.build("first_action")
    assert (result.held_out_attempts, result.kinds["first_action"].refused) == (1, {"test_split": 1})
    desk.say(Annotation(attempt, "split", "train", author, supersedes=(digest(encode(said)),)))
    result = desk.build("first_action")
    assert (result.held_out_attempts, result.kinds["first_action"].kept) == (0, 1)


def test_what_is_held_out_is_part_of_a_build(desk: Desk) -> None:
    fill(desk, "train")
    assert desk.build("first_action").build == desk.build("first_action", held_out=HELD_OUT[::-1]).build
    assert desk.build("first_action").build != desk.build("first_action", held_out=["test"]).build


def test_a_task_under_two_ids_is_held_out_where_one_of_them_is_and_both_are_named(desk: Desk) -> None:
    eval_task = desk.attempt(REQUEST, A17, OK, run="1", task="t9")
    train = desk.attempt(f"  {REQUEST.upper()}\n", A17, OK, run="2", task="t1")
    again = desk.attempt(f"And now: {REQUEST}", A17, OK, run="3", task="t1")
    other = desk.attempt(f"Please: {REQUEST}", A17, OK, run="4", task="t2")
    desk.annotate(eval_task, "split", "eval")
    for attempt in (train, again, other):
        desk.annotate(attempt, "split", "train")
    result = desk.build("first_action")
    assert (result.held_out_attempts, result.held_out_tasks) == (3, 2)
    assert [json.loads(row)["trajectory_id"] for row in desk.rows("first_action")] == [other]
    sides = result.both_sides
    assert sides is not None
    assert (sides.same_text, sides.in_both) == (1, 1)
    (named,) = sides.named
    assert (named.tasks, named.splits) == (("desk/t1", "desk/t9"), ("eval", "train"))
    assert named.text == text_digest(encode(desk.records[eval_task]))
    for attempt in (train, again):
        (line,) = desk.lines("first_action", attempt)
        (detail,) = [each for each in json.loads(line["record"])["detail"] if each["check"] == "test_split"]
        assert (detail["left"], detail["right"]) == ("text", f"desk/t9, text {named.text[:12]}")
    manifest = json.loads((desk.out / "manifest.json").read_bytes())
    assert manifest["both_sides"]["named"] == [
        {"text": named.text, "tasks": ["desk/t1", "desk/t9"], "splits": ["eval", "train"]}
    ]


def test_groups_on_both_sides_of_a_split_are_counted_and_give_no_row(desk: Desk) -> None:
    """Two templates, tasks split at random: what hangs on a held-out task by group and text is held out as a whole."""
    kept = []
    for number, (template, split) in enumerate(
        [("stock", "train"), ("stock", "test"), ("book", "train"), ("book", "train"), ("count", "test")]
    ):
        attempt = desk.attempt(f"{template} {number} of A17", A17, OK, run=str(number), task=f"t{number}")
        desk.annotate(attempt, "group", template)
        desk.annotate(attempt, "split", split)
        kept += [attempt] if template == "book" else []
    sides = desk.build("first_action").both_sides
    assert sides is not None
    assert (sides.groups, sides.groups_held_out, sides.in_both, sides.same_text) == (3, 2, 1, 0)
    assert {json.loads(row)["trajectory_id"] for row in desk.rows("first_action")} == set(kept)
    twin = desk.attempt("STOCK 0 of a17", A17, OK, run="x", task="elsewhere")
    kin = desk.attempt("something else of A17", A17, OK, run="y", task="kin")
    for attempt in (twin, kin):
        desk.annotate(attempt, "group", "far")
    result = desk.build("first_action")
    assert {json.loads(row)["trajectory_id"] for row in desk.rows("first_action")} == set(kept)
    assert result.held_out_attempts == 5
    assert result.held_out_attempts == result.kinds["first_action"].refused["test_split"]


def test_without_a_held_out_split_one_text_may_have_many_ids(desk: Desk) -> None:
    for number in range(3):
        desk.annotate(desk.attempt(REQUEST, A17, OK, task=f"t{number}"), "split", "train")
    result = desk.build("first_action")
    assert (result.both_sides, result.held_out_attempts, result.kinds["first_action"].kept) == (None, 0, 3)


def text_of(*turns: Any, parameters: Any = None) -> str | None:
    made = record(*turns)
    return text_digest(encode(made), None if parameters is None else bytes(raw(parameters)).decode())


def test_the_text_of_a_task_is_what_is_asked_before_the_first_call() -> None:
    system = Message("system", "Be brief.")
    user = Message("user", REQUEST)
    same = [
        text_of(REQUEST, A17, OK),
        text_of(REQUEST),
        text_of(REQUEST, "Which one?", A17, OK, Message("user", "Thanks.")),
        text_of(Message("user", (Part("text", REQUEST),)), A17, OK),
        text_of(f"\t{REQUEST}  ".title(), A17, OK),
    ]
    others = [
        text_of("Stock of B17?", A17, OK),
        text_of(system, user, A17, OK),
        text_of(REQUEST, "Which one?", Message("user", "A18."), A17, OK),
        text_of(REQUEST, A17, OK, parameters={"stock": {"A17": 2}}),
        text_of(Message("user", (Part("text", REQUEST), Part("image", sha256="a" * 64))), A17, OK),
    ]
    assert len(set(same)) == 1
    assert len({*same, *others}) == 1 + len(others)
    assert text_of(system, Message("assistant", "Hello!")) is None
    assert text_of("", A17, OK) is None
    assert text_digest(encode(Trajectory(()))) is None

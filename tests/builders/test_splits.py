"""Splits that are held out give no rows, whatever they are called, and are counted."""

import json

import pytest
from msgspec.structs import replace

from schemas.canonical import digest, encode
from schemas.rows import HELD_OUT
from schemas.statements import Annotation
from schemas.trajectory import Author
from tests.builders.desk import PERSON, SIDE_FILE, Desk
from tests.records import A17, OK, REQUEST


def fill(desk: Desk, *splits: str | None) -> None:
    """One attempt a split, each of another task."""
    for number, split in enumerate(splits):
        attempt = desk.attempt(REQUEST, A17, OK, run=str(number), task=f"t{number}")
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
    """A task is held out where all its attempts are: by their splits, or by the split of one of them."""
    fill(desk, "dev", "train", None)
    for run, task in (("x", "t0"), ("y", "t1"), ("z", "alone")):
        attempt = desk.attempt(REQUEST, A17, OK, run=run, task=task)
        if run != "x":
            desk.annotate(attempt, "group", "shelf 7")
    tested = desk.attempt(REQUEST, A17, OK, run="tested", task="tested")
    desk.annotate(tested, "group", "shelf 7")
    desk.annotate(tested, "split", "test")
    result = desk.build("first_action")
    assert (result.held_out_attempts, result.held_out_tasks) == (5, 3)
    assert result.held_out_attempts == result.kinds["first_action"].refused["test_split"]
    assert (result.tasks, result.tasks_kept) == (5, 2)
    manifest = json.loads((desk.out / "manifest.json").read_bytes())
    assert (manifest["held_out_attempts"], manifest["held_out_tasks"]) == (5, 3)
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

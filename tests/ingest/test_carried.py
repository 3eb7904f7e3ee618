"""What people and side files said of an attempt holds of the record that revises it."""

from pathlib import Path
from typing import Any

import pytest

from curation.annotate import annotate
from curation.store import Store
from curation.store.supersede import superseding
from schemas.statements import Annotation, Evidence, Finding, Statement, Verification
from schemas.trajectory import Author
from tests.ingest.logs import attempts, import_file, new_store, run, said, write

LATE = {
    "key": "a",
    "outcome": "failure",
    "split": "test",
    "strata": {"level": "easy"},
    "stop": "timeout",
    "environment": "inventory",
    "budget": {"steps": 9},
}
FACTS = ("outcome", "outcome_by", "split", "strata", "stop", "environment")


def annotated(folder: Path) -> tuple[Store, Path]:
    """A store with one attempt that a side file tells of, and its log."""
    store, log = new_store(folder), write(folder / "log.jsonl", [run("a")])
    import_file(store, log)
    annotate(store, said(write(folder / "late.jsonl", [LATE])))
    return store, log


def side(folder: Path, name: str, **keys: Any) -> Path:
    """A side file that says these of the attempt."""
    return write(folder / name, [{"key": "a", **keys}])


def told(store: Store) -> dict[str, Any]:
    """What is known of the one attempt."""
    (row,) = attempts(store)
    return {name: row[name] for name in FACTS} | {"budget": _budget(store, row["trajectory_id"])}


def _budget(store: Store, record: str) -> list[str]:
    query = "SELECT value FROM effective_annotations WHERE trajectory = ? AND field = 'budget.steps'"
    values: list[str] = store.sql(query, [record])["value"].to_pylist()
    return values


def say(store: Store, *statements: Statement) -> None:
    """Write statements so that they hold."""
    with store.batch() as batch:
        for statement in superseding(store, statements):
            batch.add_statement(statement)
        store.write(batch)


@pytest.mark.parametrize("other_bytes", [False, True])
def test_a_revision_loses_nothing_that_a_side_file_said(tmp_path: Path, other_bytes: bool) -> None:
    store, log = annotated(tmp_path)
    (before,), known = attempts(store), told(store)
    if other_bytes:
        log = write(tmp_path / "better.jsonl", [run("a", "A18")])
        result = import_file(store, log, revise=True)
    else:
        result = import_file(store, log, side=side(tmp_path, "task.jsonl", task="t1"), revise=True)
    assert (result.accepted, result.carried, result.not_carried) == (1, 6, {})
    (after,) = attempts(store)
    assert after["trajectory_id"] != before["trajectory_id"]
    assert told(store) == known


def test_what_the_import_says_anew_takes_the_place_of_what_was_said(tmp_path: Path) -> None:
    store, log = annotated(tmp_path)
    known = told(store)
    new = side(tmp_path, "new.jsonl", task="t1", split="train", outcome="success")
    for carried in (4, 0):
        assert import_file(store, log, side=new, revise=True).carried == carried
        assert told(store) == known | {"split": "train", "outcome": "success"}


def test_going_back_and_forth_keeps_what_was_said_last(tmp_path: Path) -> None:
    store, log = annotated(tmp_path)
    known = told(store)
    other = write(tmp_path / "other.jsonl", [run("a", "A18")])
    import_file(store, other, revise=True)
    annotate(store, said(side(tmp_path, "later.jsonl", split="train")))
    last = known | {"split": "train"}
    for turn in (log, other, log):
        assert import_file(store, turn, revise=True).carried == 6
        assert told(store) == last
    import_file(store, other, side=side(tmp_path, "last.jsonl", split="dev"), revise=True)
    assert told(store) == known | {"split": "dev"}
    import_file(store, log, revise=True)
    assert told(store) == known | {"split": "dev"}


def test_what_a_person_said_is_carried_unless_it_is_about_the_old_bytes(tmp_path: Path) -> None:
    store, log = annotated(tmp_path)
    record, person = attempts(store)[0]["trajectory_id"], Author("human", "ann")
    world = Author("environment", "inventory")
    say(
        store,
        Annotation(record, "group", "g", person),
        Annotation(record, "split", "from_a_rule", Author("rule", "r", "1")),
        Verification(record, "task", "partial", person, evidence=(Evidence("call", 1, "1.0"),)),
        Verification(record, "step", "failed", person, message=1),
        Finding(record, 1, "argument", person),
        Verification(record, "task", "passed", world),
        Verification(record, "execution", "passed", world, message=1, call="1.0"),
    )
    result = import_file(store, log, side=side(tmp_path, "task.jsonl", task="t1"), revise=True)
    assert (result.carried, result.not_carried) == (8, {"about_message": 2, "executed": 2})
    (row,) = attempts(store)
    assert (row["group"], row["outcome"], row["outcome_by"], row["split"]) == ("g", "partial", "human", "test")
    heir = row["trajectory_id"]
    assert heir != record
    assert store.sql("SELECT id FROM findings WHERE trajectory = ?", [heir]).num_rows == 0
    rows = store.sql("SELECT layer, author_kind, record FROM verifications WHERE trajectory = ?", [heir]).to_pylist()
    assert sorted((row["layer"], row["author_kind"]) for row in rows) == [("task", "human"), ("task", "side_file")]
    assert not any("evidence" in row["record"] for row in rows), "it points into the old record"
    assert store.sql("SELECT id FROM verifications WHERE trajectory = ?", [record]).num_rows == 5


def test_facts_follow_the_line_where_a_side_file_renames_attempts(tmp_path: Path) -> None:
    store, log = new_store(tmp_path), write(tmp_path / "log.jsonl", [run(None, f"A{number}") for number in range(3)])

    def names(first: int) -> list[dict[str, Any]]:
        return [{"file": "log.jsonl", "line": n + 1, "task": "t", "attempt": first + n} for n in range(3)]

    lines = [line | {"split": f"s{line['line']}"} for line in names(0)]
    import_file(store, log, side=write(tmp_path / "zero.jsonl", lines))
    result = import_file(store, log, side=write(tmp_path / "one.jsonl", names(1)), revise=True)
    assert (result.accepted, result.carried) == (3, 3)
    assert {row["attempt"]: row["split"] for row in attempts(store)} == {1: "s1", 2: "s2", 3: "s3"}

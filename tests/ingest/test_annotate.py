"""A side file over attempts that are in the store."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.annotate import AnnotateResult, annotate
from curation.doctor import examine
from curation.errors import UsageError
from curation.show import TrajectoryView, show
from curation.store import Store
from curation.store.lookup import resolve
from tests.ingest.logs import attempts, import_file, import_lines, new_store, records, run, said, write


def say(store: Store, folder: Path, lines: Iterable[Any], *key: str, dry_run: bool = False) -> AnnotateResult:
    """Annotate by these lines."""
    return annotate(store, said(write(folder / "side.jsonl", lines)), *key, dry_run=dry_run)


def splits(store: Store) -> dict[tuple[str, int | None], str | None]:
    """The split of each attempt, by run and index."""
    return {(row["run"], row["attempt"]): row["split"] for row in attempts(store)}


def test_lines_are_matched_by_key_place_and_pointer(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a", meta={"row/1": [7]}), run("b"), run("c")], "logs/one.jsonl")
    result = say(store, tmp_path, [{"key": "a", "split": "s1"}, {"file": "one.jsonl", "line": 2, "split": "s2"}])
    assert (result.matched, result.unmatched, result.attempts_without_line, result.written) == (2, 0, 1, 2)
    assert splits(store) == {("a", None): "s1", ("b", None): "s2", ("c", None): None}
    say(store, tmp_path, [{"file": "logs/one.jsonl", "line": 3, "split": "s3"}])
    say(store, tmp_path, [{"key": 7, "split": "s4"}], "/meta/row~11/0")
    assert splits(store) == {("a", None): "s4", ("b", None): "s2", ("c", None): "s3"}


def test_lines_about_nothing_are_named_and_a_bounded_number_of_them(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a")])
    lines = [{"key": f"x{n}"} for n in range(50)] + [{"file": "other.jsonl", "line": 1}, {"key": "a", "split": "s"}]
    result = say(store, tmp_path, lines)
    assert (result.lines, result.matched, result.unmatched) == (52, 1, 51)
    assert len(result.unmatched_lines) < 51
    assert (result.unmatched_lines[0].line, result.unmatched_lines[0].about) == (1, "key 'x0'")
    assert splits(store) == {("a", None): "s"}


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a")])
    result = say(store, tmp_path, [{"key": "a", "split": "s", "outcome": True}], dry_run=True)
    assert (result.matched, result.statements, result.written) == (1, 2, 0)
    assert splits(Store.open(store.uri)) == {("a", None): None}


def test_saying_it_again_writes_nothing(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a")])
    line = {"key": "a", "split": "s", "outcome": "partial", "score": 0.5, "strata": {"n": 3}, "budget": {"steps": 9}}
    assert say(store, tmp_path, [line]).written == 4
    before = attempts(store)
    assert say(store, tmp_path, [line]).written == 0
    assert attempts(store) == before


def test_keys_of_identity_tell_tries_apart(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    log = write(tmp_path / "log.jsonl", [run("a"), run("b", attempt=2, task="t")])
    import_file(store, log)
    import_file(store, log, run_name="again")
    before = records(store)
    with pytest.raises(UsageError, match=r"side.jsonl:1: key 'a' is 2 attempts"):
        say(store, tmp_path, [{"key": "a", "split": "s"}])
    say(store, tmp_path, [{"key": "a", "run": "a", "split": "s1"}, {"key": "a", "run": "again/a", "split": "s2"}])
    assert splits(store) == {("a", None): "s1", ("again/a", None): "s2", ("b", 2): None, ("again/b", 2): None}
    assert records(store) == before


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([{"key": "a", "task": "other"}], r"side.jsonl:1: .*task None, not 'other'.*--revise.*--manifest"),
        ([{"key": "a", "run": "x"}], r"run 'a', not 'x'"),
        ([{"key": "a", "parameters": {"stock": 1}}], "parameters"),
        ([{"key": "b"}, {"key": "a"}, {"file": "log.jsonl", "line": 1}], r"side.jsonl:3: line 2 is about the same"),
        ([{"split": "s"}], "key, or its file and line"),
        ([{"key": "a", "line": 1}], "key, or its file and line"),
        ([{"key": "a", "splitt": "s"}], r"side.jsonl:1: .*splitt"),
        ([b"{"], r"side.jsonl:1"),
        ([{"key": "a", "stop": "sometime"}], r"side.jsonl:1"),
    ],
)
def test_a_file_that_is_misread_is_refused_whole(tmp_path: Path, lines: list[Any], words: str) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a"), run("b")])
    with pytest.raises(UsageError, match=words):
        say(store, tmp_path, [*lines, {"key": "b", "split": "s"}])
    assert splits(Store.open(store.uri)) == {("a", None): None, ("b", None): None}


def test_a_pointer_that_is_none_is_refused(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a")])
    with pytest.raises(UsageError, match="'id' is no JSON pointer"):
        say(store, tmp_path, [{"key": "a"}], "id")


def test_only_live_records_are_annotated(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a")], "one.jsonl")
    import_lines(store, tmp_path, [run("a", "A18")], "two.jsonl", revise=True)
    result = say(store, tmp_path, [{"key": "a", "split": "s"}, {"file": "one.jsonl", "line": 1, "split": "old"}])
    assert (result.matched, result.unmatched) == (1, 1)
    assert splits(store) == {("a", None): "s"}


def test_what_a_log_does_not_know_is_known_from_a_side_file(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a", score=0.25), run("b", outcome="partial", score=0.25)])
    assert examine(store).facts["outcome"].missing == 1
    result = say(store, tmp_path, [{"key": "a", "outcome": "failure"}])
    assert (result.written, result.overruled) == (1, 0)
    assert {row["run"]: (row["outcome"], row["outcome_by"]) for row in attempts(store)} == {
        "a": ("failure", "side_file"),
        "b": ("partial", "log"),
    }
    assert examine(store).facts["outcome"].missing == 0


def test_what_a_log_decides_overrules_a_side_file_which_is_counted_and_shown(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a", outcome=True, split="train"), run("b", outcome=True)])
    lines = [{"key": "a", "outcome": "failure", "split": "test"}, {"key": "b", "outcome": "success"}]
    dry = say(store, tmp_path, lines, dry_run=True)
    assert (dry.statements, dry.written, dry.overruled) == (3, 0, 1)
    for written in (3, 0):
        result = say(store, tmp_path, lines)
        assert (result.written, result.overruled) == (written, 1)
    rows = {row["run"]: row for row in attempts(store)}
    assert (rows["a"]["outcome"], rows["a"]["split"]) == ("success", "test")
    views = {name: show(store, resolve(store, row["trajectory_id"])) for name, row in rows.items()}
    assert isinstance(views["a"], TrajectoryView)
    assert isinstance(views["b"], TrajectoryView)
    assert [msgspec.structs.astuple(line) for line in views["a"].overruled] == [
        ("split", "train", "log", "test", "side_file"),
        ("outcome", "failure", "side_file", "success", "log"),
    ]
    assert views["b"].overruled == []
    say(store, tmp_path, [{"key": "a", "outcome": "unknown"}])
    doubted = show(store, resolve(store, rows["a"]["trajectory_id"]))
    assert isinstance(doubted, TrajectoryView)
    assert doubted.overruled[-1].says == "unknown"

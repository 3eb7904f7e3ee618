"""``curate build`` hands its options on."""

import json
from pathlib import Path

from tests.cli.test_store_verbs import curate, refused, result
from tests.eight import lines
from tests.ingest.logs import write


def test_level_and_hold_out_are_options_of_the_verb(tmp_path: Path) -> None:
    texts = [json.loads(line) for line in lines().splitlines()]
    for number, chat in enumerate(texts):
        chat["messages"][0]["content"] += f" ({number})"
    write(tmp_path / "eight.jsonl", texts)
    side = '{"key": "first_ok", "split": "Validation"}\n{"key": "recovered", "split": "fold 3"}\n'
    (tmp_path / "side.jsonl").write_text(side, encoding="utf-8")
    result(tmp_path, "init")
    result(tmp_path, "import", "eight.jsonl", "--manifest", "side.jsonl")
    result(tmp_path, "replay", "--environment", "inventory", code=1)
    plain = result(tmp_path, "build", "first_action", "--out", "rows")
    assert (plain["held_out_attempts"], plain["held_out_tasks"]) == (1, 1)
    assert plain["kinds"]["first_action"]["failed"]["test_split"] == 1
    named = ("--hold-out", "FOLD 3", "--hold-out", "fold 4")
    other = result(tmp_path, "build", "first_action", "--out", "rows", *named)
    assert other["held_out_attempts"] == 1
    assert other["kinds"]["first_action"]["kept"] == plain["kinds"]["first_action"]["kept"] + 1
    demanding = result(tmp_path, "build", "first_action", "--out", "rows", "--level", "task")
    counted = demanding["kinds"]["first_action"]
    assert (counted["kept"], counted["failed"]["level_below_wanted"]) == (0, counted["candidates"])


def test_a_text_on_both_sides_of_a_split_is_said_and_found_wrong(tmp_path: Path) -> None:
    (tmp_path / "eight.jsonl").write_bytes(lines())
    side = [{"key": "first_ok", "task": "t1", "split": "train"}, {"key": "recovered", "task": "t9", "split": "eval"}]
    write(tmp_path / "side.jsonl", side)
    result(tmp_path, "init")
    result(tmp_path, "import", "eight.jsonl", "--manifest", "side.jsonl")
    result(tmp_path, "replay", "--environment", "inventory", code=1)
    built = result(tmp_path, "build", "first_action", "--out", "rows", code=1)
    (named,) = built["both_sides"]["named"]
    assert {"t1", "t9"} < set(named["tasks"])
    assert (named["splits"], built["both_sides"]["in_both"]) == (["eval", "train"], 1)
    assert built["kinds"]["first_action"]["kept"] == 0
    printed = curate(tmp_path, "build", "first_action", "--out", "rows")
    assert printed.returncode == 1
    assert "t9" in printed.stdout
    assert "both_sides" in printed.stdout


def test_a_level_that_is_none_is_refused(tmp_path: Path) -> None:
    result(tmp_path, "init")
    done = curate(tmp_path, "build", "--out", "rows", "--level", "syntax")
    assert done.returncode == 2
    assert "'syntax'" in done.stderr
    assert "no/such" in refused(tmp_path, "build", "--out", "rows", "--store", "no/such")

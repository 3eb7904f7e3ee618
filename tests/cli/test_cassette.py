"""``curate environment cassette``: what is on the tape, what stays as it is, and what the tape can say."""

import json
from pathlib import Path

import pytest

from tests.cli.test_store_verbs import refused, result
from tests.eight import look_up, say
from tests.ingest.logs import run, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a store of three runs: two are alike in their first call, one has a call without an answer."""
    longer = run("b", namespace="desk", task="stock")
    longer["messages"][-1:] = [*look_up("c2", "B17", '{"sku":"B17","stock":5}'), say("Done.")]
    cut = run("c", "A18", namespace="desk", task="other")
    cut["messages"][-1:] = look_up("c2", "B17", "")[:1]
    write(tmp_path / "log.jsonl", [run("a", namespace="desk", task="stock"), longer, cut])
    result(tmp_path, "init")
    assert result(tmp_path, "import", "log.jsonl")["accepted"] == 3
    return tmp_path


def test_all_attempts_are_recorded_each_answer_once(folder: Path) -> None:
    made = result(folder, "environment", "cassette", "--out", "tape.jsonl")
    size = (folder / "tape.jsonl").stat().st_size
    assert made == {
        "environment": "cassette:tape.jsonl",
        "trajectories": 3,
        "calls": 5,
        "recorded": 4,
        "lines": 3,
        "ambiguous": 0,
        "bytes": size,
    }
    assert len((folder / "tape.jsonl").read_bytes().splitlines()) == 3
    assert sorted(path.name for path in folder.iterdir()) == [".curation", "log.jsonl", "tape.jsonl"]


def test_the_ones_named_are_recorded_over_an_older_tape(folder: Path) -> None:
    result(folder, "environment", "cassette", "--out", "tape.jsonl")
    made = result(folder, "environment", "cassette", "b", "b", "--out", "tape.jsonl")
    assert (made["trajectories"], made["calls"], made["lines"]) == (1, 2, 2)
    answers = [json.loads(line)["answer"] for line in (folder / "tape.jsonl").read_bytes().splitlines()]
    assert answers[1] == '{"sku":"B17","stock":5}'


def test_answers_that_contradict_each_other_are_counted(folder: Path) -> None:
    other = run("d", namespace="desk", task="stock")
    other["messages"][2]["content"] = '{"sku":"A17","stock":7}'
    write(folder / "more.jsonl", [other])
    result(folder, "import", "more.jsonl")
    made = result(folder, "environment", "cassette", "--out", "tape.jsonl")
    assert (made["lines"], made["ambiguous"]) == (4, 1)


@pytest.mark.parametrize("content", ["notes\n", '{"id":"a","messages":[]}\n'])
def test_a_file_that_is_no_tape_stays_as_it_is(folder: Path, content: str) -> None:
    (folder / "log.txt").write_text(content)
    said = refused(folder, "environment", "cassette", "--out", "log.txt")
    assert "log.txt exists, is no cassette, and stays as it is" in said
    assert (folder / "log.txt").read_text() == content
    assert "there is no folder 'no/such'" in refused(folder, "environment", "cassette", "--out", "no/such/tape.jsonl")


def test_nothing_to_record_and_an_unknown_id_are_refused(tmp_path: Path) -> None:
    result(tmp_path, "init")
    assert "has an answer to record" in refused(tmp_path, "environment", "cassette", "--out", "tape.jsonl")
    assert "'nobody'" in refused(tmp_path, "environment", "cassette", "nobody", "--out", "tape.jsonl")
    assert not (tmp_path / "tape.jsonl").exists()


def test_the_tape_confirms_no_answer_and_starts_no_fork(folder: Path) -> None:
    result(folder, "environment", "cassette", "--out", "tape.jsonl")
    found = result(folder, "replay", "--environment", "cassette:tape.jsonl")
    assert (found["calls"], found["unverifiable"]) == (5, 5)
    assert found["reasons"] == {"recorded_only": 4, "no_recorded_answer": 1}
    proposal = {
        "key": "a",
        "message": 1,
        "calls": [{"name": "get_stock", "arguments": {"sku": "B17"}}],
        "author": "Ada",
    }
    write(folder / "proposals.jsonl", [proposal])
    repaired = result(folder, "repair", "--environment", "cassette:tape.jsonl", "--proposals", "proposals.jsonl")
    assert (repaired["proposed"], repaired["executed"], repaired["refused"]) == (1, 0, {"recorded_only": 2})


def test_in_a_store_whose_answers_are_settled_a_replay_names_who_settled_them(folder: Path) -> None:
    result(folder, "environment", "cassette", "--out", "tape.jsonl")
    first = result(folder, "replay", "--environment", "inventory", code=1)
    told = first["calls"] - first["unverifiable"] - first["not_run"]
    assert (first["different"], first["settled_by"]) == (1, {})
    found = result(folder, "replay", "--environment", "cassette:tape.jsonl")
    assert found["settled_by"] == {"inventory": told}
    assert found["calls"] == first["calls"] - told

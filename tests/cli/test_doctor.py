"""``curate doctor`` and ``curate formats`` as a user runs them."""

from pathlib import Path
from typing import Any

import pytest

from curation.importers.formats import FILLS, IMPORTERS
from tests.cli.test_store_verbs import curate, result
from tests.eight import lines
from tests.ingest.logs import run, write

ROWS = ("first_action", "recovery", "preference")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store with four attempts: all that a log can say, nothing but calls, no tools, no call."""
    assert result(tmp_path, "init") == {"store": ".curation"}
    said: dict[str, Any] = {"task": "stock", "outcome": True, "strata": {"shelf": "7"}, "budget": {"steps": 5}}
    bare = run("c")
    del bare["tools"]
    talk = {"id": "d", "messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]}
    full = run("a", **said, environment="inventory", stop="completed")
    write(tmp_path / "log.jsonl", [full, run("b"), bare, talk])
    result(tmp_path, "import", "log.jsonl")
    return tmp_path


def counts(facts: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {name: (fact["known"], fact["missing"]) for name, fact in facts.items()}


def test_what_is_missing_is_counted_with_what_it_keeps_from_and_the_command(folder: Path) -> None:
    found = result(folder, "doctor")
    assert found["attempts"] == 4
    assert counts(found["facts"]) == {
        "calls": (3, 1),
        "tools": (2, 1),
        "diagnosis": (0, 3),
        "replay": (0, 3),
        "confirmed": (0, 0),
        "task": (1, 3),
        "budget": (1, 3),
        "outcome": (1, 3),
        "strata": (1, 3),
        "environment": (1, 3),
        "stop": (1, 3),
    }
    assert found["not_kept_from"] == dict.fromkeys((*ROWS, "preference_of_two"), 0) | {"selection_bias": 1}
    assert found["facts"]["replay"] == {
        "known": 0,
        "missing": 3,
        "keeps_from": [*ROWS, "preference_of_two"],
        "alone": 0,
        "why": [],
        "command": "curate replay --environment NAME",
    }
    assert found["facts"]["budget"]["keeps_from"] == ["preference_of_two"]
    assert (found["facts"]["outcome"]["alone"], found["facts"]["calls"]["alone"]) == (3, 1)
    shown = curate(folder, "doctor")
    assert shown.returncode == 0
    assert "curate diagnose" in shown.stdout


def test_the_commands_it_names_bring_what_is_missing(folder: Path) -> None:
    result(folder, "diagnose")
    found = result(folder, "doctor")["facts"]
    assert counts(found)["diagnosis"] == (3, 0)
    assert (found["diagnosis"]["command"], found["replay"]["alone"]) == ("", 2)
    curate(folder, "replay", "--environment", "inventory")
    write(folder / "side.jsonl", [{"key": "b", "outcome": False, "stop": "max_steps"}])
    result(folder, "annotate", "side.jsonl")
    found = result(folder, "doctor")
    facts = counts(found["facts"])
    assert (facts["outcome"], facts["stop"], facts["replay"]) == ((2, 2), (2, 2), (3, 0))
    assert found["not_kept_from"] == dict.fromkeys(ROWS, 2) | {"preference_of_two": 1, "selection_bias": 2}
    assert found["facts"]["tools"]["alone"] == 1


def test_what_was_replayed_and_not_confirmed_is_not_sent_to_replay_again(tmp_path: Path) -> None:
    result(tmp_path, "init")
    (tmp_path / "eight.jsonl").write_bytes(lines())
    result(tmp_path, "import", "eight.jsonl")
    result(tmp_path, "diagnose")
    before = result(tmp_path, "doctor")
    assert counts(before["facts"])["replay"] == (0, before["facts"]["calls"]["known"])
    done = result(tmp_path, "replay", "--environment", "inventory", code=1)
    after = result(tmp_path, "doctor")
    facts = after["facts"]
    assert (facts["replay"]["missing"], facts["replay"]["command"], facts["confirmed"]["command"]) == (0, "", "")
    assert facts["confirmed"]["why"] == [
        f"{done['different']} contradicted",
        f"{done['unverifiable']} cannot be compared",
    ]
    assert facts["confirmed"]["missing"] == done["different"] + done["unverifiable"]
    assert facts["confirmed"]["known"] + facts["confirmed"]["missing"] == facts["replay"]["known"]
    shown = curate(tmp_path, "doctor").stdout
    assert "curate replay" not in shown
    assert "refuse them all" in " ".join(shown.split())


def test_an_empty_store_lacks_nothing(tmp_path: Path) -> None:
    result(tmp_path, "init")
    found = result(tmp_path, "doctor")
    assert (found["attempts"], {fact["missing"] for fact in found["facts"].values()}) == (0, {0})


def test_formats_are_shown_with_what_they_tell(tmp_path: Path) -> None:
    found = result(tmp_path, "formats")
    assert list(found["formats"]) == list(IMPORTERS)
    for name, facts in found["formats"].items():
        rules = [rule.partition(":")[0] for rule in facts["rules"]]
        told = [*facts["recorded"], *rules, *facts["side_file"], *facts["unknown"]]
        assert sorted(told) == sorted(FILLS[name]) == sorted(found["facts"])
    shown = curate(tmp_path, "formats")
    assert shown.returncode == 0
    assert [name for name in IMPORTERS if name not in shown.stdout] == []

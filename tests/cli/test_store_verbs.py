"""The verbs of the store as a user runs them: exit codes, JSON, one line for what is refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ingest.logs import run, write

CURATE = Path(sys.executable).with_name("curate")


def curate(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command in a folder."""
    return subprocess.run(
        [CURATE, *arguments], cwd=folder, capture_output=True, text=True, encoding="utf-8", check=False
    )


def result(folder: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    """What a verb prints as JSON, with the exit code it must have."""
    done = curate(folder, *arguments, "--json")
    assert (done.returncode, done.stderr) == (code, "")
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def refused(folder: Path, *arguments: str) -> str:
    """The one line with which a verb is refused."""
    done = curate(folder, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a store, a good log and one with a torn line."""
    assert result(tmp_path, "init") == {"store": ".curation"}
    write(tmp_path / "good.jsonl", [run("a", outcome=True), run("b", "A18", outcome=False)])
    write(tmp_path / "torn.jsonl", [run("c"), b'{"id": "d", "mess'])
    return tmp_path


def test_from_a_log_to_what_is_in_the_store(folder: Path) -> None:
    imported = result(folder, "import", "good.jsonl")
    why = "lines that are objects with messages"
    assert imported["formats"] == {"openai-chat": {"why": why, "files": 1, "read": 2, "accepted": 2, "quarantined": 0}}
    assert {"read", "accepted", "duplicates", "quarantined", "reasons", "tasks", "seconds", "bytes"} <= imported.keys()
    torn = result(folder, "import", "torn.jsonl", code=1)
    assert torn["reasons"] == {"truncated": 1}

    listed = result(folder, "show")
    assert (listed["attempts"], [line["run"] for line in listed["list"]]) == (3, ["a", "b", "c"])
    inside = folder / "deeper"
    inside.mkdir()
    shown = result(inside, "show", listed["list"][1]["attempt"])
    assert (shown["run"], shown["outcome"]) == ("b", "failure")
    table = result(folder, "sql", "SELECT run, outcome, strata FROM attempts ORDER BY run LIMIT 1")
    assert table == {
        "columns": ["run", "outcome", "strata"],
        "rows": [{"run": "a", "outcome": "success", "strata": {}}],
    }
    assert result(folder, "fsck")["bad"] == []


def test_annotating(folder: Path) -> None:
    result(folder, "import", "good.jsonl")
    write(folder / "side.jsonl", [{"key": "a", "split": "test"}, {"key": "nobody", "split": "test"}])
    dry = result(folder, "annotate", "side.jsonl", "--dry-run", code=1)
    assert (dry["statements"], dry["written"]) == (1, 0)
    said = result(folder, "annotate", "side.jsonl", "--key", "/id", code=1)
    assert (said["lines"], said["matched"], said["unmatched"], said["written"]) == (2, 1, 1, 1)
    assert said["unmatched_lines"] == [{"line": 2, "about": "key 'nobody'"}]
    write(folder / "side.jsonl", [{"key": "a", "split": "test"}])
    assert result(folder, "annotate", "side.jsonl")["written"] == 0


def test_what_is_refused_is_one_line_that_names_the_way_out(folder: Path) -> None:
    assert "curate init" in refused(folder.parent, "show")
    assert "curate init" in refused(folder, "show", "--store", "nothing")
    assert ".curation" in refused(folder, "init")
    assert "notes.txt" in refused(folder, "import", write(folder / "notes.txt", [b"no log"]).name)
    assert "f00d" in refused(folder, "show", "f00d")
    assert "SELECT" in refused(folder, "sql", "DROP VIEW attempts")
    result(folder, "import", "good.jsonl")
    write(folder / "side.jsonl", [{"key": "a", "task": "t"}])
    assert "--revise" in refused(folder, "annotate", "side.jsonl")


def test_a_damaged_store_is_told_by_fsck_and_by_every_verb(folder: Path) -> None:
    result(folder, "import", "good.jsonl")
    identity = result(folder, "sql", "SELECT trajectory_id FROM attempts WHERE run = 'a'")["rows"][0]["trajectory_id"]
    result(folder, "import", "torn.jsonl", code=1)
    newest = max((folder / ".curation" / "trajectories").glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:-7])
    assert [bad["id"] for bad in result(folder, "fsck", code=1)["bad"]] == [newest.name]
    for verb in (["show"], ["sql", "SELECT 1 FROM attempts"], ["import", "good.jsonl"]):
        assert newest.name in refused(folder, *verb)
    assert result(folder, "show", identity)["id"] == identity


def test_terminal_controls_of_a_log_do_not_reach_the_terminal(folder: Path) -> None:
    write(folder / "evil.jsonl", [run("\x1b[2Jevil\u202e", task="\x1b]0;title\x07")])
    result(folder, "import", "evil.jsonl")
    shown = curate(folder, "show")
    assert shown.returncode == 0
    assert "evil" in shown.stdout
    assert not {"\x1b", "\u202e", "\x07"}.intersection(shown.stdout)


def test_an_import_names_the_lines_of_the_side_file_that_are_about_no_record(folder: Path) -> None:
    write(folder / "side.jsonl", [{"key": "a", "split": "train"}, {"key": "nobody", "split": "train"}])
    counts = result(folder, "import", "good.jsonl", "--manifest", "side.jsonl", code=1)
    assert (counts["accepted"], counts["unmatched"], counts["unmatched_lines"]) == (2, 1, [2])

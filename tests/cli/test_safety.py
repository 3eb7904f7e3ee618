"""What a log, a name or a path cannot do, whatever it says."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.test_store_verbs import curate, refused, result
from tests.eight import FOUND, lines
from tests.ingest.logs import run, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store that holds one attempt."""
    curate(tmp_path, "init")
    write(tmp_path / "log.jsonl", [run("a")])
    return tmp_path


@pytest.mark.parametrize("name", ["os:abort", "sys:exit", "trap:World", "os"])
def test_a_recorded_environment_loads_no_code(name: str, folder: Path) -> None:
    (folder / "trap.py").write_text("open('sprung', 'w').close()")
    write(folder / "log.jsonl", [run("a", environment=name)])
    curate(folder, "import", "log.jsonl")
    assert result(folder, "diagnose")["attempts"] == 1
    assert not (folder / "sprung").exists()


def test_a_report_overwrites_nothing_but_a_report(folder: Path) -> None:
    curate(folder, "import", "log.jsonl")
    before = {path: path.read_bytes() for path in (folder / ".curation").rglob("*") if path.is_file()}
    other = write(folder / "other.json", lines())
    entry = next((folder / ".curation").rglob("*.json")).relative_to(folder)
    for target in (str(entry), ".curation/report.html", "other.json"):
        assert "--out" in refused(folder, "report", "selection-bias", "--out", target)
    assert other.read_bytes() == write(folder / "same.json", lines()).read_bytes()
    assert {path: path.read_bytes() for path in before} == before
    for name in ("r.html", "r.md", "r.json"):
        for _ in range(2):
            curate(folder, "report", "selection-bias", "--out", name)
        assert (folder / name).stat().st_size > 0


@pytest.mark.parametrize("name", ["sys:exit", "os.path:join", "os", "broken:World"])
def test_an_environment_that_is_none_is_one_line(name: str, folder: Path) -> None:
    (folder / "broken.py").write_text("class World:\n    def __init__(self):\n        raise ValueError('no')")
    assert "unknown environment" in refused(folder, "replay", "--environment", name)


def test_a_pipe_is_refused_before_it_is_read(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert "not a regular file" in refused(folder, "import", "pipe")


def test_an_error_line_holds_no_terminal_control(folder: Path) -> None:
    write(folder / "\x1b[2Kname.txt", ["no log"])
    assert "\x1b" not in refused(folder, "import", "\x1b[2Kname.txt")


def test_an_attempt_number_of_more_than_32_bits_is_read_everywhere(folder: Path) -> None:
    write(folder / "log.jsonl", [run("a", attempt=3_000_000_000)])
    assert result(folder, "import", "log.jsonl")["accepted"] == 1
    for verb in (("show",), ("replay", "--environment", "inventory"), ("diagnose",), ("build", "--out", "rows")):
        result(folder, *verb)
    assert result(folder, "sql", "SELECT attempt FROM attempts")["rows"] == [{"attempt": 3_000_000_000}]


def test_identical_rows_of_another_run_are_tries_of_their_own(folder: Path) -> None:
    line = {"messages": json.loads(json.dumps(run(None)["messages"]))}
    write(folder / "same.jsonl", [line] * 3)
    counts = result(folder, "import", "same.jsonl", "--attempts", "order", "--run", "z")
    assert (counts["accepted"], counts["duplicates"]) == (3, 0)


def test_what_a_world_could_not_tell_does_not_undo_a_contradiction(folder: Path) -> None:
    (folder / "closed.py").write_text(
        "from environments.inventory import Inventory\n"
        "from environments.protocol import StartError\n"
        "class World(Inventory):\n"
        "    def open(self, start, controls, blobs):\n"
        "        raise StartError('closed')\n"
    )
    pasted = run("pasted")
    pasted["messages"][2]["content"] = FOUND.replace(":2", ":3")
    write(folder / "log.jsonl", [pasted])
    curate(folder, "import", "log.jsonl")
    assert result(folder, "replay", "--environment", "inventory", code=1)["different"] == 1
    result(folder, "replay", "--environment", "closed:World", code=1)
    query = "SELECT result, match FROM effective_verifications WHERE layer = 'execution'"
    assert result(folder, "sql", query)["rows"] == [{"result": "failed", "match": "different"}]

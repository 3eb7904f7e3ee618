"""What a person is told of an import of thousands of files, and of the attempts of a store, in a terminal's width."""

import re
from pathlib import Path

import pytest

from tests.cli.test_reading import on_terminal, printed
from tests.cli.test_store_verbs import result
from tests.ingest.logs import run, write

WIDTHS = [80, 120]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store beside a folder of one log and many other files."""
    result(tmp_path, "init")
    write(tmp_path / "logs" / "log.jsonl", [run("a", note=1), run("b", "A18", other=2)])
    for number in range(400):
        (tmp_path / "logs" / f"notes-{number:03}.txt").write_text("no log\n")
    for number in range(5):
        (tmp_path / "logs" / f"some-{number}.json").write_text("{}\n")
    (tmp_path / "logs" / ".hidden").write_text("x")
    return tmp_path


@pytest.mark.parametrize("width", WIDTHS)
def test_files_that_are_passed_over_are_told_by_reason_with_the_first_names(width: int, folder: Path) -> None:
    text = on_terminal(folder, width, "import", "logs")
    section = text.partition("passed_over\n")[2].partition("losses")[0]
    assert max(map(len, text.splitlines())) <= width
    assert len(text.splitlines()) < 60
    for count, name in ((400, "notes-000.txt"), (5, "some-0.json"), (1, ".hidden")):
        assert re.search(rf" {count} +.*{re.escape(name)}", section)
    assert "397 more" in re.sub(r"\s+", " ", section)
    assert "notes-003.txt" not in text
    passed_over = result(folder, "import", "logs")["passed_over"]
    assert len(passed_over) == 406
    assert all(text for text in passed_over.values())


@pytest.mark.parametrize("width", WIDTHS)
def test_losses_are_a_line_each_and_only_where_there_are_any(width: int, folder: Path) -> None:
    text = on_terminal(folder, width, "import", "logs/log.jsonl")
    section = text.partition("losses\n")[2].partition("\nformats")[0]
    assert re.findall(r"^ (\w[\w ,]*?)  +(\d+)  (.+?) *$", section, re.MULTILINE) == [
        ("keys kept as extra", "2", "note: 1, other: 1"),
        ("answers, by link to a call", "2", "id: 2"),
    ]
    assert "unmatched_lines" not in text
    assert not re.search(r" - *$", text, re.MULTILINE)


@pytest.mark.parametrize("width", WIDTHS)
def test_many_attempts_with_long_names_take_two_lines_each_at_most(width: int, tmp_path: Path) -> None:
    result(tmp_path, "init")
    names = [f"nightly-evaluation-of-{number:02}" for number in range(40)]
    write(tmp_path / "log.jsonl", [run(name, task=f"department/stock-{name}", namespace="desk") for name in names])
    result(tmp_path, "import", "log.jsonl")
    text = on_terminal(tmp_path, width, "show")
    assert max(map(len, text.splitlines())) <= width
    assert len(text.splitlines()) <= 2 * len(names) + 8
    assert all(name in text for name in names)
    shortened = {line["attempt"][:12] for line in result(tmp_path, "show")["list"]}
    assert shortened <= set(re.findall(r"\b[0-9a-f]{12}\b", text))


def test_few_attempts_stay_blocks_of_whole_values(tmp_path: Path) -> None:
    result(tmp_path, "init")
    write(tmp_path / "log.jsonl", [run("r" * 40, task="t" * 40, namespace="desk")])
    result(tmp_path, "import", "log.jsonl")
    text = printed(tmp_path, 60, "show")
    (line,) = result(tmp_path, "show")["list"]
    assert {"r" * 40, "t" * 40} <= set(text.split())
    assert line["outcome"] in text

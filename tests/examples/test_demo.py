import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.make_logs import HERE


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder and the output of one run of the demo, over what an earlier one left."""
    out = tmp_path_factory.mktemp("demo")
    (out / "store").mkdir()
    (out / "store" / "left over").touch()
    command = [sys.executable, str(HERE / "demo.py"), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parent)
    assert (done.returncode, done.stderr) == (0, "")
    return out, done.stdout


def counts(text: str) -> dict[str, int]:
    funnel = text.partition("From attempts to rows\n")[2]
    return {
        label.strip(): int(count) for label, count in re.findall(r"^  (\S.*\S|  \S.*\S) +(\d+)$", funnel, re.MULTILINE)
    }


def test_the_funnel_narrows_from_attempts_to_rows_of_every_kind(ran: tuple[Path, str]) -> None:
    found = counts(ran[1])
    assert found["attempts in the logs"] == 300
    assert 0 < found["with an answer that replay confirms"] <= found["calls in them"]
    decisions = found["wrong decisions"]
    proposed = found["with a correction that a rule can justify"]
    executed = found["forks executed: without the mistake, and after it"]
    assert 0 < proposed <= decisions
    assert 0 < found["verified: the same answer and state in two processes"] <= executed <= 2 * proposed
    for kind in ("first_action", "recovery", "preference"):
        assert found[f"rows: {kind}"] > 0


def test_every_file_that_it_names_is_there_with_as_many_rows(ran: tuple[Path, str]) -> None:
    out, text = ran
    named = dict(re.findall(r"^  (first_action|recovery|preference) +(\S+\.jsonl)$", text, re.MULTILINE))
    found = counts(text)
    assert {kind: len(Path(path).read_bytes().splitlines()) for kind, path in named.items()} == {
        kind: found[f"rows: {kind}"] for kind in ("first_action", "recovery", "preference")
    }
    for report in ("selection-bias.html", "rows-bias.html"):
        assert (out / report).read_text(encoding="utf-8").startswith("<!doctype html>")


def test_it_says_what_it_does_not_show_and_fits_a_terminal(ran: tuple[Path, str]) -> None:
    out, text = ran
    assert "is another experiment" in text
    assert max(len(line.replace(str(out), "out/demo")) for line in text.splitlines()) <= 92


def test_hard_tasks_are_what_a_filter_of_successes_loses(ran: tuple[Path, str]) -> None:
    shares = dict(re.findall(r"^  (easy|hard) .*-> ([\d.]+)%$", ran[1].partition("And the rows")[0], re.MULTILINE))
    assert float(shares["easy"]) > 65 > 35 > float(shares["hard"])


def test_it_deletes_nothing_that_it_did_not_write(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("all of it")
    command = [sys.executable, str(HERE / "demo.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=HERE.parent)
    assert done.returncode == 1
    assert "thesis.txt" in done.stderr
    assert (tmp_path / "thesis.txt").read_text() == "all of it"

"""Queries that somebody wrote, and files that somebody names, take bounded time and memory; the bound is told."""

import os
import resource
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_store_verbs import CURATE, refused, result
from tests.ingest.logs import run, write


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    result(tmp_path, "init")
    result(tmp_path, "import", str(write(tmp_path / "log.jsonl", [run("a"), run("b")])))
    return tmp_path


ENDLESS = "SELECT count(*)::VARCHAR AS key FROM range(1000000000000)"
HUGE = (
    "SELECT repeat('a', 3000000000) AS key",
    "SELECT repeat('a', 1000000) AS key FROM range(3000)",
    "SELECT string_agg(repeat('x', 1000), '') AS key FROM range(10000000)",
)


@pytest.mark.parametrize("query", HUGE)
@pytest.mark.parametrize("verb", [("sql",), ("annotate", "--sql")])
def test_a_query_that_makes_gigabytes_is_refused_with_the_bound(
    folder: Path, verb: tuple[str, ...], query: str
) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    words = refused(folder, *verb, query)
    assert "over 2GB of memory: select less" in words
    assert max(before, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss) < 3.5 * 2**20, "KiB"


@pytest.mark.parametrize("verb", [("sql",), ("annotate", "--sql")])
def test_a_query_without_an_end_is_refused_with_the_bound(folder: Path, verb: tuple[str, ...]) -> None:
    assert "over 1 seconds: select less, or let it run longer with --seconds N" in refused(
        folder, *verb, ENDLESS, "--seconds", "1"
    )


def test_rows_without_an_end_are_refused_with_the_bound(folder: Path) -> None:
    query = "SELECT range::VARCHAR AS key FROM range(1000000000000)"
    assert "over 1 seconds" in refused(folder, "annotate", "--sql", query, "--seconds", "1")


def test_a_result_over_its_bound_is_refused_and_taken_with_a_larger_one(folder: Path) -> None:
    query = "SELECT range::VARCHAR AS key FROM range(20000)"
    assert "the result is over 1000000 bytes" in refused(folder, "sql", query, "--max-bytes", "1000000")
    assert len(result(folder, "sql", query, "--max-bytes", "10000000")["rows"]) == 20_000
    assert "a part of the result (4096 rows) is over 100000 bytes" in refused(
        folder, "annotate", "--sql", query, "--max-bytes", "100000"
    )
    streamed = result(folder, "annotate", "--sql", query, "--max-bytes", "1000000", code=1)
    assert streamed["lines"] == 20_000, "of a result that is read as it comes the parts count"


def test_an_empty_result_has_its_columns(folder: Path) -> None:
    found = result(folder, "sql", "SELECT run, run FROM attempts WHERE false")
    assert found == {"columns": ["run", "run_1"], "rows": []}


PIPES = (
    ("annotate", "pipe"),
    ("annotate", "--sql", "SELECT * FROM read_csv('pipe')"),
    ("annotate", "--sql", "SELECT * FROM 'pipe.csv'"),
    ("annotate", "/dev/zero"),
    ("import", "pipe"),
    ("import", "log.jsonl", "--manifest", "pipe"),
    ("replay", "--environment", "cassette:pipe"),
    ("environment", "cassette", "--out", "pipe"),
    ("repair", "--environment", "inventory", "--proposals", "pipe"),
    ("report", "selection-bias", "--build", "build"),
    ("report", "selection-bias", "--out", "pipe.md"),
    ("build", "first_action", "--out", "build"),
    ("forget", "a", "--build", "build"),
)


@pytest.mark.parametrize("command", PIPES, ids=" ".join)
def test_what_is_no_regular_file_is_refused_at_once(folder: Path, command: tuple[str, ...]) -> None:
    (folder / "build").mkdir()
    for name in ("pipe", "pipe.csv", "pipe.md", "build/manifest.json"):
        os.mkfifo(folder / name)
    done = subprocess.run([CURATE, *command], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr

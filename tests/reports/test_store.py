"""The report over a real store, filled from logs the way a user fills one."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from curation.errors import UsageError
from curation.ingest import IngestOptions, find_sources, ingest
from curation.store import Store
from reports.page import page
from reports.selection_bias import selection_bias
from reports.table import rate_text
from schemas.selection import Selection
from tests.eight import FOUND, REQUEST, look_up


def attempt(task: str, **keys: Any) -> dict[str, Any]:
    """One line of a log with the keys that say which attempt it is and how it ended."""
    messages = [{"role": "user", "content": REQUEST}, *look_up("c", "A17", FOUND)]
    return {"namespace": "inv-1", "task": task, "messages": messages, **keys}


def filled(folder: Path, lines: Iterable[dict[str, Any]]) -> Store:
    """A new store that holds these lines."""
    log = folder / "log.jsonl"
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    store = Store.create(str(folder / "store"))
    result = ingest(store, find_sources([log], "auto"), IngestOptions())
    assert result.quarantined == 0
    return store


def test_the_seeds_arithmetic_from_a_store_of_100_tasks(tmp_path: Path) -> None:
    store = filled(
        tmp_path,
        (
            attempt(f"{level}-{number}", run="r", outcome={"success": number < solved}, strata={"difficulty": level})
            for level, solved in (("easy", 45), ("hard", 10))
            for number in range(50)
        ),
    )
    report = selection_bias(store, by=["difficulty"])
    (table,) = report.strata
    easy, hard = table.rows
    assert (report.total, report.tasks, report.kept) == (100, 100, 55)
    assert (rate_text(easy), rate_text(hard)) == ("90.0 % [78.6, 95.7]", "20.0 % [11.2, 33.0]")
    assert (easy.share_before, round(easy.share_after or 0, 3)) == (0.5, 0.818)
    assert round(table.total_variation or 0, 3) == 0.318
    assert "By strata.difficulty" in page(report)


def test_faults_unknown_outcomes_and_tasks_without_a_name_come_from_the_store(tmp_path: Path) -> None:
    store = filled(
        tmp_path,
        [
            attempt("a", attempt=0, outcome="success"),
            *(attempt("a", attempt=number, stop="provider_error") for number in (1, 2, 3)),
            {"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]},
        ],
    )
    report = selection_bias(store, by=["task", "stop"])
    named, missing = report.strata[0].rows
    assert (named.attempts, named.unknown, named.faults) == (4, 3, 3)
    assert (rate_text(named), rate_text(named.verdicts)) == ("25.0 % [4.6, 69.9]", "100.0 % [20.7, 100.0]")
    assert (missing.missing, missing.attempts, missing.unknown) == (True, 1, 1)
    assert [row.value for row in report.strata[1].rows] == ["provider_error", "missing"]
    assert (report.tasks, report.attempts_without_task) == (2, 1)


def test_a_build_is_read_from_the_selections_of_the_store(tmp_path: Path) -> None:
    store = filled(tmp_path, [attempt(task, run="r", outcome="failure") for task in ("a", "b")])
    rows = store.sql("SELECT attempt_id, trajectory_id FROM attempts ORDER BY task").to_pylist()
    with store.batch() as batch:
        for row, kept in zip(rows, (True, False), strict=True):
            batch.add_selection(
                Selection("build-1", "first_action", row["attempt_id"], row["trajectory_id"], message=1, kept=kept)
            )
        store.write(batch)
    report = selection_bias(store, build="build-1", by=["task"])
    assert [(row.value, row.kept) for row in report.strata[0].rows] == [("a", 1), ("b", 0)]
    assert report.kept_without_success == 1


def test_a_bad_rule_names_the_columns_of_the_store(tmp_path: Path) -> None:
    store = filled(tmp_path, [attempt("a")])
    with pytest.raises(UsageError, match=r"rule 'outcom = 1'.*outcom.*columns of attempts: attempt_id.*allocation"):
        selection_bias(store, keep="outcom = 1")
    with pytest.raises(UsageError, match=r"unknown stratum 'mood'; known: .*allocation"):
        selection_bias(store, by=["mood"])


def test_what_keeping_only_successes_does_to_a_published_log(tmp_path: Path, logs: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    log = logs / "tau-bench" / "gpt-4o-airline-tasks-00-24.json"
    ingest(store, find_sources([log], "auto"), IngestOptions())
    report = selection_bias(store, by=["gold_writes", "attempt"])
    writes, trials = report.strata
    assert (report.total, report.tasks, report.kept, report.tasks_vanished) == (100, 25, 31, 10)
    assert [(row.value, row.kept, row.attempts) for row in writes.rows] == [
        ("0", 20, 28),
        ("1", 9, 32),
        ("2", 0, 24),
        ("3+", 2, 16),
    ]
    assert {row.interval for row in writes.rows} == {"wilson_effective_n"}
    assert round(writes.total_variation or 0, 3) == 0.365
    assert [(row.attempts, row.interval) for row in trials.rows] == [(25, "wilson")] * 4

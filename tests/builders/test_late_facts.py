"""What is known late: forks, attempts and rows are those of a store that knew it from the beginning."""

import json
from pathlib import Path
from typing import Any

from builders.build import build
from curation.annotate import annotate
from curation.jobs.diagnosing import diagnose_attempts
from curation.jobs.repairing import repair_attempts
from curation.jobs.replaying import replay_attempts
from curation.store import Store
from reports.selection_bias import selection_bias
from schemas.statements import Annotation
from schemas.trajectory import Author
from tests.builders.desk import Desk
from tests.eight import records
from tests.ingest.logs import attempts, import_file, new_store, run, said, write
from tests.records import A17, OK, REQUEST

NAMES = [record["id"] for record in records()]
EARLY = [{"key": name, "task": "stock", "strata": {"level": "easy"}} for name in NAMES]
LATE = [
    {
        "key": name,
        "task": "stock",
        "strata": {"level": "hard"},
        "environment": "inventory",
        "outcome": name == "misread",
    }
    for name in NAMES
]


def work(store: Store, out: Path) -> None:
    """Everything that is done between a log and rows."""
    replay_attempts(store, "inventory")
    diagnose_attempts(store)
    repair_attempts(store, "inventory")
    build(store, None, out)


def built(store: Store, out: Path) -> tuple[list[str], list[tuple[Any, ...]], dict[str, bytes]]:
    """The forks, the judgements and the rows of the last build."""
    result = build(store, None, out)
    forks = store.sql("SELECT id FROM trajectories WHERE parent IS NOT NULL ORDER BY id")["id"].to_pylist()
    judged = store.sql(
        """SELECT kind, attempt, trajectory, message, child, kept, sample, failed, partner
           FROM selections WHERE build = ? ORDER BY ALL""",
        [result.build],
    ).to_pylist()
    rows = {path.name: path.read_bytes() for path in out.rglob("*.jsonl")}
    return forks, [tuple(line.values()) for line in judged], rows


def test_a_late_side_file_leaves_forks_attempts_and_rows_as_an_early_one(tmp_path: Path) -> None:
    ungraded = [{name: value for name, value in record.items() if name != "outcome"} for record in records()]
    log = write(tmp_path / "eight.jsonl", ungraded)
    early, last = write(tmp_path / "early.jsonl", EARLY), write(tmp_path / "last.jsonl", LATE)
    late, only = new_store(tmp_path, "late"), new_store(tmp_path, "only")
    import_file(late, log, side=early)
    work(late, tmp_path / "late-rows")
    forks, _, _ = built(late, tmp_path / "late-rows")
    annotate(late, said(last))
    import_file(only, log, side=last)
    for store, out in ((late, "late-rows"), (only, "only-rows")):
        work(store, tmp_path / out)
    assert attempts(late) == attempts(only)
    assert built(late, tmp_path / "late-rows") == built(only, tmp_path / "only-rows")
    assert forks == built(late, tmp_path / "late-rows")[0]
    reports = [selection_bias(store, by=["level", "outcome"]) for store in (late, only)]
    assert reports[0] == reports[1]
    assert (reports[0].total, reports[0].kept) == (len(NAMES), 1)


def test_a_failure_that_turns_out_a_success_leaves_nothing_behind(tmp_path: Path) -> None:
    cut = run("cut")
    cut["messages"] = cut["messages"][:-1]
    log = write(tmp_path / "cut.jsonl", [cut])
    wrong, right = write(tmp_path / "1.jsonl", [{"key": "cut", "outcome": False}]), tmp_path / "2.jsonl"
    write(right, [{"key": "cut", "outcome": True}])
    late, only = new_store(tmp_path, "late"), new_store(tmp_path, "only")
    import_file(late, log, side=wrong)
    import_file(only, log, side=right)
    kept = []
    for store in (late, only):
        replay_attempts(store, "inventory")
        diagnose_attempts(store)
        annotate(store, said(right))
        diagnose_attempts(store)
        kept.append(build(store, None, tmp_path / "rows").kinds["first_action"].kept)
    assert kept == [1, 1]


def test_a_stratum_read_from_a_hidden_answer_reaches_no_row(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A17, OK)
    desk.annotate(attempt, "strata.shelf", "7")
    rule = Author("rule", "count", "1")
    desk.say(Annotation(attempt, "strata.gold_writes", "2", rule, ("hidden_answer",)))
    desk.build("first_action")
    (row,) = map(json.loads, desk.rows("first_action"))
    assert row["strata_json"] == '{"shelf":"7"}'
    assert desk.store.sql("SELECT strata['gold_writes'] AS n FROM attempts")["n"].to_pylist() == ["2"]

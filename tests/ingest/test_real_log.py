"""A real log of 100 runs, counted by SQL."""

from pathlib import Path

import msgspec
import pytest

from curation.importers.side_file import SideFile
from curation.ingest import IngestOptions, find_sources, ingest
from curation.prepared import Reading
from curation.store import Store
from curation.store.fsck import check
from schemas.canonical import encode
from tests.ingest.logs import import_file, write


@pytest.fixture(scope="module")
def log(logs: Path) -> Path:
    """The first airline tasks, four runs each."""
    return logs / "tau-bench" / "gpt-4o-airline-tasks-00-24.json"


@pytest.fixture(scope="module")
def store(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The log as imported."""
    store = Store.create(str(tmp_path_factory.mktemp("real") / "store"))
    result = import_file(store, log)
    assert (result.read, result.accepted, result.tasks) == (100, 100, 25)
    return store


def test_runs_tasks_and_outcomes(store: Store) -> None:
    (row,) = store.sql(
        """SELECT count(*) AS attempts, count(DISTINCT task_key) AS tasks, sum(calls)::INT AS calls,
               count(*) FILTER (outcome = 'success') AS success,
               count(DISTINCT task_key) - count(DISTINCT task_key) FILTER (outcome = 'success') AS vanish
           FROM attempts"""
    ).to_pylist()
    assert row == {"attempts": 100, "tasks": 25, "calls": 621, "success": 31, "vanish": 10}


def test_success_by_the_number_of_gold_writes(store: Store) -> None:
    rows = store.sql(
        """SELECT strata['gold_writes'] AS writes, count(*) FILTER (outcome = 'success') AS kept, count(*) AS n
           FROM attempts GROUP BY writes ORDER BY writes"""
    ).to_pylist()
    assert [(row["writes"], row["kept"], row["n"]) for row in rows] == [
        ("0", 20, 28),
        ("1", 9, 32),
        ("2", 0, 24),
        ("3+", 2, 16),
    ]


def test_every_call_has_a_name_of_its_own_although_ids_repeat(store: Store) -> None:
    ids = store.sql("SELECT id FROM trajectories")["id"].to_pylist()
    repeated = 0
    for _, record in store.trajectories(ids):
        calls = [call for message in record.messages for call in message.tool_calls]
        assert len({call.uid for call in calls}) == len(calls)
        repeated += len(calls) - len({call.id for call in calls})
        answered = [message.answers.uid for message in record.messages if message.answers]
        assert len(set(answered)) == len(answered)
    assert repeated == 40


def test_gold_actions_and_the_users_script_never_reach_a_record(store: Store, log: Path) -> None:
    runs = msgspec.json.decode(log.read_bytes())
    assert sum(len(run["info"]["task"]["actions"]) for run in runs) > 100
    scripts = {run["info"]["task"]["instruction"] for run in runs}
    ids = store.sql("SELECT id FROM trajectories")["id"].to_pylist()
    for _, record in store.trajectories(ids):
        text = encode(record).decode()
        assert "kwargs" not in text
        assert not any(script in text for script in scripts)
        assert isinstance(record.extra, msgspec.Raw)
        assert msgspec.json.decode(record.extra).keys() <= {"source", "user_cost"}


def test_a_namespace_and_outcomes_may_come_from_a_side_file(log: Path, tmp_path: Path) -> None:
    lines = [{"file": log.name, "line": place + 1, "namespace": "airline", "split": "test"} for place in range(100)]
    store = Store.create(str(tmp_path / "store"))
    side = SideFile(write(tmp_path / "side.jsonl", lines))
    ingest(store, find_sources([log], "tau-bench"), IngestOptions(Reading(side)))
    rows = store.sql("SELECT DISTINCT namespace, split FROM attempts").to_pylist()
    assert rows == [{"namespace": "airline", "split": "test"}]


def test_the_store_is_sound(store: Store) -> None:
    checked = check(store.uri)
    assert checked.problems == []
    assert checked.rows > 500

"""The published AgentDojo runs without attack, executed again in the worlds they were recorded in."""

from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("agentdojo", reason="the package agentdojo (extra `agentdojo`) is not installed")

from builders.build import build
from curation.ingest import IngestOptions, find_sources, ingest
from curation.jobs.diagnosing import diagnose_attempts
from curation.jobs.replaying import ReplayResult, replay_attempts
from curation.store import Store

RUNS = {
    "claude-3-7-sonnet-20250219": "agentdojo@v1.2.1",
    "gpt-4o-2024-05-13": "agentdojo@v1",
    "meta-llama_Llama-3.3-70B-Instruct": "agentdojo@v1.2.1",
}


class Replayed(NamedTuple):
    store: Store
    result: ReplayResult


@pytest.fixture(scope="module", params=RUNS)
def replayed(request: pytest.FixtureRequest, logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Replayed:
    """One pipeline's runs of banking and slack, imported and replayed."""
    store = Store.create(str(tmp_path_factory.mktemp("dojo") / "store"))
    files = sorted((logs / "agentdojo" / "runs" / request.param).glob("*/*/none/*.json"))
    assert ingest(store, find_sources(files, "auto"), IngestOptions()).accepted == 36
    return Replayed(store, replay_attempts(store, RUNS[request.param]))


def test_answers_are_the_real_ones_but_for_data_that_has_changed_since(replayed: Replayed) -> None:
    result = replayed.result
    agents = replayed.store.sql("SELECT DISTINCT agent FROM attempts")["agent"].to_pylist()
    calls, confirmed = {"claude-3-7-sonnet-20250219": (133, 132), "gpt-4o-2024-05-13": (138, 129), "local": (124, 123)}[
        agents[0]
    ]
    assert (result.runs, result.calls) == (36, calls)
    assert result.equal_bytes + result.equal_normalised + result.equal_semantic >= confirmed
    assert (result.unverifiable, result.not_run) == (0, 0)
    rows = replayed.store.sql(
        """SELECT count(*) AS n, count(*) FILTER (json_array_length(record, '$.evidence') > 0) AS shown
           FROM effective_verifications WHERE match = 'different'"""
    ).to_pylist()
    assert rows == [{"n": result.different, "shown": result.different}]


def test_what_differs_is_told_alike_by_several_runs(replayed: Replayed) -> None:
    rows = replayed.store.sql(
        """SELECT v.reason, count(DISTINCT trajectory) AS runs FROM effective_verifications v
           WHERE v.match = 'different' GROUP BY v.reason ORDER BY v.reason NULLS FIRST"""
    ).to_pylist()
    assert rows[0] == {"reason": None, "runs": 1}  # the bill of one task, which no other run of the pipeline reads
    assert [row["reason"] for row in rows[1:]] in ([], ["recorded_alike"])
    assert replayed.result.reasons.get("recorded_alike", 0) == replayed.result.different - 1


def test_outcomes_agree_and_the_one_that_differs_is_named(replayed: Replayed) -> None:
    result = replayed.result
    agent = replayed.store.sql("SELECT DISTINCT agent FROM attempts")["agent"].to_pylist()[0]
    differing = replayed.store.sql(
        "SELECT namespace, task FROM attempts WHERE trajectory_id IN (SELECT unnest(?))", [result.differing]
    ).to_pylist()
    gpt = agent.startswith("gpt-4o")
    assert (result.outcomes_agree, result.outcomes_differ) == (35 if gpt else 36, int(gpt))
    assert differing == ([{"namespace": "agentdojo:banking", "task": "user_task_13"}] if gpt else [])
    assert (
        result.outcomes_unverified
        == replayed.store.sql(
            "SELECT count(DISTINCT trajectory) AS n FROM effective_verifications WHERE match = 'different'"
        )["n"].to_pylist()[0]
    )


def test_a_task_is_verified_only_where_every_answer_is_confirmed(replayed: Replayed) -> None:
    rows = replayed.store.sql(
        """SELECT trajectory IN (SELECT trajectory FROM effective_verifications WHERE match = 'different') AS doubted,
               count(*) AS n FROM effective_verifications
           WHERE layer = 'task' AND author_kind = 'environment' GROUP BY doubted"""
    ).to_pylist()
    assert rows == [{"doubted": False, "n": 36 - replayed.result.outcomes_unverified}]


def test_the_runs_make_rows_with_the_tools_they_were_offered(replayed: Replayed, tmp_path: Path) -> None:
    store = replayed.store
    assert diagnose_attempts(store).attempts == 36
    unknown = store.sql("SELECT trajectory_id AS id FROM attempts WHERE tools IS NULL")["id"].to_pylist()
    confirmed = store.sql("SELECT DISTINCT trajectory AS id FROM effective_verifications WHERE match = 'equal_bytes'")
    assert set(unknown).isdisjoint(confirmed["id"].to_pylist())
    kinds = build(store, None, tmp_path / "rows").kinds
    assert kinds["first_action"].rows > 70
    # No answer of these runs is an error, so that no run recovers from one; failures leave no finding to pair.
    errors = store.sql("SELECT count(*) AS n FROM verifications WHERE status NOT IN ('ok') AND match IS NOT NULL")
    assert (errors["n"].to_pylist(), kinds["recovery"].rows) == ([0], 0)

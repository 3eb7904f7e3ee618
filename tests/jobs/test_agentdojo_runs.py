"""Recorded banking runs of AgentDojo: what the suite's checks are worth, and what siblings' corrections come to."""

from pathlib import Path

import pytest

pytest.importorskip("agentdojo", reason="the package agentdojo (extra `agentdojo`) is not installed")

from curation.ingest import IngestOptions, find_sources, ingest
from curation.jobs.powering import measure_power
from curation.jobs.repairing import repair_attempts
from curation.jobs.replaying import replay_attempts
from curation.store import Store
from schemas.statements import Finding
from schemas.trajectory import Author

WORLD = "agentdojo:banking@v1.2.1"
PIPELINES = ("claude-3-7-sonnet-20250219", "meta-llama_Llama-3.3-70B-Instruct")

_DEPARTING = """
    WITH steps AS (
        SELECT t.id, unnest(t.decisions) AS d, a.task_key, a.outcome
        FROM trajectories t JOIN attempts a ON a.trajectory_id = t.id
    )
    SELECT DISTINCT w.id, w.d.message AS message FROM steps w JOIN steps s
        ON s.task_key = w.task_key AND s.d.information = w.d.information AND s.d.action <> w.d.action
    WHERE w.outcome = 'failure' AND s.outcome = 'success' AND len(w.d.tools) = 1 AND len(s.d.tools) = 1
"""


@pytest.fixture(scope="module")
def store(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """The runs without an attack, replayed, and a person's finding where a failed one leaves one that passed."""
    opened = Store.create(str(tmp_path_factory.mktemp("dojo") / "store"))
    folders = [logs / "agentdojo" / "runs" / pipeline / "banking" for pipeline in PIPELINES]
    files = sorted(path for folder in folders for path in folder.glob("*/none/*.json"))
    ingest(opened, find_sources(files, "auto"), IngestOptions())
    replay_attempts(opened, WORLD)
    batch = opened.batch()
    for row in opened.sql(_DEPARTING).to_pylist():
        call = f"{row['message']}.0"
        batch.add_statement(Finding(row["id"], row["message"], "argument", Author("human", "Ada"), "departs", call))
    opened.write(batch)
    return opened


def test_no_error_and_a_passed_task_say_little_and_a_written_state_says_more(store: Store) -> None:
    result = measure_power(store, WORLD, values=1)
    rates = {(share.check, share.effect): share.rate for share in (*result.totals, *result.by_effect)}
    assert result.wrong_calls == result.totals[0].wrong > 20
    assert rates["no_error", ""] > 0.9
    assert rates["task", "read"] > rates["task", "write"]
    assert rates["task", ""] > rates["step", ""]


def test_a_siblings_correction_is_executed_in_its_world_and_is_no_pass_of_the_task(store: Store) -> None:
    result = repair_attempts(store, WORLD)
    counted = result.authors["sibling"]
    assert counted.proposed > 0
    assert counted.verified + sum(counted.refused.values()) == 2 * counted.proposed
    assert counted.verified > 0
    assert counted.at_task == 0
    assert result.known_right > result.false_refusals > 0
    worlds = store.sql(
        "SELECT DISTINCT author_name FROM verifications v JOIN trajectories t ON t.id = v.trajectory "
        "WHERE t.parent IS NOT NULL AND v.layer = 'execution'"
    )
    assert worlds["author_name"].to_pylist() == ["agentdojo:banking"]

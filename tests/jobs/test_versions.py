"""Which version recorded a run: chosen on half of the tasks, said by rule, never taken as a verification."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from curation.errors import UsageError
from curation.jobs.replaying import replay_attempts
from curation.jobs.versions import find_versions
from curation.store import Store
from schemas.statements import Verification
from schemas.trajectory import Author, Correction, Fork, Restore
from tests.cli.test_store_verbs import refused, result
from tests.ingest.logs import import_lines, new_store, run

TASKS = (4, 11, 12, 13)  # the check of 4 and of 12 changed between versions, and every answer is confirmed
GPT = "gpt-4o-2024-05-13"


def taken(logs: Path, pipeline: str, task: int, **changes: Any) -> str:
    """A recorded slack run without attack, with some keys changed."""
    file = logs / "agentdojo" / "runs" / pipeline / "slack" / f"user_task_{task}" / "none" / "none.json"
    return json.dumps(json.loads(file.read_bytes()) | changes)


@pytest.fixture(scope="module")
def folder(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a run of four tasks, one that records its version, one of a single task, one that agrees nowhere."""
    pytest.importorskip("agentdojo")
    folder = tmp_path_factory.mktemp("versions")
    files = folder / "runs"
    files.mkdir()
    for task in TASKS:
        (files / f"gpt-{task}.json").write_text(taken(logs, GPT, task))
    (files / "recorded.json").write_text(taken(logs, "meta-llama_Llama-3.3-70B-Instruct", 11))
    (files / "single.json").write_text(taken(logs, GPT, 11, pipeline_name="single"))
    said = [{"role": "user", "content": "Do it."}, {"role": "assistant", "content": "Done.", "tool_calls": None}]
    for task in (11, 13):
        changes = {"pipeline_name": "liar", "messages": said, "utility": True}
        (files / f"liar-{task}.json").write_text(taken(logs, GPT, task, **changes))
    result(folder, "init")
    result(folder, "import", "runs")
    return folder


def _check_a_fork(store: Store) -> None:
    """A fork of a run whose version is not recorded, with a check of its task in the version it was executed in."""
    parent = attempts(store)[GPT, "user_task_11"]["trajectory_id"]
    correction, restore = Correction(Author("human", "Ada")), Restore("snapshot", "agentdojo:slack@v1.2.2")
    fork = replace(store.trajectory(parent), attempt=None, fork=Fork(parent, 2, "clean", correction, restore))
    with store.batch() as batch:
        identity = batch.add_trajectory(fork)
        author = Author("environment", "agentdojo:slack", "v1.2.2")
        batch.add_statement(Verification(identity, "task", "passed", author))
        store.write(batch)


def attempts(store: Store) -> dict[tuple[str, str], dict[str, Any]]:
    rows = store.sql("SELECT run, task, trajectory_id, environment, outcome, outcome_by FROM attempts").to_pylist()
    return {(row["run"], row["task"]): row for row in rows}


@pytest.fixture(scope="module")
def searched(folder: Path) -> dict[str, Any]:
    """What the search prints, after the same store was replayed in the newest version."""
    store = Store.open(str(folder / ".curation"))
    first = replay_attempts(store, "agentdojo:slack@v1.2.2")
    assert first.ungraded == 0
    assert first.outcomes_agree + first.outcomes_differ > 0
    _check_a_fork(store)
    return result(folder, "replay", "--environment", "agentdojo:slack", "--find-version", code=1)


def test_the_best_version_on_one_half_of_the_tasks_is_tried_on_the_other(searched: dict[str, Any]) -> None:
    (run_of_four,) = [line for line in searched["runs"] if line["run"] == GPT]
    scores = {score["version"]: score for score in searched["scores"] if score["run"] == GPT}
    agreements = {version: score["confirmed"] + score["agree"] for version, score in scores.items()}
    best = [version for version, count in agreements.items() if count == max(agreements.values())]
    assert best == [*run_of_four["tied"], run_of_four["version"]] == ["v1", "v1.1"]
    assert max(agreements.values()) > min(agreements.values())
    assert (run_of_four["choosing"], run_of_four["held_out"], run_of_four["placed"]) == (2, 2, 4)
    assert run_of_four["confirmed"] == run_of_four["calls"] > 0
    assert run_of_four["agree"] == run_of_four["outcomes"] == 2
    assert len({score["calls"] for score in scores.values()}) == 1


def test_a_run_of_one_task_and_one_that_agrees_nowhere_get_no_version(folder: Path, searched: dict[str, Any]) -> None:
    others = {line["run"]: line for line in searched["runs"] if line["run"] != GPT}
    assert others.keys() == {"single", "liar"}
    assert {line["version"] for line in others.values()} == {None}
    assert others["single"]["why"].startswith("one_task: ")
    assert others["liar"]["why"].startswith("nothing_agrees: ")
    assert not [score for score in searched["scores"] if score["run"] == "single"]
    found = attempts(Store.open(str(folder / ".curation")))
    assert found["single", "user_task_11"]["environment"] == "agentdojo:slack@v1.2.2"


def test_the_version_is_said_by_rule_in_place_of_what_a_replay_placed(folder: Path, searched: dict[str, Any]) -> None:
    assert not searched["recorded"]
    store = Store.open(str(folder / ".curation"))
    found = attempts(store)
    assert {found[GPT, f"user_task_{task}"]["environment"] for task in TASKS} == {"agentdojo:slack@v1.1"}
    assert found["local", "user_task_11"]["environment"] == "agentdojo:slack@v1.2.1"
    authors = store.sql(
        """SELECT DISTINCT author_kind, author_name, author_version FROM effective_annotations
           WHERE field = 'environment' AND value = 'agentdojo:slack@v1.1'"""
    )
    assert authors.to_pylist() == [{"author_kind": "rule", "author_name": "replay.version", "author_version": "1"}]


def test_answers_are_verified_in_the_version_found_and_outcomes_are_not(folder: Path, searched: dict[str, Any]) -> None:
    store = Store.open(str(folder / ".curation"))
    assert searched["withdrawn"] == len(TASKS) + 1
    about_forks = "trajectory IN (SELECT id FROM trajectories WHERE parent IS NOT NULL)"
    (fork,) = store.sql(f"SELECT result, author_kind FROM effective_verifications WHERE {about_forks}").to_pylist()
    assert fork == {"result": "unknown", "author_kind": "rule"}
    for again in (False, True):
        if again:
            assert replay_attempts(store, "agentdojo:slack@v1.1").ungraded == len(TASKS)
        checks = store.sql(
            """SELECT v.layer, v.author_kind, count(*) AS n FROM effective_verifications v
               JOIN attempts a ON a.trajectory_id = v.trajectory
               WHERE a.run = ? AND v.layer IN ('execution', 'task') GROUP BY ALL""",
            [GPT],
        ).to_pylist()
        by = {(row["layer"], row["author_kind"]): row["n"] for row in checks}
        assert by.keys() == {("execution", "environment"), ("task", "log")}
        assert by["task", "log"] == len(TASKS)
        assert {row["outcome_by"] for (name, _), row in attempts(store).items() if name == GPT} == {"log"}


def test_only_a_family_that_leaves_its_version_open_is_searched(folder: Path, tmp_path: Path) -> None:
    assert "leaves no version open" in refused(folder, "replay", "--environment", "inventory", "--find-version")
    store = new_store(tmp_path)
    with pytest.raises(UsageError, match="leaves no version open"):
        find_versions(store, "agentdojo:slack@v1")
    import_lines(store, tmp_path, [run("a")])
    with pytest.raises(UsageError, match="no attempt was recorded in 'agentdojo'"):
        find_versions(store, "agentdojo")

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.importers import formats, harbor
from curation.importers.elapsed import ELAPSED
from curation.importers.face import Fact, Item, Parsed, Rejected
from curation.importers.harbor import BUDGET_RULE
from curation.importers.harbor_outcome import OUTCOME_RULE
from curation.ingest import find_sources
from curation.jobs.diagnosing import diagnose_attempts
from curation.store.fsck import check
from schemas.digests import attempt_id
from schemas.statements import Finding
from schemas.trajectory import Attempt, Json, Task, Usage
from tests.importers.atif_runs import act, call, document, result, say
from tests.importers.reading import accepted, calls
from tests.ingest.logs import attempts, import_file, new_store

DIGEST = "sha256:" + "9" * 64
RAN = document(say("user", "How many A17?"), act(call("A17"), results=[result("2")]), say("agent", "Two."))


def trial(rewards: Any = None, raised: str | None = None, **more: Any) -> dict[str, Any]:
    """The result of a trial; ``rewards`` None: the verifier wrote none."""
    return {
        "id": "5b44f65e-5339-4ce5-8165-290a9161fa54",
        "task_name": "shop/count",
        "trial_name": "count__bt7g68Y",
        "source": None,
        "task_checksum": "c" * 64,
        "config": {"timeout_multiplier": 2.0, "agent": {"name": "a", "override_timeout_sec": None}, "job_id": "j"},
        "agent_info": {"name": "terminus", "version": "2.0", "model_info": {"name": "m", "provider": "vendor"}},
        "agent_result": {"n_input_tokens": 5, "n_cache_tokens": 1, "n_output_tokens": 7, "cost_usd": 0.5},
        "verifier_result": None if rewards is None else {"rewards": rewards},
        "exception_info": raised and {"exception_type": raised, "exception_message": "it broke", "occurred_at": "x"},
        "started_at": "2026-07-09T06:29:03.980924Z",
        "step_results": None,
        **more,
    }


def write(folder: Path, record: Any, ran: Any = RAN, digest: str | None = DIGEST) -> Path:
    """A trial's folder; its result."""
    (folder / "agent").mkdir(parents=True)
    (folder / "verifier").mkdir()
    if ran is not None:
        (folder / "agent" / "trajectory.json").write_text(json.dumps(ran))
    if digest is not None:
        (folder / "lock.json").write_text(
            json.dumps({"schema_version": 2, "task": {"name": "count", "digest": digest}})
        )
    (folder / "config.json").write_text(json.dumps(record["config"]))
    (folder / "verifier" / "reward.txt").write_text("0.0")
    path = folder / "result.json"
    path.write_text(json.dumps(record, indent=4))
    return path


def items(folder: Path, *written: Any, **how: Any) -> list[Item]:
    return list(harbor.IMPORTER.read(write(folder / "trial", *written, **how)))


def read(folder: Path, *written: Any, **how: Any) -> Parsed:
    (item,) = items(folder, *written, **how)
    return accepted(item)


def facts(parsed: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in parsed.facts}


def value(raw: Json) -> Any:
    assert isinstance(raw, msgspec.Raw)
    return json.loads(bytes(raw))


def test_a_trial_is_an_attempt_with_all_that_its_folder_says(tmp_path: Path) -> None:
    path = write(tmp_path / "trial", trial({"reward": 1.0}))
    assert formats.detect(path)[0] is harbor.IMPORTER
    (item,) = harbor.IMPORTER.read(path)
    parsed = accepted(item)
    trajectory = parsed.trajectory
    assert trajectory.task == Task(None, "shop/count", DIGEST)
    assert trajectory.attempt == Attempt("5b44f65e-5339-4ce5-8165-290a9161fa54")
    conditions = trajectory.conditions
    assert (conditions.agent, conditions.model) == ("terminus@2.0", "vendor/m")
    assert conditions.environment == f"harbor:shop/count@{DIGEST}"
    assert conditions.tools is not None
    assert trajectory.usage == Usage(5, 7, 0.5)
    assert (len(calls(trajectory)), parsed.key) == (1, "count__bt7g68Y")
    assert Fact("outcome", "passed", score=1.0) in parsed.facts
    assert value(trajectory.extra)["task_checksum"] == "c" * 64
    assert (tmp_path / "trial/agent/trajectory.json").read_bytes() in {one.bytes for one in parsed.objects}


def test_the_digest_of_the_lock_names_the_task_and_not_the_checksum(tmp_path: Path) -> None:
    one, other = read(tmp_path / "a", trial()), read(tmp_path / "b", trial(task_checksum="d" * 64))
    assert one.trajectory.task == other.trajectory.task
    assert attempt_id(one.trajectory, "x") == attempt_id(other.trajectory, "y")
    unlocked = read(tmp_path / "c", trial(), digest=None)
    assert (unlocked.trajectory.task.variant, unlocked.trajectory.conditions.environment) == (None, None)


UNKNOWN = Fact("outcome", "unknown", "rule", OUTCOME_RULE)


@pytest.mark.parametrize(
    ("rewards", "raised", "outcome", "stop"),
    [
        ({"reward": 1.0}, None, Fact("outcome", "passed", score=1.0), "completed"),
        ({"reward": 0}, None, Fact("outcome", "failed", score=0), "completed"),
        ({"reward": 0.4}, None, Fact("outcome", "partial", score=0.4), "completed"),
        ({"reward": 12.5}, None, Fact("outcome", "unknown", score=12.5), "completed"),
        ({"style": 1, "tests": 1}, None, Fact("outcome", "passed"), "completed"),
        ({"style": 1, "tests": 0}, None, Fact("outcome", "partial"), "completed"),
        ({"reward": 0, "tests": 1}, None, Fact("outcome", "failed", score=0), "completed"),
        ({}, None, UNKNOWN, "completed"),
        ({"reward": None}, None, UNKNOWN, "completed"),
        (None, None, UNKNOWN, "completed"),
        (None, "VerifierTimeoutError", UNKNOWN, "completed"),
        (None, "RewardFileNotFoundError", UNKNOWN, "completed"),
        ({"reward": 1.0}, "AgentTimeoutError", Fact("outcome", "passed", score=1.0), "timeout"),
        ({"reward": 0.0}, "AgentTimeoutError", Fact("outcome", "failed", score=0.0), "timeout"),
        ({"reward": 0.0}, "ContextWindowExceededError", Fact("outcome", "failed", score=0.0), "context_length"),
        ({"reward": 0.0}, "OutputTokenExceededError", Fact("outcome", "failed", score=0.0), "output_length"),
        ({"reward": 0.0}, "ApiRateLimitError", UNKNOWN, "provider_error"),
        ({"reward": 0.0}, "CancelledError", UNKNOWN, "cancelled"),
        ({"reward": 0.0}, "SomethingNew", UNKNOWN, "unknown"),
    ],
)
def test_rewards_and_what_was_raised_are_two_things(
    tmp_path: Path, rewards: Any, raised: str | None, outcome: Fact, stop: str
) -> None:
    parsed = read(tmp_path, trial(rewards, raised))
    assert parsed.facts[0] == outcome
    assert facts(parsed)["stop"] == stop
    assert parsed.trajectory.stop_text == (raised and f"{raised}: it broke")
    assert ("reward.tests" in facts(parsed)) == ("tests" in (rewards or {}))


def test_the_harness_own_word_on_its_rewards_counts(tmp_path: Path) -> None:
    assert read(tmp_path / "a", trial({"reward": 0.0}, reward_valid=False)).facts[0] == UNKNOWN
    kept = read(tmp_path / "b", trial({"reward": 0.0}, "SomethingNew", reward_valid=True))
    assert kept.facts[0] == Fact("outcome", "failed", score=0.0)


@pytest.mark.parametrize(
    ("agent", "config", "seconds"),
    [
        ({"override_timeout_sec": 60}, {"timeout_multiplier": 2.0}, 120.0),
        ({"override_timeout_sec": 60, "max_timeout_sec": 50}, {"agent_timeout_multiplier": 3}, 150),
        ({"override_timeout_sec": None}, {"timeout_multiplier": 2.0}, None),
    ],
)
def test_the_time_of_a_trial_is_known_where_it_is_set(tmp_path: Path, agent: Any, config: Any, seconds: Any) -> None:
    parsed = read(tmp_path, trial(config={**config, "agent": agent}))
    assert [fact for fact in parsed.facts if fact.field.startswith("budget")] == (
        [] if seconds is None else [Fact("budget.seconds", seconds, "rule", BUDGET_RULE)]
    )


@pytest.mark.parametrize("ran", [None, document(say("user", "How many A17?"))], ids=["no trajectory", "a request"])
def test_a_time_out_before_anything_happened_is_the_environments(tmp_path: Path, ran: Any) -> None:
    agent = {"name": "a", "override_timeout_sec": 14400}
    times = {"started_at": "2026-07-09T06:30:00Z", "finished_at": "2026-07-09T06:35:03Z"}
    given = trial({"reward": 0.0}, "AgentTimeoutError", config={"agent": agent}, agent_execution=times)
    store = new_store(tmp_path)
    import_file(store, write(tmp_path / "trial", given, ran))
    diagnose_attempts(store)
    (row,) = attempts(store)
    assert (row["stop"], row["outcome"]) == ("timeout", "failure")
    said = store.sql("SELECT field, value FROM effective_annotations WHERE field IN ('budget.seconds', ?)", [ELAPSED])
    assert dict(zip(*(map(str, column.to_pylist()) for column in said.columns), strict=True)) == {
        "budget.seconds": "14400",
        ELAPSED: "303.0",
    }
    (record,) = store.sql("SELECT record FROM effective_findings")["record"].to_pylist()
    found = msgspec.json.decode(record, type=Finding)
    assert (found.label, found.detail) == ("environment", "nothing_happened")
    assert [(item.kind, item.value, item.note) for item in found.evidence] == [
        ("absence", "no decision", "how the run stopped: timeout"),
        ("budget", "14400", "303"),
    ]
    assert check(store.uri).problems == []


@pytest.mark.parametrize(
    "times", [None, {"started_at": "x"}, {"started_at": "2026-07-09T06:30:00Z", "finished_at": "2026-07-09T06:29:00Z"}]
)
def test_a_time_that_the_log_does_not_tell_is_not_made_up(tmp_path: Path, times: Any) -> None:
    assert ELAPSED not in facts(read(tmp_path, trial({"reward": 0.0}, agent_execution=times)))


def test_a_trial_without_a_trajectory_counts_as_an_attempt(tmp_path: Path) -> None:
    path = write(tmp_path / "trial", trial({"reward": 0.0}, agent_result=None), ran=None)
    (tmp_path / "trial/agent/session.jsonl").write_text("{}")
    store = new_store(tmp_path)
    assert import_file(store, path).accepted == 1
    (attempt,) = attempts(store)
    assert (attempt["outcome"], attempt["messages"], attempt["stop"]) == ("failure", 0, "completed")
    assert [found.name for found in harbor.claims(path)] == ["config.json", "lock.json", "reward.txt"]


def test_a_trial_of_several_steps_is_an_attempt_a_step(tmp_path: Path) -> None:
    steps = [
        {"step_name": "one", "verifier_result": {"rewards": {"reward": 1}}, "agent_result": {"n_input_tokens": 3}},
        {"step_name": "two", "exception_info": {"exception_type": "AgentTimeoutError"}},
    ]
    folder = tmp_path / "trial"
    path = write(folder, trial(step_results=steps), ran=None)
    for number, name in enumerate(("one", "two")):
        (folder / "steps" / name / "agent").mkdir(parents=True)
        ran = document(say("user", name), *[say("agent", "x")] * (number + 1))
        (folder / "steps" / name / "agent" / "trajectory.json").write_text(json.dumps(ran))
    one, two = (accepted(item) for item in harbor.IMPORTER.read(path))
    assert [parsed.part for parsed in (one, two)] == ["step one", "step two"]
    assert [parsed.trajectory.task.variant for parsed in (one, two)] == [f"{DIGEST}/one", f"{DIGEST}/two"]
    assert [len(parsed.trajectory.messages) for parsed in (one, two)] == [2, 3]
    assert [facts(parsed)["outcome"] for parsed in (one, two)] == ["passed", "unknown"]
    assert one.trajectory.usage == Usage(3)


def test_a_trial_of_more_steps_than_are_read_is_refused_by_the_limit(tmp_path: Path) -> None:
    path = write(tmp_path / "trial", trial(step_results=[{"step_name": "0"}]), ran=None)
    for number in range(harbor.MAX_STEPS + 1):
        (tmp_path / "trial" / "steps" / str(number)).mkdir(parents=True)
    (item,) = harbor.IMPORTER.read(path)
    assert isinstance(item, Rejected)
    assert item.code == "too_large"
    assert f"over {harbor.MAX_STEPS} folders" in item.detail
    (tmp_path / "trial" / "steps" / "7").rmdir()
    assert accepted(*harbor.IMPORTER.read(path)).part == "step 0"


def test_a_folder_of_trials_is_read_once(tmp_path: Path) -> None:
    job = tmp_path / "job"
    for number in range(3):
        record = trial({"reward": number / 2}, id=f"id-{number}", trial_name=f"count__{number}")
        folder = job / f"count__{number}"
        write(folder, record)
        (folder / "agent" / "chats.jsonl").write_text(json.dumps({"messages": [{"role": "user", "content": "x"}]}))
    (job / "result.json").write_text(json.dumps({"id": "j", "stats": {}, "n_total_trials": 3}))
    sources = find_sources([job], "auto")
    assert [source.path.name for source in sources.files] == ["result.json"] * 3
    assert {source.importer.name for source in sources.files} == {"harbor"}
    parts = [name for name, why in sources.passed_over.items() if why.startswith("read as a part of")]
    assert len(parts) == 6  # a trajectory and the agent's own log of each


def test_importing_a_copied_trial_again_changes_nothing(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    record = trial({"reward": 1.0})
    assert import_file(store, write(tmp_path / "a", record)).accepted == 1
    again = import_file(store, write(tmp_path / "copy/of/a", record))
    assert (again.duplicates, len(attempts(store))) == (1, 1)
    trajectory = (tmp_path / "a/agent/trajectory.json").read_bytes()
    result_file = (tmp_path / "a/result.json").read_bytes()
    stored = set(store.sql("SELECT bytes FROM objects WHERE kind = 'raw'")["bytes"].to_pylist())
    assert stored == {trajectory, result_file}


def test_subagents_of_a_trial_are_runs_of_their_own(tmp_path: Path) -> None:
    ran = {**RAN, "subagent_trajectories": [{**document(say("agent", "x")), "trajectory_id": "helper"}]}
    root, sub = (accepted(item) for item in items(tmp_path, trial({"reward": 1.0}), ran))
    assert sub.trajectory.attempt == Attempt("5b44f65e-5339-4ce5-8165-290a9161fa54/helper")
    assert (facts(root)["strata.sidechain"], facts(sub)["strata.sidechain"]) == ("no", "yes")
    assert "outcome" not in facts(sub)


@pytest.mark.parametrize(
    ("record", "ran", "words"),
    [
        (trial(verifier_result=3), RAN, "$.verifier_result"),
        (trial({"reward": "1"}), RAN, "$.verifier_result.rewards"),
        (trial(), {"steps": 1}, "agent/trajectory.json: "),
        (trial(step_results=[{}]), RAN, "step_name"),
    ],
)
def test_another_shape_is_refused_with_its_place(tmp_path: Path, record: Any, ran: Any, words: str) -> None:
    (item,) = items(tmp_path, record, ran)
    assert isinstance(item, Rejected)
    assert item.code == "not_a_record"
    assert words in item.detail


def test_a_trajectory_that_is_no_json_or_too_large_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "trial", trial())
    inner = tmp_path / "trial/agent/trajectory.json"
    (large,) = harbor.IMPORTER.read(path, len(path.read_bytes()) + 100)
    inner.write_text('{"a": 1, "a": 2}')
    (twice,) = harbor.IMPORTER.read(path)
    inner.write_text("[" * 5_000)
    (deep,) = harbor.IMPORTER.read(path)
    codes = [item.code for item in (large, twice, deep) if isinstance(item, Rejected)]
    assert codes == ["too_large", "duplicate_key", "too_deep"]

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.importers import tau_bench
from curation.importers.face import Fact, Parsed
from curation.importers.tau_bench import GOLD_WRITES_RULE, STOP_RULE
from schemas.canonical import encode
from schemas.trajectory import Attempt, Task
from tests.importers.reading import accepted, answer, ask, call, calls

NAME = "tau-bench/gpt-4o-airline-tasks-00-24.json"
STOP = {"role": "user", "content": "Thanks. ###STOP###"}
GOLD = {"name": "book_reservation", "kwargs": {"user_id": "secret_gold_user"}}


@pytest.fixture(scope="module")
def runs(logs: Path) -> list[Parsed]:
    return [accepted(item) for item in tau_bench.IMPORTER.read(logs / NAME)]


def run(*messages: Any, **more: Any) -> dict[str, Any]:
    """One run of task 3 with a gold action."""
    info = {"task": {"actions": [GOLD], "outputs": ["secret"], "instruction": "secret"}, "user_cost": 0.5}
    said = [{"role": "user", "content": "Book me a seat."}, *messages]
    return {"task_id": 3, "trial": 1, "reward": 0.0, "info": info, "traj": said} | more


def read(folder: Path, *records: Any) -> list[Parsed]:
    path = folder / "runs.json"
    path.write_text(json.dumps(records))
    return [accepted(item) for item in tau_bench.IMPORTER.read(path)]


def facts(parsed: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in parsed.facts}


def test_the_published_runs_are_all_read(runs: list[Parsed]) -> None:
    assert len(runs) == 100
    assert len({parsed.trajectory.task.id for parsed in runs}) == 25
    assert Counter(parsed.trajectory.attempt for parsed in runs) == {Attempt(index=trial): 25 for trial in range(4)}
    assert {parsed.trajectory.task.namespace for parsed in runs} == {None}


def test_every_call_has_its_own_uid_and_answer_although_ids_repeat(runs: list[Parsed]) -> None:
    made = [calls(parsed.trajectory) for parsed in runs]
    assert sum(map(len, made)) == 621
    assert all(len({one.uid for one in some}) == len(some) for some in made)
    assert sum(len(some) - len({one.id for one in some}) for some in made) == 40
    for parsed in runs:
        for before, message in zip(parsed.trajectory.messages, parsed.trajectory.messages[1:], strict=False):
            if message.role == "tool":
                assert message.answers is not None
                assert [message.answers.uid] == [one.uid for one in before.tool_calls]
    assert Counter("repeated_call_id" in parsed.warnings for parsed in runs) == {True: 25, False: 75}


def test_outcome_stop_and_stratum_are_facts_with_their_author(runs: list[Parsed]) -> None:
    said = Counter((fact.field, fact.value, fact.by, fact.rule) for parsed in runs for fact in parsed.facts)
    assert said == {
        ("outcome", "passed", "log", ""): 31,
        ("outcome", "failed", "log", ""): 69,
        ("stop", "user_stop", "rule", STOP_RULE): 79,
        ("stop", "transfer", "rule", STOP_RULE): 18,
        ("stop", "unknown", "rule", STOP_RULE): 3,
        ("strata.gold_writes", "0", "rule", GOLD_WRITES_RULE): 28,
        ("strata.gold_writes", "1", "rule", GOLD_WRITES_RULE): 32,
        ("strata.gold_writes", "2", "rule", GOLD_WRITES_RULE): 24,
        ("strata.gold_writes", "3+", "rule", GOLD_WRITES_RULE): 16,
    }


def test_kept_by_stratum(runs: list[Parsed]) -> None:
    kept = Counter(facts(parsed)["strata.gold_writes"] for parsed in runs if facts(parsed)["outcome"] == "passed")
    assert kept == {"0": 20, "1": 9, "3+": 2}


def test_errors_of_the_tools_stay_text(runs: list[Parsed]) -> None:
    answers = [message for parsed in runs for message in parsed.trajectory.messages if message.role == "tool"]
    assert sum(str(message.content).startswith("Error") for message in answers) == 63
    assert all(message.error is None for message in answers)


def test_the_raw_bytes_are_slices_of_the_file(runs: list[Parsed], logs: Path) -> None:
    data = (logs / NAME).read_bytes()
    assert all(data[parsed.offset :].startswith(parsed.raw) for parsed in runs)
    assert [json.loads(parsed.raw) for parsed in runs] == json.loads(data)


def test_no_hidden_answer_enters_a_published_record(runs: list[Parsed]) -> None:
    for parsed in runs:
        hidden = json.loads(parsed.raw)["info"]
        record = encode(parsed.trajectory).decode()
        assert hidden["task"]["instruction"] not in record
        assert set(msgspec.json.decode(bytes(parsed.trajectory.extra or b"{}"))) <= {"source", "user_cost"}
        assert "gt_data_hash" not in record
    assert not any("gold_suffix" in parsed.warnings for parsed in runs)


def test_no_hidden_answer_enters_a_record(tmp_path: Path) -> None:
    (parsed,) = read(tmp_path, run(reward_note="secret", ground_truth=["secret"]))
    assert parsed.trajectory.task == Task(id="3")
    assert parsed.trajectory.extra == msgspec.Raw(b'{"user_cost":0.5}')
    assert b"secret" not in encode(parsed.trajectory)
    assert not any("secret" in str(fact) for fact in parsed.facts)


@pytest.mark.parametrize(
    ("reward", "outcome"), [(1, "passed"), (1.0, "passed"), (0.0, "failed"), (0.5, "partial"), (-1, "unknown")]
)
def test_a_reward_is_an_outcome(tmp_path: Path, reward: float, outcome: str) -> None:
    (parsed,) = read(tmp_path, run(reward=reward))
    assert parsed.facts[0] == Fact("outcome", outcome, score=reward)


@pytest.mark.parametrize("gone", [{"reward": None}, {}])
def test_a_missing_reward_is_no_outcome(tmp_path: Path, gone: dict[str, Any]) -> None:
    record = run()
    del record["reward"]
    (parsed,) = read(tmp_path, record | gone)
    assert "outcome" not in facts(parsed)


@pytest.mark.parametrize(
    ("names", "stratum"),
    [
        ([], "0"),
        (["get_user_details", "think"], "0"),
        (["send_certificate", "cancel_reservation"], "2"),
        (["modify_pending_order_items"] * 4, "3+"),
        (["book_reservation", "launch_rocket"], None),
    ],
)
def test_gold_writes_are_counted_only_where_every_action_is_of_known_kind(
    tmp_path: Path, names: list[str], stratum: str | None
) -> None:
    info = {"task": {"actions": [{"name": name, "kwargs": {}} for name in names]}}
    (parsed,) = read(tmp_path, run(info=info))
    assert facts(parsed).get("strata.gold_writes") == stratum


def test_a_stratum_from_hidden_answers_says_so(tmp_path: Path) -> None:
    (parsed,) = read(tmp_path, run())
    (fact,) = [fact for fact in parsed.facts if fact.field == "strata.gold_writes"]
    assert fact.reads == ("hidden_answer",)


def test_a_stop_mark_that_is_not_the_last_thing_said_by_the_user_is_no_stop(tmp_path: Path) -> None:
    (parsed,) = read(tmp_path, run(STOP, {"role": "user", "content": "One more thing."}))
    assert facts(parsed)["stop"] == "unknown"


@pytest.mark.parametrize(
    ("messages", "leaked"),
    [
        ([ask(call(GOLD["kwargs"], name="book_reservation")), answer("ok"), STOP], False),
        ([STOP, ask(call(GOLD["kwargs"], name="book_reservation")), answer("ok")], True),
        ([STOP, ask(call({"user_id": "other"}, name="book_reservation"))], False),
        (
            [
                ask(call({}, name="transfer_to_human_agents")),
                answer("ok"),
                ask(call(json.dumps(GOLD["kwargs"]), name="book_reservation")),
            ],
            True,
        ),
    ],
)
def test_gold_actions_after_the_end_of_a_run_are_named(tmp_path: Path, messages: list[Any], leaked: bool) -> None:
    (parsed,) = read(tmp_path, run(*messages))
    assert ("gold_suffix" in parsed.warnings) == leaked


@pytest.mark.parametrize(
    ("record", "path"),
    [
        ({"trial": 0, "traj": []}, "task_id"),
        ({"task_id": 1}, "traj"),
        ({"task_id": 1, "traj": {}}, "$.traj"),
        ({"task_id": 1, "traj": [{"role": "narrator"}]}, "$.traj[0].role"),
        ({"task_id": 1, "traj": [], "trial": "x"}, "$.trial"),
        ({"task_id": 1, "traj": [], "info": {"task": {"actions": [1]}}}, "$.info.task.actions[0]"),
        (7, "int"),
    ],
)
def test_a_malformed_run_is_refused_and_the_others_are_read(tmp_path: Path, record: Any, path: str) -> None:
    file = tmp_path / "runs.json"
    file.write_text(json.dumps([run(), record, run()]))
    first, refused, last = tau_bench.IMPORTER.read(file)
    assert accepted(first).place == 1
    assert accepted(last).place == 3
    assert path in refused.detail  # type: ignore[union-attr]
    assert (refused.place, json.loads(refused.raw)) == (2, record)

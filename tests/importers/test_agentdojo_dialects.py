"""AgentDojo's run files as DRIFT and luna write them."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.importers import agentdojo, formats
from curation.importers.face import Parsed
from schemas.canonical import encode
from tests.importers.reading import accepted, calls

CALL = {"function": "read_file", "args": {"file_path": "bill.txt"}, "id": "c1"}
TEXT = '<function_call>[read_file(file_path="bill.txt")]</function_call>'
DRIFT: dict[str, Any] = {
    "suite_name": "banking",
    "pipeline_name": "m",
    "user_task_id": "user_task_0",
    "injection_task_id": None,
    "attack_type": None,
    "tool_permission": {"read_file": "Read"},
    "conversations": [
        {"role": "user", "content": "Pay the bill."},
        {"role": "assistant", "content": TEXT, "tool_calls": [CALL]},
        {"role": "tool", "content": "98.70", "tool_call_id": "c1", "tool_call": CALL, "error": None},
        {"role": "assistant", "content": "Paid.", "tool_calls": []},
    ],
    "benchmark_version": "v1.2",
    "utility": True,
    "security": True,
    "total_tokens": 10,
}
LUNA: dict[str, Any] = {
    "run_id": "airport_t01_poison_1",
    "suite_name": "airport_suite",
    "pipeline_name": "m",
    "task_id": "t01",
    "condition": "poison_top1",
    "seed": 1,
    "available_tools": ["read_file"],
    "messages": DRIFT["conversations"],
    "trace": [CALL],
    "evaluation": {"utility": False, "security": True, "metadata": {"required_tools": ["hidden_tool"]}},
}


def read(folder: Path, run: dict[str, Any]) -> Parsed:
    path = folder / "run"
    path.write_text(json.dumps(run, indent=1))
    assert formats.detect(path)[0] is agentdojo.IMPORTER
    (item,) = agentdojo.IMPORTER.read(path)
    return accepted(item)


def facts(parsed: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in parsed.facts}


@pytest.mark.parametrize("run", [DRIFT, LUNA])
def test_the_calls_and_answers_are_those_of_the_messages(tmp_path: Path, run: dict[str, Any]) -> None:
    trajectory = read(tmp_path, run).trajectory
    assert [each.role for each in trajectory.messages] == ["user", "assistant", "tool", "assistant"]
    assert [each.id for each in calls(trajectory)] == ["c1"]
    assert trajectory.messages[1].content == TEXT
    assert trajectory.messages[2].answers is not None


def test_drift_is_another_agent_of_the_same_tasks(tmp_path: Path) -> None:
    parsed = read(tmp_path, DRIFT)
    original = read(tmp_path, {**DRIFT, "messages": DRIFT["conversations"]} | {"conversations": None})
    assert parsed.trajectory.task == original.trajectory.task
    assert parsed.trajectory.attempt != original.trajectory.attempt
    assert facts(parsed)["outcome"] == "passed"
    assert "budget.steps" in facts(original)
    assert "budget.steps" not in facts(parsed)


def test_luna_names_its_try_and_hides_what_its_check_looks_for(tmp_path: Path) -> None:
    parsed = read(tmp_path, LUNA)
    trajectory = parsed.trajectory
    assert (trajectory.task.id, trajectory.task.variant) == ("t01", "poison_top1")
    assert (trajectory.attempt.run, trajectory.conditions.seed) == ("airport_t01_poison_1", 1)  # type: ignore[union-attr]
    assert facts(parsed)["outcome"] == "failed"
    assert b"hidden_tool" not in encode(trajectory)


@pytest.mark.parametrize("evaluation", [None, {}, {"utility": None}, "?"])
def test_a_verdict_that_is_missing_is_none(tmp_path: Path, evaluation: Any) -> None:
    assert "outcome" not in facts(read(tmp_path, LUNA | {"evaluation": evaluation}))

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.clocks import CLOCKS, read_clocks
from curation.errors import UsageError
from curation.importers import formats, mini_swe_agent
from curation.importers.face import Parsed, Rejected
from schemas.trajectory import Answers, Budget, Json, MessageError, Task, Usage
from tests.importers.reading import accepted, calls

FOLDER = "mini-swe-agent/tests/test_data"
SYSTEM = {"role": "system", "content": "Finish with `echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT`."}
REQUEST = {"role": "user", "content": "Fix it."}
CONFIG = {
    "agent": {"step_limit": 250, "cost_limit": 3.0, "wall_time_limit_seconds": 0},
    "model": {"model_name": "vendor/model", "model_kwargs": {"temperature": 0.0, "api_key": "secret"}},
    "environment": {"image": "image:1"},
}


def tool_call(command: str, name: str = "c1") -> dict[str, Any]:
    return {"id": name, "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": command})}}


def ask(*commands: str, text: str | None = None) -> dict[str, Any]:
    made = [tool_call(command, f"c{number}") for number, command in enumerate(commands)]
    actions = [{"command": command, "tool_call_id": f"c{number}"} for number, command in enumerate(commands)]
    extra = {"actions": actions, "cost": 0.01, "timestamp": 1_750_000_000.5, "response": {"id": "r", "choices": ["x"]}}
    return {"role": "assistant", "content": text, "tool_calls": made, "extra": extra}


def answer(output: str, name: str = "c0", **extra: Any) -> dict[str, Any]:
    shown = f"<returncode>0</returncode>\n<output>\n{output}</output>"
    return {
        "role": "tool",
        "tool_call_id": name,
        "content": shown,
        "extra": {"raw_output": output, "returncode": 0, "exception_info": None, **extra},
    }


def leave(status: str = "Submitted", content: str = "diff") -> dict[str, Any]:
    return {"role": "exit", "content": content, "extra": {"exit_status": status, "submission": content}}


def run(*messages: Any, **more: Any) -> dict[str, Any]:
    info = {"model_stats": {"instance_cost": 0.02, "api_calls": 1}, "config": CONFIG, "mini_version": "2.4.6"}
    status = messages[-1]["extra"]["exit_status"] if messages and messages[-1]["role"] == "exit" else ""
    return {
        "info": {**info, "exit_status": status, "submission": ""},
        "messages": [SYSTEM, REQUEST, *messages],
        "trajectory_format": "mini-swe-agent-1.1",
        **more,
    }


def read(folder: Path, record: Any) -> Parsed:
    path = folder / "run.traj.json"
    path.write_text(json.dumps(record))
    assert formats.detect(path)[0] is mini_swe_agent.IMPORTER
    (item,) = mini_swe_agent.IMPORTER.read(path)
    return accepted(item)


def facts(parsed: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in parsed.facts}


def value(raw: Json) -> Any:
    assert isinstance(raw, msgspec.Raw)
    return json.loads(bytes(raw))


@pytest.mark.parametrize(("name", "made"), [("github_issue", 10), ("local", 2)])
def test_the_bare_lists_are_read_with_what_they_execute(logs: Path, name: str, made: int) -> None:
    path = logs / FOLDER / f"{name}.traj.json"
    (item,) = mini_swe_agent.IMPORTER.read(path)
    parsed, logged = accepted(item), json.loads(path.read_bytes())
    assert len(calls(parsed.trajectory)) == made == sum(entry["role"] == "assistant" for entry in logged)
    for call, entry in zip(calls(parsed.trajectory), logged[2::2], strict=True):
        assert value(call.arguments)["command"] in entry["content"]
    linked = [message.answers for message in parsed.trajectory.messages if message.role == "tool"]
    assert linked == [Answers(call.uid, "position") for call in calls(parsed.trajectory)[:-1]]
    assert (parsed.key, facts(parsed)) == (name, {"stop": "completed"})
    submitted = logged[-1]["content"]
    assert (parsed.trajectory.extra is msgspec.UNSET) if not submitted else value(parsed.trajectory.extra)


def test_the_results_of_a_batch_are_no_run(logs: Path) -> None:
    with pytest.raises(UsageError, match="it holds predictions, no runs"):
        formats.detect(logs / FOLDER / "results.json")


def test_a_run_names_its_task_budget_model_and_cost(tmp_path: Path) -> None:
    parsed = read(tmp_path, run(ask("ls"), answer("a\n"), leave(), instance_id="repo__1"))
    trajectory, conditions = parsed.trajectory, parsed.trajectory.conditions
    assert (trajectory.task, parsed.key) == (Task(id="repo__1"), "repo__1")
    assert conditions.budget == Budget(steps=250, cost=3.0)
    assert (conditions.model, conditions.agent) == ("vendor/model", "mini-swe-agent@2.4.6")
    assert (value(conditions.sampling), conditions.environment) == ({"temperature": 0.0}, "image:1")
    assert (trajectory.usage, trajectory.stop_text) == (Usage(cost=0.02), "Submitted")
    assert value(trajectory.extra) == {"submission": "diff"}
    assert b"secret" not in bytes(msgspec.json.encode(trajectory))


def spent(message: dict[str, Any], *, prompt: int, completion: int) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    return message | {"extra": message.get("extra", {}) | {"response": {"id": "r", "usage": usage}}}


@pytest.mark.parametrize(("calls_made", "tokens"), [(2, (12, 5)), (3, (None, None))])
def test_tokens_are_those_of_all_responses_or_unknown(
    tmp_path: Path, calls_made: int, tokens: tuple[int | None, int | None]
) -> None:
    complaint = {"role": "user", "content": "No call.", "extra": {"interrupt_type": "FormatError"}}
    record = run(spent(ask("ls"), prompt=5, completion=2), answer("a"), spent(complaint, prompt=7, completion=3))
    record["info"]["model_stats"] = {"instance_cost": 0.5, "api_calls": calls_made}
    assert read(tmp_path, record).trajectory.usage == Usage(*tokens, 0.5)


def test_answers_are_paired_by_id_and_keep_what_the_tool_said(tmp_path: Path) -> None:
    parsed = read(tmp_path, run(ask("ls", "pwd"), answer("/x\n", "c1"), answer("a\n", "c0"), leave()))
    _, _, asked, second, first = parsed.trajectory.messages
    assert [call.arguments_text for call in asked.tool_calls] == ['{"command": "ls"}', '{"command": "pwd"}']
    assert [first.answers, second.answers] == [Answers("2.0", "id"), Answers("2.1", "id")]
    assert (first.raw, value(first.extra)) == ("a\n", {"returncode": 0})
    assert value(asked.extra)["response"] == {"id": "r"}
    assert read_clocks(facts(parsed)[CLOCKS]).times == ("2025-06-15T15:06:40.500000+00:00",)


def test_a_command_as_text_is_a_call_and_its_answer_a_tool_message(tmp_path: Path) -> None:
    said = {"role": "assistant", "content": "```mswea_bash_command\nls\n```", "extra": {"actions": [{"command": "ls"}]}}
    told = {"role": "user", "content": "<output>a</output>", "extra": {"raw_output": "a", "returncode": 0}}
    parsed = read(tmp_path, run(said, told, leave()))
    (call,) = calls(parsed.trajectory)
    assert (call.name, call.arguments_text, call.id) == ("bash", '{"command":"ls"}', None)
    message = parsed.trajectory.messages[3]
    assert (message.role, message.raw, message.answers) == ("tool", "a", Answers("2.0", "position"))
    assert value(message.extra)["shown_as"] == "user"


def test_what_the_harness_raised_while_executing_is_an_error(tmp_path: Path) -> None:
    told = answer("", exception_info="timed out after 30 s")
    parsed = read(tmp_path, run(ask("sleep 99"), told, leave("LimitsExceeded", "LimitsExceeded")))
    assert parsed.trajectory.messages[3].error == MessageError("timed out after 30 s", origin="harness")


def test_an_answer_that_could_not_be_parsed_stays_with_the_complaint(tmp_path: Path) -> None:
    complaint = {
        "role": "user",
        "content": "Please call the tool.",
        "extra": {"interrupt_type": "FormatError", "response": {"choices": [{"message": {"content": "I am done"}}]}},
    }
    parsed = read(tmp_path, run(complaint, ask("ls"), answer("a"), leave()))
    message = parsed.trajectory.messages[2]
    assert (message.role, value(message.extra)["interrupt_type"]) == ("user", "FormatError")
    assert value(message.extra)["response"]["choices"][0]["message"]["content"] == "I am done"


def test_turns_logged_as_response_items_are_messages(tmp_path: Path) -> None:
    asked = {
        "object": "response",
        "id": "r1",
        "output": [
            {"type": "reasoning", "summary": [{"text": "Look first."}], "encrypted_content": "x"},
            {"type": "message", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "c9", "name": "bash", "arguments": '{"command": "ls"}'},
        ],
        "extra": {"actions": [{"command": "ls", "tool_call_id": "c9"}], "cost": 0.01},
    }
    told = {"type": "function_call_output", "call_id": "c9", "output": "shown", "extra": {"raw_output": "raw"}}
    parsed = read(tmp_path, run(asked, told, leave()))
    _, _, turn, answered = parsed.trajectory.messages
    assert (turn.content, turn.reasoning, turn.hidden) == ("I look.", "Look first.", "reasoning")
    assert (turn.tool_calls[0].id, turn.tool_calls[0].arguments_text) == ("c9", '{"command": "ls"}')
    assert (answered.content, answered.raw, answered.answers) == ("shown", "raw", Answers("2.0", "id"))


@pytest.mark.parametrize(
    ("status", "stop"),
    [
        ("Submitted", "completed"),
        ("LimitsExceeded", "max_steps"),
        ("TimeExceeded", "timeout"),
        ("RepeatedFormatError", "parse_error"),
        ("ContextWindowExceededError", "context_length"),
        ("RateLimitError", "provider_error"),
        ("KeyError", "unknown"),
    ],
)
def test_the_exit_message_is_no_message_but_how_the_run_ended(tmp_path: Path, status: str, stop: str) -> None:
    parsed = read(tmp_path, run(ask("ls"), answer("a"), leave(status, "x")))
    assert (parsed.trajectory.stop_text, facts(parsed)["stop"]) == (status, stop)
    assert [message.role for message in parsed.trajectory.messages] == ["system", "user", "assistant", "tool"]
    assert "outcome" not in facts(parsed)


def test_a_text_with_two_blocks_was_not_executed(tmp_path: Path) -> None:
    twice = {"role": "assistant", "content": "```bash\nls\n```\nor\n```bash\npwd\n```"}
    parsed = read(tmp_path, [SYSTEM, REQUEST, twice, {"role": "user", "content": "one block only"}])
    assert not calls(parsed.trajectory)
    assert facts(parsed)["stop"] == "unknown"


@pytest.mark.parametrize(
    "record",
    [
        {"trajectory_format": "mini-swe-agent-1.1", "messages": [1]},
        run({"role": "assistant", "content": "x", "tool_calls": "y"}),
        run({"role": "assistant", "content": "x", "extra": [1]}),
        run(info=[]),
        [SYSTEM, REQUEST, {"role": "assistant", "content": 1}],
        [
            SYSTEM,
            {"role": "assistant", "content": "x", "tool_calls": [{"function": {"name": "f", "arguments": "x"}}]},
            1,
        ],
    ],
)
def test_another_shape_is_refused(tmp_path: Path, record: Any) -> None:
    path = tmp_path / "a.traj.json"
    path.write_text(json.dumps(record))
    (item,) = mini_swe_agent.IMPORTER.read(path)
    assert isinstance(item, Rejected)
    assert item.code in ("not_a_record", "unknown_role")

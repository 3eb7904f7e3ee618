import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.errors import UsageError
from curation.importers import formats, openhands
from curation.importers.face import Fact, Parsed, Rejected
from schemas.digests import decisions_of
from schemas.trajectory import Answers, Budget, Json, Message, MessageError, Part, Task, Usage
from tests.importers.reading import accepted, calls, write

RUNS = "openhands/evaluation/benchmarks/multi_swe_bench/examples/output.jsonl"
RESOLVED = "openhands/tests/unit/resolver/mock_output/output.jsonl"
PREDICTIONS = "openhands/evaluation/benchmarks/swe_bench/examples/example_model_output.json"
EVENTS = "openhands/tests/runtime/trajs"


def response(*made: tuple[str, str, str], text: str | None = None, name: str = "r1", **more: Any) -> dict[str, Any]:
    """A model's response with calls of (id, name, arguments)."""
    asked = [
        {"index": number, "id": call, "type": "function", "function": {"name": tool, "arguments": arguments}}
        for number, (call, tool, arguments) in enumerate(made)
    ]
    said = {"role": "assistant", "content": text, "tool_calls": asked or None, **more}
    return {"id": name, "model": "m", "choices": [{"index": 0, "message": said}], "usage": {"prompt_tokens": 1}}


def act(number: int, action: str, answered: dict[str, Any] | None = None, call: str | None = None, **args: Any) -> Any:
    event = {"id": number, "timestamp": "2025-04-30T16:32:54.70", "source": "agent", "action": action, "args": args}
    if answered is not None:
        total = len(answered["choices"][0]["message"]["tool_calls"] or ())
        meta = {"function_name": "x", "tool_call_id": call, "model_response": answered}
        event["tool_call_metadata"] = {**meta, "total_calls_in_response": total}
    return event


def observe(number: int, content: str, cause: int | None = None, call: str | None = None, **more: Any) -> Any:
    event = {"id": number, "source": "agent", "observation": "run", "content": content, "cause": cause, "extras": {}}
    if call is not None:
        event["tool_call_metadata"] = {"tool_call_id": call, "function_name": "x"}
    return {name: value for name, value in {**event, **more}.items() if value is not None}


def ask(text: str = "Fix it.", number: int = 0, **args: Any) -> dict[str, Any]:
    return {"id": number, "source": "user", "action": "message", "args": {"content": text, **args}}


LOOK = response(("c1", "execute_bash", '{"command": "ls"}'), text="I look.")
FINISH = act(90, "finish", final_thought="Done.", task_completed="true", thought="Done.")


def run(*history: Any, **more: Any) -> dict[str, Any]:
    llm = {"model": "vendor/m", "temperature": 0.0, "api_key": "**********"}
    return {
        "instance_id": "repo__1",
        "instruction": "Fix it.",
        "metadata": {"agent_class": "CodeActAgent", "llm_config": llm, "max_iterations": 5, "dataset": "set-test"},
        "history": [ask(), *history],
        "error": None,
        "instance": {"repo": "o/r", "base_commit": "abc", "FAIL_TO_PASS": "hidden_test", "patch": "gold patch"},
        **more,
    }


def read(folder: Path, record: Any) -> Parsed:
    path = write(folder / "output.jsonl", [record])
    assert formats.detect(path)[0] is openhands.IMPORTER
    (item,) = openhands.IMPORTER.read(path)
    return accepted(item)


def read_all(path: Path) -> list[Parsed]:
    return [accepted(item) for item in openhands.IMPORTER.read(path)]


def facts(parsed: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in parsed.facts}


def value(raw: Json) -> Any:
    assert isinstance(raw, msgspec.Raw)
    return json.loads(bytes(raw))


def tools(parsed: Parsed) -> list[Message]:
    return [message for message in parsed.trajectory.messages if message.role == "tool"]


def test_the_evaluation_runs_agree_with_what_they_count_themselves(logs: Path) -> None:
    lines = [json.loads(line) for line in (logs / RUNS).read_bytes().splitlines()]
    for record, parsed in zip(lines, read_all(logs / RUNS), strict=True):
        trajectory, spent = parsed.trajectory, record["metrics"]["accumulated_token_usage"]
        assert trajectory.usage == Usage(spent["prompt_tokens"], spent["completion_tokens"], 0.0)
        assert len(calls(trajectory)) == len(record["metrics"]["token_usages"])
        assert all(message.answers is not None and message.answers.by == "id" for message in tools(parsed))
        assert trajectory.task.id == parsed.key == record["instance_id"]
        assert trajectory.conditions.budget == Budget(steps=50)
        assert trajectory.conditions.tools is not None
        assert not parsed.warnings


def test_the_evaluation_runs_end_as_they_say(logs: Path) -> None:
    found = read_all(logs / RUNS)
    assert [facts(parsed)["stop"] for parsed in found] == ["completed", "completed", "max_steps"]
    assert not any("outcome" in facts(parsed) for parsed in found)
    complaints = [message for parsed in found for message in parsed.trajectory.messages if message.actor == "harness"]
    assert [(message.role, message.error is not None) for message in complaints] == [("user", True)] * 2


def test_what_the_resolver_judged_was_read_off_by_a_judge(logs: Path) -> None:
    found = read_all(logs / RESOLVED)
    assert [parsed.trajectory.task for parsed in found] == [
        Task("neubig/pr-viewer", "5"),
        Task("neubig/pr-viewer", "1"),
    ]
    assert [len(calls(parsed.trajectory)) for parsed in found] == [3, 21]
    for parsed in found:
        assert Fact("outcome", "passed", reads=("judge",)) in parsed.facts
        assert [message.answers and message.answers.by for message in tools(parsed)] == ["position"] * len(
            tools(parsed)
        )


@pytest.mark.parametrize(
    ("name", "made", "stop"),
    [
        ("basic", 2, "completed"),
        ("basic_gui_mode", 4, "unknown"),
        ("basic_interactions", 1, "completed"),
        ("wrong_initial_state", 4, "completed"),
    ],
)
def test_lists_of_events_are_read_whole(logs: Path, name: str, made: int, stop: str) -> None:
    (parsed,) = read_all(logs / EVENTS / f"{name}.json")
    assert (len(calls(parsed.trajectory)), facts(parsed)["stop"]) == (made, stop)
    assert not parsed.warnings


def test_predictions_are_no_log(logs: Path) -> None:
    with pytest.raises(UsageError, match="it holds predictions, no runs"):
        formats.detect(logs / PREDICTIONS)
    (item,) = openhands.IMPORTER.read(logs / PREDICTIONS)
    assert isinstance(item, Rejected)
    assert "model_patch" in item.detail


def test_hidden_answers_and_hosts_are_not_in_the_record(tmp_path: Path) -> None:
    told = observe(2, "a", 1, "c1", extras={"metadata": {"hostname": "secret-host", "exit_code": 0}})
    parsed = read(tmp_path, run(act(1, "run", LOOK, "c1", command="ls"), told))
    written = msgspec.json.encode(parsed.trajectory)
    assert not any(text in written for text in (b"hidden_test", b"gold patch", b"secret-host", b"*****"))
    assert value(parsed.trajectory.task.parameters) == {"base_commit": "abc", "repo": "o/r"}
    assert value(tools(parsed)[0].extra) == {"metadata": {"exit_code": 0}, "observation": "run"}


def test_the_calls_of_one_response_are_one_turn(tmp_path: Path) -> None:
    both = response(("c1", "execute_bash", '{"command":"a"}'), ("c2", "execute_bash", '{"command":"b"}'), text="Both.")
    parsed = read(
        tmp_path,
        run(
            act(3, "run", both, "c1", command="a"),
            act(7, "run", both, "c2", command="b"),
            observe(8, "B", 7, "c2"),
            observe(9, "A", 3, "c1"),
            FINISH,
        ),
    )
    _, turn, second, first, last = parsed.trajectory.messages
    assert [call.id for call in turn.tool_calls] == ["c1", "c2"]
    assert (second.answers, first.answers) == (Answers("1.1", "id"), Answers("1.0", "id"))
    assert (turn.content, last.content, last.tool_calls) == ("Both.", "Done.", ())
    assert len(decisions_of(parsed.trajectory)) == 2


def test_an_answer_that_names_only_its_cause_is_that_actions(tmp_path: Path) -> None:
    first, second = act(3, "run", command="a", thought="One."), act(5, "read", path="b", confirmation_state="confirmed")
    parsed = read(tmp_path, run(first, second, observe(6, "A", 3), observe(7, "B", 5)))
    assert [message.answers for message in tools(parsed)] == [Answers("1.0", "id"), Answers("2.0", "id")]
    assert [call.arguments_text for call in calls(parsed.trajectory)] == ['{"command":"a"}', '{"path":"b"}']
    assert parsed.trajectory.messages[1].content == "One."


def test_pairs_of_the_older_form_are_read_in_their_order(tmp_path: Path) -> None:
    pairs = [
        [
            {"action": "message", "args": {"content": "Fix it."}, "source": "user"},
            {"observation": "null", "content": ""},
        ],
        [{"action": "run", "args": {"command": "ls", "thought": "T"}}, {"observation": "run", "content": "a"}],
    ]
    record = {"instance_id": 3, "metadata": None, "history": pairs}
    parsed = read(tmp_path, record)
    assert [message.role for message in parsed.trajectory.messages] == ["user", "assistant", "tool"]
    assert tools(parsed)[0].answers == Answers("1.0", "position")
    assert parsed.trajectory.task == Task(id="3")


def test_a_call_that_does_not_parse_is_kept_as_written(tmp_path: Path) -> None:
    broken = response(("c1", "execute_bash", '{"command": "ls"'))
    parsed = read(tmp_path, run(act(1, "run", broken, "c1", command="ls"), observe(2, "a", 1, "c1")))
    (call,) = calls(parsed.trajectory)
    assert (call.arguments_text, call.parse_error) == ('{"command": "ls"', "truncated")


def test_an_error_is_marked_whoever_it_answers(tmp_path: Path) -> None:
    failed = observe(2, "no such file", 1, "c1", observation="error")
    complaint = observe(3, "unknown function", observation="error")
    parsed = read(tmp_path, run(act(1, "run", LOOK, "c1", command="ls"), failed, complaint))
    answered, told = parsed.trajectory.messages[2:]
    assert (answered.role, answered.error) == ("tool", MessageError("no such file", origin="tool"))
    assert (told.role, told.error) == ("user", MessageError("unknown function", origin="harness"))


def test_what_was_recalled_or_forgotten_leaves_the_history_incomplete(tmp_path: Path) -> None:
    asked = {"id": 1, "source": "user", "action": "recall", "args": {"query": "x"}}
    knowledge = {"microagent_knowledge": [{"name": "git"}], "runtime_hosts": {"http://host": 1}}
    recalled = {"id": 2, "source": "environment", "observation": "recall", "content": "Added", "extras": knowledge}
    forgot = {"id": 4, "source": "agent", "action": "condensation", "args": {"forgotten_event_ids": [1]}}
    again = response(("c2", "execute_bash", "{}"), name="r2")
    parsed = read(
        tmp_path,
        run(
            asked, recalled, act(3, "run", LOOK, "c1"), forgot, act(5, "run", again, "c2"), act(6, "think", thought="x")
        ),
    )
    assert [message.hidden for message in parsed.trajectory.messages] == [None, "compaction", "compaction", None]
    assert value(parsed.trajectory.extra) == {"recalled": [{"microagent_knowledge": [{"name": "git"}]}]}


def test_pictures_are_blobs(tmp_path: Path) -> None:
    picture = "data:image/png;base64," + "A" * 5_000
    told = observe(2, "page", 1, "c1", observation="browse", extras={"screenshot": picture, "url": "u"})
    history = [ask("See.", 5, image_urls=[picture]), act(1, "browse", LOOK, "c1"), told]
    parsed = read(tmp_path, run(*history))
    shown = parsed.trajectory.messages[1].content
    assert isinstance(shown, tuple)
    assert [part.type for part in shown] == ["text", "image_url"]
    assert value(tools(parsed)[0].extra)["screenshot"].keys() == {"sha256"}
    assert b"AAAA" not in msgspec.json.encode(parsed.trajectory)
    assert {Part("image_url", sha256=blob.id) for blob in parsed.objects} >= {shown[1]}


@pytest.mark.parametrize(
    ("more", "outcome"),
    [
        ({}, None),
        ({"report": {"resolved": True}}, "passed"),
        ({"test_result": {"report": {"resolved": False}}}, "failed"),
        ({"report": {"resolved": False, "error_eval": True}}, "unknown"),
        ({"report": {"resolved": False, "test_timeout": True}}, "unknown"),
        ({"success": True, "error": "RuntimeError: x"}, None),
    ],
)
def test_only_a_report_is_an_outcome(tmp_path: Path, more: dict[str, Any], outcome: str | None) -> None:
    parsed = read(tmp_path, run(act(1, "run", LOOK, "c1"), FINISH, **more))
    assert facts(parsed).get("outcome") == outcome


@pytest.mark.parametrize(
    ("history", "error", "stop"),
    [
        ([FINISH], None, "completed"),
        ([], None, "unknown"),
        ([act(number, "run", thought="x") for number in range(5)], "RuntimeError: any words", "max_steps"),
        ([FINISH], "litellm.RateLimitError: 429", "provider_error"),
        ([FINISH], "AgentRuntimeTimeoutError: slow", "timeout"),
        ([FINISH], "it reached the maximum iteration", "unknown"),
    ],
)
def test_how_a_run_ended(tmp_path: Path, history: list[Any], error: str | None, stop: str) -> None:
    parsed = read(tmp_path, run(*history, error=error))
    assert (parsed.trajectory.stop_text, facts(parsed)["stop"]) == (error, stop)


@pytest.mark.parametrize(
    "record",
    [
        run(history=[]),
        run(history=[1]),
        run(history={}),
        run({"id": "x", "action": "run"}),
        run({**observe(1, "x"), "content": 3}),
        run({**act(1, "run"), "args": []}),
        run(metadata=3),
    ],
)
def test_another_shape_is_refused(tmp_path: Path, record: Any) -> None:
    (item,) = openhands.IMPORTER.read(write(tmp_path / "output.jsonl", [record]))
    assert isinstance(item, Rejected)
    assert item.code == "not_a_record"

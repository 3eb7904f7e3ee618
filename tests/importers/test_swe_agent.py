import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.importers import swe_agent
from curation.importers.face import Fact, Parsed, Rejected
from curation.importers.swe_agent import NAME_RULE, STOP_RULE
from schemas.canonical import encode
from schemas.digests import decisions_of
from schemas.trajectory import Answers, Budget, Json, Task, Usage
from tests.importers.reading import accepted, calls

TEXT, TEMPLATE = "bash", "{observation}\n(Open file: n/a)\nbash-$"


@pytest.fixture(scope="module")
def runs(logs: Path) -> dict[str, tuple[dict[str, Any], Parsed]]:
    """Every real file by its path: what it holds and what is read of it."""
    found = {}
    for path in sorted((logs / "swe-agent").rglob("*.traj")):
        (item,) = swe_agent.IMPORTER.read(path)
        found[path.relative_to(logs).as_posix()] = (json.loads(path.read_bytes()), accepted(item))
    return found


def step(action: str, observation: str | None, response: str | None = None, **more: Any) -> dict[str, Any]:
    said = f"I do it.\n```\n{action}\n```" if response is None else response
    thought = more.pop("thought", "I do it.\n")
    return {"action": action, "observation": observation, "response": said, "thought": thought, "state": "{}\n"} | more


def turn(made: dict[str, Any], **more: Any) -> dict[str, Any]:
    """The entry of the history that a step gives."""
    said = {"role": "assistant", "content": made["response"], "thought": made["thought"], "action": made["action"]}
    return {**said, "agent": "main", "message_type": "action", **more}


def told(made: dict[str, Any], **more: Any) -> dict[str, Any]:
    content = TEMPLATE.replace("{observation}", made["observation"])
    return {"role": "user", "content": content, "message_type": "observation", **more}


HISTORY = [{"role": "system", "content": "You fix code."}, {"role": "user", "content": "Fix it."}]
LOOK, SUBMIT = step("ls -a\n", ".git\nmain.py\n"), step("submit\n", "\ndiff --git")


def run(steps: list[Any], history: list[Any], status: Any = "submitted", **more: Any) -> dict[str, Any]:
    info = {"exit_status": status, "submission": "diff", "model_stats": {"instance_cost": 0.5, "tokens_sent": 9}}
    return {"environment": "main", "trajectory": steps, "history": [*HISTORY, *history], "info": info, **more}


def read(folder: Path, record: Any, name: str = "task-1.traj") -> Parsed:
    path = folder / name
    path.write_text(json.dumps(record))
    (item,) = swe_agent.IMPORTER.read(path)
    return accepted(item)


def facts(parsed: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in parsed.facts}


def value(raw: Json) -> Any:
    assert isinstance(raw, msgspec.Raw)
    return json.loads(bytes(raw))


def test_every_step_of_the_real_runs_is_a_decision_or_was_asked_for_again(runs: Any) -> None:
    assert len(runs) == 13
    again = 0
    for record, parsed in runs.values():
        extras = [value(message.extra) for message in parsed.trajectory.messages if message.extra is not msgspec.UNSET]
        requeried = sum(len(extra.get("requeried", ())) for extra in extras)
        assert len(decisions_of(parsed.trajectory)) == len(record["trajectory"]) - requeried
        again += requeried
        stats = record["info"]["model_stats"]
        if stats["api_calls"]:
            assert stats["api_calls"] == len(record["trajectory"])
        assert parsed.trajectory.usage == Usage(stats["tokens_sent"], stats["tokens_received"], stats["instance_cost"])
    assert again == 1


def test_every_answer_of_the_real_runs_has_its_call_and_its_raw_text(runs: Any) -> None:
    for record, parsed in runs.values():
        observed = Counter(one["observation"] for one in record["trajectory"])
        for message in parsed.trajectory.messages:
            if message.role == "tool":
                assert message.answers is not None
                assert isinstance(message.content, str)
                observed[message.content if message.raw is None else message.raw] -= 1
        assert all(count in (0, 1) for count in observed.values())
        assert sum(observed.values()) == len(record["trajectory"]) - len(calls(parsed.trajectory))
        assert facts(parsed)["stop"] == "completed"
        assert "outcome" not in facts(parsed)


def test_the_dialects_of_one_task_name_it_and_what_it_starts_from(runs: Any) -> None:
    found = [parsed for name, (_, parsed) in runs.items() if "marshmallow" in name]
    assert len(found) == 3
    for parsed in found:
        assert parsed.trajectory.task.id == parsed.key == "marshmallow-code__marshmallow-1867"
        start = value(parsed.trajectory.task.parameters)
        assert start == {"repo_name": "testbed", "base_commit": "bfd2593d4b416122e30cdefe0c72d322ef471611"}
        assert parsed.trajectory.conditions.budget == Budget(cost=3.0)
        assert parsed.trajectory.conditions.model == "gpt-4o"
    names = [Counter(call.name for call in calls(parsed.trajectory)) for parsed in found]
    assert [len(name) for name in names] == [1, 6, 1]  # commands as text, tools by name, commands in tags
    assert found[1].warnings == ("repeated_call_id",)


def test_a_task_that_only_the_file_names_is_a_fact_beside_the_record(tmp_path: Path) -> None:
    record = run([LOOK], [turn(LOOK), told(LOOK)])
    one, other = read(tmp_path, record, "a.traj"), read(tmp_path, record, "b.traj")
    assert encode(one.trajectory) == encode(other.trajectory)
    assert one.trajectory.task == Task()
    assert [(parsed.key, facts(parsed)["strata.instance"]) for parsed in (one, other)] == [("a", "a"), ("b", "b")]
    assert Fact("strata.instance", "a", "rule", NAME_RULE) in one.facts


def test_what_was_shown_and_what_the_tool_said_are_kept_apart(tmp_path: Path) -> None:
    parsed = read(tmp_path, run([LOOK, SUBMIT], [turn(LOOK), told(LOOK), turn(SUBMIT)]))
    _, _, asked, answer, _, last = parsed.trajectory.messages
    (call,) = asked.tool_calls
    assert (call.name, call.arguments_text, call.id) == (TEXT, '{"command":"ls -a\\n"}', None)
    assert (answer.role, answer.raw, answer.answers) == ("tool", ".git\nmain.py\n", Answers("2.0", "position"))
    assert answer.content == ".git\nmain.py\n\n(Open file: n/a)\nbash-$"
    assert value(answer.extra) == {"message_type": "observation", "shown_as": "user", "state": {}}
    assert (last.content, last.raw, value(last.extra)["shown"]) == ("\ndiff --git", None, False)


def test_a_call_that_the_model_made_keeps_its_id_and_text(tmp_path: Path) -> None:
    made = {"id": "c1", "type": "function", "function": {"name": "open", "arguments": '{"path": "a'}}
    record = run([LOOK], [turn(LOOK, tool_calls=[made]), told(LOOK, role="tool", tool_call_ids=["c1"])])
    parsed = read(tmp_path, record)
    (call,) = calls(parsed.trajectory)
    assert (call.name, call.arguments_text, call.parse_error) == ("open", '{"path": "a', "truncated")
    assert parsed.trajectory.messages[3].answers == Answers("2.0", "id")


def test_a_turn_that_was_asked_for_again_stays_with_the_one_in_its_place(tmp_path: Path) -> None:
    bad = step("", "", "no command at all", thought="no command at all")
    parsed = read(tmp_path, run([bad, LOOK], [turn(LOOK), told(LOOK)]))
    assert [decision.partial for decision in decisions_of(parsed.trajectory)] == [True]
    extra = value(parsed.trajectory.messages[2].extra)
    assert extra["requeried"] == [{"response": "no command at all", "action": "", "observation": ""}]


def test_a_history_that_left_old_answers_out_is_incomplete_from_there(tmp_path: Path) -> None:
    steps = [step(f"cat {number}\n", f"text {number}\n") for number in range(4)]
    history = [entry for one in steps for entry in (turn(one), told(one))]
    config = {"agent": {"model": {"name": "m"}, "history_processors": [{"type": "last_n_observations", "n": 2}]}}
    for logged in (config, json.dumps(config)):
        parsed = read(tmp_path, run(steps, history, replay_config=logged))
        assert [message.hidden for message in parsed.trajectory.messages[2::2]] == [None, None, None, "compaction"]
    elided = [dict(entry) for entry in history]
    elided[1]["content"] = "Old environment output: (1 lines omitted)"
    parsed = read(tmp_path, run(steps, elided))
    assert parsed.trajectory.messages[3].raw == "text 0\n"
    assert [message.hidden for message in parsed.trajectory.messages[2::2]] == [None, "compaction", None, None]


def test_the_prompt_of_a_step_says_whether_something_was_left_out(tmp_path: Path) -> None:
    first = step("ls\n", "a\n", query=[dict(entry) for entry in HISTORY])
    shown = [*HISTORY, turn(first), told(first)]
    parts = [{"role": "user", "content": [{"type": "text", "text": "Fix it.", "cache_control": {}}]}]
    same = step("cat a\n", "b\n", query=[HISTORY[0], *parts, *shown[2:]])
    less = step("cat b\n", "c\n", query=shown)
    history = [entry for one in (first, same, less) for entry in (turn(one), told(one))]
    parsed = read(tmp_path, run([first, same, less], history))
    assert [message.hidden for message in parsed.trajectory.messages[2::2]] == [None, None, "compaction"]


def test_a_demonstration_is_text_and_no_decision(tmp_path: Path) -> None:
    shown = [
        {**turn(LOOK, tool_calls=[{"function": {"name": "open"}}]), "is_demo": True},
        {**told(LOOK, role="tool", tool_call_ids=["x"]), "is_demo": True},
    ]
    parsed = read(tmp_path, run([LOOK], [*shown, turn(LOOK), told(LOOK)]))
    assert [message.role for message in parsed.trajectory.messages[2:4]] == ["assistant", "user"]
    assert [decision.message for decision in decisions_of(parsed.trajectory)] == [4]
    assert len(calls(parsed.trajectory)) == 1


@pytest.mark.parametrize(
    ("status", "stop"),
    [
        ("submitted", "completed"),
        ("submitted (exit_cost)", "max_steps"),
        ("exit_context", "context_length"),
        ("exit_format", "parse_error"),
        ("exit_api", "provider_error"),
        ("submitted (exit_command_timeout)", "timeout"),
        ("exit_environment_error", "tool_error"),
        ("exit_error", "unknown"),
        (None, "unknown"),
    ],
)
def test_the_exit_status_is_the_cause_of_the_stop(tmp_path: Path, status: Any, stop: str) -> None:
    parsed = read(tmp_path, run([LOOK], [turn(LOOK), told(LOOK)], status))
    assert (parsed.trajectory.stop_text, facts(parsed)["stop"]) == (status, stop)
    assert Fact("stop", parsed.facts[0].value, "rule", STOP_RULE) in parsed.facts


def test_the_harness_words_on_the_end_are_no_decision(tmp_path: Path) -> None:
    words = "Exit due to cost limit"
    end = step("", "Exited (autosubmitted)", words, thought=words)
    record = run([LOOK, end], [turn(LOOK), told(LOOK), turn(end)], "submitted (exit_cost)")
    parsed = read(tmp_path, record)
    assert len(decisions_of(parsed.trajectory)) == 1
    assert value(parsed.trajectory.extra)["exit_message"] == words


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ([], "got `array`"),
        ({"trajectory": {}, "history": []}, "$.trajectory"),
        (run([{"action": 1}], []), "action"),
        (run([LOOK], [{"role": "assistant", "content": {}}]), "content"),
        (run([LOOK], [], info=[]), "$.info"),
        (run([LOOK], [turn(LOOK, tool_calls=["x"])]), "tool_calls"),
    ],
)
def test_another_shape_is_refused_with_its_place(tmp_path: Path, record: Any, words: str) -> None:
    path = tmp_path / "a.traj"
    path.write_text(json.dumps(record))
    (item,) = swe_agent.IMPORTER.read(path)
    assert isinstance(item, Rejected)
    assert item.code == "not_a_record"
    assert words in item.detail

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from curation.importers import agentdojo
from curation.importers.agentdojo import BUDGET_RULE, MAX_STEPS, STOP_RULE
from curation.importers.face import Fact, Parsed, Rejected
from schemas.canonical import encode
from schemas.digests import decisions_of, task_key
from schemas.trajectory import Answers, Attempt, MessageError, Part, Task
from tests.importers.reading import accepted, calls

CLAUDE, GPT, LLAMA = "claude-3-7-sonnet-20250219", "gpt-4o-2024-05-13", "local"


@pytest.fixture(scope="module")
def runs(logs: Path) -> list[Parsed]:
    files = sorted((logs / "agentdojo").rglob("*.json"))
    return [accepted(item) for file in files for item in agentdojo.IMPORTER.read(file)]


def run(*messages: Any, **more: Any) -> dict[str, Any]:
    """One run of a banking task without attack."""
    return {
        "suite_name": "banking",
        "pipeline_name": "small-model",
        "user_task_id": "user_task_0",
        "injection_task_id": None,
        "attack_type": None,
        "injections": {},
        "messages": [{"role": "user", "content": "Pay the bill."}, *messages],
        "error": None,
        "utility": True,
        "security": True,
        "duration": 1.5,
        "evaluation_timestamp": "2025-01-02 03:04:05",
    } | more


def call(name: str, call_id: Any = "absent", **arguments: Any) -> dict[str, Any]:
    """One call; without an id the key is not there."""
    made = {"function": name, "args": arguments}
    return made if call_id == "absent" else {**made, "id": call_id, "placeholder_args": None}


def ask(*made: dict[str, Any], content: Any = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(made)}


def answer(made: dict[str, Any], content: Any, error: str | None = None) -> dict[str, Any]:
    return {"role": "tool", "content": content, "tool_call_id": made.get("id"), "tool_call": made, "error": error}


def say(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": None}


def blocks(*texts: str, kind: str = "text") -> list[dict[str, Any]]:
    return [{"type": kind, "content": text} for text in texts]


def read(folder: Path, record: Any) -> Parsed:
    path = folder / "none.json"
    path.write_text(json.dumps(record, indent=4))
    (item,) = agentdojo.IMPORTER.read(path)
    return accepted(item)


def facts(parsed: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in parsed.facts}


def of(runs: list[Parsed], pipeline: str, attack: str = "none") -> list[Parsed]:
    return [
        parsed
        for parsed in runs
        if parsed.trajectory.attempt == Attempt(pipeline) and facts(parsed)["strata.attack"] == attack
    ]


@pytest.mark.parametrize(("pipeline", "made", "passed"), [(CLAUDE, 133, 31), (GPT, 138, 28), (LLAMA, 124, 25)])
def test_the_published_runs_without_attack(runs: list[Parsed], pipeline: str, made: int, passed: int) -> None:
    mine = of(runs, pipeline)
    assert len(runs) == 130
    assert Counter(facts(parsed)["strata.suite"] for parsed in mine) == {"banking": 16, "slack": 20}
    assert sum(len(calls(parsed.trajectory)) for parsed in mine) == made
    assert Counter(facts(parsed)["outcome"] for parsed in mine) == {"passed": passed, "failed": 36 - passed}
    assert {facts(parsed)["stop"] for parsed in mine} == {"completed"}
    assert not any(parsed.warnings for parsed in mine)


def test_every_answer_of_the_published_runs_is_that_of_its_call(runs: list[Parsed]) -> None:
    for parsed in runs:
        entries = json.loads(parsed.raw)["messages"]
        made = {one.uid: one for one in calls(parsed.trajectory)}
        for message, entry in zip(parsed.trajectory.messages, entries, strict=True):
            if message.role == "tool":
                assert message.answers is not None
                found = made.pop(message.answers.uid)
                assert (found.name, json.loads(found.arguments_text)) == (
                    entry["tool_call"]["function"],
                    entry["tool_call"]["args"],
                )
                assert message.extra is UNSET
        assert not made


def test_runs_under_attack_are_other_tasks_in_another_start_state(runs: list[Parsed]) -> None:
    attacked, clean = of(runs, GPT, "important_instructions"), of(runs, GPT)
    assert len(attacked) == 18
    assert all(parsed.trajectory.task.parameters is UNSET for parsed in clean)
    assert {parsed.trajectory.task.variant for parsed in attacked} == {
        f"important_instructions/injection_task_{number}" for number in range(9)
    }
    for parsed in attacked:
        assert isinstance(parsed.trajectory.task.parameters, msgspec.Raw)
        assert json.loads(bytes(parsed.trajectory.task.parameters)) == {
            "injections": json.loads(parsed.raw)["injections"]
        }
    keys = [task_key(parsed.trajectory.task) for parsed in attacked + clean]
    assert len(set(keys)) == 18 + 36


def test_a_run_that_the_provider_ended_has_no_outcome(runs: list[Parsed]) -> None:
    skipped = [parsed for parsed in runs if parsed.trajectory.stop_text is not None]
    assert Counter(facts(parsed)["stop"] for parsed in skipped) == {"provider_error": 4}
    assert {facts(parsed)["outcome"] for parsed in skipped} == {"unknown"}
    assert {json.loads(parsed.raw)["utility"] for parsed in skipped} == {False}


def test_only_a_logged_version_names_the_environment(runs: list[Parsed]) -> None:
    named = Counter(parsed.trajectory.conditions.environment for parsed in runs)
    assert named == {None: 94, "agentdojo:banking@v1.2.1": 16, "agentdojo:slack@v1.2.1": 20}


def test_the_record_holds_neither_clock_nor_verdict(tmp_path: Path) -> None:
    parsed = read(tmp_path, run(benchmark_version="v1", agentdojo_package_version="0.1.30", utility=False, grader="x"))
    assert parsed.trajectory.extra == msgspec.Raw(b'{"agentdojo_package_version":"0.1.30","security":true}')
    assert parsed.trajectory.conditions.agent == "small-model"
    other = read(tmp_path, run(benchmark_version="v1", agentdojo_package_version="0.1.30", duration=9, utility=True))
    assert encode(parsed.trajectory) == encode(other.trajectory)
    assert parsed.facts == (
        Fact("outcome", "failed"),
        Fact("stop", "unknown", "rule", STOP_RULE),
        Fact("budget.steps", MAX_STEPS, "rule", BUDGET_RULE),
        Fact("elapsed.seconds", 1.5),
        Fact("strata.suite", "banking"),
        Fact("strata.attack", "none"),
    )


def test_the_time_of_the_evaluation_is_that_of_the_calls(tmp_path: Path, runs: list[Parsed]) -> None:
    made = call("get_balance")
    said = facts(read(tmp_path, run(ask(made), answer(made, "10"), say("Ten."))))
    assert said["clocks"] == '{"0":"2025-01-02T03:04:05"}'
    times: tuple[Any, ...] = (None, "once", 7, {})
    for unknown in times:
        assert "clocks" not in facts(read(tmp_path, run(ask(made), evaluation_timestamp=unknown)))
    timed = [parsed for parsed in of(runs, LLAMA) if calls(parsed.trajectory)]
    assert [parsed for parsed in runs if "clocks" in facts(parsed)] == timed


def test_text_and_one_block_of_text_are_the_same_record(tmp_path: Path) -> None:
    made = call("read_file", "c1", file_path="bill")
    old = read(tmp_path, run(ask(made), answer(made, "98.70"), say("Paid.")))
    new = run(ask(made), answer(made, blocks("98.70")), say(blocks("Paid.")))
    new["messages"][0]["content"] = blocks("Pay the bill.")
    assert read(tmp_path, new).trajectory == old.trajectory


def test_thinking_is_reasoning_and_redacted_thinking_is_hidden(tmp_path: Path) -> None:
    thought = [{"type": "thinking", "content": "First the bill.", "id": "s1"}, *blocks("Let me look.")]
    made = call("get_balance")
    parsed = read(
        tmp_path,
        run(
            ask(made, content=thought),
            answer(made, blocks("1810.0")),
            ask(content=blocks("secret", kind="redacted_thinking")),
        ),
    )
    _, first, _, second = parsed.trajectory.messages
    assert (first.content, first.reasoning, first.hidden) == ("Let me look.", "First the bill.", None)
    assert first.extra == msgspec.Raw(b'{"content":{"0":{"id":"s1"}}}')
    assert (second.content, second.reasoning, second.hidden) == (None, None, "reasoning")
    assert [decision.partial for decision in decisions_of(parsed.trajectory)] == [False, True]


def test_several_blocks_stay_parts_and_unknown_ones_are_kept_as_blobs(tmp_path: Path) -> None:
    parsed = read(tmp_path, run(say([*blocks("One.", "Two."), {"type": "image", "content": "AAAA"}])))
    content = parsed.trajectory.messages[-1].content
    (blob,) = parsed.objects
    assert content == (Part("text", "One."), Part("text", "Two."), Part("image", sha256=blob.id))
    assert json.loads(blob.bytes) == {"type": "image", "content": "AAAA"}


@pytest.mark.parametrize("call_id", ["absent", None, ""])
def test_calls_without_an_id_are_paired_by_order_and_by_name(tmp_path: Path, call_id: Any) -> None:
    first, second, third = (call(name, call_id) for name in ("get_balance", "get_iban", "get_balance"))
    parsed = read(
        tmp_path, run(ask(first, second), answer(second, "DE89"), answer(first, "10"), ask(third), answer(third, "9"))
    )
    linked = [message.answers for message in parsed.trajectory.messages if message.role == "tool"]
    assert linked == [Answers("1.1", "name"), Answers("1.0", "position"), Answers("4.0", "position")]
    assert [one.id for one in calls(parsed.trajectory)] == [None if call_id == "absent" else call_id] * 3
    assert not parsed.warnings


def test_parallel_calls_are_paired_by_id_and_repeated_ids_by_order(tmp_path: Path) -> None:
    one, two = call("get_balance", "c1", of="a"), call("get_balance", "c2", of="b")
    parsed = read(tmp_path, run(ask(one, two), answer(two, "2"), answer(one, "1"), ask(one), answer(one, "3")))
    linked = [message.answers for message in parsed.trajectory.messages if message.role == "tool"]
    assert linked == [Answers("1.1", "id"), Answers("1.0", "id"), Answers("4.0", "position")]
    assert parsed.warnings == ("repeated_call_id",)


def test_an_answer_that_repeats_another_call_keeps_what_it_says(tmp_path: Path) -> None:
    made, other = call("get_balance", "c1", of="a"), call("get_balance", "c1", of="b")
    parsed = read(tmp_path, run(ask(made), answer(other, "2")))
    extra = parsed.trajectory.messages[-1].extra
    assert isinstance(extra, msgspec.Raw)
    assert json.loads(bytes(extra)) == {"tool_call": {"function": "get_balance", "args": {"of": "b"}, "id": "c1"}}


def test_what_the_tool_raised_is_an_error_of_the_log(tmp_path: Path) -> None:
    made = call("send_money", "c1", amount="much")
    parsed = read(tmp_path, run(ask(made), answer(made, blocks(""), "ValidationError: amount"), say("Sorry.")))
    _, _, told, _ = parsed.trajectory.messages
    assert (told.content, told.error) == ("", MessageError("ValidationError: amount", origin="tool"))
    assert [decision.error_seen for decision in decisions_of(parsed.trajectory)] == [False, True]


@pytest.mark.parametrize(
    ("attack", "injection", "injections", "task"),
    [
        (None, None, {}, Task("agentdojo:banking", "user_task_0")),
        ("dos", None, {}, Task("agentdojo:banking", "user_task_0", "dos")),
        (
            "dos",
            "injection_task_3",
            {"bill": "!"},
            Task(
                "agentdojo:banking", "user_task_0", "dos/injection_task_3", msgspec.Raw(b'{"injections":{"bill":"!"}}')
            ),
        ),
    ],
)
def test_attack_and_injections_are_part_of_the_task(
    tmp_path: Path, attack: str | None, injection: str | None, injections: dict[str, str], task: Task
) -> None:
    record = run(attack_type=attack, injection_task_id=injection, injections=injections)
    assert read(tmp_path, record).trajectory.task == task


def turns(number: int) -> list[dict[str, Any]]:
    made = call("get_balance")
    return [message for _ in range(number) for message in (ask(made), answer(made, "10"))]


@pytest.mark.parametrize(
    ("messages", "error", "stop", "steps"),
    [
        ([*turns(15), say("Done.")], None, "completed", 16),
        ([*turns(15), ask(call("get_balance"))], None, "max_steps", 16),
        ([*turns(3), ask(call("get_balance"))], None, "unknown", 16),
        ([*turns(16), say("Done.")], None, "completed", None),
        (turns(2), "Skipping task 'x' because of internal server error: 500", "provider_error", 16),
        (turns(2), "Skipping task 'x' due to context_length_exceeded: 400", "provider_error", 16),
        ([*turns(2), say("Done.")], "the disk is full", "unknown", 16),
    ],
)
def test_how_a_run_ended_and_what_it_was_given(
    tmp_path: Path, messages: list[Any], error: str | None, stop: str, steps: int | None
) -> None:
    said = facts(read(tmp_path, run(*messages, error=error)))
    assert (said["stop"], said.get("budget.steps")) == (stop, steps)


@pytest.mark.parametrize(
    ("record", "code", "words"),
    [
        (run(messages={}), "not_a_record", "$.messages"),
        (run({"role": "narrator", "content": "x"}), "unknown_role", "$.messages[1].role"),
        (run(ask({"function": "f", "args": "text"})), "not_a_record", "$.messages[1].tool_calls[0].args"),
        (run(utility="yes"), "not_a_record", "$.utility"),
        (run(user_task_id=None), "not_a_record", "$.user_task_id"),
        ([run()], "not_a_record", "array"),
    ],
)
def test_what_is_of_another_shape_is_refused_with_its_place(tmp_path: Path, record: Any, code: str, words: str) -> None:
    path = tmp_path / "none.json"
    path.write_text(json.dumps(record))
    (refused,) = agentdojo.IMPORTER.read(path)
    assert isinstance(refused, Rejected)
    assert refused.code == code
    assert words in refused.detail
    assert json.loads(refused.raw) == record

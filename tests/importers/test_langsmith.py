"""Run trees of LangSmith, and the event streams of agent sessions."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.importers import formats, langsmith
from curation.importers.face import Item, Parsed, Rejected
from schemas.digests import decisions_of
from tests.importers.reading import accepted, answer, ask, call, calls
from tests.ingest.logs import import_file, new_store

USER = {"role": "user", "content": "How many A17?"}
WRONG, RIGHT = ask(call('{"sku": "A18"}', call_id="c1")), ask(call('{"sku": "A17"}', call_id="c2"))
DONE = {"role": "assistant", "content": "Two."}


def run(number: int, kind: str, inputs: Any, outputs: Any, trace: str = "t1", **more: Any) -> dict[str, Any]:
    order = f"20260101T000000000000Z{trace}" + (f".20260101T00000{number}000000Z{trace}-{number}" if number else "")
    times = {"start_time": f"2026-01-01T00:00:0{number}+00:00", "end_time": 1_767_225_600_000}
    told = {"id": f"{trace}-{number}", "trace_id": trace, "dotted_order": order, "name": "get_stock", **times}
    return {**told, "run_type": kind, "inputs": inputs, "outputs": outputs, **more}


def llm(number: int, history: list[Any], said: Any, trace: str = "t1", **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": 2}
    choices = [{"index": 0, "message": said, "finish_reason": "tool_calls" if "tool_calls" in said else "stop"}]
    outputs = {"id": f"{trace}-{number}", "model": "m", "choices": choices, "usage_metadata": usage}
    return run(number, "llm", {"model": "m", "messages": history}, outputs, trace, **more)


TREE = [
    run(0, "chain", {"input": "How many A17?"}, {"output": "Two."}, reference_example_id="e1"),
    llm(1, [USER], WRONG),
    run(2, "tool", {"sku": "A18"}, None, error="unknown_sku", extra={"tool_call_id": "c1"}),
    llm(3, [USER, WRONG, answer("unknown_sku", "c1")], RIGHT),
    run(4, "tool", {"sku": "A17"}, {"output": {"type": "tool", "content": "2", "tool_call_id": "c2"}}),
    llm(5, [USER, WRONG, answer("unknown_sku", "c1"), RIGHT, answer("2", "c2")], DONE),
]


def lines(values: list[Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in values)


def read(folder: Path, data: bytes) -> list[Item]:
    path = folder / "runs"
    path.write_bytes(data)
    assert formats.detect(path)[0] is langsmith.IMPORTER
    return list(langsmith.IMPORTER.read(path))


def roles(parsed: Parsed) -> str:
    return "".join(message.role[0] for message in parsed.trajectory.messages)


def facts(parsed: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in parsed.facts}


def posted(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """An upload: what is known at the start is posted, the rest patched, the id left out."""
    late = ("outputs", "error", "end_time")
    post = [{key: value for key, value in each.items() if key not in late} for each in runs]
    patch = [{key: each[key] for key in (*late, "dotted_order", "trace_id") if key in each} for each in runs]
    return {"post": post, "patch": patch}


def nested(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {**runs[0], "child_runs": runs[1:]}


@pytest.mark.parametrize(
    "data",
    [
        lines(TREE),
        lines(TREE[::-1]),
        json.dumps(TREE, indent=1).encode(),
        json.dumps(posted(TREE), indent=1).encode(),
        json.dumps(nested(TREE)).encode(),
        lines([posted(TREE)]),
    ],
)
def test_a_tree_is_one_attempt_however_it_is_written(tmp_path: Path, data: bytes) -> None:
    (item,) = read(tmp_path, data)
    parsed = accepted(item)
    trajectory = parsed.trajectory
    assert roles(parsed) == "uatata"
    assert (trajectory.task.namespace, trajectory.task.id) == ("langsmith", "e1")
    assert trajectory.messages[2].error is not None
    assert trajectory.messages[2].error.message == "unknown_sku"
    assert trajectory.usage is not None
    assert (trajectory.usage.prompt_tokens, trajectory.usage.completion_tokens) == (30, 6)
    assert [each.arguments_text for each in calls(trajectory)] == ['{"sku": "A18"}', '{"sku": "A17"}']
    assert facts(parsed)["stop"] == "completed"
    assert "outcome" not in facts(parsed)


def test_runs_are_found_at_any_depth(tmp_path: Path) -> None:
    deep: list[dict[str, Any]] = TREE[1:]
    for _ in range(70):
        deep = [{**TREE[0], "child_runs": deep}]
    (item,) = read(tmp_path, lines(deep))
    assert roles(accepted(item)) == "uatata"


def test_an_error_of_the_whole_is_how_it_stopped(tmp_path: Path) -> None:
    root = {**TREE[0], "outputs": None, "error": "Recursion limit of 3 reached"}
    (item,) = read(tmp_path, lines([root, *TREE[1:3]]))
    parsed = accepted(item)
    assert (roles(parsed), parsed.trajectory.stop_text) == ("uat", "Recursion limit of 3 reached")
    assert facts(parsed)["stop"] == "unknown"
    failed = run(1, "llm", {"messages": [USER]}, None, error="RateLimitError: 429")
    (item,) = read(tmp_path, lines([failed]))
    assert (roles(accepted(item)), facts(accepted(item))["stop"]) == ("u", "provider_error")


def test_traces_of_one_thread_are_one_attempt_and_others_are_not(tmp_path: Path) -> None:
    thread: dict[str, Any] = {"extra": {"metadata": {"thread_id": "th"}}}
    second = llm(1, [USER, DONE, {"role": "user", "content": "Sure?"}], {**DONE, "content": "Yes."}, "t2", **thread)
    data = lines(
        [llm(1, [USER], DONE, **thread), second, llm(1, [USER], DONE, "t3"), run(0, "retriever", {}, {}, "t4")]
    )
    items = read(tmp_path, data)
    assert [(roles(each), each.key) for each in items if isinstance(each, Parsed)] == [("uaua", "th"), ("ua", "t3")]
    (refused,) = (each for each in items if isinstance(each, Rejected))
    assert refused.detail == "t4: no call of a chat model (spans: retriever)"
    result = import_file(new_store(tmp_path), tmp_path / "runs")
    assert (result.accepted, result.quarantined) == (2, 1)


def built(kind: str, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", kind], "kwargs": kwargs}


def test_messages_of_langchain_are_read_in_their_serialised_forms(tmp_path: Path) -> None:
    broken = {"name": "get_stock", "args": '{"sku": ', "id": "c2", "error": "bad", "type": "invalid_tool_call"}
    made = [{"name": "get_stock", "args": {"sku": "A17"}, "id": "c1", "type": "tool_call"}]
    said = built("AIMessage", content="", tool_calls=made, invalid_tool_calls=[broken])
    history = [
        built("SystemMessage", content="Be brief."),
        {"type": "human", "data": {"content": "How many A17?"}},
        said,
        built("ToolMessage", content="2", tool_call_id="c1", status="error"),
        {"type": "tool", "content": [{"type": "text", "text": "2"}], "tool_call_id": "c2"},
    ]
    usage = {"input_tokens": 3, "output_tokens": 1}
    reply = built("AIMessage", content="Two.", usage_metadata=usage)
    outputs = {"generations": [[{"text": "Two.", "message": reply, "generation_info": {"finish_reason": "stop"}}]]}
    (item,) = read(tmp_path, lines([run(1, "llm", {"messages": [history]}, outputs)]))
    trajectory = accepted(item).trajectory
    assert roles(accepted(item)) == "suatta"
    assert [(each.id, each.arguments_text) for each in calls(trajectory)] == [
        ("c1", '{"sku":"A17"}'),
        ("c2", '{"sku": '),
    ]
    assert [each.answers.by for each in trajectory.messages if each.answers] == ["id", "id"]
    assert trajectory.messages[3].error is not None
    assert trajectory.messages[4].content == "2"
    assert trajectory.usage is not None
    assert trajectory.usage.completion_tokens == 1


@pytest.mark.parametrize(
    ("name", "tokens", "hidden"),
    [
        ("python/tests/integration_tests/test_data/langsmith_py_wrap_openai_.json", (9, 9), None),
        ("python/tests/integration_tests/test_data/langsmith_py_wrap_openai_stream.json", (9, 9), None),
        ("python/tests/integration_tests/test_data/langsmith_py_wrap_openai_stream_no_usage.json", None, None),
        ("python/tests/integration_tests/test_data/langsmith_py_wrap_openai_reasoning.json", (43, 2497), "reasoning"),
        ("js/src/tests/test_data/langsmith_js_wrap_openai_default.json", (9, 9), None),
        ("js/src/tests/test_data/langsmith_js_wrap_openai_stream.json", (9, 9), None),
        ("js/src/tests/test_data/langsmith_js_wrap_openai_stream_no usage.json", None, None),
        ("js/src/tests/test_data/langsmith_js_wrap_openai_reasoning.json", (43, 1901), "reasoning"),
    ],
)
def test_real_runs(logs: Path, name: str, tokens: tuple[int, int] | None, hidden: str | None) -> None:
    path = logs / "langsmith" / name
    assert formats.detect(path)[0] is langsmith.IMPORTER
    (item,) = langsmith.IMPORTER.read(path)
    parsed = accepted(item)
    usage = parsed.trajectory.usage
    assert roles(parsed) == "ua"
    assert (None if usage is None else (usage.prompt_tokens, usage.completion_tokens)) == tokens
    assert parsed.trajectory.messages[1].hidden == hidden
    assert parsed.raw == path.read_bytes().strip()


@pytest.mark.parametrize(
    ("name", "made", "partial", "tools"),
    [
        ("builtin", [("bash", '{"command":"date"}')], [False, False], 1),
        ("custom", [("get_weather", '{"location":"Prague"}')], [False, False], 2),
        ("mcp", [("web_search_exa", None)], [True, True], 2),
    ],
)
def test_real_event_streams(
    logs: Path, name: str, made: list[tuple[str, str | None]], partial: list[bool], tools: int
) -> None:
    path = logs / f"langsmith/js/src/tests/test_data/anthropic_managed_{name}_tools.jsonl"
    assert formats.detect(path)[0] is langsmith.IMPORTER
    (item,) = langsmith.IMPORTER.read(path)
    parsed = accepted(item)
    events = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    spent = [told["model_usage"] for _, told in events if "model_usage" in told]
    assert roles(parsed) == "suata"
    assert [each.name for each in calls(parsed.trajectory)] == [each for each, _ in made]
    assert [each.arguments_text for each in calls(parsed.trajectory) if made[0][1]] == [
        text for _, text in made if text
    ]
    assert [each.partial for each in decisions_of(parsed.trajectory)] == partial
    assert parsed.trajectory.usage is not None
    assert parsed.trajectory.usage.completion_tokens == sum(usage["output_tokens"] for usage in spent)
    assert (facts(parsed)["stop"], parsed.trajectory.stop_text) == ("completed", "end_turn")
    assert len(json.loads(parsed.objects[-1].bytes)) == tools


def test_an_event_stream_that_stops_is_read_as_far_as_it_goes(logs: Path, tmp_path: Path) -> None:
    source = logs / "langsmith/js/src/tests/test_data/anthropic_managed_custom_tools.jsonl"
    whole = [line for line in source.read_bytes().split(b"\n") if line.strip()]
    for end in range(1, len(whole)):
        for item in read(tmp_path, b"\n".join(whole[:end])):
            assert isinstance(item, Rejected | Parsed)
    first, second = read(tmp_path, b"\n".join(whole + [line.replace(b"sesn_", b"other_") for line in whole]))
    assert (accepted(first).key, accepted(second).key) == (
        "sesn_014fc5Q6rWwrXD3vWBfPRUes",
        "other_014fc5Q6rWwrXD3vWBfPRUes",
    )


def test_each_alternative_answer_has_its_own_end(tmp_path: Path) -> None:
    said = [({"role": "assistant", "content": "Two."}, "stop"), ({"role": "assistant", "content": "Th"}, "filtered")]
    choices = [{"index": at, "message": each, "finish_reason": why} for at, (each, why) in enumerate(said)]
    texts = [{"text": each["content"], "generation_info": {"finish_reason": why}} for each, why in said]
    for outputs in ({"choices": choices}, {"generations": [texts]}):
        items = read(tmp_path, lines([run(1, "llm", {"messages": [USER]}, outputs)]))
        assert [accepted(item).trajectory.stop_text for item in items] == ["stop", "filtered"]


def test_tokens_of_a_cache_that_are_counted_apart_are_a_part_of_the_prompt(tmp_path: Path) -> None:
    entry = llm(1, [USER], DONE)
    for usage, prompt in (
        ({"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 5}, 15),
        ({"input_tokens": 10, "output_tokens": 2, "input_token_details": {"cache_read": 5}}, 10),
    ):
        entry["outputs"]["usage_metadata"] = usage
        (item,) = read(tmp_path, lines([entry]))
        trajectory = accepted(item).trajectory
        assert (trajectory.usage and trajectory.usage.prompt_tokens) == prompt
        assert list(json.loads(bytes(trajectory.extra))["usage_details"].values()) == [5]  # type: ignore[arg-type]

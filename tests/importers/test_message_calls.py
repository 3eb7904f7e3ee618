"""Calls of Anthropic's API in a log: their blocks are messages, reasoning, calls and answers, whole or as a stream."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.importers import call_logs
from curation.importers.exchange import read_exchange
from curation.importers.face import Parsed
from schemas.digests import decisions_of
from schemas.trajectory import Part, Usage
from tests.importers.provider_streams import as_text, block_events
from tests.importers.reading import accepted, write
from tests.ingest.logs import import_file, new_store

TOOLS = [{"name": "get_stock", "description": "Stock of a SKU.", "input_schema": {"type": "object"}}]
SYSTEM: list[dict[str, Any]] = [
    {"type": "text", "text": "x-anthropic-billing-header: cc_version=2; cch=%s;"},
    {"type": "text", "text": "You keep the stock.", "cache_control": {"type": "ephemeral"}},
]
ENDED = {"type": "text", "text": "Two."}


def used(number: int, sku: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": "get_stock", "input": {"sku": sku, "n": number}}


def result(number: int, content: Any = "2", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": content, **more}


def message(number: int, *content: dict[str, Any], stop: str | None = "tool_use", **usage: int) -> dict[str, Any]:
    spent = {"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 5} | usage
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "c-1"}
    return {**head, "content": [*content], "stop_reason": stop, "usage": spent}


def line(number: int, history: list[Any], answer: Any, **more: Any) -> dict[str, Any]:
    """A line whose last message asks for caching, and whose first line for the accounts differs from all others."""
    marked = [dict(each) for each in history]
    last = marked[-1]["content"]
    blocks = last if isinstance(last, list) else [{"type": "text", "text": last}]
    marked[-1]["content"] = [*blocks[:-1], blocks[-1] | {"cache_control": {"type": "ephemeral"}}]
    system = [SYSTEM[0] | {"text": SYSTEM[0]["text"] % number}, SYSTEM[1]]
    body = {"model": "c", "max_tokens": 99, "system": system, "tools": TOOLS, "messages": marked}
    return {"request": {"body": body}, "response": {"status_code": 200, "body": answer}, **more}


def run_lines(thoughts: tuple[dict[str, Any], ...] = ()) -> list[dict[str, Any]]:
    history: list[Any] = [{"role": "user", "content": "How many?"}]
    lines = []
    for number, sku in enumerate("AB"):
        said = [*thoughts, {"type": "text", "text": f"Look at {sku}."}, used(number, sku)]
        lines.append(line(number, history, message(number, *said)))
        history = [*history, {"role": "assistant", "content": said}, {"role": "user", "content": [result(number)]}]
    return [*lines, line(9, history, message(9, ENDED, stop="end_turn"))]


def read(folder: Path, lines: list[Any]) -> list[Parsed]:
    return [accepted(item) for item in call_logs.IMPORTER.read(write(folder / "calls.jsonl", lines))]


def roles(parsed: Parsed) -> str:
    return "".join(message.role[0] for message in parsed.trajectory.messages)


def facts(parsed: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in parsed.facts}


def test_blocks_are_messages_and_calls(tmp_path: Path) -> None:
    lines = run_lines()
    assert call_logs.sniff(write(tmp_path / "calls.jsonl", lines).read_bytes())
    (item,) = read(tmp_path, lines)
    record = item.trajectory
    assert roles(item) == "suatata"
    assert record.messages[0].content == "You keep the stock."
    assert record.messages[1].content == "How many?"
    assert record.messages[2].content == "Look at A."
    assert [call.arguments_text for each in record.messages for call in each.tool_calls] == [
        '{"n":0,"sku":"A"}',
        '{"n":1,"sku":"B"}',
    ]
    assert [each.answers.by for each in record.messages if each.answers] == ["id", "id"]
    assert (facts(item)["stop"], record.stop_text, item.key) == ("completed", "end_turn", "msg_0")
    assert record.usage is not None
    assert (record.usage.prompt_tokens, record.usage.completion_tokens) == (300, 15)
    assert json.loads(bytes(record.conditions.sampling)) == {"max_tokens": 99}  # type: ignore[arg-type]
    assert json.loads(item.objects[-1].bytes) == TOOLS


def test_a_user_speaks_beside_an_answer_and_answers_may_be_errors(tmp_path: Path) -> None:
    blocks = [
        result(1, [{"type": "text", "text": "none"}, {"type": "image", "source": {"type": "base64", "data": "x"}}]),
        result(0, "broken", is_error=True),
        {"type": "text", "text": "Hurry."},
        {"type": "text", "text": "Please."},
    ]
    turn = {"role": "assistant", "content": [used(0, "A"), used(1, "B")]}
    history = [{"role": "user", "content": "?"}, turn, {"role": "user", "content": blocks}]
    (item,) = read(tmp_path, [line(3, history, message(3, ENDED, stop="end_turn"))])
    assert roles(item) == "suattua"
    first, second, words = item.trajectory.messages[3:6]
    assert [each.answers.uid for each in (first, second) if each.answers] == ["2.1", "2.0"]
    assert isinstance(first.content, tuple)
    assert [part.type for part in first.content] == ["text", "image"]
    assert (first.error, second.error is None) == (None, False)
    assert words.content == (Part("text", "Hurry."), Part("text", "Please."))


def test_what_the_provider_ran_is_a_call_with_its_answer(tmp_path: Path) -> None:
    search = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "x"}}
    found = {
        "type": "web_search_tool_result",
        "tool_use_id": "srv_1",
        "content": [{"type": "web_search_result", "url": "u", "encrypted_content": "e"}],
    }
    failed = found | {"content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}}
    for answer, error in ((found, None), (failed, "max_uses_exceeded")):
        said = message(1, {"type": "text", "text": "I look."}, search, answer, ENDED, stop="end_turn")
        (item,) = read(tmp_path, [line(1, [{"role": "user", "content": "?"}], said)])
        assert roles(item) == "suata"
        told = item.trajectory.messages[3]
        assert told.answers is not None
        assert (None if told.error is None else told.error.message) == error


@pytest.mark.parametrize(
    ("thought", "shown", "partial"),
    [
        ({"type": "thinking", "thinking": "A first.", "signature": "s"}, "A first.", False),
        ({"type": "thinking", "thinking": "", "signature": "s"}, None, True),
        ({"type": "redacted_thinking", "data": "x"}, None, True),
    ],
)
def test_reasoning_is_read_or_said_to_be_hidden(
    tmp_path: Path, thought: dict[str, Any], shown: str | None, partial: bool
) -> None:
    (item,) = read(tmp_path, run_lines((thought,)))
    assert item.trajectory.messages[2].reasoning == shown
    assert [decision.partial for decision in decisions_of(item.trajectory)] == [partial] * 3


def without_thoughts(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same log of a client that sends no reasoning back."""
    lines = json.loads(json.dumps(lines))
    for each in lines:
        for told in each["request"]["body"]["messages"]:
            if isinstance(told["content"], list):
                told["content"] = [block for block in told["content"] if "thinking" not in block["type"]]
    return lines


def test_reasoning_that_never_came_back_is_no_context_but_is_kept(tmp_path: Path) -> None:
    thought = {"type": "thinking", "thinking": "A first.", "signature": "s"}
    (item,) = read(tmp_path, without_thoughts(run_lines((thought,))))
    (plain,) = read(tmp_path, run_lines())
    contexts = [[decision.context for decision in decisions_of(each.trajectory)] for each in (item, plain)]
    assert contexts[0] == contexts[1]
    assert json.loads(bytes(item.trajectory.messages[2].extra))["unsent_reasoning"] == "A first."  # type: ignore[arg-type]


def test_hidden_reasoning_is_hidden_where_only_the_response_tells_of_it(tmp_path: Path) -> None:
    (item,) = read(tmp_path, without_thoughts(run_lines(({"type": "redacted_thinking", "data": "x"},))))
    assert [each.hidden for each in item.trajectory.messages] == [
        None,
        None,
        "reasoning",
        None,
        "reasoning",
        None,
        None,
    ]


def streamed(entry: dict[str, Any], spaced: str = ' {"n" :%d, "sku": "%s"}') -> dict[str, Any]:
    """A line with its response as the stream that it was, arguments as the model wrote them."""
    answer = json.loads(json.dumps(entry["response"]["body"]))
    for block in answer["content"]:
        if block["type"] == "tool_use":
            block["input"] = spaced % (block["input"]["n"], block["input"]["sku"])
    return entry | {"response": {"status_code": 200, "body_raw": as_text(block_events(answer), named=True)}}


def test_a_recorded_stream_keeps_arguments_as_they_were_written(tmp_path: Path) -> None:
    (item,) = read(tmp_path, list(map(streamed, run_lines())))
    (whole,) = read(tmp_path, run_lines())
    calls = [call for each in item.trajectory.messages for call in each.tool_calls]
    assert [call.arguments_text for call in calls] == [' {"n" :0, "sku": "A"}', ' {"n" :1, "sku": "B"}']
    assert roles(item) == roles(whole)
    assert decisions_of(item.trajectory) == decisions_of(whole.trajectory)
    assert item.trajectory.stop_text == "end_turn"


def cut(entry: dict[str, Any], share: float) -> dict[str, Any]:
    text = streamed(entry)["response"]["body_raw"]
    return entry | {"response": {"status_code": 200, "body_raw": text[: int(len(text) * share)]}}


def test_a_stream_that_was_cut_ends_a_run_without_a_finish(tmp_path: Path) -> None:
    lines = run_lines()
    (item,) = read(tmp_path, [lines[0], cut(lines[1], 0.7)])
    last = item.trajectory.messages[-1]
    assert (roles(item), last.content) == ("suata", "Look at B.")
    assert json.loads(bytes(last.extra))["truncated"] is True  # type: ignore[arg-type]
    assert facts(item)["stop"] == "unknown"
    assert item.trajectory.stop_text == "the recorded stream ends before its end"
    assert "outcome" not in facts(item)
    (call,) = last.tool_calls
    assert call.parse_error == "truncated"


def test_a_stream_that_was_cut_before_its_first_word_says_nothing_of_the_provider(tmp_path: Path) -> None:
    (item,) = read(tmp_path, [cut(run_lines()[0], 0.05)])
    assert (facts(item)["stop"], item.trajectory.stop_text) == ("unknown", "the recorded stream ends before its end")


@pytest.mark.parametrize("share", [0.05, 0.3, 0.7])
def test_a_stream_that_was_cut_and_asked_for_again_is_a_retry(tmp_path: Path, share: float) -> None:
    lines = run_lines()
    again = cut(lines[1], share)
    again["response"]["body_raw"] = again["response"]["body_raw"].replace("msg_1", "msg_lost")
    for order in ([lines[0], again, *lines[1:]], [*lines[::-1], again]):
        (item,) = read(tmp_path, order)
        assert roles(item) == "suatata"
        assert json.loads(bytes(item.trajectory.extra))["failed_requests"] == 1  # type: ignore[arg-type]


def test_what_goes_on_from_a_cut_stream_is_one_run(tmp_path: Path) -> None:
    history = [{"role": "user", "content": "How many?"}]
    first = cut(line(1, history, message(1, {"type": "text", "text": "There are two of them. Or three?"})), 0.6)
    said = read_exchange(first).answers[0][0]["content"]
    more = [*history, {"role": "assistant", "content": said}, {"role": "user", "content": "Go on."}]
    (item,) = read(tmp_path, [first, line(2, more, message(2, ENDED, stop="end_turn"))])
    assert roles(item) == "suaua"
    assert json.loads(bytes(item.trajectory.messages[2].extra))["truncated"] is True  # type: ignore[arg-type]
    assert facts(item)["stop"] == "completed"


@pytest.mark.parametrize(
    ("answer", "status", "stop"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, None, "provider_error"),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}, 429, "provider_error"),
        (
            {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long"}},
            400,
            "unknown",
        ),
        (None, 504, "provider_error"),
        ("upstream connect error", 503, "provider_error"),
    ],
)
def test_errors_say_nothing_of_the_outcome(tmp_path: Path, answer: Any, status: int | None, stop: str) -> None:
    lines = run_lines()
    broken = lines[1] | {"response": {"body": answer} | ({} if status is None else {"status_code": status})}
    (item,) = read(tmp_path, [lines[0], broken])
    assert (roles(item), facts(item)["stop"]) == ("suat", stop)
    assert item.trajectory.stop_text
    assert "outcome" not in facts(item)


@pytest.mark.parametrize(
    "user",
    [
        "user_0a1b_account_1f-2e_session_8d6f1c9e-3a7b-4c5d-9e8f-0a1b2c3d4e5f",
        '{"device_id":"d","session_id":"8d6f1c9e-3a7b-4c5d-9e8f-0a1b2c3d4e5f"}',
    ],
)
def test_the_session_is_read_out_of_the_user(tmp_path: Path, user: str) -> None:
    lines = run_lines()
    for each in lines:
        each["request"]["body"]["metadata"] = {"user_id": user}
    (item,) = read(tmp_path, lines)
    assert item.key == "8d6f1c9e-3a7b-4c5d-9e8f-0a1b2c3d4e5f"


def test_counts_beside_the_totals_are_kept_and_the_loss_report_says_so(tmp_path: Path) -> None:
    """Tokens read from a cache are a part of the prompt: Anthropic counts them beside it, OpenAI within it."""
    lines = run_lines()
    lines[0]["response"]["body"]["usage"] |= {"cache_creation": {"ephemeral_5m_input_tokens": 4}, "note": "x", "n": 0}
    (item,) = read(tmp_path, lines)
    assert item.trajectory.usage == Usage(300, 15)
    details = {"cache_creation.ephemeral_5m_input_tokens": 4, "cache_read_input_tokens": 270}
    assert json.loads(bytes(item.trajectory.extra)) == {"usage_details": details}  # type: ignore[arg-type]
    path = write(tmp_path / "calls.jsonl", lines)
    assert import_file(new_store(tmp_path), path).losses.extra["usage_details"] == 1


@pytest.mark.parametrize("form", ["chat", "responses"])
def test_counts_within_the_totals_are_not_added_to_them(tmp_path: Path, form: str) -> None:
    asked, told = ("prompt", "completion") if form == "chat" else ("input", "output")
    usage = {
        f"{asked}_tokens": 100,
        f"{told}_tokens": 9,
        "total_tokens": 109,
        f"{asked}_tokens_details": {"cached_tokens": 80, "audio_tokens": 0},
        f"{told}_tokens_details": {"reasoning_tokens": 7},
    }
    said: dict[str, Any]
    request: dict[str, Any]
    if form == "chat":
        said = {"choices": [{"message": {"role": "assistant", "content": "Two."}, "finish_reason": "stop"}]}
        request = {"model": "m", "messages": [{"role": "user", "content": "How many?"}]}
    else:
        said = {"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "2"}]}]}
        request = {"model": "m", "input": "How many?"}
    (item,) = read(tmp_path, [{"request": request, "response": {"id": "r1", "usage": usage, **said}}])
    assert item.trajectory.usage == Usage(100, 9)
    details = {f"{asked}_tokens_details.cached_tokens": 80, f"{told}_tokens_details.reasoning_tokens": 7}
    assert json.loads(bytes(item.trajectory.extra)) == {"usage_details": details}  # type: ignore[arg-type]

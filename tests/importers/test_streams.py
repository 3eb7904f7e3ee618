"""Recorded streams are the responses that they were, character by character, and no more than was recorded."""

import json
from typing import Any

import pytest

from curation.importers.streams import read_stream
from schemas import canonical
from tests.importers.provider_streams import as_text, block_events, chat_chunks, response_events

ARGUMENTS = '{"sku" :  "A\\u00e917 \u2028 é\U0001f9a6",\n "n": 1.0}'
CHAT = {
    "role": "assistant",
    "content": "Let me\u2028 see: \x85 data: [DONE]",
    "reasoning_content": "Which one?",
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "get_stock", "arguments": ARGUMENTS}},
        {"id": "c2", "type": "function", "function": {"name": "get_stock", "arguments": ""}},
    ],
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "c-1",
    "content": [
        {"type": "thinking", "thinking": "Which one?"},
        {"type": "text", "text": "Let me\u2028 see."},
        {"type": "tool_use", "id": "c1", "name": "get_stock", "input": ARGUMENTS},
    ],
    "stop_reason": "tool_use",
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Let me see."}]},
        {"type": "function_call", "call_id": "c1", "name": "get_stock", "arguments": ARGUMENTS},
        {"type": "custom_tool_call", "call_id": "c2", "name": "patch", "input": "*** Begin\n+é\u2028\n"},
    ],
}


def chat() -> list[dict[str, Any]]:
    return chat_chunks(CHAT, "tool_calls")


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r"])
def test_a_chat_stream_is_its_message(end: str) -> None:
    for value in (chat(), as_text(chat(), end=end), as_text(chat(), end=end).replace("data: ", "data:")):
        streamed = read_stream(value)
        assert streamed is not None
        assert not streamed.cut
        (choice,) = streamed.response["choices"]
        assert choice["message"] == CHAT
        assert choice["finish_reason"] == "tool_calls"
        assert streamed.response["usage"] == {"prompt_tokens": 10, "completion_tokens": 2}


def test_events_are_read_as_texts_too_and_as_values_under_their_names() -> None:
    texts = [f"data: {json.dumps(event)}" for event in chat()]
    named = [{"event": "message", "data": event} for event in chat()]
    assert read_stream(texts) == read_stream(named) == read_stream(chat())


def test_a_stream_of_blocks_is_its_message() -> None:
    events = block_events(MESSAGE)
    for value in (events, as_text(events, named=True)):
        streamed = read_stream(value)
        assert streamed is not None
        assert not streamed.cut
        assert streamed.response["content"] == MESSAGE["content"]
        assert streamed.response["stop_reason"] == "tool_use"
        assert streamed.response["usage"] == {"input_tokens": 10, "output_tokens": 7}


def test_a_call_without_arguments_is_sent_without_a_piece() -> None:
    events = block_events({**MESSAGE, "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": ""}]})
    streamed = read_stream(events)
    assert streamed is not None
    assert streamed.response["content"] == [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]


def test_a_stream_of_items_is_its_response() -> None:
    streamed = read_stream(response_events(RESPONSE))
    assert streamed == (RESPONSE, False)


def test_a_connection_that_is_kept_open_ends_with_its_last_response() -> None:
    first = {**RESPONSE, "id": "resp_0", "output": RESPONSE["output"][:1]}
    assert read_stream([*response_events(first), {"type": "rate_limits"}, *response_events(RESPONSE)]) == (
        RESPONSE,
        False,
    )
    streamed = read_stream([*response_events(first), response_events(RESPONSE)[0]])
    assert streamed is not None
    assert (streamed.cut, streamed.response["id"], streamed.response["output"]) == (True, "resp_1", [])


def test_calls_without_an_index_are_told_apart_by_their_ids() -> None:
    calls = [
        {"id": "c1", "function": {"name": "look", "arguments": '{"a"'}},
        {"function": {"arguments": ":1}"}},
        {"id": "c2", "function": {"name": "look", "arguments": "{}"}},
    ]
    chunks: list[Any] = [{"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": None}]} for call in calls]
    chunks[-1]["choices"][0]["finish_reason"] = "tool_calls"
    streamed = read_stream(chunks)
    assert streamed is not None
    written = [call["function"]["arguments"] for call in streamed.response["choices"][0]["message"]["tool_calls"]]
    assert written == ['{"a":1}', "{}"]


def is_begun(part: Any, whole: Any) -> bool:
    """Whether a value holds nothing but the beginning of what another holds; usage, which is counted up, aside."""
    match part:
        case dict():
            return all(key == "usage" or is_begun(value, whole.get(key)) for key, value in part.items() if value)
        case list():
            return len(part) <= len(whole) and all(map(is_begun, part, whole))
        case str():
            return isinstance(whole, str) and whole.startswith(part)
    return bool(part == whole)


@pytest.mark.parametrize(
    "events", [chat(), block_events(MESSAGE), response_events(RESPONSE)], ids=["chat", "blocks", "items"]
)
def test_a_stream_that_is_cut_anywhere_has_no_end_and_only_what_was_sent(events: list[dict[str, Any]]) -> None:
    whole = read_stream(events)
    assert whole is not None
    for at in range(2, 1 + min(at for at, event in enumerate(events) if _ends(event))):
        streamed = read_stream(events[:at])
        assert streamed is not None
        assert streamed.cut
        assert is_begun(streamed.response, whole.response)
        told = [streamed.response, *streamed.response.get("choices", ())]
        assert not any(place.get(key) for place in told for key in ("finish_reason", "stop_reason", "status"))
    text = as_text(events, named="type" in events[0])
    for at in range(len(text) // 3, len(text) * 2 // 3, 101):
        half = read_stream(text[:at])
        assert half is not None
        assert half.cut
        assert is_begun(half.response, whole.response)


def _ends(event: dict[str, Any]) -> bool:
    if event.get("type") in ("message_delta", "response.completed"):
        return True
    return any(choice.get("finish_reason") for choice in event.get("choices", ()))


def test_what_was_sent_of_a_cut_call_is_kept_as_far_as_it_came() -> None:
    events = block_events(MESSAGE)
    pieces = [at for at, event in enumerate(events) if event.get("delta", {}).get("type") == "input_json_delta"]
    streamed = read_stream(events[: pieces[3] + 1])
    assert streamed is not None
    assert streamed.response["content"][-1]["input"] == ARGUMENTS[:9]
    items = response_events(RESPONSE)
    deltas = [at for at, event in enumerate(items) if "arguments" in event["type"]]
    cut = read_stream(items[: deltas[2] + 1])
    assert cut is not None
    assert [item.get("arguments") for item in cut.response["output"]] == [None, ARGUMENTS[:9]]


def test_an_error_in_a_stream_cuts_it() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    streamed = read_stream([*block_events(MESSAGE)[:8], error])
    assert streamed is not None
    assert (streamed.cut, streamed.response["error"]) == (True, error["error"])
    assert "stop_reason" not in {key for key, value in streamed.response.items() if value is not None}


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "data: the temperature is 3",
        ":)",
        [],
        [1, 2],
        ["one", "two"],
        [{"role": "assistant", "content": "x"}],
        {"choices": [{"delta": {}}]},
        {"type": "error", "error": {}},
        "event: note\ndata: 1\n\n",
    ],
)
def test_what_is_no_stream_is_none(value: Any) -> None:
    assert read_stream(value) is None


@pytest.mark.parametrize(
    "delta",
    [
        7,
        {"tool_calls": [7, {"index": "x"}, {"index": 0, "function": 3}, {"index": 0, "function": "f"}]},
        {"tool_calls": "x"},
        {"content": {"a": 1}},
        {"content": ["a"]},
        {"reasoning": 1},
    ],
)
def test_deltas_of_a_wrong_shape_raise_nothing(delta: Any) -> None:
    for at in range(1, 4):
        events = chat()
        events.insert(at, {"choices": [7, {"index": [], "delta": delta}, {"delta": delta}]})
        events.insert(at, {"choices": [{"index": 0, "delta": delta}]})
        assert read_stream(events) is not None


MANY = 100_000


def test_a_long_stream_of_parts_is_put_together_and_none_of_its_events_changes() -> None:
    """So many that a copy of what there is for each of them would not end."""
    parts = [{"type": "reasoning.text", "text": str(number)} for number in range(MANY)]
    deltas = [{"reasoning_details": [part], "audio": {str(at): "x"}} for at, part in enumerate(parts)]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    written = json.dumps(chunks)
    streamed = read_stream(chunks)
    assert streamed is not None
    message = streamed.response["choices"][0]["message"]
    assert message["reasoning_details"] == parts
    assert len(message["audio"]) == MANY
    assert json.dumps(chunks) == written


def test_a_long_stream_of_citations_and_counts_is_put_together() -> None:
    cited = [{"type": "citations_delta", "citation": {"cited_text": str(number)}} for number in range(MANY)]
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"usage": {"input_tokens": 1}}}]
    events.append({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "So."}})
    events += [{"type": "content_block_delta", "index": 0, "delta": delta} for delta in cited]
    events += [{"type": "message_delta", "usage": {f"n{number}": number}} for number in range(MANY)]
    written = json.dumps(events)
    streamed = read_stream(events)
    assert streamed is not None
    (block,) = streamed.response["content"]
    assert block["citations"] == [delta["citation"] for delta in cited]
    assert len(canonical.encode(streamed.response["usage"])) > MANY
    assert streamed.response["usage"]["input_tokens"] == 1
    assert json.dumps(events) == written


def test_a_long_stream_of_items_is_put_together() -> None:
    events = [
        {
            "type": "response.output_text.delta",
            "output_index": 0,
            "content_index": number // 2,
            "delta": f"{number % 2}",
        }
        for number in range(MANY)
    ]
    streamed = read_stream(events)
    assert streamed is not None
    (item,) = streamed.response["output"]
    assert item["content"] == [{"type": "output_text", "text": "01"}] * (MANY // 2)

"""Responses as the streams that providers send, in pieces of a few characters."""

import json
from typing import Any

Event = dict[str, Any]


def cut_up(text: str, size: int = 3) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def chat_chunks(answer: dict[str, Any], finish: str | None, name: str = "r9") -> list[Event]:
    """The chunks of a chat completion with one message."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    deltas += [{"reasoning_content": piece} for piece in cut_up(answer.get("reasoning_content") or "")]
    deltas += [{"content": piece} for piece in cut_up(answer.get("content") or "")]
    for index, call in enumerate(answer.get("tool_calls", ())):
        function = call["function"]
        first = {"index": index, "id": call["id"], "type": "function"}
        deltas.append({"tool_calls": [first | {"function": {"name": function["name"], "arguments": ""}}]})
        deltas += [
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in cut_up(function["arguments"])
        ]
    chunks = [_chunk({"index": 0, "delta": delta, "finish_reason": None}) for delta in deltas]
    chunks.append(_chunk({"index": 0, "delta": {}, "finish_reason": finish}))
    chunks.append(_chunk() | {"usage": {"prompt_tokens": 10, "completion_tokens": 2}})
    return [chunk | {"id": name} for chunk in chunks]


def _chunk(*choices: dict[str, Any]) -> Event:
    return {
        "id": "r9",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "m-1",
        "choices": [*choices],
    }


def block_events(message: dict[str, Any]) -> list[Event]:
    """The events of a message of Anthropic's API; a call's ``input`` is given as the text that it is sent as."""
    begun = {**message, "content": [], "stop_reason": None, "usage": {"input_tokens": 10, "output_tokens": 1}}
    events: list[Event] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, block in enumerate(message["content"]):
        key, kind, piece = {
            "text": ("text", "text_delta", "text"),
            "thinking": ("thinking", "thinking_delta", "thinking"),
            "tool_use": ("input", "input_json_delta", "partial_json"),
        }[block["type"]]
        start = block | {key: {} if key == "input" else ""}
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [
            {"type": "content_block_delta", "index": index, "delta": {"type": kind, piece: text}}
            for text in ("", *cut_up(block[key]))
        ]
        events.append({"type": "content_block_stop", "index": index})
    told = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": told, "usage": {"output_tokens": 7}})
    return [*events, {"type": "message_stop"}]


def response_events(response: dict[str, Any]) -> list[Event]:
    """The events of a response of the Responses API; the last of them repeats no items, as some backends do."""
    made: list[Event] = [{"type": "response.created", "response": {**response, "output": [], "status": "in_progress"}}]
    for index, item in enumerate(response["output"]):
        place = {"output_index": index, "item_id": f"i{index}"}
        match item:
            case {"type": "function_call"}:
                key, kind = "arguments", "response.function_call_arguments.delta"
            case {"type": "custom_tool_call"}:
                key, kind = "input", "response.custom_tool_call_input.delta"
            case _:
                key, kind = "content", "response.output_text.delta"
        text = item[key][0]["text"] if key == "content" else item[key]
        start = item | {key: [] if key == "content" else ""}
        made.append({"type": "response.output_item.added", **place, "item": start})
        made += [{"type": kind, **place, "content_index": 0, "delta": piece} for piece in cut_up(text)]
        made.append({"type": "response.output_item.done", **place, "item": item})
    return [*made, {"type": "response.completed", "response": {**response, "output": []}}]


def as_text(events: list[Event], *, named: bool = False, end: str = "\n\n") -> str:
    """Events as the text of server-sent events."""
    names = [f"event: {event['type']}\n" if named else "" for event in events]
    lines = [
        f"{name}data: {json.dumps(event, ensure_ascii=False)}{end}" for name, event in zip(names, events, strict=True)
    ]
    return "".join(lines) + ("" if named else f"data: [DONE]{end}")

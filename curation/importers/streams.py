"""Recorded streams as the response that they were: of the chat API, of the Responses API, and of Anthropic's.

What was sent in pieces is put together as it was sent, texts and arguments character by character. A stream that ends
before its end is said to be cut: what came of it is kept, and nothing is added to it, no reason of its end either.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from schemas import canonical

_DONE = "[DONE]"
_LINE_END = re.compile(r"\r\n|\n|\r")  # a text may hold what Python takes for ends of lines
_TORN = re.compile(r"(?:event: ?[a-z_.]*\s*)?(?:data: ?\{.*)?\Z", re.DOTALL)  # it ends in its first event
_ROLE = frozenset(("role",))
_ONCE = frozenset(("role", "id", "type", "name"))
_TERMINAL = ("response.completed", "response.incomplete", "response.failed", "response.done")
_DELTAS = {
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}
_PARTS = {
    "response.output_text.delta": ("content", "content_index", "output_text", "text"),
    "response.refusal.delta": ("content", "content_index", "refusal", "refusal"),
    "response.reasoning_text.delta": ("content", "content_index", "reasoning_text", "text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index", "summary_text", "text"),
}
_BLOCK_DELTAS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}


class Streamed(NamedTuple):
    """A response put together; ``cut`` where its stream ended before its end."""

    response: dict[str, Any]
    cut: bool


class _Pieces(list[str]):
    """Text that comes piece by piece."""


class _Calls(dict[int, dict[str, Any]]):
    """Calls by their index in the message."""


class _List(list[Any]):
    """A list that deltas go on with; no event holds it."""


class _Object(dict[str, Any]):
    """An object that deltas go on with; no event holds it."""


def read_stream(value: Any) -> Streamed | None:
    """The response that a stream was: text of server-sent events, or a list of them; None for what is no stream."""
    events, whole = _events(value)
    first = next((event for event in events if event.get("type") != "ping"), None)
    if first is None:
        return Streamed({}, cut=True) if value and isinstance(value, str) and _TORN.match(value) else None
    kind = str(first.get("type") or "")
    if isinstance(first.get("choices"), list) and (_is_chunk(first) or first.get("object") == "chat.completion.chunk"):
        return _chat(events, whole)
    if kind.startswith(("message_", "content_block_")):
        return _blocks(events)
    if kind.startswith("response."):
        return _items(events)
    if kind == "error" and isinstance(value, str | list):
        return Streamed({"error": first.get("error", first)}, cut=True)
    return None


def _is_chunk(event: dict[str, Any]) -> bool:
    return any(isinstance(choice, dict) and "delta" in choice for choice in event["choices"])


def _events(value: Any) -> tuple[list[dict[str, Any]], bool]:
    """The events of a stream up to the first that cannot be read, and whether its own mark of the end was there."""
    found: list[dict[str, Any]] = []
    for data in _written(value):
        if data == _DONE:
            return found, True
        try:
            event = canonical.parse(data.encode())[0] if isinstance(data, str) else data
        except canonical.UnreadableError:
            return found, False
        if not isinstance(event, dict):
            return found, False
        found.append(event)
    return found, False


def _written(value: Any) -> Iterator[Any]:
    """What each event holds, as text or as a value; nothing where it is no stream."""
    if isinstance(value, str):
        if value.lstrip()[:6].startswith(("data:", "event:", ":", "id:")):
            yield from _data_of(_LINE_END.split(value))
    elif isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        yield from _written("\n".join(each if each.endswith("\n") else f"{each}\n" for each in value))
    elif isinstance(value, list):
        for each in value:
            yield each["data"] if isinstance(each, dict) and isinstance(each.get("data"), dict | str) else each


def _data_of(lines: Iterable[str]) -> Iterator[str]:
    waiting: list[str] = []
    for line in (*lines, ""):
        field, _, rest = line.partition(":")
        if field == "data":
            waiting.append(rest.removeprefix(" "))
        elif waiting and (not line or field == "event"):
            yield "\n".join(waiting)
            waiting = []


def _chat(events: list[dict[str, Any]], whole: bool) -> Streamed:
    made: dict[str, Any] = {}
    choices: dict[Any, dict[str, Any]] = {}
    for event in events:
        made |= {key: value for key, value in event.items() if key not in ("choices", "object") and value is not None}
        for choice in event.get("choices") or ():
            if not isinstance(choice, dict):
                continue
            index = choice.get("index", 0)
            empty = {"index": index, "message": {"role": "assistant", "content": None}, "finish_reason": None}
            kept = choices.setdefault(str(index), empty)
            _extend(kept["message"], choice.get("delta"))
            kept["finish_reason"] = choice.get("finish_reason") or kept["finish_reason"]
    ended = whole or (bool(choices) and all(choice["finish_reason"] for choice in choices.values()))
    said = [_joined(choice) for choice in choices.values()]
    said = [
        choice for choice in said if ended or any(choice["message"][key] for key in choice["message"].keys() - _ROLE)
    ]
    return Streamed(made | {"choices": said}, cut=not ended or "error" in made)


def _extend(place: dict[str, Any], delta: Any) -> None:
    """What a delta adds: texts go on, lists too, calls by their index; a name or an id is said once."""
    for key, value in delta.items() if isinstance(delta, dict) else ():
        known = place.get(key)
        match value:
            case str() if key in _ONCE:
                place[key] = known or value
            case str():
                _grow(place, key, value)
            case list() if key == "tool_calls":
                calls = place[key] = known if isinstance(known, _Calls) else _Calls()
                for call in value:
                    _extend(_call_of(calls, call), call)
            case list():
                _list_in(place, key).extend(value)
            case dict():
                _extend(_object_in(place, key), value)
            case None:
                continue
            case _ if key != "index":
                place[key] = value


def _call_of(calls: _Calls, delta: Any) -> dict[str, Any]:
    """The call that a delta goes on with: by its index, else the last, unless it has an id of its own."""
    told = delta if isinstance(delta, dict) else {}
    index, last = told.get("index"), len(calls) - 1
    if not isinstance(index, int):
        index = last if last in calls and told.get("id") in (None, "", calls[last].get("id")) else len(calls)
    return calls.setdefault(index, {})


def _blocks(events: list[dict[str, Any]]) -> Streamed:
    made: dict[str, Any] = {"type": "message", "role": "assistant"}
    blocks: dict[Any, dict[str, Any]] = {}
    begun = ended = False
    for event in events:
        match event:
            case {"type": "message_start", "message": dict(message)}:
                begun = True
                made |= message
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                blocks[index] = dict(block)
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                key = _BLOCK_DELTAS.get(str(delta.get("type")))
                piece = None if key is None else delta.get(key)
                if key is not None and isinstance(piece, str):
                    _grow(blocks.setdefault(index, {}), key, piece)
                elif "citation" in delta:
                    _list_in(blocks.setdefault(index, {}), "citations").append(delta["citation"])
            case {"type": "message_delta", **rest}:
                told, usage = rest.get("delta"), rest.get("usage")
                made |= told if isinstance(told, dict) else {}
                if isinstance(usage, dict):
                    more = {key: value for key, value in usage.items() if value is not None}
                    _object_in(made, "usage").update(more)
            case {"type": "message_stop"}:
                ended = True
            case {"type": "error"}:
                made["error"] = event.get("error", event)
    ended = begun and (ended or bool(made.get("stop_reason"))) and "error" not in made
    made = _joined(made)
    content = [_block(block) for _, block in sorted(blocks.items())]
    if content or ended:
        made["content"] = content
    else:
        made.pop("content", None)
    return Streamed(made, cut=not ended)


def _block(block: dict[str, Any]) -> dict[str, Any]:
    """A block with its texts; the input of a call as the text that it came in, where it came in pieces."""
    whole: dict[str, Any] = _joined(block)
    written = whole.pop("partial_json", "")
    return whole | {"input": written} if written else whole


def _items(events: list[dict[str, Any]]) -> Streamed:
    made: dict[str, Any] = {}
    items: dict[int, dict[str, Any]] = {}
    ended = False
    for event in events:
        kind, index = str(event.get("type")), event.get("output_index")
        if kind in ("error", "response.error"):
            made["error"] = event.get("error") or event
        elif isinstance(event.get("response"), dict):
            if kind == "response.created":  # a connection that is kept open goes on with another response
                made, items, ended = {}, {}, False
            made |= event["response"]
            ended = ended or kind in _TERMINAL
        elif isinstance(index, int) and isinstance(event.get("item"), dict):
            items[index] = dict(event["item"])
        elif isinstance(index, int) and isinstance(event.get("delta"), str):
            _add_delta(items.setdefault(index, {"type": "message", "role": "assistant"}), kind, event)
    if items and not made.get("output"):
        made["output"] = [_joined(item) for _, item in sorted(items.items())]
    if not ended:
        made.pop("status", None)
    return Streamed(made, cut=not ended)


def _add_delta(item: dict[str, Any], kind: str, event: dict[str, Any]) -> None:
    if (key := _DELTAS.get(kind)) is not None:
        _grow(item, key, event["delta"])
    elif kind in _PARTS:
        key, number, part, text = _PARTS[kind]
        parts = _list_in(item, key)
        index = event.get(number)
        if not isinstance(index, int) or not 0 <= index < len(parts):
            parts.append({"type": part})
            index = len(parts) - 1
        if isinstance(parts[index], dict):
            if not isinstance(parts[index], _Object):
                parts[index] = _Object(parts[index])
            _grow(parts[index], text, event["delta"])


def _list_in(place: dict[str, Any], key: str) -> list[Any]:
    """The list under a key, to be gone on with."""
    known = place.get(key)
    if not isinstance(known, _List):
        known = place[key] = _List(known if type(known) is list else ())
    return known


def _object_in(place: dict[str, Any], key: str) -> dict[str, Any]:
    """The object under a key, to be gone on with."""
    known = place.get(key)
    if not isinstance(known, _Object):
        known = place[key] = _Object(known if type(known) is dict else ())
    return known


def _grow(place: dict[str, Any], key: str, piece: str) -> None:
    known = place.get(key)
    if not isinstance(known, _Pieces):
        known = place[key] = _Pieces([known] if isinstance(known, str) else [])
    known.append(piece)


def _joined(value: Any) -> Any:
    """A value with the texts that came in pieces."""
    match value:
        case _Pieces():
            return "".join(value)
        case _Calls():
            return [_joined(call) for call in value.values()]
        case dict():
            return {key: _joined(each) for key, each in value.items()}
        case list():
            return [_joined(each) for each in value]
    return value

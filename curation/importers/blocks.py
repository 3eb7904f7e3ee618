"""Messages of the Anthropic API as chat messages: a turn's blocks are text, reasoning, calls and answers to calls.

A message without such blocks is the same in both shapes. A tool that the provider ran itself is a call with its answer.
"""

from typing import Any

from curation.importers.response_items import HIDDEN

_CALLS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))
_KINDS = _CALLS | {"thinking", "redacted_thinking"}
_CACHE = "cache_control"  # what to keep for the next request: no part of what is said, and it moves from call to call
_BILLING = "x-anthropic-billing-header:"  # a line for the provider's accounts, another one in each request


def read_turn(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The chat messages that a message with blocks is; itself where it has none."""
    content = message.get("content")
    if not isinstance(content, list):
        return [message]
    blocks = [_without_cache(block) for block in content]
    if not any(_is_own(block) for block in blocks):
        return [message if blocks == content else message | {"content": blocks}]
    rest = {key: value for key, value in message.items() if key != "content"}
    return _spoken(blocks, rest) if message.get("role") == "assistant" else _given(blocks, rest)


def read_system(system: Any) -> list[dict[str, Any]]:
    """The first message, of the ``system`` of a request; none where it says nothing."""
    if isinstance(system, list):
        system = _content([_without_cache(block) for block in system if not _is_billing(block)])
    return [{"role": "system", "content": system}] if system else []


def _is_own(block: Any) -> bool:
    return _kind(block) in _KINDS or _is_result(block)


def _is_result(block: Any) -> bool:
    return _kind(block).endswith("tool_result")


def _kind(block: Any) -> str:
    kind = block.get("type") if isinstance(block, dict) else None
    return kind if isinstance(kind, str) else ""


def _is_billing(block: Any) -> bool:
    return isinstance(block, dict) and str(block.get("text")).startswith(_BILLING)


def _without_cache(block: Any) -> Any:
    if not isinstance(block, dict) or _CACHE not in block:
        return block
    return {key: value for key, value in block.items() if key != _CACHE}


def _given(blocks: list[Any], rest: dict[str, Any]) -> list[dict[str, Any]]:
    """What the model was given: answers to its calls, and what stands between them."""
    messages: list[dict[str, Any]] = []
    parts: list[Any] = []
    for block in blocks:
        if not _is_result(block):
            parts.append(block)
            continue
        if parts:
            messages.append(rest | {"content": _content(parts)})
            parts = []
        messages.append(_answer(block))
    return [*messages, rest | {"content": _content(parts)}] if parts else messages


def _spoken(blocks: list[Any], rest: dict[str, Any]) -> list[dict[str, Any]]:
    """What the model wrote; it goes on in another message after each answer of a tool that the provider ran."""
    messages: list[dict[str, Any]] = []
    turn, parts = dict(rest), list[Any]()
    for block in blocks:
        kind = _kind(block)
        if kind in _CALLS:
            function = {"name": block.get("name"), "arguments": block.get("input")}
            note = {key: value for key, value in block.items() if key not in ("type", "id", "name", "input")}
            call = note | {"id": block.get("id"), "type": "function", "function": function}
            turn.setdefault("tool_calls", []).append(call)
        elif kind == "thinking" and block.get("thinking"):
            _think(turn, block)
        elif kind in ("thinking", "redacted_thinking"):
            turn[HIDDEN] = "reasoning"
        elif _is_result(block):
            messages += [turn | {"content": _content(parts)}, _answer(block)]
            turn, parts = dict(rest), []
        else:
            parts.append(block)
    said = turn | {"content": _content(parts)}
    return messages if messages and not parts and turn == rest else [*messages, said]


def _think(turn: dict[str, Any], block: dict[str, Any]) -> None:
    """A block of reasoning that is shown; how it is signed is kept beside it."""
    thoughts = turn.setdefault("thinking", {})
    rest = {key: value for key, value in block.items() if key not in ("type", "thinking")}
    thoughts[str(len(thoughts))] = rest
    said = [turn["reasoning_content"]] if "reasoning_content" in turn else []
    turn["reasoning_content"] = "\n".join([*said, str(block["thinking"])])


def _answer(block: dict[str, Any]) -> dict[str, Any]:
    content = block.get("content")
    answer = {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": content}
    if isinstance(content, dict):
        answer["content"] = [content]
        if _kind(content).endswith("_error"):
            answer["error"] = {"message": str(content.get("error_code") or "")}
    elif isinstance(content, list):
        answer["content"] = _content([_without_cache(each) for each in content])
    if block.get("is_error") is True:
        answer["is_error"] = True
    return answer


def _content(parts: list[Any]) -> Any:
    """Parts as they are; one that is nothing but text as that text."""
    match parts:
        case []:
            return None
        case [{"type": "text", "text": str(text), **rest}] if not any(rest.values()):
            return text
    return parts

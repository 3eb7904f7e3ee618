"""Messages as spans hold them, in parts or flattened keys, as messages of the OpenAI chat shape."""

from collections.abc import Iterator, Mapping
from typing import Any

from schemas import canonical

_TEXTS = ("text", "input_text", "output_text")
_CALLS = ("tool_call", "tool-call", "tool_use")
_ANSWERS = ("tool_call_response", "tool-result", "tool_result")
_REASONS = ("reasoning", "thinking")
_ROLES = {"human": "user", "ai": "assistant", "model": "assistant"}


def loaded(value: Any) -> Any:
    """What JSON text says; any other value, and text that is no JSON, as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return canonical.parse(value.encode())[0]
    except canonical.UnreadableError:
        return value


def written(value: Any) -> Any:
    """A value as the text that a model is shown; text, and nothing at all, as it is."""
    return value if value is None or isinstance(value, str) else canonical.encode(value).decode()


def chat_messages(entry: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A message in parts as one chat message, and one for each answer of a tool that it holds."""
    role = _ROLES.get(str(entry.get("role")), entry.get("role"))
    parts = entry.get("parts", entry.get("content"))
    kept = {key: value for key, value in entry.items() if key not in ("role", "parts", "content", "finish_reason")}
    if not isinstance(parts, list):
        yield {"role": role, "content": written(parts), **kept}
        return
    content: list[Any] = []
    calls: list[dict[str, Any]] = []
    thoughts: list[str] = []
    answers: list[dict[str, Any]] = []
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(part, str):
            content.append({"type": "text", "text": part})
        elif kind in _TEXTS:
            content.append({"type": "text", "text": written(part.get("content", part.get("text"))) or ""})
        elif kind in _CALLS:
            calls.append(_call(part))
        elif kind in _ANSWERS:
            answers.append(_answer(part))
        elif kind in _REASONS:
            thoughts.append(str(part.get("content") or part.get("text") or part.get("thinking") or ""))
        else:
            content.append(part)
    if content or calls or thoughts or not answers:
        message = {"role": role, "content": _plain(content), **kept}
        if calls:
            message["tool_calls"] = calls
        if thoughts:
            message["reasoning_content"] = "\n".join(thoughts)
        yield message
    yield from answers


def flattened_message(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A message of OpenInference, or of one of the flattened dialects, whose keys were made objects again."""
    message = entry.get("message", entry)
    if not isinstance(message, dict):
        return {"role": None}
    made: dict[str, Any] = {"role": _ROLES.get(str(message.get("role")), message.get("role"))}
    contents = message.get("contents")
    if isinstance(contents, list) and contents:
        parts = [part.get("message_content", part) if isinstance(part, dict) else part for part in contents]
        made |= next(chat_messages({"role": made["role"], "content": parts}))
    else:
        made["content"] = written(message.get("content"))
    calls = [call.get("tool_call", call) for call in message.get("tool_calls") or () if isinstance(call, dict)]
    if calls:
        made["tool_calls"] = [_call(call) for call in calls]
    if isinstance(message.get("function_call_name"), str):
        arguments = message.get("function_call_arguments_json")
        made["function_call"] = {"name": message["function_call_name"], "arguments": arguments or ""}
    for key in ("tool_call_id", "name"):
        if isinstance(message.get(key), str):
            made[key] = message[key]
    return made | _said_below(message) | _said_below(entry)


def _call(part: Mapping[str, Any]) -> dict[str, Any]:
    """A call; its arguments are kept as text where they are text, else as the object they are."""
    inner = part.get("function")
    function: Mapping[str, Any] = inner if isinstance(inner, dict) else part
    named = function.get("name", part.get("toolName"))
    known = {"name": named if isinstance(named, str) else ""}
    for key in ("arguments", "args", "input"):
        if function.get(key) is not None:
            known["arguments"] = function[key]
            break
    return {"id": _id(part), "type": "function", "function": known, **_said_below(part), **_said_below(function)}


def _said_below(entry: Mapping[str, Any]) -> dict[str, Any]:
    """What flattened keys say below a plain value of an object, which then is kept beside it."""
    return {key: value for key, value in entry.items() if "." in key or not key}


def _answer(part: Mapping[str, Any]) -> dict[str, Any]:
    said = next((part[key] for key in ("response", "result", "output", "content") if part.get(key) is not None), None)
    if isinstance(said, dict) and said.keys() == {"type", "value"}:
        said = said["value"]
    answer = {"role": "tool", "tool_call_id": _id(part), "content": written(said)}
    if part.get("is_error") is True or part.get("isError") is True:
        answer["is_error"] = True
    return answer


def _id(part: Mapping[str, Any]) -> str | None:
    found = next((part[key] for key in ("id", "toolCallId", "tool_call_id", "tool_use_id") if key in part), None)
    return found if isinstance(found, str) else None


def _plain(content: list[Any]) -> Any:
    if not content:
        return None
    if len(content) == 1 and isinstance(content[0], dict) and content[0].keys() == {"type", "text"}:
        return content[0]["text"]
    return content

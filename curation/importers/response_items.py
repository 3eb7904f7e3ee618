"""Items of the OpenAI Responses API as chat messages.

What stands between two messages of others (reasoning, text, calls) is one message of the assistant. A tool that the
provider ran itself is a call with its answer, where the item holds one.
"""

from typing import Any

from schemas.canonical import encode

_BUILT_IN = {  # tools of the provider's that the client runs, and where their arguments are
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "computer_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
}
_OUTPUTS = frozenset(("function_call_output", "custom_tool_call_output", "local_shell_call_output"))
_OTHER_OUTPUTS = frozenset(("computer_call_output", "shell_call_output", "apply_patch_call_output"))
_UNSEEN = frozenset(("item_reference", "compaction"))

HIDDEN = "\0hidden"  # a key that no log can hold under a name of its own meaning: what is not in the log


def read_items(items: Any) -> list[dict[str, Any]]:
    """Chat messages of an ``input`` or ``output``; ``HIDDEN`` marks a message before which something is not logged."""
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    messages: list[dict[str, Any]] = []
    turn: dict[str, Any] | None = None
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            continue
        kind = str(item.get("type") or ("message" if "role" in item else ""))
        if kind in _OUTPUTS or kind in _OTHER_OUTPUTS:
            messages.append(_output(item))
            turn = None
        elif kind == "message" and item.get("role") != "assistant":
            messages.append({"role": item.get("role"), "content": _content(item.get("content"))})
            turn = None
        else:
            if turn is None:
                turn = {"role": "assistant", "content": None}
                messages.append(turn)
            answer = _add(turn, kind, item)
            if answer is not None:
                messages.append(answer)
                turn = None
    return messages


def _add(turn: dict[str, Any], kind: str, item: dict[str, Any]) -> dict[str, Any] | None:
    """Put an item of the assistant into its message; the answer to it, where the item holds one."""
    match kind:
        case "message":
            content = _content(item.get("content"))
            turn["content"] = content if turn["content"] is None else [*_listed(turn["content"]), *_listed(content)]
        case "reasoning":
            _reason(turn, item)
        case "function_call":
            _call(turn, item, item.get("name"), item.get("arguments"))
        case "mcp_call":
            _call(turn, item, item.get("name"), item.get("arguments"))
            error = item.get("error")
            if "output" in item or error is not None:
                answer = {"role": "tool", "tool_call_id": _id(item), "content": _text(item.get("output"))}
                return answer if error is None else answer | {"error": error}
        case "custom_tool_call" if isinstance(item.get("input"), str):
            _write(turn, item)
        case _ if kind in _BUILT_IN:
            written = item.get(_BUILT_IN[kind])
            _call(turn, item, item.get("name") or kind, written, kind=kind)
        case _ if kind in _UNSEEN:
            turn[HIDDEN] = "compaction"
        case _:
            turn.setdefault("items", []).append(item)
            if kind.endswith("_call"):
                turn[HIDDEN] = "compaction"  # the provider's own tool: what it gave the model is not in the log
    return None


def _reason(turn: dict[str, Any], item: dict[str, Any]) -> None:
    """Reasoning in full is shown; a summary of it, or its encrypted form, is not what the model went on from."""
    full = _joined(item.get("content"))
    shown = full or _joined(item.get("summary"))
    if shown:
        turn["reasoning_content"] = "\n".join(filter(None, (turn.get("reasoning_content"), shown)))
    if not full:
        turn.setdefault(HIDDEN, "reasoning")


def _call(turn: dict[str, Any], item: dict[str, Any], name: Any, arguments: Any, kind: str = "function") -> None:
    function: dict[str, Any] = {"name": name if isinstance(name, str) else ""}
    if arguments is not None:
        function["arguments"] = arguments
    turn.setdefault("tool_calls", []).append({"id": _id(item), "type": kind, "function": function})


def _write(turn: dict[str, Any], item: dict[str, Any]) -> None:
    """A call of a custom tool: what it takes is text."""
    name = item.get("name")
    custom = {"name": name if isinstance(name, str) else "", "input": item["input"]}
    turn.setdefault("tool_calls", []).append({"id": _id(item), "type": "custom", "custom": custom})


def _output(item: dict[str, Any]) -> dict[str, Any]:
    output = item.get("output")
    content = output if isinstance(output, str) else _content(output) if isinstance(output, list) else _text(output)
    return {"role": "tool", "tool_call_id": _id(item), "content": content}


def _id(item: dict[str, Any]) -> str | None:
    found = item.get("call_id", item.get("id"))
    return found if isinstance(found, str) else None


def _content(content: Any) -> Any:
    """Text parts of both directions as plain text where there is nothing else."""
    if not isinstance(content, list):
        return content
    parts = [_part(part) for part in content]
    if len(parts) == 1 and isinstance(parts[0], dict) and parts[0].keys() == {"type", "text"}:
        return parts[0]["text"]
    return parts


def _part(part: Any) -> Any:
    if isinstance(part, dict) and part.get("type") in ("input_text", "output_text", "text"):
        rest = {key: value for key, value in part.items() if key not in ("type", "text") and value not in (None, [])}
        return {"type": "text", "text": part.get("text"), **rest}
    return part


def _listed(content: Any) -> list[Any]:
    if content is None:
        return []
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _joined(parts: Any) -> str:
    texts = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))


def _text(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else encode(value).decode()

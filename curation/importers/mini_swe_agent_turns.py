"""The messages of a mini-swe-agent run in the shapes of a chat, and what the harness says beside each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from curation.clocks import iso_time

TOOL = "bash"
SUBMISSIONS = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")  # what a last command says
_FENCES = ("```mswea_bash_command", "```bash")
_NOT_KEPT = frozenset(("actions", "timestamp", "raw_output", "exception_info", "response"))
_RESPONSE = ("id", "model", "usage")


class _Action(msgspec.Struct):
    command: Any = None
    tool_call_id: str | None = None


class _Extra(msgspec.Struct):
    actions: list[_Action] | None = None
    timestamp: Any = None
    raw_output: str | None = None
    exception_info: str | None = None
    exit_status: str | None = None
    submission: str | None = None


@dataclass(slots=True)
class Turns:
    """The messages in the shapes of a chat; by index what else is known of them, and how the run ended."""

    entries: list[dict[str, Any]] = field(default_factory=list)
    raws: dict[int, str] = field(default_factory=dict)
    errors: dict[int, str] = field(default_factory=dict)
    times: dict[int, str] = field(default_factory=dict)
    hidden: set[int] = field(default_factory=set)
    exit_status: str | None = None
    submission: str | None = None


def read_turns(logged: Sequence[dict[str, Any]], *, bare: bool) -> Turns:
    """The messages; ``bare``: the log holds what was executed only in the text. Raises msgspec.ValidationError."""
    turns = Turns()
    waiting = 0
    for position, entry in enumerate(logged):
        extra = msgspec.convert(entry.get("extra") or {}, _Extra)
        last = position == len(logged) - 1
        if entry.get("role") == "exit" or (last and extra.exit_status is not None):
            turns.exit_status = extra.exit_status
            turns.submission = extra.submission or _text(entry.get("content"))
            continue
        if bare and last and waiting and _submits(turns.entries[-1]):
            turns.submission = _text(entry.get("content"))
            continue
        made, hidden = _message(entry)
        index = len(turns.entries)
        if made.get("role") == "assistant":
            calls = _calls(made, extra, bare=bare)
            waiting = len(calls)
            if calls:
                made["tool_calls"] = calls
        elif waiting and (made.get("role") == "tool" or bare or extra.raw_output is not None):
            waiting -= 1
            if made.get("role") != "tool":
                made |= {"role": "tool", "shown_as": made.get("role")}
            if extra.raw_output is not None and extra.raw_output != made.get("content"):
                turns.raws[index] = extra.raw_output
            if extra.exception_info:
                turns.errors[index] = extra.exception_info
        if (time := iso_time(extra.timestamp)) is not None:
            turns.times[index] = time
        if hidden:
            turns.hidden.add(index)
        turns.entries.append(made)
    return turns


def _message(entry: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """One entry as a chat's message, and whether it hides reasoning."""
    said = {key: value for key, value in entry.items() if key != "extra"}
    hidden = False
    if entry.get("object") == "response":
        said, hidden = _response(entry)
    elif entry.get("type") == "function_call_output":
        said = {"role": "tool", "tool_call_id": entry.get("call_id"), "content": entry.get("output")}
    elif entry.get("type") == "message":
        said = {"role": entry.get("role"), "content": _text(entry.get("content"))}
    extra = entry.get("extra") or {}
    rest = {key: value for key, value in extra.items() if key not in _NOT_KEPT and key not in said}
    response = extra.get("response")
    if isinstance(response, dict) and said.get("role") == "assistant":
        response = {name: response[name] for name in _RESPONSE if response.get(name) is not None}
    return said | rest | ({} if response is None else {"response": response}), hidden


def _response(entry: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """A turn that is logged as the output items of one API response."""
    texts, calls, thoughts, hidden = [], [], [], False
    output = entry.get("output")
    for item in output if isinstance(output, list) else []:
        match item:
            case {"type": "message", "content": content}:
                texts.append(_text(content))
            case {"type": "function_call", "name": name}:
                function = {"name": name, "arguments": item.get("arguments")}
                calls.append({"id": item.get("call_id"), "type": "function", "function": function})
            case {"type": "reasoning"}:
                shown = _text(item.get("summary") or item.get("content"))
                thoughts.extend([shown] if shown else [])
                hidden = hidden or not item.get("content")
    said: dict[str, Any] = {"role": "assistant", "content": "".join(texts) or None}
    if calls:
        said["tool_calls"] = calls
    if thoughts:
        said["reasoning_content"] = "\n".join(thoughts)
    kept = {name: entry[name] for name in _RESPONSE if entry.get(name) is not None}
    return said | {"response": kept}, hidden


def _calls(said: dict[str, Any], extra: _Extra, *, bare: bool) -> list[dict[str, Any]]:
    """The calls of a turn as the model made them; else the commands that were executed for it."""
    made = said.get("tool_calls")
    if made:
        return made if isinstance(made, list) else [made]  # what is no list of calls is refused with the rest
    if extra.actions is not None:
        return [
            {
                "id": action.tool_call_id,
                "type": "text",
                "function": {"name": TOOL, "arguments": {"command": action.command}},
            }
            for action in extra.actions
        ]
    blocks = list(_blocks(_text(said.get("content")))) if bare else []
    if len(blocks) != 1:
        return []  # the harness takes exactly one
    return [{"type": "text", "function": {"name": TOOL, "arguments": {"command": blocks[0]}}}]


def _submits(said: dict[str, Any]) -> bool:
    match said.get("tool_calls"):
        case [{"function": {"arguments": {"command": str(command)}}}, *_]:
            return any(mark in command for mark in SUBMISSIONS)
    return False


def _blocks(text: str) -> Iterator[str]:
    """The fenced blocks that the harness executes, without the white space around them."""
    tag = next((fence for fence in _FENCES if fence in text), None)
    start = -1 if tag is None else text.find(tag)
    while start >= 0 and tag is not None:
        line = text.find("\n", start + len(tag))
        end = -1 if line < 0 else text.find("\n```", line)
        if end < 0 or text[start + len(tag) : line].strip():
            return
        yield text[line:end].strip()
        start = text.find(tag, end)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""

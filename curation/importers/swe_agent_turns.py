"""What a SWE-agent model was shown, joined with what it did: the history's entries as chat messages.

The two lists tell the same turns: a step belongs to the next assistant's entry with its action and its words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from schemas import canonical

TEXT_TOOL = "bash"
_LOOK_AHEAD = 50  # a turn is not looked for further on than so many that were asked for again
_HELD = 64  # characters of an answer that show whether a text holds it
_DROPPED = frozenset(("role", "content", "thought", "action", "tool_calls", "tool_call_ids", "thinking_blocks"))


class Step(msgspec.Struct):
    """One entry of ``trajectory``."""

    action: str | None = None
    observation: str | None = None
    response: str | None = None
    thought: str | None = None
    reasoning_content: str | None = None
    state: Any = None
    query: list[dict[str, Any]] | None = None


class Entry(msgspec.Struct):
    """One entry of ``history``."""

    role: str
    content: str | list[Any] | None = None
    thought: str | None = None
    action: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_ids: list[str] | None = None
    thinking_blocks: list[dict[str, Any]] | None = None
    is_demo: bool | None = None


@dataclass(slots=True)
class Turns:
    """The messages in the shapes of a chat; by index the raw text of answers, where something is left out before them,
    and what is copied from another run.
    """

    entries: list[dict[str, Any]] = field(default_factory=list)
    raws: dict[int, str] = field(default_factory=dict)
    hidden: set[int] = field(default_factory=set)
    copied: set[int] = field(default_factory=set)
    exit_message: str | None = None


def join(
    logged: Sequence[dict[str, Any]],
    history: Sequence[Entry],
    steps: Sequence[Step],
    exited: bool,
    elided_after: int | None,
) -> Turns:
    """The run's messages; ``exited``: the last step is the harness's, ``elided_after``: how many answers are shown."""
    turns = Turns()
    if exited:
        turns.exit_message, steps = steps[-1].response, steps[:-1]
    position, answers, waiting = 0, 0, None
    for raw, entry in zip(logged, history, strict=True):
        if entry.is_demo:
            _add_demonstration(turns, raw, entry)
        elif entry.role == "assistant":
            if entry.content == turns.exit_message and not entry.action and position == len(steps):
                continue
            found = _find(entry, steps, position)
            step = None if found is None else steps[found]
            again = steps[position:found] if found is not None else ()
            position = position if found is None else found + 1
            left_out = elided_after is not None and answers > elided_after
            _add_turn(turns, raw, entry, step, again, left_out)
            waiting = step or Step()
        elif waiting is not None:
            answers += 1
            _add_answer(turns, raw, entry, waiting)
            waiting = None
        else:
            turns.entries.append({**_rest(raw), "role": entry.role, "content": entry.content})
    if waiting is not None and waiting.observation is not None and _has_call(turns.entries[-1]):
        turns.entries.append(_unshown(waiting))
    for step in steps[position:]:
        turns.entries.append(_message(step.response, {}, None, step))
        if step.observation is not None and _has_call(turns.entries[-1]):
            turns.entries.append(_unshown(step))
    return turns


def parsed_text(value: Any) -> Any:
    """A value that a log may hold as JSON text; text that is none stays text."""
    if not isinstance(value, str):
        return value
    try:
        return canonical.parse(value.strip().encode())[0]
    except canonical.UnreadableError:
        return value


def _find(entry: Entry, steps: Sequence[Step], start: int) -> int | None:
    for index in range(start, min(len(steps), start + _LOOK_AHEAD)):
        step = steps[index]
        same = entry.content == step.response or (entry.thought is not None and entry.thought == step.thought)
        if same and (entry.action or "") == (step.action or ""):
            return index
    edited = start < len(steps) and entry.action is not None and entry.action == steps[start].action
    return start if edited else None


def _add_turn(
    turns: Turns, raw: dict[str, Any], entry: Entry, step: Step | None, again: Sequence[Step], left_out: bool
) -> None:
    made = _message(entry.content, _rest(raw), entry, step)
    if again:
        made["requeried"] = [
            {"response": one.response, "action": one.action, "observation": one.observation} for one in again
        ]
    shown = step.query if step is not None and step.query and any(step.query) else None
    elided = left_out or _lost(turns) if shown is None else not _is_shown(shown, turns.entries)
    if again or elided:
        turns.hidden.add(len(turns.entries))
    turns.entries.append(made)


def _lost(turns: Turns) -> bool:
    """Whether the last answer is logged as it looked later, when most of it was left out."""
    last = len(turns.entries) - 1
    raw = turns.raws.get(last, "").strip()
    return bool(raw) and raw[:_HELD] not in _text(turns.entries[last]["content"])


def _is_shown(query: Sequence[dict[str, Any]], entries: Sequence[dict[str, Any]]) -> bool:
    return len(query) == len(entries) and all(
        _text(asked.get("content")) == _text(entry["content"]) for asked, entry in zip(query, entries, strict=True)
    )


def _add_answer(turns: Turns, raw: dict[str, Any], entry: Entry, step: Step) -> None:
    """An answer where a call waits for one; a person's or the harness's words to a turn without a call stay theirs."""
    made: dict[str, Any] = {**_rest(raw), "role": entry.role, "content": entry.content}
    if _has_call(turns.entries[-1]):
        made["role"] = "tool"
        if entry.role != "tool":
            made["shown_as"] = entry.role
        if step.state is not None:
            made["state"] = parsed_text(step.state)
        if step.observation is not None and step.observation != entry.content:
            turns.raws[len(turns.entries)] = step.observation
    if entry.tool_call_ids:
        made["tool_call_id"] = entry.tool_call_ids[0]
        if len(entry.tool_call_ids) > 1:
            made["tool_call_ids"] = entry.tool_call_ids
    turns.entries.append(made)


def _add_demonstration(turns: Turns, raw: dict[str, Any], entry: Entry) -> None:
    made: dict[str, Any] = {**_rest(raw), "role": entry.role, "content": entry.content}
    if entry.role == "tool":
        made |= {"role": "user", "shown_as": "tool"}
    if entry.tool_calls:
        made["demonstrated"] = entry.tool_calls
    turns.copied.add(len(turns.entries))
    turns.entries.append(made)


def _message(content: Any, rest: dict[str, Any], entry: Entry | None, step: Step | None) -> dict[str, Any]:
    """An assistant's message with its call: as the model made it, or the command that it wrote."""
    made: dict[str, Any] = {**rest, "role": "assistant", "content": content}
    action = (step.action if step is not None else entry.action if entry is not None else None) or ""
    if entry is not None and entry.tool_calls:
        made["tool_calls"] = entry.tool_calls
        if action:
            made["action"] = action
    elif action.strip():
        made["tool_calls"] = [{"type": "text", "function": {"name": TEXT_TOOL, "arguments": {"command": action}}}]
    reasoning = step.reasoning_content if step is not None else None
    if reasoning is None and entry is not None and entry.thinking_blocks:
        reasoning = "\n".join(str(block["thinking"]) for block in entry.thinking_blocks if "thinking" in block) or None
    if reasoning is not None:
        made["reasoning_content"] = reasoning
    return made


def _unshown(step: Step) -> dict[str, Any]:
    """The answer to the last turn, which no model was shown any more."""
    made: dict[str, Any] = {"role": "tool", "content": step.observation, "shown": False}
    if step.state is not None:
        made["state"] = parsed_text(step.state)
    return made


def _has_call(entry: dict[str, Any]) -> bool:
    return bool(entry.get("tool_calls"))


def _rest(raw: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key not in _DROPPED and value is not None}


def _text(content: Any) -> str:
    """The text of a message's content, whichever way it is written."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""

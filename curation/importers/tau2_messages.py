"""Messages as tau2 logs them: calls with an object of arguments by the assistant or by the simulated user, answers that
name who asked, several answers in one message, and, of spoken runs, ticks.

The agent sees neither the user's calls nor their answers; they change the world, so they stay in the record, said by
the user simulator, and from the first of them on the context of a decision is not the one that the record shows.

A tick is a slice of time in which both sides may speak. A message is what one side says in ticks that follow one
another, placed where it begins. Calls are messages of their own, in their tick. Words that were not logged are hidden.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from curation.clocks import iso_time
from curation.importers.aside import Aside
from curation.importers.calls import CallShape, FunctionShape, read_call
from curation.importers.extra import kept
from curation.importers.face import RefusedError
from curation.importers.links import Links
from curation.importers.written import written_arguments
from schemas import canonical
from schemas.objects import make_object
from schemas.trajectory import Answers, Message, MessageError, Part, Role, ToolCall, call_uid

USER = "user_simulator"

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_SIDES = (("assistant", "agent"), ("user", "user"))


class CallEntry(msgspec.Struct):
    """One call of either side."""

    name: str
    arguments: Any = UNSET
    id: str | None = None


class Entry(msgspec.Struct):
    """One message, a tool's answer, or several answers in one."""

    role: str
    content: str | None = None
    tool_calls: list[CallEntry] | None = None
    id: str | None = None
    requestor: str | None = None
    error: bool = False
    tool_messages: list["Entry"] | None = None
    timestamp: Any = None
    usage: dict[str, Any] | None = None
    raw_data: dict[str, Any] | None = None
    is_audio: bool = False
    context_truncation: Any = None
    ticks: list[int] | None = None
    transcript: str | None = None


class _Chunk(msgspec.Struct):
    content: str | None = None
    contains_speech: bool | None = None
    is_audio: bool = False
    utterance_ids: list[str] | None = None


class Tick(msgspec.Struct):
    """What happened in one slice of time, on both sides."""

    timestamp: Any = None
    agent_chunk: _Chunk | None = None
    user_chunk: _Chunk | None = None
    agent_tool_calls: list[CallEntry] | None = None
    user_tool_calls: list[CallEntry] | None = None
    agent_tool_results: list[Entry] | None = None
    user_tool_results: list[Entry] | None = None
    user_transcript: str | None = None


def read_messages(
    policy: str | None, entries: Sequence[Entry], aside: Aside, history: Sequence[Any] = ()
) -> tuple[Message, ...]:
    """The messages in the log's sequence after the policy, answers linked to the calls of who asked.

    What the run began with was given, not decided: the task's ``history``, and what the harness says first itself.
    Raises RefusedError for a role that the format does not define.
    """
    messages = [] if policy is None else [Message("system", policy)]
    links = {"assistant": Links(), "user": Links()}
    flat = list(_flat(entries))
    given = len(messages) + max(_unmade(flat), _shared(entries, history))
    for entry in flat:
        role = _ROLES.get(entry.role)
        if role is None:
            raise RefusedError("unknown_role", f"a message has the role {entry.role!r}; known: {', '.join(_ROLES)}")
        by_user = (entry.requestor if role == "tool" else role) == "user"
        waiting = links["user" if by_user else "assistant"]
        extra: dict[str, Any] = {}
        if role == "tool":
            messages.append(_answer(entry, waiting, by_user, extra, aside))
            continue
        calls = _calls(entry, len(messages), extra, aside)
        waiting.open(calls)
        if calls and (time := iso_time(entry.timestamp)) is not None:
            aside.times[len(messages)] = time
        messages.append(_said(role, entry, calls, extra, aside))
    if any(one.repeated for one in links.values()):
        aside.warnings.append("repeated_call_id")
    began = len(messages) - len(flat)
    return tuple(
        replace(message, copied=True) if began <= index < given else message for index, message in enumerate(messages)
    )


def _unmade(entries: Sequence[Entry]) -> int:
    """How many entries are before the first that a model is logged to have made, up to the agent's last of them."""
    made = [bool(entry.usage or entry.raw_data) for entry in entries]
    agents = [index for index, entry in enumerate(entries) if entry.role == "assistant"]
    first = next((index for index in agents if made[index]), 0)
    return max((index + 1 for index in agents if index < first), default=0)


def _shared(entries: Sequence[Entry], history: Sequence[Any]) -> int:
    """How many entries are those of a history; none where they do not begin with it."""
    pairs = list(zip(entries, history, strict=False))
    same = (
        isinstance(told, dict) and (told.get("role"), told.get("content")) == (entry.role, entry.content)
        for entry, told in pairs
    )
    return len(list(_flat(entry for entry, _ in pairs))) if len(pairs) == len(history) and all(same) else 0


def _flat(entries: Iterable[Entry]) -> Iterator[Entry]:
    for entry in entries:
        if entry.tool_messages is None:
            yield entry
        else:
            yield from entry.tool_messages


def _said(role: Role, entry: Entry, calls: tuple[ToolCall, ...], extra: dict[str, Any], aside: Aside) -> Message:
    reasoning = _reasoning(entry) if role == "assistant" else None
    hidden: Literal["reasoning", "compaction"] | None = None
    if entry.context_truncation or (role == "user" and calls) or _unheard(entry, calls):
        hidden = "compaction"
    elif role == "assistant" and reasoning is None and _thought(entry.usage):
        hidden = "reasoning"
    extra |= {name: value for name in ("ticks", "transcript") if (value := getattr(entry, name)) is not None}
    actor = USER if role == "user" else None
    return Message(role, _content(entry, aside), reasoning, calls, actor=actor, hidden=hidden, extra=kept(extra))


def _unheard(entry: Entry, calls: tuple[ToolCall, ...]) -> bool:
    """Whether something was said of which the log holds no words."""
    return entry.ticks is not None and not entry.content and not calls


def _answer(entry: Entry, links: Links, by_user: bool, extra: dict[str, Any], aside: Aside) -> Message:
    found = links.answer(entry.id, None)
    if found is None:
        aside.warnings.append("orphan_answer")
    if entry.id and (found is None or found[0].id != entry.id):
        extra["tool_call_id"] = entry.id
    return Message(
        "tool",
        _content(entry, aside),
        answers=None if found is None else Answers(found[0].uid, found[1]),
        error=MessageError(origin="tool") if entry.error else None,
        actor=USER if by_user else None,
        extra=kept(extra),
    )


def _calls(entry: Entry, message: int, extra: dict[str, Any], aside: Aside) -> tuple[ToolCall, ...]:
    written = dict(written_arguments(entry.raw_data))
    calls, notes = [], {}
    for position, made in enumerate(entry.tool_calls or ()):
        text = written.get(made.id or "")
        function = FunctionShape(made.name, made.arguments if text is None else text)
        shape = CallShape(function, made.id, "function")
        call, note = read_call({"function": {}}, shape, call_uid(message, position), aside)
        calls.append(call)
        if note:
            notes[str(position)] = note
    if notes:
        extra["tool_calls"] = notes
    return tuple(calls)


def _content(entry: Entry, aside: Aside) -> str | tuple[Part, ...] | None:
    """Text as text; sound as a blob."""
    if not entry.is_audio or not entry.content:
        return entry.content
    blob = make_object("blob", canonical.encode({"type": "audio", "audio": entry.content}))
    aside.objects.append(blob)
    return (Part("audio", sha256=blob.id),)


def _reasoning(entry: Entry) -> str | None:
    """What the provider's response, where the log keeps it, shows of the reasoning."""
    match entry.raw_data:
        case {"choices": [{"message": {"reasoning_content": str(text)}}, *_]} if text:
            return text
        case {"message": {"reasoning_content": str(text)}} if text:
            return text
    return None


def _thought(usage: dict[str, Any] | None) -> bool:
    match usage:
        case {"completion_tokens_details": {"reasoning_tokens": int(tokens)}}:
            return tokens > 0
    return False


def entries_of(ticks: Sequence[Tick]) -> list[Entry]:
    """The messages of a spoken run, in the order in which they begin; those of one tick agent first."""
    said: list[Entry] = []
    speaking: dict[str, tuple[Entry, set[str]]] = {}
    for number, tick in enumerate(ticks):
        for role, side in _SIDES:
            chunk: _Chunk = getattr(tick, f"{side}_chunk") or _Chunk()
            words = "" if chunk.is_audio else chunk.content or ""
            heard = tick.user_transcript if role == "user" else None
            ids = set(chunk.utterance_ids or ())
            calls: list[CallEntry] | None = getattr(tick, f"{side}_tool_calls")
            if calls:
                speaking.pop(role, None)
                said.append(Entry(role, words or None, calls, timestamp=tick.timestamp, ticks=[number, number]))
            elif not (words or chunk.contains_speech):
                speaking.pop(role, None)
            elif role in speaking:
                _go_on(*speaking[role], number, words, ids, heard)
            else:
                entry = Entry(role, words or None, ticks=[number, number], transcript=heard)
                speaking[role] = entry, ids
                said.append(entry)
            said.extend(getattr(tick, f"{side}_tool_results") or ())
    return said


def _go_on(entry: Entry, before: set[str], number: int, words: str, ids: set[str], heard: str | None) -> None:
    """What a side says on in the next tick; another utterance begins after a space."""
    assert entry.ticks is not None  # noqa: S101 - set where it was begun
    entry.ticks[1] = number
    if words:
        space = " " if entry.content and ids and before and ids.isdisjoint(before) else ""
        entry.content = f"{entry.content or ''}{space}{words}"
        before.clear()
        before.update(ids)
    if heard:
        entry.transcript = f"{entry.transcript or ''}{heard}"

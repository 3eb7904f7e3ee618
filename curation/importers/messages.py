"""Messages out of OpenAI chat shapes, for every format that holds such messages.

A null under a key that is not modelled is the same as no key: columnar stores fill absent keys with null.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from curation.clocks import logged_time
from curation.importers.aside import Aside
from curation.importers.calls import CallShape, FunctionShape, read_call
from curation.importers.extra import kept
from curation.importers.face import RefusedError
from curation.importers.links import Links
from schemas.canonical import encode
from schemas.objects import make_object
from schemas.trajectory import Answers, Message, MessageError, Part, Role, ToolCall, call_uid

CLOCKS = frozenset(("timestamp", "time", "created", "created_at", "updated_at", "start_time", "end_time", "duration"))

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_PLAIN = frozenset(("role", "content"))
_ASSISTANT = _PLAIN | {"tool_calls", "function_call", "reasoning_content", "reasoning", "refusal"}
_TOOL = _PLAIN | {"tool_call_id", "name", "is_error", "error"}
_MODELLED: dict[Role, frozenset[str]] = {"system": _PLAIN, "user": _PLAIN, "assistant": _ASSISTANT, "tool": _TOOL}
_NEEDED: dict[Role, frozenset[str]] = {
    "system": frozenset(("content",)),
    "user": frozenset(("content",)),
    "assistant": _ASSISTANT - {"role"} | {"audio"},
    "tool": frozenset(("content",)),
}


class MessageShape(msgspec.Struct):
    """One entry of ``messages``; other keys are allowed and kept."""

    role: str
    content: str | list[Any] | None = None
    tool_calls: list[CallShape] | None = None
    function_call: FunctionShape | None = None
    tool_call_id: str | None = None
    name: str | None = None
    reasoning_content: str | None = None
    reasoning: Any = None
    refusal: str | None = None
    is_error: bool | None = None
    error: Any = None


def read_messages(
    entries: list[dict[str, Any]], shapes: Iterable[MessageShape], path: str, aside: Aside
) -> tuple[Message, ...]:
    """The messages of a run in the log's sequence, answers linked to calls.

    ``shapes`` are the entries converted; ``path`` is where they lie in the record. The times of messages with calls are
    told aside. Raises RefusedError with the path of what is not of the format's shape.
    """
    links = Links()
    messages = []
    for index, (entry, shape) in enumerate(zip(entries, shapes, strict=True)):
        role = _ROLES.get(shape.role)
        if role is None:
            raise RefusedError("unknown_role", f"{path}[{index}].role is {shape.role!r}; known: {', '.join(_ROLES)}")
        if _NEEDED[role].isdisjoint(entry):
            needed = " or ".join(sorted(_NEEDED[role]))
            raise RefusedError("not_a_record", f"{path}[{index}]: a message of role {shape.role!r} needs {needed}")
        extra: dict[str, Any] = {}
        if shape.role != role:
            extra["role"] = shape.role
        if not entry.keys() <= _MODELLED[role]:
            extra |= _unmodelled(entry, _MODELLED[role])
        content = _parts(shape.content, extra, aside) if isinstance(shape.content, list) else shape.content
        if role == "assistant":
            if shape.refusal:
                content = _with_refusal(content, shape.refusal)
            calls = _calls(entry, shape, index, extra, aside)
            if calls:
                links.open(calls)
                if not CLOCKS.isdisjoint(entry) and (time := logged_time(entry)) is not None:
                    aside.times[index] = time
            reasoning = _reasoning(shape, extra)
            message = Message(role, content, reasoning, calls, extra=kept(extra))
        elif role == "tool":
            message = _answer(shape, content, links, extra, aside)
        else:
            message = Message(role, content, extra=kept(extra))
        messages.append(message)
    if links.repeated:
        aside.warnings.append("repeated_call_id")
    return tuple(messages)


def _calls(
    entry: dict[str, Any], shape: MessageShape, message: int, extra: dict[str, Any], aside: Aside
) -> tuple[ToolCall, ...]:
    if not shape.tool_calls and shape.function_call is None:
        return ()
    pairs = list(zip(entry["tool_calls"], shape.tool_calls, strict=True)) if shape.tool_calls else []
    if shape.function_call is not None:
        pairs.append(({"function": entry["function_call"]}, CallShape(shape.function_call, type="function_call")))
    calls = []
    notes: dict[str, Any] = {}
    for position, (logged, call_shape) in enumerate(pairs):
        call, note = read_call(logged, call_shape, call_uid(message, position), aside)
        calls.append(call)
        if note:
            notes[str(position)] = note
    if notes:
        extra["tool_calls"] = notes
    return tuple(calls)


def _answer(
    shape: MessageShape, content: str | tuple[Part, ...] | None, links: Links, extra: dict[str, Any], aside: Aside
) -> Message:
    found = links.answer(shape.tool_call_id, shape.name)
    call, answers = None, None
    if found is None:
        aside.warnings.append("orphan_answer")
    else:
        call = found[0]
        answers = Answers(call.uid, found[1])
    if shape.tool_call_id is not None and (call is None or call.id != shape.tool_call_id):
        extra["tool_call_id"] = shape.tool_call_id
    if shape.name is not None and (call is None or call.name != shape.name):
        extra["name"] = shape.name
    error = _error(shape, extra) if shape.is_error or shape.error is not None else None
    return Message("tool", content, answers=answers, error=error, extra=kept(extra))


def _error(shape: MessageShape, extra: dict[str, Any]) -> MessageError | None:
    """The error that the log itself marks; what it says beyond message and kind is kept as it is."""
    match shape.error:
        case None | True:
            return MessageError()
        case False:
            return MessageError() if shape.is_error else None
        case str(text):
            return MessageError(text)
        case {"message": str(text), **rest}:
            kind = rest.pop("type", None)
            if rest or not isinstance(kind, str | None):
                extra["error"] = shape.error
            return MessageError(text, kind if isinstance(kind, str) else None)
        case other:
            return MessageError(encode(other).decode())


def _reasoning(shape: MessageShape, extra: dict[str, Any]) -> str | None:
    """All that is shown of the reasoning, as text; where it is more than one text, its form is kept beside it."""
    first, second = shape.reasoning_content, shape.reasoning
    if second is None or second == first:
        return first
    if first is None and type(second) is str:
        return second
    extra["reasoning"] = second
    shown = second if isinstance(second, str) else encode(second).decode()
    return shown if first is None else f"{first}\n{shown}"


def _with_refusal(content: str | tuple[Part, ...] | None, refusal: str) -> tuple[Part, ...]:
    said = (Part("text", content),) if isinstance(content, str) and content else content or ()
    return (*said, Part("refusal", refusal))


def _parts(content: list[Any], extra: dict[str, Any], aside: Aside) -> tuple[Part, ...]:
    """Text as text; anything else as a blob that holds the part's canonical bytes."""
    parts = []
    notes: dict[str, Any] = {}
    for position, entry in enumerate(content):
        match entry:
            case str(text):
                parts.append(Part("text", text))
            case {"type": "text", "text": str(text), **rest}:
                parts.append(Part("text", text))
                if rest:
                    notes[str(position)] = rest
            case _:
                blob = make_object("blob", encode(entry))
                aside.objects.append(blob)
                kind = entry.get("type") if isinstance(entry, dict) else None
                parts.append(Part(kind if isinstance(kind, str) else "unknown", sha256=blob.id))
    if notes:
        extra["content"] = notes
    return tuple(parts)


def _unmodelled(entry: dict[str, Any], modelled: frozenset[str]) -> dict[str, Any]:
    return {
        key: value for key, value in entry.items() if key not in modelled and key not in CLOCKS and value is not None
    }

"""Messages as AgentDojo logs them: calls with an object of arguments, answers that repeat their call, text in blocks.

Content is text, null, or a list of ``{type, content}`` blocks; one block of text is the same as the text. Blocks of
thinking are the message's reasoning. Call ids are there, null, empty, or no key at all.
"""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from curation.importers.aside import Aside
from curation.importers.extra import kept
from curation.importers.face import RefusedError
from curation.importers.links import Links
from schemas import canonical
from schemas.objects import make_object
from schemas.trajectory import Answers, Message, MessageError, Part, Role, ToolCall, call_uid

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_CALL_KEYS = frozenset(("function", "args", "id"))


class CallShape(msgspec.Struct):
    """One call, in an assistant's message or repeated in the answer's."""

    function: str
    args: dict[str, Any] = {}
    id: str | None = None


class MessageShape(msgspec.Struct):
    """One entry of ``messages``."""

    role: str
    content: str | list[Any] | None = None
    tool_calls: list[CallShape] | None = None
    tool_call: CallShape | None = None
    tool_call_id: str | None = None
    error: str | None = None


class _Said(msgspec.Struct):
    content: str | tuple[Part, ...] | None
    reasoning: str | None = None
    hidden: Literal["reasoning"] | None = None


def read_messages(
    entries: Sequence[dict[str, Any]], shapes: Sequence[MessageShape], path: str, aside: Aside
) -> tuple[Message, ...]:
    """The messages of a run in the log's sequence, answers linked to calls: by id, by order where it is not unique.

    ``shapes`` are the entries converted, ``path`` is where they lie in the record. Raises RefusedError.
    """
    links = Links()
    messages = []
    for index, (entry, shape) in enumerate(zip(entries, shapes, strict=True)):
        role = _ROLES.get(shape.role)
        if role is None:
            raise RefusedError("unknown_role", f"{path}[{index}].role is {shape.role!r}; known: {', '.join(_ROLES)}")
        extra: dict[str, Any] = {}
        said = _said(role, shape.content, extra, aside)
        if role == "tool":
            messages.append(_answer(shape, said, links, extra, aside))
        else:
            calls = _calls(entry, shape, index, extra, aside) if role == "assistant" else ()
            links.open(calls)
            messages.append(Message(role, said.content, said.reasoning, calls, hidden=said.hidden, extra=kept(extra)))
    if links.repeated:
        aside.warnings.append("repeated_call_id")
    return tuple(messages)


def _calls(
    entry: dict[str, Any], shape: MessageShape, message: int, extra: dict[str, Any], aside: Aside
) -> tuple[ToolCall, ...]:
    logged = entry.get("tool_calls") or []
    notes = {
        str(position): rest
        for position, call in enumerate(logged)
        if (rest := {key: value for key, value in call.items() if key not in _CALL_KEYS and value is not None})
    }
    if notes:
        extra["tool_calls"] = notes
    return tuple(_call(call, call_uid(message, position)) for position, call in enumerate(shape.tool_calls or []))


def _call(shape: CallShape, uid: str) -> ToolCall:
    arguments = canonical.encode(shape.args)
    return ToolCall(uid, shape.function, arguments.decode(), shape.id, msgspec.Raw(arguments))


def _answer(shape: MessageShape, said: _Said, links: Links, extra: dict[str, Any], aside: Aside) -> Message:
    """What the harness says of its tool's failure is an error of the log; the model saw it in place of the content."""
    repeated = shape.tool_call
    found = links.answer(shape.tool_call_id, None if repeated is None else repeated.function)
    call = None if found is None else found[0]
    if found is None:
        aside.warnings.append("orphan_answer")
    if shape.tool_call_id is not None and (call is None or call.id != shape.tool_call_id):
        extra["tool_call_id"] = shape.tool_call_id
    if repeated is not None and (call is None or _call(repeated, call.uid) != call):
        extra["tool_call"] = msgspec.to_builtins(repeated)
    answers = None if found is None else Answers(found[0].uid, found[1])
    error = None if shape.error is None else MessageError(shape.error, origin="tool")
    return Message("tool", said.content, answers=answers, error=error, extra=kept(extra))


def _said(role: Role, content: str | list[Any] | None, extra: dict[str, Any], aside: Aside) -> _Said:
    """Content and reasoning; what is neither text nor thinking is a blob that holds the block's canonical bytes."""
    if not isinstance(content, list):
        return _Said(content)
    parts: list[Part] = []
    thoughts: list[str] = []
    notes: dict[str, Any] = {}
    hidden: Literal["reasoning"] | None = None
    for position, block in enumerate(content):
        match block:
            case {"type": "text", "content": str(text), **rest}:
                parts.append(Part("text", text))
            case {"type": "text", "content": None, **rest}:
                pass
            case {"type": "thinking", "content": str(text), **rest} if role == "assistant":
                thoughts.append(text)
            case {"type": "redacted_thinking", **rest} if role == "assistant":
                hidden = "reasoning"
            case _:
                rest = {}
                blob = make_object("blob", canonical.encode(block))
                aside.objects.append(blob)
                kind = block.get("type") if isinstance(block, dict) else None
                parts.append(Part(kind if isinstance(kind, str) else "unknown", sha256=blob.id))
        if rest:
            notes[str(position)] = rest
    if notes:
        extra["content"] = notes
    reasoning = "\n".join(thoughts) if thoughts else None
    match parts:
        case []:
            return _Said(None, reasoning, hidden)
        case [Part(text=str(text))]:
            return _Said(text, reasoning, hidden)
        case _:
            return _Said(tuple(parts), reasoning, hidden)

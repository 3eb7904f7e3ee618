"""Steps of an ATIF trajectory as messages: one for what a step says, one for each result of its observation.

A result names the call that it answers inside its own step, so ids may come again in another. What a message has no
field for (metrics, the step's model, extra) stays beside it under its own name.
"""

from typing import Any

import msgspec

from curation.clocks import iso_time
from curation.importers.aside import Aside
from curation.importers.atif_block import BLOCK, restore_call, restore_message
from curation.importers.extra import kept
from curation.importers.face import RefusedError
from curation.importers.links import Links
from schemas import canonical
from schemas.objects import make_object
from schemas.trajectory import Answers, MatchedBy, Message, MessageError, Part, Role, ToolCall, call_uid

_ROLES: dict[str, Role] = {"system": "system", "user": "user", "agent": "assistant"}
_STEP = frozenset(
    (
        "step_id",
        "timestamp",
        "source",
        "message",
        "reasoning_content",
        "tool_calls",
        "observation",
        "is_copied_context",
    )
)
_CALL = frozenset(("tool_call_id", "function_name", "arguments"))
_RESULT = frozenset(("source_call_id", "content"))
_ERROR_MARKS = ("is_error", "tool_result_is_error")


class CallShape(msgspec.Struct):
    """One entry of a step's ``tool_calls``."""

    tool_call_id: str
    function_name: str
    arguments: dict[str, Any]
    extra: dict[str, Any] | None = None


class ResultShape(msgspec.Struct):
    """One entry of an observation's ``results``."""

    source_call_id: str | None = None
    content: str | list[Any] | None = None
    extra: dict[str, Any] | None = None


class ObservationShape(msgspec.Struct):
    """What came back after a step."""

    results: list[ResultShape] = []


class StepShape(msgspec.Struct):
    """One entry of ``steps``. One that took no call of a model, or is of a copied context, holds no decision."""

    source: str
    message: str | list[Any] = ""
    timestamp: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[CallShape] | None = None
    observation: ObservationShape | None = None
    is_copied_context: bool | None = None
    llm_call_count: Any = None
    extra: dict[str, Any] | None = None


def read_steps(
    entries: list[dict[str, Any]], shapes: list[StepShape], path: str, messages: list[Message], aside: Aside
) -> None:
    """Add the messages of these steps; ``path`` is where they lie. Raises RefusedError."""
    for number, (entry, step) in enumerate(zip(entries, shapes, strict=True)):
        role = _ROLES.get(step.source)
        if role is None:
            known = ", ".join(_ROLES)
            raise RefusedError("unknown_role", f"{path}[{number}].source is {step.source!r}; known: {known}")
        calls = _add_step(entry, step, role, messages, aside)
        if step.observation is not None:
            _add_results(entry["observation"].get("results") or [], step, calls, messages, aside)


def _add_step(
    entry: dict[str, Any], step: StepShape, role: Role, messages: list[Message], aside: Aside
) -> tuple[ToolCall, ...]:
    extra = _rest(entry, _STEP)
    block = _block(extra)
    if block is not None and block.get("absent"):
        return ()
    index = len(messages)
    if (time := iso_time(step.timestamp)) is not None:
        aside.times[index] = time
    calls, notes = [], {}
    for position, (logged, shape) in enumerate(zip(entry.get("tool_calls") or [], step.tool_calls or [], strict=True)):
        note = _rest(logged, _CALL)
        arguments = canonical.encode(shape.arguments)
        call = ToolCall(
            call_uid(index, position),
            shape.function_name,
            arguments.decode(),
            shape.tool_call_id,
            msgspec.Raw(arguments),
        )
        calls.append(restore_call(call, _block(note), aside))
        if note:
            notes[str(position)] = note
    if notes:
        extra["tool_calls"] = notes
    message = Message(
        role,
        _content(step.message, aside),
        step.reasoning_content,
        tuple(calls),
        copied=bool(step.is_copied_context) or (role == "assistant" and step.llm_call_count == 0),
        extra=kept(extra),
    )
    messages.append(restore_message(message, block, messages))
    return message.tool_calls


def _add_results(
    entries: list[dict[str, Any]],
    step: StepShape,
    calls: tuple[ToolCall, ...],
    messages: list[Message],
    aside: Aside,
) -> None:
    results = step.observation.results if step.observation else []
    links = Links()
    links.open(calls)
    by_order = bool(results) and len(results) == len(calls) and all(one.source_call_id is None for one in results)
    for entry, result in zip(entries, results, strict=True):
        extra = _rest(entry, _RESULT)
        block = _block(extra)
        found: tuple[ToolCall, MatchedBy] | None = None
        if by_order or result.source_call_id is not None:
            found = links.answer(result.source_call_id, None)
        if result.source_call_id is not None and (found is None or found[0].id != result.source_call_id):
            extra["source_call_id"] = result.source_call_id
        answers = None if found is None else Answers(found[0].uid, found[1])
        message = Message(
            "tool",
            _content(result.content, aside),
            answers=answers,
            error=MessageError() if _is_error(extra.get("extra")) else None,
            copied=bool(step.is_copied_context),
            extra=kept(extra),
        )
        messages.append(restore_message(message, block, messages))
        if messages[-1].answers is None:
            aside.warnings.append("orphan_answer")
    if links.repeated:
        aside.warnings.append("repeated_call_id")


def _is_error(extra: Any) -> bool:
    """Whether the agent's own log marks a result as an error: the format has no place for that, so its writers keep it
    beside the result.
    """
    return isinstance(extra, dict) and any(extra.get(mark) is True for mark in _ERROR_MARKS)


def _content(content: str | list[Any] | None, aside: Aside) -> str | tuple[Part, ...] | None:
    """Text as text; a picture or sound as a blob that holds the reference to it."""
    if not isinstance(content, list):
        return content
    parts = []
    for entry in content:
        match entry:
            case {"type": "text", "text": str(text)}:
                parts.append(Part("text", text))
            case _:
                blob = make_object("blob", canonical.encode(entry))
                aside.objects.append(blob)
                kind = entry.get("type") if isinstance(entry, dict) else None
                parts.append(Part(kind if isinstance(kind, str) else "unknown", sha256=blob.id))
    return tuple(parts)


def _rest(entry: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in known and value is not None}


def _block(extra: dict[str, Any]) -> dict[str, Any] | None:
    """Our own block out of the extra of a step, call or result, which is left without it."""
    inner = extra.get("extra")
    if not isinstance(inner, dict) or not isinstance(inner.get(BLOCK), dict):
        return None
    rest = {key: value for key, value in inner.items() if key != BLOCK}
    if rest:
        extra["extra"] = rest
    else:
        del extra["extra"]
    block: dict[str, Any] = inner[BLOCK]
    return block

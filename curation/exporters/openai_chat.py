"""OpenAI chat of a record: one object ``{messages, tools, ...}``, with the arguments and texts exactly as logged.

What the importer noted about the form of a message is undone. What this project knows beside (task, attempt, outcome,
stop) stands under the side-file keys, so that reading it again names the same attempt. Under ``curation`` stands who
says it, where that is not the log itself, and what of the record a chat has no place for: hidden reasoning, the agent.
"""

from collections import Counter
from typing import Any

import msgspec
from msgspec import UNSET

from curation.exporters.known import Known
from curation.importers.atif_block import difference
from curation.importers.claims import Claim, claim_of
from curation.importers.face import Rejected, Slice
from curation.importers.openai_chat import BLOCK, CONDITION_FIELDS, IMPORTER, MESSAGE_FIELDS, Beside
from schemas.trajectory import Conditions, Json, Message, Part, Record, ToolCall

_OUTCOMES = {"passed": "success", "failed": "failure", "partial": "partial", "unknown": "unknown"}
_FIELDS = {
    **{name: name for name in ("split", "group", "environment", "stop")},
    "allocation": "attempt.allocation",
}
_OF_FORK = frozenset(("task", "stop_text", "usage", "extra"))
_RECORD = _OF_FORK | {"attempt"}
_NOTES = frozenset(("content", "tool_calls", "role", "tool_call_id", "name", "error", "reasoning"))


def write(known: Known) -> dict[str, Any]:
    """The chat as one object."""
    trajectory = known.trajectory
    made: dict[str, ToolCall] = {call.uid: call for message in trajectory.messages for call in message.tool_calls}
    conditions, attempt = trajectory.conditions, trajectory.attempt
    run = None if attempt is None else attempt.run
    chat = {
        "id": run if trajectory.fork is None else known.id,
        "messages": [_message(message, made, known) for message in trajectory.messages],
        "tools": known.tools,
        "model": conditions.model,
        "seed": conditions.seed,
        **_decoded(conditions.sampling),
        "error": trajectory.stop_text,
        "usage": None if trajectory.usage is None else msgspec.to_builtins(trajectory.usage) or None,
        **_beside(known),
        BLOCK: _block(known),
        **_decoded(trajectory.extra),
    }
    return {name: value for name, value in chat.items() if value is not None}


def left_out(known: Known) -> dict[str, int]:
    """What is known of the trajectory and has no place in a chat, by kind."""
    found = Counter(item.field.partition(".")[0] for item in known.annotations if not _is_written(item.field))
    found.update(f"{item.layer} checks" for item in known.verifications if item.layer != "task")
    found.update({"lineage": known.trajectory.fork is not None, "findings": known.findings})
    found.update(_unread(known))
    return {name: times for name, times in sorted(found.items()) if times}


def _unread(known: Known) -> Counter[str]:
    """The fields of the record that reading the chat again gives otherwise; of messages, how many of them have each."""
    item = next(IMPORTER.items(Slice(msgspec.json.encode(write(known)), 1, 0)))
    if isinstance(item, Rejected):
        return Counter({f"all, as it cannot be read again: {item.code}": 1})
    wanted, read = known.trajectory, item.trajectory
    found = Counter(f"condition {name}" for name in _differing(read.conditions, wanted.conditions))
    for ours, theirs in zip(read.messages, wanted.messages, strict=True):
        found.update(f"message {name}" for name in _differing(ours, theirs))
    found.update(name for name in _differing(read, wanted) if name in (_RECORD if wanted.fork is None else _OF_FORK))
    return found


def _differing(read: Record, wanted: Record) -> list[str]:
    return [name for name in wanted.__struct_fields__ if getattr(read, name) != getattr(wanted, name)]


def _is_written(field: str) -> bool:
    return field in _FIELDS.values() or field.startswith(("strata.", "budget."))


def _block(known: Known) -> dict[str, Any] | None:
    """Who says what stands under the side-file keys, and what of the record has no place in a chat."""
    authors = {item.field: item.author for item in known.annotations if _is_written(item.field)}
    outcome = next((item for item in known.verifications if item.layer == "task"), None)
    claims = {name: claim_of(author) for name, author in authors.items()}
    if outcome is not None:
        claims["outcome"] = claim_of(outcome.author)
    said = {name: claim for name, claim in sorted(claims.items()) if claim != Claim()}
    messages = {
        str(index): values
        for index, message in enumerate(known.trajectory.messages)
        if (values := difference(Message(message.role), message, MESSAGE_FIELDS))
    }
    conditions = difference(Conditions(), known.trajectory.conditions, CONDITION_FIELDS)
    return dict(msgspec.to_builtins(Beside(said, conditions, messages))) or None


def _beside(known: Known) -> dict[str, Any]:
    task, attempt = known.trajectory.task, known.trajectory.attempt
    facts = {item.field: item.value for item in known.annotations}
    checks = [item for item in known.verifications if item.layer == "task"]
    strata = {name.removeprefix("strata."): value for name, value in facts.items() if name.startswith("strata.")}
    budget = {name.removeprefix("budget."): value for name, value in facts.items() if name.startswith("budget.")}
    return {
        "namespace": task.namespace,
        "task": task.id,
        "variant": task.variant,
        "parameters": None if task.parameters is UNSET else msgspec.json.decode(task.parameters),
        "attempt": None if attempt is None else attempt.index,
        "outcome": _OUTCOMES.get(checks[0].result) if checks else None,
        "score": checks[0].score if checks else None,
        "strata": strata or None,
        **{key: facts.get(field) for key, field in _FIELDS.items()},
        "budget": budget or None,
    }


def _message(message: Message, made: dict[str, ToolCall], known: Known) -> dict[str, Any]:
    extra = _decoded(message.extra)
    said: dict[str, Any] = {"role": extra.get("role", message.role)}
    content, refusal = _content(message.content, extra.get("content"), known)
    said["content"] = content
    if refusal is not None:
        said["refusal"] = refusal
    if message.role == "assistant":
        if message.reasoning is not None:
            said["reasoning_content"] = message.reasoning
        _add_calls(said, message, extra.get("tool_calls") or {})
    elif message.role == "tool":
        call = made.get(message.answers.uid) if message.answers else None
        said["tool_call_id"] = extra.get("tool_call_id", None if call is None else call.id)
        if "name" in extra:
            said["name"] = extra["name"]
        if message.error is not None:
            said["error"] = extra.get("error", {"message": message.error.message, "type": message.error.kind})
        if said["role"] == "function":
            said["name"] = extra.get("name", None if call is None else call.name)
            del said["tool_call_id"]
    return said | {name: value for name, value in extra.items() if name not in _NOTES}


def _add_calls(said: dict[str, Any], message: Message, notes: dict[str, Any]) -> None:
    calls = []
    for position, call in enumerate(message.tool_calls):
        note = notes.get(str(position), {}) if isinstance(notes, dict) else {}
        if note.get("arguments_form") == "text":
            custom = {"name": call.name, "input": call.arguments_text}
            calls.append({"id": call.id, "type": "custom", "custom": custom})
            continue
        function = {"name": call.name, "arguments": _arguments(call, note.get("arguments_form"))}
        if note.get("type") == "function_call":
            said["function_call"] = function
        else:
            calls.append({"id": call.id, "type": note.get("type", "function"), "function": function})
    if calls:
        said["tool_calls"] = calls


def _arguments(call: ToolCall, form: str | None) -> Any:
    """As the log had them: as text, or as the value that stood there."""
    match form:
        case None:
            return call.arguments_text
        case "null" | "absent":
            return None
        case _:
            return msgspec.json.decode(call.arguments_text)


def _content(
    content: str | tuple[Part, ...] | None, notes: Any, known: Known
) -> tuple[str | list[Any] | None, str | None]:
    """The content and the refusal that stood beside it."""
    if not isinstance(content, tuple):
        return content, None
    refusal = content[-1].text if content and content[-1].type == "refusal" and content[-1].text is not None else None
    parts = content if refusal is None else content[:-1]
    written: list[Any] = []
    for position, part in enumerate(parts):
        rest = notes.get(str(position), {}) if isinstance(notes, dict) else {}
        written.append(_part(part, known) | rest if isinstance(rest, dict) else _part(part, known))
    if refusal is not None and all(part.type == "text" for part in parts) and len(parts) < 2:
        return (parts[0].text if parts else None), refusal
    return written, refusal


def _part(part: Part, known: Known) -> dict[str, Any]:
    if part.text is not None:
        return {"type": part.type, "text": part.text}
    value = msgspec.json.decode(known.blobs[part.sha256]) if part.sha256 and part.sha256 in known.blobs else None
    return value if isinstance(value, dict) else {"type": part.type, "sha256": part.sha256}


def _decoded(value: Json) -> dict[str, Any]:
    found = {} if value is UNSET else msgspec.json.decode(value)
    return found if isinstance(found, dict) else {}

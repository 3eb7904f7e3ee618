"""ATIF 1.8 of a record. What the format has no place for goes into ``extra.curation``, so that nothing is lost.

The document is written as far as ATIF goes, read again, and what reading gave otherwise than the record is added to the
blocks: a trajectory, a step, a call or a result each has its own. A fork's shared history is copied context.
"""

from typing import Any

import msgspec
from msgspec import UNSET

from curation.errors import CurationError
from curation.exporters.known import Known
from curation.importers.aside import Aside
from curation.importers.atif import VERSIONS, read_documents
from curation.importers.atif_block import (
    BLOCK,
    MESSAGE_FIELDS,
    TRAJECTORY_FIELDS,
    Block,
    Lineage,
    Said,
    difference,
)
from curation.importers.claims import claim_of
from schemas import canonical
from schemas.statements import Verification
from schemas.trajectory import Message, Part, ToolCall, Trajectory

_SOURCES = {"system": "system", "user": "user", "assistant": "agent"}
_UNNAMED = "unknown"
_STEP_KEYS = ("model_name", "reasoning_effort", "metrics", "llm_call_count")  # what only an agent's step may have
_PICTURES = tuple(f"data:image/{form};" for form in ("jpeg", "png", "gif", "webp"))
_EMBEDDED = "subagent_trajectories"


class _StepExtra(msgspec.Struct):
    """What of a message's extra is a step's own in ATIF; of another shape it is not."""

    model_name: str | None = None
    reasoning_effort: str | float | None = None
    metrics: dict[str, Any] | None = None
    llm_call_count: int | None = None
    extra: dict[str, Any] | None = None
    tool_calls: dict[str, Any] | None = None
    subagent_trajectory_ref: list[dict[str, Any]] | None = None


class _RootExtra(msgspec.Struct):
    """What of a trajectory's extra is the document's own in ATIF."""

    session_id: str | None = None
    trajectory_id: str | None = None
    agent: tuple[str, str] | None = None
    agent_extra: dict[str, Any] | None = None
    extra: dict[str, Any] | None = None
    notes: str | None = None
    continued_trajectory_ref: str | None = None
    final_metrics: dict[str, Any] | None = None
    subagent_trajectories: list[str] | None = None


def write(known: Known) -> dict[str, Any]:
    """The document, valid by the models of the ``atif`` package. Raises CurationError where those are not installed."""
    document = _write(known, lift=True)
    if _objection(document) is not None:  # what looked like ATIF's own keys was something else
        document = _write(known, lift=False)
    objection = _objection(document)
    if objection is not None:
        raise CurationError(f"{known.id} cannot be written as ATIF: {objection}")
    return document


def left_out(known: Known) -> dict[str, int]:
    """What is known of the trajectory and does not go into the document, by kind."""
    return {"findings": known.findings} if known.findings else {}


def embedded(trajectory: Trajectory) -> tuple[str, ...]:
    """The digests of the subagents' trajectories that a record stands with."""
    return tuple(_lifted(trajectory.extra, _RootExtra, True).subagent_trajectories or ())


def _write(known: Known, *, lift: bool) -> dict[str, Any]:
    document, places = _document(known, lift)
    aside = Aside()
    native, _ = read_documents([msgspec.json.decode(canonical.encode(document))], aside)
    fork = known.trajectory.fork
    shared = 0 if fork is None else fork.branch_point
    for index, (message, wanted) in enumerate(zip(native.messages, known.trajectory.messages, strict=True)):
        fields = MESSAGE_FIELDS - {"copied"} if index < shared else MESSAGE_FIELDS
        _add(places[index], difference(message, wanted, fields))
    _add(document, _block(known, native, {blob.id for blob in aside.objects}))
    return document


def _document(known: Known, lift: bool) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The document as far as ATIF goes, and where in it each message is: a step or a result."""
    steps: list[dict[str, Any]] = []
    places: list[dict[str, Any]] = []
    times = dict(zip(known.clocks.messages, known.clocks.times, strict=True))
    fork = known.trajectory.fork
    shared = 0 if fork is None else fork.branch_point
    calls: dict[str, ToolCall] = {}
    for index, message in enumerate(known.trajectory.messages):
        if message.role == "tool":
            if not steps:
                steps.append(_step(1, "system", ""))
                _add(steps[0], {"absent": True})
            place = _result(message, calls, known, lift)
            steps[-1].setdefault("observation", {"results": []})["results"].append(place)
        else:
            calls = {call.uid: call for call in message.tool_calls}
            place = _turn(len(steps) + 1, message, known, lift)
            if index in times:
                place["timestamp"] = times[index]
            if (message.copied and place.get("llm_call_count") != 0) or index < shared:
                place["is_copied_context"] = True
            steps.append(place)
        places.append(place)
    return _root(known, steps, lift), places


def _root(known: Known, steps: list[dict[str, Any]], lift: bool) -> dict[str, Any]:
    trajectory = known.trajectory
    extra = _lifted(trajectory.extra, _RootExtra, lift)
    run = trajectory.attempt.run if trajectory.attempt else None
    name, _, version = (trajectory.conditions.agent or "").rpartition("@")
    if not name:
        name, version = version or _UNNAMED, _UNNAMED
    if extra.agent is not None:
        name, version = extra.agent
    usage = trajectory.usage
    metrics = dict(extra.final_metrics or {})
    if usage is not None:
        metrics["total_prompt_tokens"] = usage.prompt_tokens
        metrics["total_completion_tokens"] = usage.completion_tokens
        metrics["total_cost_usd"] = usage.cost
    tools = known.tools if known.tools is not None and all(isinstance(tool, dict) for tool in known.tools) else None
    inner = [value for name in extra.subagent_trajectories or () if (value := _blob(name, known)) is not None]
    found = {
        "schema_version": VERSIONS[-1],
        "session_id": extra.session_id or (None if extra.trajectory_id else run),
        "trajectory_id": extra.trajectory_id,
        "agent": _present(
            {
                "name": name,
                "version": version,
                "model_name": trajectory.conditions.model,
                "tool_definitions": tools,
                "extra": extra.agent_extra,
            }
        ),
        "steps": steps,
        "notes": extra.notes,
        "final_metrics": None if usage is None and not metrics else _present(metrics),
        "continued_trajectory_ref": extra.continued_trajectory_ref,
        "extra": extra.extra,
        _EMBEDDED: inner or None,
    }
    return _present(found)


def _step(number: int, source: str, message: Any) -> dict[str, Any]:
    return {"step_id": number, "source": source, "message": message}


def _turn(number: int, message: Message, known: Known, lift: bool) -> dict[str, Any]:
    extra = _lifted(message.extra, _StepExtra, lift)
    step = _step(number, _SOURCES[message.role], _content(message.content or "", known, lift))
    if message.role == "assistant":
        for name in _STEP_KEYS:
            if (value := getattr(extra, name)) is not None:
                step[name] = value
        if message.reasoning is not None and extra.llm_call_count != 0:
            step["reasoning_content"] = message.reasoning
        if message.tool_calls:
            notes = extra.tool_calls or {}
            step["tool_calls"] = [
                _call(call, notes.get(str(position))) for position, call in enumerate(message.tool_calls)
            ]
    if extra.extra is not None:
        step["extra"] = dict(extra.extra)
    return step


def _call(call: ToolCall, note: Any) -> dict[str, Any]:
    """A call; what the model wrote stands beside it where that is not just these arguments."""
    arguments = {} if call.arguments is UNSET else msgspec.json.decode(call.arguments)
    written: dict[str, Any] = {
        "tool_call_id": call.id if call.id is not None else f"call_{call.uid}",
        "function_name": call.name,
        "arguments": arguments,
    }
    inner = note.get("extra") if isinstance(note, dict) else None
    if isinstance(inner, dict):
        written["extra"] = dict(inner)
    beside: dict[str, Any] = {}
    if call.arguments_text != canonical.encode(arguments).decode():
        beside["arguments_text"] = call.arguments_text
    if call.id is None:
        beside["id"] = None
    if call.parse_error is not None:
        beside["parse_error"] = call.parse_error
    if beside:
        _add(written, beside)
    return written


def _result(message: Message, calls: dict[str, ToolCall], known: Known, lift: bool) -> dict[str, Any]:
    extra = _lifted(message.extra, _StepExtra, lift)
    call = calls.get(message.answers.uid) if message.answers else None
    found = {
        "source_call_id": None if call is None else call.id if call.id is not None else f"call_{call.uid}",
        "content": None if message.content is None else _content(message.content, known, lift),
        "subagent_trajectory_ref": extra.subagent_trajectory_ref,
        "extra": None if extra.extra is None else dict(extra.extra),
    }
    return _present(found)


def _content(content: str | tuple[Part, ...], known: Known, lift: bool) -> Any:
    return content if isinstance(content, str) else [_part(part, known, lift) for part in content]


def _part(part: Part, known: Known, lift: bool) -> dict[str, Any]:
    """A piece of a message; what ATIF cannot hold is named in its place."""
    if part.text is not None:
        return {"type": "text", "text": part.text}
    held: Any = _blob(part.sha256, known) if lift else None
    match held:
        case {"type": "image" | "audio", "source": {"media_type": str(), "path": str()}} as reference:
            return dict(reference)
        case {"type": "image_url", "image_url": {"url": str(url)}} if url.startswith(_PICTURES):
            media = url[len("data:") :].partition(";")[0]
            return {"type": "image", "source": {"media_type": media, "path": url}}
    return {"type": "text", "text": f"[{part.type} {part.sha256}]"}


def _blob(name: str | None, known: Known) -> Any:
    return msgspec.json.decode(known.blobs[name]) if name is not None and name in known.blobs else None


def _block(known: Known, native: Trajectory, blobs: set[str]) -> dict[str, Any]:
    """All that is known of the trajectory and that the document does not say."""
    trajectory = known.trajectory
    fork = trajectory.fork
    needed = _blobs_of(trajectory) & known.blobs.keys() - blobs
    block = Block(
        record=known.id,
        fields=difference(native, trajectory, TRAJECTORY_FIELDS),
        lineage=None
        if fork is None
        else Lineage(fork.parent, fork.branch_point, fork.kind, known.root.run, known.root.index),
        facts=[*map(_outcome, _outcomes(known)), *_annotations(known)],
        verifications=[msgspec.to_builtins(item) for item in known.verifications if item.layer != "task"],
        blobs={name: msgspec.json.decode(known.blobs[name]) for name in sorted(needed)},
    )
    if fork is not None:
        block.fields["attempt"] = {"run": known.id}
    return dict(msgspec.to_builtins(block))


def _outcomes(known: Known) -> list[Verification]:
    return [item for item in known.verifications if item.layer == "task"]


def _outcome(item: Verification) -> Said:
    claim = claim_of(item.author)
    return Said("outcome", item.result, claim.by, claim.name, claim.version, item.score)


def _annotations(known: Known) -> list[Said]:
    claims = ((item, claim_of(item.author)) for item in known.annotations)
    return [Said(item.field, item.value, claim.by, claim.name, claim.version) for item, claim in claims]


def _blobs_of(trajectory: Trajectory) -> set[str]:
    return {
        part.sha256
        for message in trajectory.messages
        if isinstance(message.content, tuple)
        for part in message.content
        if part.sha256 is not None
    }


def _lifted(extra: Any, shape: type[Any], lift: bool) -> Any:
    """What of an extra has its own place in ATIF; nothing where it is of another shape."""
    if extra is UNSET or not lift:
        return shape()
    try:
        return msgspec.json.decode(extra, type=shape)
    except msgspec.ValidationError:
        return shape()


def _add(place: dict[str, Any], values: dict[str, Any]) -> None:
    """Values into the block of a step, call, result or document."""
    if values:
        place.setdefault("extra", {}).setdefault(BLOCK, {}).update(values)


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _objection(document: dict[str, Any]) -> str | None:
    """What is wrong with a document by the package's models."""
    try:
        from atif import Trajectory as Model
    except ImportError:
        raise CurationError("writing ATIF needs the extra `atif`: pip install 'curation[atif]'") from None
    from pydantic import ValidationError

    try:
        Model.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc'])) or 'the document'}: {first['msg']}"
    return None

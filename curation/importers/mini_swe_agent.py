"""mini-swe-agent: ``{info, messages, trajectory_format}``, and in older files the bare list of messages.

What the harness executed stands in ``extra.actions`` of a message; the bare list holds it only as a fenced block of the
text. The last message is the harness's own (role ``exit``): how the run ended and what it submitted. An answer's raw
text stands beside the one that was shown. A turn that could not be parsed is not among the messages that later turns
saw: it stays with the harness's complaint. The format knows no outcome, attempt or tools.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from curation.importers.aside import Aside
from curation.importers.face import MAX_RECORD_BYTES, Fact, Importer, Parsed, RefusedError, Slice
from curation.importers.heads import head_value
from curation.importers.json_value import read_value
from curation.importers.messages import MessageShape, read_messages
from curation.importers.mini_swe_agent_turns import SUBMISSIONS, Turns, read_turns
from schemas import canonical
from schemas.statements import Stop
from schemas.trajectory import Budget, Conditions, Json, Message, MessageError, Task, Trajectory, Usage

STOP_RULE = "mini_swe_agent.stop@1"

FILLS: Mapping[str, str] = {
    "task": "recorded",
    "tools": "side file",
    "budget": "recorded",
    "start_state": "recorded",
    "attempt": "side file",
    "outcome": "side file",
    "stop": f"rule {STOP_RULE}",
    "model": "recorded",
    "usage": "recorded",
    "reasoning": "recorded",
    "branch": "unknown",
}

_STOPS: dict[str, Stop] = {
    "Submitted": "completed",
    "LimitsExceeded": "max_steps",
    "TimeExceeded": "timeout",
    "RepeatedFormatError": "parse_error",
    "ContextWindowExceededError": "context_length",
    "KeyboardInterrupt": "cancelled",
    "UserInterruption": "user_stop",
}
_PROVIDER_ERRORS = frozenset(
    (
        "APIConnectionError",
        "APIError",
        "AuthenticationError",
        "BadRequestError",
        "InternalServerError",
        "NotFoundError",
        "PermissionDeniedError",
        "RateLimitError",
        "RetryError",
        "ServiceUnavailableError",
        "Timeout",
        "UnsupportedParamsError",
    )
)
_FORMAT = "mini-swe-agent"
_MARKS = (*SUBMISSIONS, "```mswea_bash_command")
_MODELLED = frozenset(("info", "messages", "trajectory_format", "instance_id"))
_SAMPLING = frozenset(
    ("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "reasoning_effort", "parallel_tool_calls")
)


class _Stats(msgspec.Struct):
    instance_cost: float | int | None = None
    api_calls: int | None = None


class _Agent(msgspec.Struct):
    step_limit: int | None = None
    cost_limit: float | int | None = None
    wall_time_limit_seconds: float | int | None = None


class _Model(msgspec.Struct):
    model_name: str | None = None
    model_kwargs: dict[str, Any] | None = None


class _World(msgspec.Struct):
    image: str | None = None


class _Config(msgspec.Struct):
    agent: _Agent = msgspec.field(default_factory=_Agent)
    model: _Model = msgspec.field(default_factory=_Model)
    environment: _World = msgspec.field(default_factory=_World)


class _Info(msgspec.Struct):
    model_stats: _Stats = msgspec.field(default_factory=_Stats)
    config: _Config = msgspec.field(default_factory=_Config)
    mini_version: str | None = None
    exit_status: str | None = None
    submission: str | None = None


class _Run(msgspec.Struct):
    messages: list[dict[str, Any]]
    info: _Info = msgspec.field(default_factory=_Info)
    instance_id: str | None = None


def sniff(head: bytes) -> str:
    """Whether the head names the format, or is a bare list of messages that tell an agent how to submit."""
    value = head_value(head)
    if is_run(value):
        return "an object with messages that names mini-swe-agent"
    first = [said for said in value[:2] if isinstance(said, dict)] if isinstance(value, list) else []
    texts = [said["content"] for said in first if "role" in said and isinstance(said.get("content"), str)]
    marked = any(mark in text for text in texts for mark in _MARKS)
    return "a list of messages that say how to submit to mini-swe-agent" if marked else ""


def is_run(value: Any) -> bool:
    """Whether a value, perhaps cut, is a run that names this format rather than any other record with messages."""
    if not isinstance(value, dict):
        return False
    info, named = value.get("info"), value.get("trajectory_format")
    return (isinstance(named, str) and named.startswith(_FORMAT)) or (
        isinstance(info, dict) and "mini_version" in info and "messages" in value
    )


def _slices(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    name = path.name.removesuffix(".json").removesuffix(".traj").encode("utf-8", "replace")
    return (piece._replace(context=name) for piece in read_value(path, limit))


def _build(record: Any, data: bytes, piece: Slice, replaced: int) -> Parsed:
    aside = Aside(replaced=replaced)
    bare = isinstance(record, list)
    try:
        run = msgspec.convert({"messages": record} if bare else record, _Run)
        turns = read_turns(run.messages, bare=bare)
        shapes = msgspec.convert(turns.entries, list[MessageShape])
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", str(error)) from None
    messages = _with_asides(read_messages(turns.entries, shapes, "$.messages", aside), turns)
    aside.times |= turns.times
    status = run.info.exit_status or turns.exit_status
    return Parsed(
        Trajectory(
            messages,
            task=Task(id=run.instance_id),
            conditions=_conditions(run.info),
            stop_text=status or None,
            usage=_usage(run),
            extra=_extra({} if bare else record, run, turns),
        ),
        data,
        piece.place,
        piece.offset,
        key=run.instance_id or piece.context.decode() or None,
        objects=tuple(aside.objects),
        facts=(Fact("stop", _stop(status, turns), "rule", STOP_RULE), *aside.clocks(messages)),
        replaced=aside.replaced,
        warnings=aside.codes(),
    )


def _with_asides(messages: tuple[Message, ...], turns: Turns) -> tuple[Message, ...]:
    changed = list(messages)
    for index, text in turns.raws.items():
        changed[index] = replace(changed[index], raw=text)
    for index, text in turns.errors.items():
        changed[index] = replace(changed[index], error=MessageError(text, origin="harness"))
    for index in turns.hidden:
        changed[index] = replace(changed[index], hidden="reasoning")
    return tuple(changed)


def _stop(status: str | None, turns: Turns) -> Stop:
    """How the run ended, by the harness's own word; a bare list has none, but ends with the command that submits."""
    if status in _PROVIDER_ERRORS:
        return "provider_error"
    if not status:
        return "completed" if turns.submission is not None else "unknown"
    return _STOPS.get(status, "unknown")


def _usage(run: _Run) -> Usage | None:
    """The cost as the harness counts it, and the tokens of all responses where the log holds every one of them."""
    stats, told = run.info.model_stats, [took for entry in run.messages if (took := _tokens(entry)) is not None]
    usage = Usage(cost=stats.instance_cost)
    if told and len(told) == stats.api_calls:
        prompt, completion = map(sum, zip(*told, strict=True))
        usage = replace(usage, prompt_tokens=prompt, completion_tokens=completion)
    return None if usage == Usage() else usage


def _tokens(entry: Any) -> tuple[int, int] | None:
    """What a response took, of the message that it is kept beside or of the response that stands as a message."""
    extra = entry.get("extra") if isinstance(entry, dict) else None
    response = extra.get("response", entry) if isinstance(extra, dict) else entry
    usage = response.get("usage") if isinstance(response, dict) else None
    match usage:
        case {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}:
            return prompt, completion
        case {"input_tokens": int(prompt), "output_tokens": int(completion)}:
            return prompt, completion
    return None


def _conditions(info: _Info) -> Conditions:
    """What the run was configured with; a limit of 0 is none."""
    agent, model = info.config.agent, info.config.model
    budget = Budget(
        steps=agent.step_limit or None, cost=agent.cost_limit or None, seconds=agent.wall_time_limit_seconds or None
    )
    given = {name: value for name, value in (model.model_kwargs or {}).items() if name in _SAMPLING}
    return Conditions(
        budget=None if budget == Budget() else budget,
        model=model.model_name,
        sampling=canonical.raw(given) if given else UNSET,
        agent=_FORMAT if info.mini_version is None else f"{_FORMAT}@{info.mini_version}",
        environment=info.config.environment.image,
    )


def _extra(record: dict[str, Any], run: _Run, turns: Turns) -> Json:
    found = {key: value for key, value in record.items() if key not in _MODELLED and value is not None}
    submission = run.info.submission or turns.submission
    if submission:
        found["submission"] = submission
    return canonical.raw(found) if found else UNSET


IMPORTER = Importer("mini-swe-agent", "1", sniff, _slices, _build)

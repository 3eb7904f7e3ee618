"""Inspect AI logs: an ``.eval`` archive of one member a sample, or one JSON object with a list of samples.

A sample and epoch is an attempt. Its ``uuid`` names it, so that a log of a retried evaluation, which repeats samples,
adds none. What a scorer says is the outcome; targets, answers and explanations are hidden answers and stay out, and so
do task arguments and metadata, which may hold them: arguments are told apart by a digest. A sample that ended with an
error, or whose scorer failed, has no known outcome. An archive that is still being written has no header yet; its
journal has.
"""

from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from curation.importers.aside import Aside
from curation.importers.context import read_context
from curation.importers.elapsed import elapsed
from curation.importers.extra import kept, kept_known
from curation.importers.face import Fact, Importer, Parsed, RefusedError, Slice
from curation.importers.heads import head_value
from curation.importers.inspect_messages import Sample, Turn, read_events, read_sample, usage_of
from curation.importers.inspect_slices import ZIP, read_slices
from curation.importers.token_counts import summed, usage_details
from schemas import canonical
from schemas.objects import Object, tools_object
from schemas.side_file import Index
from schemas.statements import Result, Stop
from schemas.trajectory import Attempt, Budget, Conditions, Task, Trajectory, Usage

STOP_RULE = "inspect.stop@1"
NUMBER_RULE = "inspect.number@1"
NO_ANSWER_RULE = "inspect.no_answer=failed@1"
UNKNOWN_RULE = "inspect.unknown@1"
FILLS = {
    "task": "recorded",
    "tools": "recorded",
    "budget": "recorded",
    "start_state": "recorded",
    "attempt": "recorded",
    "outcome": "recorded",
    "stop": f"rule {STOP_RULE}",
    "model": "recorded",
    "usage": "recorded",
    "reasoning": "recorded",
    "branch": "unknown",
}

_FIRST = (b"header.json", b"_journal/", b"samples/")
_LETTERS: dict[Any, Result] = {"C": "passed", "I": "failed", "P": "partial"}
_EXACT = 2**53  # larger numbers are no score that a column can hold
_FAULTS = frozenset(("grader_failed", "scoring_failed"))
_LIMITS: dict[str, Stop] = {
    "context": "context_length",
    "time": "timeout",
    "working": "timeout",
    "message": "max_steps",
    "turn": "max_steps",
    "operator": "cancelled",
}
_SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "max_tokens",
    "stop_seqs",
    "frequency_penalty",
    "presence_penalty",
    "reasoning_effort",
    "reasoning_tokens",
    "parallel_tool_calls",
)


class _Spec(msgspec.Struct):
    task: str
    task_id: str | None = None
    eval_id: str | None = None
    run_id: str | None = None
    task_version: Any = None
    task_args: dict[str, Any] = {}
    model: str | None = None
    solver: str | None = None
    sandbox: Any = None
    config: dict[str, Any] | None = None
    revision: dict[str, Any] | None = None


class _Header(msgspec.Struct):
    eval: _Spec
    status: str = "started"
    plan: dict[str, Any] | None = None
    refused: tuple[str, str] | None = None


class _Sample(msgspec.Struct):
    id: str | int
    epoch: Index
    messages: list[dict[str, Any]] = []
    scores: dict[str, Any] | None = None
    score: Any = None
    events: list[Any] | None = None
    transcript: dict[str, Any] = {}
    attachments: dict[str, Any] = {}
    message_pool: list[Any] | None = None
    events_data: dict[str, Any] | None = None
    output: dict[str, Any] = {}
    model_usage: dict[str, Any] | None = None
    uuid: str | None = None
    error: dict[str, Any] | None = None
    error_retries: list[Any] | None = None
    limit: dict[str, Any] | None = None
    invalidation: Any = None
    sandbox: Any = None
    files: Any = None
    setup: Any = None
    message_limit: int | None = None
    token_limit: int | None = None
    time_limit: float | None = None
    total_time: Any = None


class _Verdict(NamedTuple):
    result: Result
    score: float | int | None = None
    rule: str = ""


def sniff(head: bytes) -> str:
    """Whether the head is a zip whose first member is one of Inspect's, or an object with the spec of an evaluation."""
    if head.startswith(ZIP):
        name = head[30 : 30 + int.from_bytes(head[26:28], "little")]
        return "an archive with header.json, _journal or samples" if name.startswith(_FIRST) else ""
    value = head_value(head)
    spec = value.get("eval") if isinstance(value, dict) else None
    fits = isinstance(spec, dict) and "task" in spec and not {"run_id", "eval_id", "task_id"}.isdisjoint(spec)
    return "an object with eval, the spec of an evaluation" if fits else ""


def _parse(data: bytes) -> tuple[Any, int]:
    """The value of a sample; nothing of no bytes, whose context says why there are none."""
    return canonical.parse(data) if data else (None, 0)


def _build(record: Any, data: bytes, piece: Slice, replaced: int) -> Parsed:
    header = read_context(piece.context, _Header, "the header of the log")
    try:
        sample = msgspec.convert(record, _Sample)
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", str(error)) from None
    aside = Aside(replaced=replaced)
    pool = sample.message_pool or (sample.events_data or {}).get("messages")
    attachments = sample.attachments or sample.transcript.get("content")
    events = read_events(
        sample.transcript.get("events", []) if sample.events is None else sample.events,
        attachments if isinstance(attachments, dict) else {},
        pool if isinstance(pool, list) else [],
        sample.messages,
    )
    messages = read_sample(sample.messages, events, aside)
    tools = _tools(events)
    spec = header.eval
    counted = _counted(events, sample, spec)
    trajectory = Trajectory(
        messages,
        task=_task(spec, sample),
        attempt=Attempt(sample.uuid or _run(spec), sample.epoch),
        conditions=Conditions(
            tools=None if tools is None else tools.id,
            budget=_budget(spec.config or {}, sample),
            model=spec.model,
            sampling=kept({name: value for name in _SAMPLING if (value := _set_alike(events, name)) is not None}),
            seed=seed if type(seed := _set_alike(events, "seed")) is int else None,
            agent=spec.solver or _solvers(header.plan),
            environment=_environment(spec),
        ),
        stop_text=_stop_text(sample),
        usage=_usage(counted),
        extra=kept_known({"usage_details": summed(map(usage_details, counted))}),
    )
    return Parsed(
        trajectory,
        data,
        piece.place,
        piece.offset,
        key=sample.uuid or f"{sample.id}/{sample.epoch}",
        objects=tuple(aside.objects) if tools is None else (*aside.objects, tools),
        facts=(
            *_outcome(sample, header.status),
            Fact("stop", _stop(sample, header.status, events), "rule", STOP_RULE),
            *elapsed(sample.total_time),
            Fact("strata.suite", spec.task),
            *((Fact("strata.error_retries", len(sample.error_retries)),) if sample.error_retries else ()),
            *aside.clocks(messages),
        ),
        replaced=aside.replaced,
        warnings=aside.codes(),
    )


def _task(spec: _Spec, sample: _Sample) -> Task:
    """The sample of the task; what its sandbox starts with is named by a digest, for a setup may hold the answer."""
    version = f"v{spec.task_version}" if spec.task_version else None
    arguments = f"args:{canonical.digest(canonical.encode(spec.task_args))[:12]}" if spec.task_args else None
    start = [sample.sandbox or spec.sandbox, sample.files, sample.setup]
    parameters = canonical.raw({"start": canonical.digest(canonical.encode(start))}) if any(start) else UNSET
    variant = "/".join(name for name in (version, arguments) if name)
    return Task(f"inspect:{spec.task}", str(sample.id), variant or None, parameters)


def _run(spec: _Spec) -> str | None:
    """Older logs have no uuid of a sample: the evaluation is the run."""
    return spec.eval_id or "/".join(name for name in (spec.run_id, spec.task_id) if name) or None


def _environment(spec: _Spec) -> str | None:
    match spec.revision:
        case {"commit": str(commit), **rest}:
            return f"inspect:{spec.task}@{commit}{'+changes' if rest.get('dirty') else ''}"
    return None


def _solvers(plan: dict[str, Any] | None) -> str | None:
    steps = (plan or {}).get("steps")
    names = [step.get("solver") for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    return "/".join(name for name in names if isinstance(name, str)) or None


def _budget(config: dict[str, Any], sample: _Sample) -> Budget | None:
    """The limits of the evaluation, or those of the sample where it ran under others. A limit of messages counts as
    one of steps where there is none of turns.
    """
    limits: dict[str, Any] = {
        "steps": config.get("turn_limit") or sample.message_limit or config.get("message_limit"),
        "tokens": sample.token_limit or config.get("token_limit"),
        "seconds": sample.time_limit or config.get("time_limit") or config.get("working_limit"),
        "cost": config.get("cost_limit"),
        "retries": config.get("retry_on_error"),
    }
    known = {name: value for name, value in limits.items() if type(value) is int or type(value) is float}
    try:
        return msgspec.convert(known, Budget) if known else None
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", f"a limit of the evaluation: {error}") from None


def _tools(events: Sample) -> Object | None:
    """The tools that the model was offered; unknown where that changed on the way or no call of it is logged."""
    lists = [turn.event.get("tools") for turn in events.turns]
    if not lists or not isinstance(lists[0], list) or any(tools != lists[0] for tools in lists):
        return None
    return tools_object(events.resolve(lists[0]))


def _set_alike(events: Sample, name: str) -> Any:
    """A setting that all calls of the model had."""
    configs = [turn.event.get("config") for turn in events.turns]
    values = [config.get(name) if isinstance(config, dict) else None for config in configs]
    return values[0] if values and all(value == values[0] for value in values) else None


def _counted(events: Sample, sample: _Sample, spec: _Spec) -> list[dict[str, Any]]:
    """What the attempt's own calls of the model took; where none is logged, what the log says of its model."""
    logged = (sample.model_usage or {}).get(spec.model or "")
    return [usage_of(turn.event) for turn in events.turns] or [logged if isinstance(logged, dict) else {}]


def _usage(counted: list[dict[str, Any]]) -> Usage | None:
    totals = [_total(counted, name) for name in ("input_tokens", "output_tokens", "total_cost")]
    prompt, completion = (total if isinstance(total, int) else None for total in totals[:2])
    usage = Usage(prompt, completion, totals[2])
    return usage if usage != Usage() else None


def _total(counted: list[dict[str, Any]], name: str) -> int | float | None:
    values = [usage.get(name) for usage in counted]
    known = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return sum(known) if known and len(known) == len(values) else None


def _outcome(sample: _Sample, status: str) -> tuple[Fact, ...]:
    """What the scorers agree on; unknown where something broke, was taken back, or they say different things."""
    scores = sample.scores if sample.scores is not None else {} if sample.score is None else {"score": sample.score}
    if sample.error is not None or sample.invalidation is not None or (not scores and status != "success"):
        return (Fact("outcome", "unknown", "rule", UNKNOWN_RULE),)
    verdicts = {_verdict(score) for score in scores.values()}
    told = tuple(
        Fact(f"strata.score.{name}", value)
        for name, score in scores.items()
        if len(scores) > 1 and isinstance(value := _value(score), str | int | float)
    )
    if len({verdict.result for verdict in verdicts}) > 1:
        return (Fact("outcome", "unknown", "rule", UNKNOWN_RULE), *told)
    if not verdicts:
        return ()
    verdict = min(verdicts, key=lambda verdict: (verdict.rule == "", verdict.rule))
    score = verdict.score if len(verdicts) == 1 else None
    return (Fact("outcome", verdict.result, "rule" if verdict.rule else "log", verdict.rule, score), *told)


def _verdict(score: Any) -> _Verdict:
    """``C``, ``I`` and ``P`` are verdicts in words. A number is read as Inspect's own metrics read it, 1 is right and 0
    wrong; one beyond them has an unknown scale. ``N`` says that the model gave no answer, which those metrics count as
    wrong; where the grader failed nothing is known.
    """
    value = _value(score)
    if isinstance(score, dict) and score.get("reason") in _FAULTS:
        return _Verdict("unknown", rule=UNKNOWN_RULE)
    match value:
        case "C" | "I" | "P":
            return _Verdict(_LETTERS[value])
        case "N":
            return _Verdict("failed", rule=NO_ANSWER_RULE)
        case bool():
            return _Verdict("passed" if value else "failed")
        case int() | float():
            known: Result = "passed" if value == 1 else "failed" if value == 0 else "partial"
            score = value if abs(value) < _EXACT else None
            return _Verdict(known if 0 <= value <= 1 else "unknown", score, NUMBER_RULE)
    return _Verdict("unknown", rule=UNKNOWN_RULE)


def _value(score: Any) -> Any:
    return score.get("value") if isinstance(score, dict) else score


def _stop(sample: _Sample, status: str, events: Sample) -> Stop:
    """What the log marks as the end: a limit, an error and where it came up, else that the sample was finished."""
    if sample.limit is not None:
        kind = sample.limit.get("type")
        return _LIMITS.get(kind, "unknown") if isinstance(kind, str) else "unknown"
    if sample.error is not None:
        last = events.turns[-1] if events.turns else Turn({}, None)
        if last.event.get("error"):
            return "provider_error"
        return "tool_error" if events.tools and events.tools[-1].get("failed") is True else "unknown"
    match sample.output.get("choices"):
        case [{"stop_reason": "model_length"}, *_]:
            return "context_length"
        case [{"stop_reason": "max_tokens"}, *_]:
            return "output_length"
        case [_, *_]:
            return "completed"
    return "cancelled" if status == "cancelled" else "unknown"


def _stop_text(sample: _Sample) -> str | None:
    if sample.error is not None:
        message = sample.error.get("message")
        return message if isinstance(message, str) else canonical.encode(sample.error).decode()
    return None if sample.limit is None else canonical.encode(sample.limit).decode()


IMPORTER = Importer("inspect", "1", sniff, read_slices, _build, _parse)

"""OpenHands: ``output.jsonl`` lines ``{instance_id, history, metadata, metrics, error}``, and bare lists of events.

History is a list of events, or in older files of ``[action, observation]`` pairs; events of the SDK have a ``kind``.
The resolver's dialect holds an issue in place of an instance, and a ``success`` that a model judged. ``instance`` holds
hidden answers (the tests that have to pass, the gold patch): of it only repository and commit are kept. What a run says
of itself is no outcome.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from curation.importers.aside import Aside
from curation.importers.extra import kept_known
from curation.importers.face import MAX_RECORD_BYTES, Fact, Importer, Parsed, RefusedError, Slice
from curation.importers.heads import head_value, head_values
from curation.importers.json_value import read_value
from curation.importers.lines import BOM, read_lines
from curation.importers.openhands_events import HARNESS, Events, read_events
from curation.importers.openhands_sdk_events import is_sdk_event, read_sdk_events
from schemas.objects import tools_object
from schemas.statements import Stop
from schemas.trajectory import Budget, Conditions, Json, Message, Task, Trajectory, Usage

STOP_RULE = "openhands.stop@1"

FILLS: Mapping[str, str] = {
    "task": "recorded",
    "tools": "recorded",
    "budget": "recorded",
    "start_state": "recorded",
    "attempt": "side file",
    "outcome": "recorded",
    "stop": f"rule {STOP_RULE}",
    "model": "recorded",
    "usage": "recorded",
    "reasoning": "recorded",
    "branch": "unknown",
}

_STOPS: dict[str, Stop] = {
    "AgentRuntimeTimeoutError": "timeout",
    "TimeoutError": "timeout",
    "EvalTimeoutException": "timeout",
    "AgentRuntimeUnavailableError": "tool_error",
    "AgentRuntimeDisconnectedError": "tool_error",
    "LLMContextWindowExceedError": "context_length",
    "ContextWindowExceededError": "context_length",
    "RateLimitError": "provider_error",
    "APIConnectionError": "provider_error",
    "APIError": "provider_error",
    "InternalServerError": "provider_error",
    "ServiceUnavailableError": "provider_error",
    "Timeout": "provider_error",
    "UserCancelledError": "user_stop",
}
_SAMPLING = ("temperature", "top_p", "max_output_tokens", "reasoning_effort")
_BESIDE = frozenset(("instance_id", "instance", "instruction", "issue", "metadata", "issue_type", "metrics"))
_KEPT = ("issue_type", "base_commit", "git_patch", "result_explanation")
_DIFFERENT_LIST = "a list of predictions (instance_id, model_patch) holds no run: import the runs they were made from"


class _Llm(msgspec.Struct):
    model: str | None = None
    seed: int | None = None
    temperature: float | int | None = None
    top_p: float | int | None = None
    max_output_tokens: int | None = None
    reasoning_effort: str | None = None


class _Metadata(msgspec.Struct):
    agent_class: str | None = None
    llm_config: _Llm | None = None
    llm: _Llm | None = None
    max_iterations: int | None = None
    dataset: str | None = None


class _Tokens(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Metrics(msgspec.Struct):
    accumulated_cost: float | int | None = None
    accumulated_token_usage: _Tokens | None = None


class _Instance(msgspec.Struct):
    repo: str | None = None
    base_commit: str | None = None


class _Issue(msgspec.Struct):
    owner: str
    repo: str
    number: int


class _Report(msgspec.Struct):
    resolved: bool | None = None
    error_eval: bool | None = None
    test_timeout: bool | None = None
    failed_apply_patch: bool | None = None


class _Results(msgspec.Struct):
    git_patch: str | None = None
    report: _Report | None = None


class _Run(msgspec.Struct):
    history: list[Any]
    instance_id: str | int | None = None
    metadata: _Metadata | None = None
    metrics: _Metrics | None = None
    instance: _Instance | None = None
    issue: _Issue | None = None
    test_result: _Results | None = None
    report: _Report | None = None
    success: bool | None = None
    error: str | None = None


def sniff(head: bytes) -> str:
    """Whether the head is a list of events, or one of the first lines an object with a history of events."""
    for value in head_values(head):
        history = value.get("history") if isinstance(value, dict) and not _BESIDE.isdisjoint(value) else None
        if isinstance(history, list) and (not history or _is_event(history[0])):
            return "lines that are objects with a history of events"
    value = head_value(head)
    return "a list of events" if isinstance(value, list) and value and _is_event(value[0]) else ""


def _is_event(value: Any) -> bool:
    """Whether a value, perhaps cut, is an action or an observation, or a pair of them."""
    if isinstance(value, list) and value:
        value = value[0]
    if is_sdk_event(value):
        return True
    return isinstance(value, dict) and "role" not in value and not {"action", "observation"}.isdisjoint(value)


def _slices(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """The lines of the file; a list of events as a whole."""
    with path.open("rb") as file:
        first = file.read(1 << 12).removeprefix(BOM).lstrip()[:1]
    return read_value(path, limit) if first == b"[" else read_lines(path, limit)


def _build(record: Any, data: bytes, piece: Slice, replaced: int) -> Parsed:
    aside = Aside(replaced=replaced)
    try:
        run = msgspec.convert({"history": record} if isinstance(record, list) else record, _Run)
        of_sdk = any(map(is_sdk_event, run.history))
        events = (read_sdk_events if of_sdk else read_events)(run.history, aside)
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", str(error)) from None
    if not events.messages:
        patches = run.history and isinstance(run.history[0], dict) and "model_patch" in run.history[0]
        raise RefusedError("not_a_record", _DIFFERENT_LIST if patches else "$.history holds no message and no action")
    tools = None if events.tools is None else tools_object(events.tools)
    messages = tuple(events.messages)
    task = _task(run)
    return Parsed(
        Trajectory(
            messages,
            task=task,
            conditions=_conditions(run, events, None if tools is None else tools.id),
            stop_text=run.error,
            usage=_usage(run.metrics),
            extra=_extra(record if isinstance(record, dict) else {}, run, events),
        ),
        data,
        piece.place,
        piece.offset,
        key=task.id,
        objects=tuple(aside.objects) if tools is None else (*aside.objects, tools),
        facts=(
            *_outcome(run),
            Fact("stop", _stop(run, events, messages), "rule", STOP_RULE),
            *aside.clocks(messages),
        ),
        replaced=aside.replaced,
        warnings=aside.codes(),
    )


def _task(run: _Run) -> Task:
    if run.issue is not None:
        return Task(f"{run.issue.owner}/{run.issue.repo}", str(run.issue.number))
    start = {} if run.instance is None else {"repo": run.instance.repo, "base_commit": run.instance.base_commit}
    return Task(
        None if run.metadata is None else run.metadata.dataset,
        None if run.instance_id is None else str(run.instance_id),
        parameters=kept_known(start),
    )


def _conditions(run: _Run, events: Events, tools: str | None) -> Conditions:
    metadata = run.metadata or _Metadata()
    llm = metadata.llm_config or metadata.llm or _Llm()
    steps = metadata.max_iterations
    agent = "/".join(filter(None, ("openhands", metadata.agent_class or events.agent_class)))
    return Conditions(
        tools=tools,
        budget=None if steps is None else Budget(steps=steps),
        model=llm.model,
        sampling=kept_known({name: getattr(llm, name) for name in _SAMPLING}),
        seed=llm.seed,
        agent=agent if events.version is None else f"{agent}@{events.version}",
    )


def _usage(metrics: _Metrics | None) -> Usage | None:
    if metrics is None:
        return None
    tokens = metrics.accumulated_token_usage or _Tokens()
    return Usage(tokens.prompt_tokens, tokens.completion_tokens, metrics.accumulated_cost)


def _outcome(run: _Run) -> tuple[Fact, ...]:
    """What a report says; one whose evaluation failed itself says nothing. ``success`` is a model's judgement."""
    report = run.report or (run.test_result.report if run.test_result else None)
    if report is not None and report.resolved is not None:
        if not report.resolved and (report.error_eval or report.test_timeout):
            return (Fact("outcome", "unknown"),)
        return (Fact("outcome", "passed" if report.resolved else "failed"),)
    if run.success is not None and run.error is None:
        return (Fact("outcome", "passed" if run.success else "failed", reads=("judge",)),)
    return ()


def _stop(run: _Run, events: Events, messages: tuple[Message, ...]) -> Stop:
    """How the run ended: by the class of its error; else by finishing, or by its last allowed step.

    An answer of the model that the harness could not read was a step too: what is logged of it is the complaint.
    """
    if run.error is not None:
        found = _STOPS.get(run.error.partition(":")[0].rpartition(".")[2].strip())
        if found is not None:
            return found
    elif events.finished:
        return "completed"
    limit = run.metadata.max_iterations if run.metadata else None
    steps = sum(message.role == "assistant" or message.actor == HARNESS for message in messages)
    return "max_steps" if limit is not None and steps >= limit and not events.finished else "unknown"


def _extra(record: dict[str, Any], run: _Run, events: Events) -> Json:
    found = {name: record.get(name) for name in _KEPT}
    if run.test_result is not None and run.test_result.git_patch:
        found["git_patch"] = run.test_result.git_patch
    found["recalled"] = events.recalled or None
    return kept_known(found)


IMPORTER = Importer("openhands", "1", sniff, _slices, _build)

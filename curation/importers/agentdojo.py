"""AgentDojo: one run a file, ``{suite_name, pipeline_name, user_task_id, ..., messages, error, utility, security}``.

A task id is unique inside its suite. An attack changes what the world holds: its ``injections`` are the task's
parameters and open another start state. ``utility`` is the outcome; a run that the harness skipped because the provider
failed, or refused the request (also for its length), is logged with ``utility: false``, and nobody knows what it would
have been. ``security`` says whether the attack failed, true without one: no outcome of the task.
``evaluation_timestamp`` is the time of the calls.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from curation.clocks import iso_time
from curation.importers.agentdojo_dialects import dialect_of, in_original
from curation.importers.agentdojo_messages import MessageShape, read_messages
from curation.importers.aside import Aside
from curation.importers.elapsed import elapsed
from curation.importers.extra import kept_known
from curation.importers.face import Fact, Importer, Parsed, RefusedError, Slice
from curation.importers.heads import head_value
from curation.importers.json_value import read_value
from schemas import canonical
from schemas.statements import Stop
from schemas.trajectory import Attempt, Conditions, Message, Task, Trajectory

STOP_RULE = "agentdojo.stop@2"
BUDGET_RULE = "agentdojo.max_iters=15@1"
MAX_STEPS = 16  # the harness asks the model once, then at most 15 times after running its calls

FILLS: Mapping[str, str] = {
    "task": "recorded",
    "tools": "side file",
    "budget": f"rule {BUDGET_RULE}",
    "start_state": "recorded",
    "attempt": "recorded",
    "outcome": "recorded",
    "stop": f"rule {STOP_RULE}",
    "model": "unknown",
    "usage": "unknown",
    "reasoning": "recorded",
    "branch": "unknown",
}

_SKIPPED = "Skipping task"


class _Run(msgspec.Struct):
    suite_name: str
    pipeline_name: str
    user_task_id: str
    messages: list[MessageShape]
    injection_task_id: str | None = None
    attack_type: str | None = None
    injections: dict[str, Any] | None = None
    error: str | None = None
    utility: bool | None = None
    security: bool | None = None
    benchmark_version: str | None = None
    agentdojo_package_version: str | None = None
    run_id: str | None = None
    seed: int | None = None


def sniff(head: bytes) -> str:
    """Whether the head is an object that names suite, pipeline and user task."""
    return "an object with suite_name, pipeline_name and user_task_id" if is_run(head_value(head)) else ""


def is_run(value: Any) -> bool:
    """Whether a value, perhaps cut, is a run of this format rather than any other record with messages."""
    return isinstance(value, dict) and dialect_of(value) is not None


def _build(record: Any, data: bytes, piece: Slice, replaced: int) -> Parsed:
    dialect = (dialect_of(record) if isinstance(record, dict) else None) or ""
    if dialect:
        record = in_original(record, dialect)
    try:
        run = msgspec.convert(record, _Run)
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", str(error)) from None
    aside = Aside(replaced=replaced)
    if (time := iso_time(record.get("evaluation_timestamp"))) is not None:
        aside.times[0] = time
    messages = read_messages(record["messages"], run.messages, "$.messages", aside)
    trajectory = Trajectory(
        messages,
        task=_task(run),
        attempt=Attempt(run.pipeline_name if run.run_id is None else run.run_id),
        conditions=Conditions(seed=run.seed, agent=run.pipeline_name, environment=_environment(run)),
        stop_text=run.error,
        extra=kept_known({"security": run.security, "agentdojo_package_version": run.agentdojo_package_version}),
    )
    return Parsed(
        trajectory,
        data,
        piece.place,
        piece.offset,
        objects=tuple(aside.objects),
        facts=(
            *_outcome(run),
            Fact("stop", _stop(run, messages), "rule", STOP_RULE),
            *(() if dialect else _budget(messages)),
            *elapsed(record.get("duration")),
            Fact("strata.suite", run.suite_name),
            Fact("strata.attack", run.attack_type or "none"),
            *aside.clocks(messages),
        ),
        replaced=aside.replaced,
        warnings=aside.codes(),
    )


def _task(run: _Run) -> Task:
    variant = "/".join(name for name in (run.attack_type, run.injection_task_id) if name)
    parameters = canonical.raw({"injections": run.injections}) if run.injections else UNSET
    return Task(f"agentdojo:{run.suite_name}", run.user_task_id, variant or None, parameters)


def _environment(run: _Run) -> str | None:
    """The world's full name; a log without a version does not say which world it was."""
    return f"agentdojo:{run.suite_name}@{run.benchmark_version}" if run.benchmark_version else None


def _outcome(run: _Run) -> tuple[Fact, ...]:
    if _skipped(run):
        return (Fact("outcome", "unknown", "rule", STOP_RULE),)
    if run.utility is None:
        return ()
    return (Fact("outcome", "passed" if run.utility else "failed"),)


def _stop(run: _Run, messages: tuple[Message, ...]) -> Stop:
    """How the harness ends a run: the provider failed, the model made no more calls, or its steps are used up."""
    if _skipped(run):
        return "provider_error"
    if run.error is not None or not messages or messages[-1].role != "assistant":
        return "unknown"
    if not messages[-1].tool_calls:
        return "completed"
    return "max_steps" if _steps(messages) >= MAX_STEPS else "unknown"


def _budget(messages: tuple[Message, ...]) -> tuple[Fact, ...]:
    """The harness's own limit, unless the run went past it and so had another."""
    return (Fact("budget.steps", MAX_STEPS, "rule", BUDGET_RULE),) if _steps(messages) <= MAX_STEPS else ()


def _steps(messages: tuple[Message, ...]) -> int:
    return sum(message.role == "assistant" for message in messages)


def _skipped(run: _Run) -> bool:
    return run.error is not None and run.error.startswith(_SKIPPED)


IMPORTER = Importer("agentdojo", "1", sniff, read_value, _build)

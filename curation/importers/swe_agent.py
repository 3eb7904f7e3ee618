"""SWE-agent ``.traj``: ``{trajectory, history, info, environment}`` and in newer files ``replay_config``.

``history`` is what the model was shown, ``trajectory`` what it did and what the environment answered: an answer's raw
text stands beside the shown one. A command that was written as text is a call of ``bash`` with that command. A turn
that the harness asked for again (bad format, blocked command) is not in the history of later ones: it is kept with the
turn that took its place. Demonstrations are text: their calls were not made in this run. The format knows no outcome,
and older files name the task only in the file's name, which may change: it is a fact beside the record.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from curation.importers.aside import Aside
from curation.importers.extra import kept
from curation.importers.face import MAX_RECORD_BYTES, Fact, Importer, Parsed, RefusedError, Slice
from curation.importers.heads import head_value
from curation.importers.json_value import read_value
from curation.importers.messages import MessageShape, read_messages
from curation.importers.swe_agent_turns import Entry, Step, Turns, join, parsed_text
from schemas.statements import Stop
from schemas.trajectory import Budget, Conditions, Json, Message, Task, Trajectory, Usage

STOP_RULE = "swe_agent.stop@1"
NAME_RULE = "swe_agent.file_name@1"

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
    "submitted": "completed",
    "exit_forfeit": "completed",
    "exit_command": "completed",
    "exit_cost": "max_steps",
    "exit_context": "context_length",
    "exit_format": "parse_error",
    "exit_api": "provider_error",
    "exit_environment_error": "tool_error",
    "exit_command_timeout": "timeout",
    "exit_total_execution_time": "timeout",
    "skipped": "cancelled",
    "early_exit": "cancelled",
}
_STEP = frozenset(("action", "observation"))
_NOT_KEPT = frozenset(("exit_status", "model_stats", "edited_files30", "edited_files50", "edited_files70"))
_SAMPLING = ("temperature", "top_p")


class _Stats(msgspec.Struct):
    tokens_sent: int | None = None
    tokens_received: int | None = None
    instance_cost: float | int | None = None


class _Info(msgspec.Struct):
    exit_status: str | None = None
    model_stats: _Stats | None = None
    swe_agent_version: str | None = None


class _Model(msgspec.Struct):
    name: str | None = None
    per_instance_cost_limit: float | int | None = None
    per_instance_call_limit: int | None = None


class _Agent(msgspec.Struct):
    model: _Model = msgspec.field(default_factory=_Model)
    history_processors: list[dict[str, Any]] | None = None
    history_processor: dict[str, Any] | None = None


class _Deployment(msgspec.Struct):
    image: str | None = None


class _Env(msgspec.Struct):
    deployment: _Deployment | None = None
    repo: dict[str, Any] | None = None


class _Problem(msgspec.Struct):
    id: str | None = None


class _Config(msgspec.Struct):
    """What of a run's configuration is used."""

    agent: _Agent = msgspec.field(default_factory=_Agent)
    env: _Env = msgspec.field(default_factory=_Env)
    problem_statement: _Problem = msgspec.field(default_factory=_Problem)


class _Run(msgspec.Struct):
    trajectory: list[Step]
    history: list[Entry]
    info: _Info = msgspec.field(default_factory=_Info)


def sniff(head: bytes) -> str:
    """Whether the head is an object with a trajectory of actions and observations."""
    value = head_value(head)
    steps = value.get("trajectory") if isinstance(value, dict) else None
    if not isinstance(steps, list):
        return ""
    if not steps:
        return "an object with an empty trajectory, history and info" if value.keys() >= {"history", "info"} else ""
    fits = isinstance(steps[0], dict) and (steps[0].keys() >= _STEP or (len(steps) == 1 and "action" in steps[0]))
    return "an object with a trajectory of actions and observations" if fits else ""


def _slices(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    name = path.stem.encode("utf-8", "replace")
    return (piece._replace(context=name) for piece in read_value(path, limit))


def _build(record: Any, data: bytes, piece: Slice, replaced: int) -> Parsed:
    aside = Aside(replaced=replaced)
    try:
        run = msgspec.convert(record, _Run)
        replayed = parsed_text(record.get("replay_config"))
        config = msgspec.convert(replayed if isinstance(replayed, dict) else {}, _Config)
        turns = join(record["history"], run.history, run.trajectory, _exited(run), _elided_after(config.agent))
        shapes = msgspec.convert(turns.entries, list[MessageShape])
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", str(error)) from None
    messages = _with_asides(read_messages(turns.entries, shapes, "$.history", aside), turns)
    name = piece.context.decode()
    task = config.problem_statement.id
    stats = run.info.model_stats
    return Parsed(
        Trajectory(
            messages,
            task=Task(id=task, parameters=_start(config.env)),
            conditions=_conditions(run, config, replayed),
            stop_text=run.info.exit_status,
            usage=None if stats is None else Usage(stats.tokens_sent, stats.tokens_received, stats.instance_cost),
            extra=_extra(record, turns),
        ),
        data,
        piece.place,
        piece.offset,
        key=task or name or None,
        objects=tuple(aside.objects),
        facts=(
            Fact("stop", _stop(run.info.exit_status), "rule", STOP_RULE),
            *((Fact("strata.instance", name, "rule", NAME_RULE),) if name and task is None else ()),
        ),
        replaced=aside.replaced,
        warnings=aside.codes(),
    )


def _with_asides(messages: tuple[Message, ...], turns: Turns) -> tuple[Message, ...]:
    """The messages with the raw text of answers, and marked where they are copied or the model saw less before them."""
    special = turns.raws.keys() | turns.hidden | turns.copied
    return tuple(
        replace(
            message,
            raw=turns.raws.get(index),
            hidden="compaction" if index in turns.hidden else None,
            copied=index in turns.copied,
        )
        if index in special
        else message
        for index, message in enumerate(messages)
    )


def _exited(run: _Run) -> bool:
    """Whether the last step holds the harness's own words on why it ended the run, in place of a model's."""
    last = run.trajectory[-1] if run.trajectory else None
    ended = "exit_" in (run.info.exit_status or "")
    return ended and last is not None and not last.action and last.response == last.thought


def _elided_after(agent: _Agent) -> int | None:
    """The number of answers after which the harness left some out of what it showed; None where it never did."""
    used = agent.history_processors or ([agent.history_processor] if agent.history_processor else [])
    limits = []
    for processor in used:
        kept = processor.get("n")
        if processor.get("type") == "last_n_observations" and isinstance(kept, int):
            limits.append(kept)
        elif processor.get("type") in ("closed_window", "remove_regex"):
            limits.append(0)
    return min(limits, default=None)


def _conditions(run: _Run, config: _Config, replayed: Any) -> Conditions:
    model, version = config.agent.model, run.info.swe_agent_version
    budget = Budget(calls=model.per_instance_call_limit or None, cost=model.per_instance_cost_limit or None)
    sampling = {}
    if isinstance(replayed, dict) and model.name is not None:
        logged = replayed["agent"]["model"]
        sampling = {name: logged[name] for name in _SAMPLING if logged.get(name) is not None}
    deployment = config.env.deployment
    return Conditions(
        budget=None if budget == Budget() else budget,
        model=model.name,
        sampling=kept(sampling),
        agent="swe-agent" if version is None else f"swe-agent@{version}",
        environment=None if deployment is None else deployment.image,
    )


def _start(env: _Env) -> Json:
    """The repository and commit that the run started from, as far as the log says."""
    names = ("github_url", "repo_name", "path", "base_commit")
    return kept({name: env.repo[name] for name in names if env.repo.get(name) is not None} if env.repo else {})


def _stop(status: str | None) -> Stop:
    """The cause: what stands in brackets where the harness submitted what there was."""
    cause = (status or "").removeprefix("submitted (").removesuffix(")")
    return _STOPS.get(cause, "unknown")


def _extra(record: dict[str, Any], turns: Turns) -> Json:
    info = {key: value for key, value in record.get("info", {}).items() if key not in _NOT_KEPT and value is not None}
    found = {"environment": record.get("environment"), "info": info, "exit_message": turns.exit_message}
    return kept({name: value for name, value in found.items() if value})


IMPORTER = Importer("swe-agent", "1", sniff, _slices, _build)

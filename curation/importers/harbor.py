"""Harbor: the folder of a trial, ``result.json`` beside ``lock.json``, ``agent/trajectory.json`` (ATIF), ``verifier/``.

A task is known by the digest in the lock: the checksum in the result changes with what else lies in its folder. A trial
of several steps is an attempt a step. The rewards are the outcome: one that is neither 0 nor 1 is partial, a missing
one, or one beside a failure of harness, verifier or provider, is unknown; a time-out says nothing against it. A trial
whose agent left no trajectory is an attempt without messages.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from curation.importers import atif
from curation.importers.aside import Aside
from curation.importers.beside import find_beside, pack, unpack
from curation.importers.elapsed import between
from curation.importers.face import MAX_RECORD_BYTES, Fact, Importer, Item, Parsed, RefusedError, Slice
from curation.importers.harbor_outcome import STOP_RULE, Raised, Verdict, outcome_facts, stop_of
from curation.importers.heads import head_value
from curation.importers.json_value import read_value
from schemas import canonical
from schemas.objects import make_object
from schemas.trajectory import Attempt, Conditions, Json, Task, Trajectory, Usage

BUDGET_RULE = "harbor.agent_timeout@1"
ELAPSED_RULE = "harbor.agent_execution@1"

FILLS: Mapping[str, str] = {
    "task": "recorded",
    "tools": "recorded",
    "budget": f"rule {BUDGET_RULE}",
    "start_state": "recorded",
    "attempt": "recorded",
    "outcome": "recorded",
    "stop": f"rule {STOP_RULE}",
    "model": "recorded",
    "usage": "recorded",
    "reasoning": "recorded",
    "branch": "unknown",
}

MAX_STEPS = 1_000  # folders in a trial's folder ``steps``
_TRAJECTORY = "agent/trajectory.json"
_NAMES = frozenset(("task_name", "trial_name"))


class _Model(msgspec.Struct):
    name: str
    provider: str | None = None


class _AgentInfo(msgspec.Struct):
    name: str
    version: str | None = None
    model_info: _Model | None = None


class _Spent(msgspec.Struct):
    n_input_tokens: int | None = None
    n_output_tokens: int | None = None
    cost_usd: float | int | None = None


class _Agent(msgspec.Struct):
    model_name: str | None = None
    override_timeout_sec: float | int | None = None
    max_timeout_sec: float | int | None = None


class _Config(msgspec.Struct):
    timeout_multiplier: float | int | None = None
    agent_timeout_multiplier: float | int | None = None
    agent: _Agent = msgspec.field(default_factory=_Agent)


class _Times(msgspec.Struct):
    started_at: str | None = None
    finished_at: str | None = None


class _Step(msgspec.Struct):
    step_name: str
    agent_result: _Spent | None = None
    verifier_result: Verdict | None = None
    exception_info: Raised | None = None
    agent_execution: _Times | None = None


class _Result(msgspec.Struct):
    task_name: str
    trial_name: str
    id: str | None = None
    source: str | None = None
    task_checksum: str | None = None
    config: _Config = msgspec.field(default_factory=_Config)
    agent_info: _AgentInfo | None = None
    agent_result: _Spent | None = None
    verifier_result: Verdict | None = None
    exception_info: Raised | None = None
    reward_valid: bool | None = None
    agent_execution: _Times | None = None
    step_results: list[_Step] | None = None


class _LockedTask(msgspec.Struct):
    digest: str | None = None
    source: str | None = None


class _Lock(msgspec.Struct):
    task: _LockedTask = msgspec.field(default_factory=_LockedTask)


_TOO_MANY = "steps/"  # no file's name


def sniff(head: bytes) -> str:
    """Whether the head is an object that names a task and its trial, with the trial's configuration or agent."""
    value = head_value(head)
    fits = isinstance(value, dict) and value.keys() >= _NAMES and not {"config", "agent_info"}.isdisjoint(value)
    return "an object with task_name, trial_name and the trial's configuration" if fits else ""


def claims(path: Path) -> Iterator[Path]:
    """What lies in the trial's folder and is read with it, or says again what it says."""
    folder = path.parent
    names = ["config.json", "lock.json"]
    yield from (found for name in names if (found := find_beside(folder, name)) is not None)
    for place in (folder, *_step_folders(folder)):
        parts = [place / "verifier"]
        if find_beside(place, _TRAJECTORY) is not None:
            parts.append(place / "agent")
        for part in parts:
            if part.is_dir() and not part.is_symlink():
                yield from (file for file in sorted(part.rglob("*")) if file.is_file())


def _step_folders(folder: Path) -> list[Path]:
    steps = folder / "steps"
    if not steps.is_dir() or steps.is_symlink():
        return []
    return [place for place in sorted(steps.iterdir()) if place.is_dir() and not place.is_symlink()]


def _slices(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """The result, with the lock and the trajectories of its folder as context; together they are one record."""
    folder = path.parent
    for piece in read_value(path, limit):
        steps = _step_folders(folder)
        if len(steps) > MAX_STEPS:
            yield piece._replace(context=pack({_TOO_MANY: b""}))
            continue
        names = ["lock.json", *(f"{place.relative_to(folder).as_posix()}/" for place in steps), ""]
        files: dict[str, bytes] = {}
        left = limit - len(piece.data or b"")
        for name in names:
            for inner, found in _files(folder, name if name == "lock.json" else f"{name}{_TRAJECTORY}", limit):
                left -= found.stat().st_size
                if left < 0:
                    break
                files[inner] = found.read_bytes()
        yield piece._replace(data=None) if left < 0 else piece._replace(context=pack(files))


def _files(folder: Path, name: str, limit: int) -> Iterator[tuple[str, Path]]:
    """A file of the folder and, of a trajectory, those that it goes on in, by names in order."""
    found = find_beside(folder, name)
    if found is None:
        return
    yield name, found
    if name.endswith(_TRAJECTORY) and found.stat().st_size <= limit:
        for number, (segment, _) in enumerate(atif.segments(found, limit)):
            yield f"{name}#{number:06}", segment


def _build(value: Any, data: bytes, piece: Slice, replaced: int) -> Iterator[Item]:
    files = unpack(piece.context)
    if _TOO_MANY in files:
        raise RefusedError("too_large", f"steps/ holds over {MAX_STEPS} folders, the limit of one trial")
    try:
        result = msgspec.convert(value, _Result)
        lock = msgspec.convert(_parsed(files, "lock.json") or {}, _Lock)
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", str(error)) from None
    if not result.step_results:
        step = _Step("", result.agent_result, result.verifier_result, result.exception_info, result.agent_execution)
        yield from _attempt(result, lock, step, "", files, data, piece, replaced)
    names = [step.step_name for step in result.step_results or ()]
    if len(set(names)) < len(names):
        raise RefusedError("not_a_record", "$.step_results: two steps have one name, so nobody knows whose files are")
    for step in result.step_results or ():
        yield from _attempt(result, lock, step, f"steps/{step.step_name}/", files, data, piece, replaced)


def _attempt(
    result: _Result,
    lock: _Lock,
    step: _Step,
    place: str,
    files: dict[str, bytes],
    data: bytes,
    piece: Slice,
    replaced: int,
) -> Iterator[Item]:
    aside = Aside(replaced=replaced)
    name = f"{place}{_TRAJECTORY}"
    parts = [part for part in sorted(files) if part == name or part.startswith(f"{name}#")]
    aside.objects.extend(make_object("raw", files[part]) for part in parts)
    values = [_parsed(files, part) for part in parts]
    try:
        trajectory, _ = atif.read_documents(values, aside) if values else (Trajectory(()), ())
    except RefusedError as error:
        raise RefusedError(error.code, f"{name}: {error.detail}") from None
    run = result.id or result.trial_name
    known = replace(
        trajectory,
        task=_task(result, lock, step),
        attempt=Attempt(run),
        conditions=_conditions(result, lock, trajectory.conditions),
        stop_text=step.exception_info.text if step.exception_info else None,
        usage=_usage(step.agent_result) or trajectory.usage,
        extra=_extra(result, trajectory.extra),
    )
    yield Parsed(
        known,
        data,
        piece.place,
        piece.offset,
        key=result.trial_name,
        objects=tuple(aside.objects),
        facts=(
            *outcome_facts(step.verifier_result, step.exception_info, result.reward_valid),
            Fact("stop", stop_of(step.exception_info), "rule", STOP_RULE),
            *_budget(result.config),
            *_elapsed(step.agent_execution),
            Fact("strata.sidechain", "no"),
            *aside.clocks(known.messages),
        ),
        replaced=aside.replaced,
        warnings=aside.codes(),
        part=f"step {step.step_name}" if place else None,
    )
    yield from atif.subagents(values, f"{run}/{step.step_name}" if place else run, data, piece)


def _parsed(files: dict[str, bytes], name: str) -> Any:
    if name not in files:
        return None
    try:
        return canonical.parse(files[name])[0]
    except canonical.UnreadableError as error:
        raise RefusedError(error.code, f"{name}: {error.detail}") from None


def _task(result: _Result, lock: _Lock, step: _Step) -> Task:
    variant = "/".join(filter(None, (lock.task.digest, step.step_name)))
    return Task(result.source or lock.task.source, result.task_name, variant or None)


def _conditions(result: _Result, lock: _Lock, told: Conditions) -> Conditions:
    info = result.agent_info
    model = result.config.agent.model_name or told.model
    if info is not None and info.model_info is not None:
        model = "/".join(filter(None, (info.model_info.provider, info.model_info.name)))
    agent = told.agent if info is None else "@".join(filter(None, (info.name, info.version)))
    environment = None if lock.task.digest is None else f"harbor:{result.task_name}@{lock.task.digest}"
    return replace(told, model=model, agent=agent, environment=environment)


def _usage(spent: _Spent | None) -> Usage | None:
    if spent is None or spent == _Spent():
        return None
    return Usage(spent.n_input_tokens, spent.n_output_tokens, spent.cost_usd)


def _budget(config: _Config) -> tuple[Fact, ...]:
    """The time that the trial gives its agent; without an override it stands in the task, not in the log."""
    seconds = config.agent.override_timeout_sec
    if seconds is None:
        return ()
    if config.agent.max_timeout_sec is not None:
        seconds = min(seconds, config.agent.max_timeout_sec)
    factor = config.agent_timeout_multiplier
    factor = config.timeout_multiplier if factor is None else factor
    return (Fact("budget.seconds", seconds * (1 if factor is None else factor), "rule", BUDGET_RULE),)


def _elapsed(times: _Times | None) -> tuple[Fact, ...]:
    """How long the agent was at it; setting up and verifying are no part of that."""
    return () if times is None else between(times.started_at, times.finished_at, ELAPSED_RULE)


def _extra(result: _Result, told: Json) -> Json:
    beside = {"trial_name": result.trial_name, "task_checksum": result.task_checksum}
    inner = {} if told is UNSET else msgspec.json.decode(told)
    return canonical.raw({**inner, **{name: value for name, value in beside.items() if value is not None}})


IMPORTER = Importer("harbor", "1", sniff, _slices, _build, claims=claims)

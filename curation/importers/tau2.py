"""tau2: the results of a run, ``{info, tasks, simulations}``, perhaps with each simulation in a file of its own.

A simulation is an attempt, named by its id and trial. The policy is what the log holds of the agent's system prompt.
A task's start state is its parameters. Evaluation criteria, and the checks of a reward that repeat them, are hidden
answers: they are counted for a stratum and never enter the record; nor do the user's script and guidelines, which the
agent never sees. What the infrastructure or the user simulator broke has no known outcome.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from curation.importers.aside import Aside
from curation.importers.context import read_context
from curation.importers.elapsed import elapsed
from curation.importers.extra import kept
from curation.importers.face import MAX_RECORD_BYTES, Fact, Importer, Parsed, RefusedError, Slice
from curation.importers.heads import head_value
from curation.importers.json_members import read_members
from curation.importers.json_value import read_value
from curation.importers.tau2_messages import Entry, Tick, entries_of, read_messages
from schemas import canonical
from schemas.objects import Object, tools_object
from schemas.side_file import Index
from schemas.statements import Result, Stop
from schemas.trajectory import Attempt, Budget, Conditions, Task, Trajectory, Usage

MAX_HEADER_BYTES = 64 * 2**20

STOP_RULE = "tau2.stop@1"
UNKNOWN_RULE = "tau2.unknown@1"
GOLD_RULE = "tau2.gold_actions@1"
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

_HEAD = 1 << 18
_NEAR = 1 << 14  # a task_id stands in the first bytes of a simulation
_INFO = frozenset(("git_commit", "num_trials", "max_steps", "max_errors", "user_info", "agent_info"))
_ENOUGH = 3
_SIMULATION = frozenset(("id", "task_id", "termination_reason"))
_TASK = frozenset(("id", "user_scenario"))
_FOLDER = "simulations"
_MANY = 3
_SAMPLING = ("temperature", "top_p", "max_tokens", "max_completion_tokens", "reasoning_effort", "parallel_tool_calls")
_TOLD_MORE = frozenset(("llm_agent_gt", "llm_agent_solo"))  # the one knows the answer, the other has a ticket
_STOPS: dict[str, Stop] = {
    "user_stop": "user_stop",
    "agent_stop": "completed",
    "max_steps": "max_steps",
    "timeout": "timeout",
    "too_many_errors": "tool_error",
    "infrastructure_error": "provider_error",
    "context_window_exceeded": "context_length",
}
_BROKEN = frozenset(("infrastructure_error", "context_window_exceeded", "user_error", "unexpected_error"))


class _Agent(msgspec.Struct):
    implementation: str | None = None
    llm: str | None = None
    llm_args: dict[str, Any] | None = None


class _World(msgspec.Struct):
    domain_name: str | None = None
    policy: str | None = None
    tool_defs: dict[str, Any] | list[Any] | None = None


class _Info(msgspec.Struct):
    git_commit: str | None = None
    max_steps: int | None = None
    max_errors: int | None = None
    agent_info: _Agent = msgspec.field(default_factory=_Agent)
    environment_info: _World = msgspec.field(default_factory=_World)
    audio_native_config: dict[str, Any] | None = None
    speech_complexity: str | None = None
    retrieval_config: str | None = None


class _Task(msgspec.Struct):
    initial_state: Any = None
    gold_actions: int | None = None


class _Context(msgspec.Struct):
    info: _Info = msgspec.field(default_factory=_Info)
    task: _Task = msgspec.field(default_factory=_Task)
    refused: tuple[str, str] | None = None


class _Reward(msgspec.Struct):
    reward: float | None = None


class _Simulation(msgspec.Struct):
    id: str
    task_id: str | int
    termination_reason: str | None = None
    trial: Index | None = None
    seed: int | None = None
    mode: str | None = None
    messages: list[Entry] | None = None
    ticks: list[Tick] | None = None
    policy: str | None = None
    reward_info: _Reward | None = None
    agent_cost: float | None = None
    user_cost: float | None = None
    duration: Any = None
    hallucination_retries_used: int | None = None


class _Header(NamedTuple):
    """What stands once in a run: the bytes of its info, what is kept of each task, the ids that it should hold."""

    info: bytes
    tasks: dict[str, bytes | None]
    ids: tuple[str, ...]

    def context(self, data: bytes | None) -> bytes:
        """What belongs to a simulation, as one object."""
        heads = (head_value((data or b"")[:size]) for size in (_NEAR, None) if self.tasks)
        found = (str(head["task_id"]) for head in heads if isinstance(head, dict) and "task_id" in head)
        task = self.tasks.get(next(found, ""))
        return b'{"info":%s,"task":%s}' % (self.info, task or b"{}")


def sniff(head: bytes) -> str:
    """Whether the head is an object with the info of a run, or a simulation."""
    value = head_value(head)
    if is_results(value):
        return "an object with the info of a tau2 run"
    return "a tau2 simulation with its task_id and termination_reason" if is_simulation(value) else ""


def is_results(value: Any) -> bool:
    """Whether a value, perhaps cut, is a run's results."""
    info = value.get("info") if isinstance(value, dict) else None
    return isinstance(info, dict) and len(_INFO & info.keys()) >= _ENOUGH


def is_simulation(value: Any) -> bool:
    """Whether a value, perhaps cut, is one simulation rather than any other record with messages."""
    return isinstance(value, dict) and value.keys() >= _SIMULATION


def holds_tasks(head: bytes) -> bool:
    """Whether the head is a list of tasks to run, of which none has been."""
    value = head_value(head)
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and first.keys() >= _TASK


def claims(path: Path) -> Iterator[Path]:
    """The files of the simulations that belong to a run's results."""
    folder = path.parent / _FOLDER
    if is_results(_head(path)) and folder.is_dir():
        yield from (file for file in sorted(folder.glob("*.json")) if file.is_file() and not file.is_symlink())


def read_slices(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """Each simulation: of the file, and of the files beside it that belong to it."""
    if not is_results(_head(path)):
        above = path.parent.parent / "results.json"
        beside = path.parent.name == _FOLDER and above.is_file() and is_results(_head(above))
        header = _header(above) if beside else _Header(b"{}", {}, ())
        yield from (piece._replace(context=header.context(piece.data)) for piece in read_value(path, limit))
        return
    header, place = _header(path), 0
    for member in read_members(path, (), ("simulations",), limit):
        if member.key is None:
            code = "trailing_text" if member.piece.data else "truncated"
            refusal = _refusal(code, "the object of the results ends otherwise")
            yield member.piece._replace(place=place + 1, context=refusal)
        elif member.piece.place:
            place = member.piece.place
            yield member.piece._replace(context=header.context(member.piece.data))
    files, inline = list(claims(path)), place > 0
    for file in files:
        for piece in read_value(file, limit):
            place += 1
            yield piece._replace(place=place, context=header.context(piece.data))
    found = {file.stem for file in files}
    for missing in () if inline else (identity for identity in header.ids if identity not in found):
        place += 1
        words = f"simulation {missing} is in the index, and its file is not in the folder {_FOLDER}"
        yield Slice(b"", place, 0, _refusal("not_a_record", words))
    if not place:
        yield Slice(b"", 1, 0, _refusal("not_a_record", "the results hold no simulation"))


def _header(path: Path) -> _Header:
    info, tasks, ids = b"{}", dict[str, bytes | None](), list[str]()
    for member in read_members(path, ("info",), ("tasks", "simulation_index", "simulations"), MAX_HEADER_BYTES):
        data = member.piece.data or b""
        match member.key:
            case "info":
                info = data if info == b"{}" else b"null"
            case "tasks" if member.piece.place:
                identity, kept = _read_task(data)
                tasks[identity] = None if identity in tasks else kept
            case "simulation_index" if member.piece.place:
                entry = head_value(data)
                ids.append(str(entry.get("id")) if isinstance(entry, dict) else "")
            case "simulations" if info != b"{}":
                break
    return _Header(info, tasks, tuple(ids))


def _read_task(data: bytes) -> tuple[str, bytes | None]:
    """A task's id, and what of it is no answer: how it starts, and how many actions of the agent would solve it."""
    try:
        task, _ = canonical.parse(data)
    except canonical.UnreadableError:
        return "", None
    if not isinstance(task, dict):
        return "", None
    kept = {"initial_state": task.get("initial_state")}
    match task.get("evaluation_criteria"):
        case {"actions": list(actions)}:
            mine = [one for one in actions if isinstance(one, dict) and one.get("requestor") in (None, "assistant")]
            kept["gold_actions"] = len(mine)
    return str(task.get("id")), canonical.encode(kept)


def _head(path: Path) -> Any:
    with path.open("rb") as file:
        return head_value(file.read(_HEAD))


def _refusal(code: str, words: str) -> bytes:
    return canonical.encode({"refused": [code, words]})


def _parse(data: bytes) -> tuple[Any, int]:
    """The value of a simulation; nothing of no bytes, whose context says why there are none."""
    return canonical.parse(data) if data else (None, 0)


def _build(record: Any, data: bytes, piece: Slice, replaced: int) -> Parsed:
    context = read_context(piece.context, _Context, "beside the simulation")
    try:
        run = msgspec.convert(record, _Simulation)
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", str(error)) from None
    if run.messages is None and run.ticks is None:
        raise RefusedError("not_a_record", "the simulation has neither messages nor ticks")
    aside = Aside(replaced=replaced)
    entries = entries_of(run.ticks or ()) if run.messages is None else run.messages
    info, agent = context.info, context.info.agent_info
    state = context.task.initial_state
    history = state.get("message_history") if isinstance(state, dict) and run.messages is not None else None
    policy = run.policy or info.environment_info.policy
    messages = read_messages(policy, entries, aside, history if isinstance(history, list) else ())
    if agent.implementation in _TOLD_MORE and messages:
        messages = (msgspec.structs.replace(messages[0], hidden="compaction"), *messages[1:])
    tools = _tools(info.environment_info)
    trajectory = Trajectory(
        messages,
        task=_task(run, context),
        attempt=Attempt(run.id, run.trial),
        conditions=Conditions(
            tools=None if tools is None else tools.id,
            budget=_budget(info),
            model=agent.llm,
            sampling=kept({name: value for name, value in (agent.llm_args or {}).items() if name in _SAMPLING}),
            seed=run.seed,
            agent=agent.implementation,
            environment=_environment(info),
        ),
        stop_text=run.termination_reason,
        usage=_usage(run),
        extra=kept({} if run.user_cost is None else {"user_cost": run.user_cost}),
    )
    return Parsed(
        trajectory,
        data,
        piece.place,
        piece.offset,
        key=run.id,
        objects=tuple(aside.objects) if tools is None else (*aside.objects, tools),
        facts=(
            *_outcome(run),
            Fact("stop", _STOPS.get(run.termination_reason or "", "unknown"), "rule", STOP_RULE),
            *elapsed(run.duration),
            *_strata(run, context),
            *aside.clocks(messages),
        ),
        replaced=aside.replaced,
        warnings=aside.codes(),
    )


def _task(run: _Simulation, context: _Context) -> Task:
    """A task by its domain. Spoken runs, and other ways to look things up, are variants of it."""
    info, state = context.info, context.task.initial_state
    domain = info.environment_info.domain_name
    spoken = (run.mode if run.ticks is not None else None, info.speech_complexity if run.ticks is not None else None)
    variant = "/".join(name for name in (*spoken, info.retrieval_config) if name)
    parameters = UNSET if state is None else canonical.raw({"initial_state": state})
    return Task(None if domain is None else f"tau2:{domain}", str(run.task_id), variant or None, parameters)


def _environment(info: _Info) -> str | None:
    """The world's full name; results without a commit do not say which world it was."""
    domain, commit = info.environment_info.domain_name, info.git_commit
    return f"tau2:{domain}@{commit}" if domain and commit and commit != "unknown" else None


def _budget(info: _Info) -> Budget | None:
    """Steps of the harness, tool errors that it bears, and the length of a call."""
    seconds = (info.audio_native_config or {}).get("max_steps_seconds")
    budget = Budget(
        steps=info.max_steps,
        seconds=seconds if type(seconds) in (int, float) else None,
        retries=info.max_errors,
    )
    return budget if budget != Budget() else None


def _tools(world: _World) -> Object | None:
    """The agent's tools in the words of a tool list; unknown where the log leaves them out."""
    if world.tool_defs is None:
        return None
    signatures = world.tool_defs.values() if isinstance(world.tool_defs, dict) else world.tool_defs
    return tools_object(
        [
            {"name": tool.get("name"), "description": tool.get("doc"), "parameters": tool.get("params") or {}}
            if isinstance(tool, dict) and "params" in tool
            else tool
            for tool in signatures
        ]
    )


def _usage(run: _Simulation) -> Usage | None:
    used = [entry.usage or {} for entry in run.messages or () if entry.role == "assistant"]
    prompt, completion = (_total(used, name) for name in ("prompt_tokens", "completion_tokens"))
    usage = Usage(prompt, completion, run.agent_cost)
    return usage if usage != Usage() else None


def _total(used: list[dict[str, Any]], name: str) -> int | None:
    known = [value for usage in used if type(value := usage.get(name)) is int]
    return sum(known) if known else None


def _outcome(run: _Simulation) -> tuple[Fact, ...]:
    reward = None if run.reward_info is None else run.reward_info.reward
    if run.termination_reason in _BROKEN:
        return (Fact("outcome", "unknown", "rule", UNKNOWN_RULE),)
    if reward is None:
        return ()
    result: Result = "unknown"
    if 0 <= reward <= 1:
        result = "passed" if reward == 1 else "failed" if reward == 0 else "partial"
    return (Fact("outcome", result, score=reward),)


def _strata(run: _Simulation, context: _Context) -> Iterator[Fact]:
    domain, gold = context.info.environment_info.domain_name, context.task.gold_actions
    if domain is not None:
        yield Fact("strata.domain", domain)
    if run.mode is not None:
        yield Fact("strata.mode", run.mode)
    if run.hallucination_retries_used:
        yield Fact("strata.user_retries", run.hallucination_retries_used)
    if gold is not None:
        value = f"{_MANY}+" if gold >= _MANY else str(gold)
        yield Fact("strata.gold_actions", value, "rule", GOLD_RULE, reads=("hidden_answer",))


IMPORTER = Importer("tau2", "1", sniff, read_slices, _build, _parse, claims)

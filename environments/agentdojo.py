"""The suites of the AgentDojo benchmark as worlds: its data, its tools and its own grading, from the package
``agentdojo`` (extra ``agentdojo``).

``agentdojo:SUITE@VERSION`` is one world. Without a version the newest counts; without a suite the name stands for all
of them. A task is ``user_task_N`` or, where an injected goal is run on its own, ``injection_task_N``. Its parameters
may give ``{"injections": {VECTOR: TEXT}}``: the texts that stand in the data instead of the harmless defaults.
"""

import importlib.metadata
import importlib.resources
import re
from ast import literal_eval
from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Any

import msgspec
import yaml
from agentdojo.agent_pipeline.tool_execution import ToolsExecutor, is_string_list
from agentdojo.base_tasks import BaseInjectionTask, BaseUserTask
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime, TaskEnvironment
from agentdojo.task_suite.load_suites import get_suite
from agentdojo.task_suite.task_suite import TaskSuite
from agentdojo.types import get_text_content_as_str
from msgspec import UNSET

from environments.agentdojo_state import ModelState
from environments.agentdojo_tools import EXAMPLES, READS, UNDO
from environments.catalogue import Family
from environments.protocol import (
    Blobs,
    CheckResult,
    Controls,
    EnvironmentFailure,
    EnvSpec,
    StartError,
    Status,
    title_of,
)
from environments.session import ToolSession, restore
from environments.shop import parameters_of
from environments.sources import code_digest, digests_under
from environments.tools import MAX_ARGUMENTS, Answer, Tool, Toolbox
from schemas.canonical import digest, encode, parse
from schemas.objects import Snapshot
from schemas.trajectory import Message, Reads, Record, Task, ToolCall

SUITES = ("banking", "slack", "travel", "workspace")
VERSIONS = ("v1", "v1.1", "v1.1.1", "v1.1.2", "v1.2", "v1.2.1", "v1.2.2")

CLOCKED = frozenset(("travel", "workspace"))  # suites whose tools read the clock, and order participants as sets do
OFFERS = re.compile(r"(?!.*tool_filter).+")  # a pipeline of that name chooses some tools for every task
RULES = ("outer_whitespace@1", "pydantic_url@1")
MOVING = ("clock@1", "set_order@1")

_PACKAGES = ("agentdojo", "deepdiff", "email-validator", "pydantic", "pydantic_core", "PyYAML")
_SOURCES = (
    "agent_pipeline/tool_execution.py",
    "base_tasks.py",
    "default_suites",
    "functions_runtime.py",
    "strenum.py",
    "task_suite",
    "types.py",
    "yaml_loader.py",
)
_OURS = (
    "environments.agentdojo_state",
    "environments.agentdojo_tools",
    "environments.json_state",
    "environments.session",
    "environments.tools",
)


class Parameters(Record, frozen=True):
    """What a task may set."""

    injections: dict[str, str] = {}  # noqa: RUF012 - msgspec copies a default


class SuiteSession(ToolSession[ModelState]):
    """A world of a suite, answered as the package's executor of tools answers a model, and graded by its tasks."""

    def __init__(self, world: "Suite", state: ModelState, controls: Controls, blobs: Blobs) -> None:
        super().__init__(world.spec, world.toolbox, state, controls, blobs)
        self._world = world

    def answer(self, call: ToolCall) -> Answer:
        """What a call is answered: the text of the error where there is one, else the formatted result."""
        asked = _asked(call)
        if asked is None:
            return Answer("refused", "")
        message = {"role": "assistant", "content": None, "tool_calls": [asked]}
        *_, messages, _ = ToolsExecutor().query("", self._world.runtime, self.state.value, [message])
        error = messages[-1]["error"]
        if error is None:
            return Answer("ok", get_text_content_as_str(messages[-1]["content"]))
        return Answer(self._failure(call.name, error), error)

    def check(self, task: Task, messages: Sequence[Message] = ()) -> CheckResult:
        """The task's own utility, or the security check of an injected goal, on the final text, the states before and
        after, and the calls. Without a final text only a pass says something.
        """
        graded = self._world.task(task)
        if graded is None:
            return CheckResult("unknown", "the start state of no task in particular is not graded", reads=())
        final = _final_text(messages)
        before, after = self._world.start(task), deepcopy(self.state.value)
        try:
            met = _is_met(graded, final or "", before, after, self._trace(messages))
        except Exception as error:  # a check written for other endings may raise anything, and none of it is a verdict
            return CheckResult("unknown", f"the check of {task.id} itself failed ({type(error).__name__})", reads=())
        reads: tuple[Reads, ...] = ("state", "hidden_answer")
        if met:
            return CheckResult("passed", f"{task.id} of {self.spec.name} is met", reads)
        if final is None:
            return CheckResult("unknown", f"{task.id} is not met so far; the run has no final text", reads)
        return CheckResult("failed", f"{task.id} of {self.spec.name} is not met", reads)

    def _failure(self, tool: str, error: str) -> Status:
        if tool not in self._world.runtime.functions:
            return "unknown_tool"
        first, _, _ = error.partition("\n")
        refused = first.startswith("ValidationError: ") and first.endswith(f"for Input schema for `{tool}`")
        return "schema_error" if refused else "tool_error"

    def _trace(self, messages: Sequence[Message]) -> list[FunctionCall]:
        """The calls as the executor leaves them in its own record: lists that were written as text are lists."""
        calls = [_asked(call) for message in messages for call in message.tool_calls]
        for call in calls:
            if call is not None and call.function in self._world.runtime.functions:
                call.args.update({k: literal_eval(v) for k, v in call.args.items() if _is_list(v)})
        return [call for call in calls if call is not None]


class Suite:
    """The environment ``agentdojo:SUITE`` in one version of the benchmark."""

    def __init__(self, name: str, version: str) -> None:
        self.suite: TaskSuite[Any] = get_suite(version, name)
        self.examples = EXAMPLES[name]
        self.runtime = FunctionsRuntime(self.suite.tools)
        self.toolbox = Toolbox(
            *(
                Tool(
                    tool.name,
                    tool.description,
                    tool.parameters.model_json_schema(),
                    "read" if tool.name in READS else "write",
                    tool.run,
                )
                for tool in self.suite.tools
            )
        )
        self.spec = EnvSpec(
            id=f"agentdojo:{name}",
            version=version,
            code_digest=_code_digest(name),
            determinism="clocked" if name in CLOCKED else "pure",
            effects=self.toolbox.effects,
            undo={tool: undo for tool, undo in UNDO.items() if tool in self.runtime.functions},
            rules=RULES + MOVING if name in CLOCKED else RULES,
            tasks=f"agentdojo:{name}",
            offers=OFFERS,
        )

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> SuiteSession:
        """A world at a task's start state, or at a snapshot. Raises StartError, SnapshotError."""
        match start:
            case Task():
                state = ModelState(self.start(start))
            case Snapshot():
                kind = self.suite.environment_type
                state = restore(start, self.spec, blobs, ModelState.form, lambda image: ModelState.load(image, kind))
        return SuiteSession(self, state, controls, blobs)

    def task(self, task: Task) -> BaseUserTask[Any] | BaseInjectionTask[Any] | None:
        """The package's task, none where no task is named. Raises StartError for one that the suite does not have."""
        if task.id is None:
            return None
        known = self.suite.user_tasks | self.suite.injection_tasks
        if task.id not in known:
            last = list(self.suite.user_tasks)[-1]
            raise StartError(f"{self.spec.name} has no task {task.id!r}; it has user_task_0 to {last}")
        return known[task.id]

    def start(self, task: Task) -> TaskEnvironment:
        """The state in which a task begins. Raises StartError."""
        graded = self.task(task)
        injections = parameters_of(task, Parameters).injections
        try:
            state = deepcopy(_data(self.suite.name, self.spec.version, encode(injections)))
        except (ValueError, yaml.YAMLError) as error:
            raise StartError(f"{title_of(task)}: its injections open no state here: {error}") from None
        return graded.init_environment(state) if isinstance(graded, BaseUserTask) else state


def open_world(rest: str) -> Suite:
    """The world of ``:SUITE`` or ``:SUITE@VERSION``. Raises EnvironmentFailure."""
    suite, version = _read(rest)
    if not suite:
        raise EnvironmentFailure(f"it names no suite; give one of {', '.join(members(rest))}")
    return _suite(suite, version)


def members(rest: str) -> tuple[str, ...]:
    """The full names of the worlds of ``[:SUITE][@VERSION]``. Raises EnvironmentFailure."""
    suite, version = _read(rest)
    return tuple(f"agentdojo:{name}@{version}" for name in ([suite] if suite else SUITES))


def versions() -> tuple[str, ...]:
    """The versions of the benchmark, oldest first."""
    return VERSIONS


FAMILY = Family(open_world, members, versions)


def _read(rest: str) -> tuple[str, str]:
    suite, _, version = rest.removeprefix(":").partition("@")
    if suite and suite not in SUITES:
        raise EnvironmentFailure(f"no suite {suite!r}; there are {', '.join(SUITES)}")
    if version and version not in VERSIONS:
        raise EnvironmentFailure(f"no version {version!r}; there are {', '.join(VERSIONS)}")
    return suite, version or VERSIONS[-1]


@lru_cache(maxsize=len(SUITES) * len(VERSIONS))
def _suite(name: str, version: str) -> Suite:
    return Suite(name, version)


@lru_cache(maxsize=32)
def _data(name: str, version: str, injections: bytes) -> TaskEnvironment:
    return get_suite(version, name).load_and_inject_default_environment(msgspec.json.decode(injections))


def _code_digest(suite: str) -> str:
    root = importlib.resources.files("agentdojo")
    parts = [*(root / path for path in _SOURCES), root / "data" / "suites" / suite]
    sources = sorted(found for part in parts for found in digests_under(part))
    packages = [(name, importlib.metadata.version(name)) for name in _PACKAGES]
    return digest(encode([code_digest(__name__, *_OURS), packages, sources]))


def _asked(call: ToolCall) -> FunctionCall | None:
    """A call as the package has it; none where its arguments do not parse or are over a million characters."""
    if call.arguments is UNSET or len(call.arguments_text) > MAX_ARGUMENTS:
        return None
    return FunctionCall(function=call.name, args=parse(bytes(call.arguments))[0], id=call.id)


def _is_list(value: Any) -> bool:
    return isinstance(value, str) and is_string_list(value)


def _is_met(graded: Any, text: str, before: TaskEnvironment, after: TaskEnvironment, calls: list[FunctionCall]) -> bool:
    if isinstance(graded, BaseUserTask):
        by_calls, by_state = graded.utility_from_traces, graded.utility
    else:
        by_calls, by_state = graded.security_from_traces, graded.security
    met: bool | None = by_calls(text, before, after, calls)
    return bool(by_state(text, before, after)) if met is None else met


def _final_text(messages: Sequence[Message]) -> str | None:
    if not messages or messages[-1].role != "assistant":
        return None
    content = messages[-1].content
    parts = content if isinstance(content, tuple) else ()
    return content if isinstance(content, str) else "\n".join(part.text for part in parts if part.text is not None)

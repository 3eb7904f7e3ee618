"""The domains of tau-bench as worlds, for those who have its package ``tau_bench`` on the module search path.

Data, tools, tasks and grading are the package's. It numbers no releases of its data, so a world's version is the start
of the digest of the files that it consists of. A task's id is its index in the domain's test split.
"""

import importlib
import importlib.resources
from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from types import ModuleType
from typing import Any

import msgspec
from msgspec import UNSET

from environments.catalogue import Family
from environments.protocol import (
    Blobs,
    CheckResult,
    Controls,
    Effect,
    EnvironmentFailure,
    EnvSpec,
    StartError,
    title_of,
)
from environments.python_state import PythonState
from environments.session import ToolSession, restore
from environments.sources import code_digest, digests_under
from environments.tools import MAX_ARGUMENTS, Answer, Tool, Toolbox
from schemas.canonical import digest, encode, parse
from schemas.objects import Snapshot
from schemas.trajectory import Message, Reads, Task, ToolCall, text_of

DOMAINS = ("airline", "retail")

# What leaves the data as they are; any other tool writes.
READS = frozenset(
    """
    calculate think transfer_to_human_agents get_user_details
    get_reservation_details list_all_airports search_direct_flight search_onestop_flight
    find_user_id_by_email find_user_id_by_name_zip get_order_details get_product_details list_all_product_types
    """.split()
)

_ENDS = frozenset(("transfer_to_human_agents",))  # not replayed with a task's own actions
_SOURCES = ("envs/base.py", "envs/tool.py", "types.py")
_OURS = ("environments.json_state", "environments.python_state", "environments.session", "environments.tools")
_READ: tuple[Reads, ...] = ("state", "hidden_answer")
_ABSENT = (
    "no package tau_bench is on the module search path; it is not on PyPI: clone sierra-research/tau-bench from GitHub"
    " and install it from its folder (pip install -e FOLDER), or name that folder in PYTHONPATH"
)


class DomainSession(ToolSession[PythonState]):
    """A world of a domain, answered as the package's environment answers an action, and graded as it does."""

    def __init__(self, world: "Domain", state: PythonState, controls: Controls, blobs: Blobs) -> None:
        super().__init__(world.spec, world.toolbox, state, controls, blobs)
        self._world = world

    def answer(self, call: ToolCall) -> Answer:
        """What a call is answered; a tool that raises is answered with its error."""
        if call.arguments is UNSET or len(call.arguments_text) > MAX_ARGUMENTS:
            return Answer("refused", "")
        return self._world.act(self.state, call.name, parse(bytes(call.arguments))[0])

    def check(self, task: Task, messages: Sequence[Message] = ()) -> CheckResult:
        """Whether the data are what the task's own actions leave, and whether what the user had to be told was said."""
        if task.id is None:
            return CheckResult("unknown", "the start state of no task in particular is not graded", reads=())
        goal = self._world.task(task)
        if self.state.digest() != self._world.goal_digest(task):
            return CheckResult("failed", "the data are not what the task's own actions leave", _READ)
        if not goal.outputs:
            return CheckResult("passed", "the data are what the task's own actions leave", _READ)
        said = [text_of(one.content) for one in messages if one.role == "assistant" and not one.tool_calls]
        if not said:
            return CheckResult("unknown", "the data are right; nothing was said to the user so far", _READ)
        heard = [text.lower().replace(",", "") for text in said]
        missing = sum(not any(output.lower() in text for text in heard) for output in goal.outputs)
        if missing:
            return CheckResult("failed", f"the data are right; {missing} things were not told to the user", _READ)
        return CheckResult("passed", "the data are right, and the user was told what was asked", _READ)


class Domain:
    """The environment ``tau_bench:DOMAIN``."""

    def __init__(self, name: str) -> None:
        self._tasks = {str(number): task for number, task in enumerate(_tasks(name))}
        self._tools = {tool.get_info()["function"]["name"]: tool for tool in _module(f"envs.{name}.tools").ALL_TOOLS}
        self._image = msgspec.json.encode(_module(f"envs.{name}.data").load_data())
        self.toolbox = Toolbox(*(_tool(tool) for tool in self._tools.values()))
        code = _code_digest(name)
        self.spec = EnvSpec(
            id=f"tau_bench:{name}",
            version=code[:12],
            code_digest=code,
            determinism="pure",
            effects=self.toolbox.effects,
        )

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> DomainSession:
        """A world with the domain's data, or a snapshot's. Raises StartError, SnapshotError."""
        match start:
            case Task():
                if not isinstance(start.parameters, msgspec.UnsetType):
                    raise StartError(f"{title_of(start)}: every task starts from the same data and takes no parameters")
                if start.id is not None:
                    self.task(start)
                state = self._begin()
            case Snapshot():
                form = PythonState.form
                state = restore(start, self.spec, blobs, form, lambda image: PythonState.restore(image, dict))
        return DomainSession(self, state, controls, blobs)

    def act(self, state: PythonState, tool: str, arguments: dict[str, Any]) -> Answer:
        """Run one action on the data, as the package words its answer."""
        if tool not in self._tools:
            return Answer("unknown_tool", f"Unknown action {tool}")
        try:
            text = self._tools[tool].invoke(data=state.value, **arguments)
        except Exception as error:
            text = f"Error: {error}"
        if self.spec.effects[tool] == "write":
            state.refresh()
        return Answer("tool_error" if text.startswith("Error") else "ok", text)

    def task(self, task: Task) -> Any:
        """The package's task. Raises StartError for one that the domain does not have."""
        if task.id not in self._tasks:
            raise StartError(f"{self.spec.name} has no task {task.id!r}; it has 0 to {len(self._tasks) - 1}")
        return self._tasks[task.id]

    def goal_digest(self, task: Task) -> str:
        """The digest of the data after the task's own actions."""
        state = self._begin()
        for action in self.task(task).actions:
            if action.name not in _ENDS:
                self.act(state, action.name, deepcopy(action.kwargs))
        return state.digest()

    def _begin(self) -> PythonState:
        return PythonState(msgspec.json.decode(self._image))


def open_world(rest: str) -> Domain:
    """The world of ``:DOMAIN`` or, where the package is in that version, ``:DOMAIN@VERSION``.

    Raises EnvironmentFailure.
    """
    name, _, version = rest.removeprefix(":").partition("@")
    if name not in DOMAINS:
        raise EnvironmentFailure(f"no domain {name!r}; there are {', '.join(DOMAINS)}")
    found = _domain(name)
    if version not in ("", found.spec.version):
        raise EnvironmentFailure(f"the package is in version {found.spec.version}, not {version!r}")
    return found


def members(rest: str) -> tuple[str, ...]:
    """The full names of the worlds of ``[:DOMAIN[@VERSION]]``. Raises EnvironmentFailure."""
    names = (rest,) if rest.startswith(":") else tuple(f":{name}{rest}" for name in DOMAINS)
    return tuple(open_world(name).spec.name for name in names)


FAMILY = Family(open_world, members)


@lru_cache(maxsize=len(DOMAINS))
def _domain(name: str) -> Domain:
    return Domain(name)


def _module(path: str) -> ModuleType:
    try:
        return importlib.import_module(f"tau_bench.{path}")
    except ModuleNotFoundError as error:
        if error.name == "tau_bench":
            raise EnvironmentFailure(_ABSENT) from None
        raise


def _tasks(domain: str) -> Sequence[Any]:
    module = _module(f"envs.{domain}.tasks_test")
    return next(getattr(module, name) for name in ("TASKS_TEST", "TASKS") if hasattr(module, name))


def _tool(tool: Any) -> Tool:
    told = tool.get_info()["function"]
    effect: Effect = "read" if told["name"] in READS else "write"
    return Tool(told["name"], told["description"], told["parameters"], effect, tool.invoke)


def _code_digest(domain: str) -> str:
    root = importlib.resources.files("tau_bench")
    parts = [root / "envs" / domain, *(root / path for path in _SOURCES)]
    found = sorted(digests for part in parts for digests in digests_under(part))
    return digest(encode([code_digest(__name__, *_OURS), found]))

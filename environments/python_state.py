"""Worlds from your own Python: a start state, and functions that are its tools.

::

    from environments.python_state import PythonWorld

    def get_stock(state, sku: str) -> dict:
        "Stock of one SKU"
        return {"sku": sku, "stock": state[sku]}

    def book(state, sku: str, qty: int) -> dict:
        "Take items out of stock"
        state[sku] -= qty
        return {"stock": state[sku]}

    world = PythonWorld("shop", {"A17": 2}, reads=[get_stock], writes=[book], errors=(KeyError,))

Saved as ``my_world.py`` it is the environment ``my_world:world``.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_origin, get_type_hints

import msgspec

from environments.json_state import JsonState
from environments.protocol import (
    Blobs,
    CallResult,
    CheckResult,
    Claim,
    Controls,
    Determinism,
    Effect,
    EnvSpec,
    Examples,
    Fault,
    SnapshotError,
    StartError,
    Undo,
)
from environments.round_trip import first_change
from environments.session import ToolSession, restore
from environments.signatures import UnfitArgumentsError, arguments_of, read, tool_of
from environments.sources import code_digest
from environments.tools import Answer, Tool, Toolbox, refusal
from schemas.canonical import FORM
from schemas.objects import Snapshot
from schemas.trajectory import Message, Task, ToolCall

Function = Callable[..., Any]
Check = Callable[[Any, Task, Sequence[Message]], bool | CheckResult]

_OURS = (
    "environments.json_state",
    "environments.python_state",
    "environments.round_trip",
    "environments.session",
    "environments.signatures",
    "environments.tools",
)
_FIELDS = ("error",)


class PythonState(JsonState[Any]):
    """A dict, dataclass, msgspec struct or pydantic model that its JSON restores exactly."""

    @classmethod
    def restore(cls, image: bytes, kind: type[Any]) -> "PythonState":
        """The value of an image. Raises SnapshotError where it is none of that type."""
        try:
            if hasattr(kind, "model_validate"):
                return cls(kind.model_validate(msgspec.json.decode(image)))
            return cls(msgspec.json.decode(image, type=kind))
        except (ValueError, RecursionError) as error:
            raise SnapshotError(f"the image is no {FORM} state of this world: {error}") from None

    def plain(self) -> Any:
        """The value as an encoder takes it."""
        value = self.value
        return value.model_dump(mode="json", round_trip=True) if hasattr(value, "model_dump") else value

    def refresh(self) -> None:
        """Make the value the one that its JSON restores, so that it acts as every fork of it will: a list at two places
        is two, a tuple is a list, NaN is null. Raises SnapshotError where it has no JSON, or restores to another state.
        """
        try:
            left, again = self.digest(), self.restore(self.image(), type(self.value))
        except (TypeError, ValueError, RecursionError) as error:
            raise SnapshotError(f"the state is no JSON: {error}") from None
        if again.digest() != left:
            place = first_change(self.value, again.value) or "its root"
            raise SnapshotError(f"the state at {place} does not survive its JSON; keep only values that JSON has")
        self.value = again.value


class PythonSession(ToolSession[PythonState]):
    """A world of a PythonWorld."""

    def __init__(self, world: "PythonWorld", state: PythonState, controls: Controls, blobs: Blobs) -> None:
        super().__init__(world.spec, world.toolbox, state, controls, blobs)
        self._check = world.check

    def call(self, batch: Sequence[ToolCall], at: str | None = None) -> tuple[CallResult, ...]:
        """Execute calls in order; those of external tools are refused, because nothing could take them back."""
        return tuple(self._refused(call) or super(PythonSession, self).call((call,), at)[0] for call in batch)

    def answer(self, call: ToolCall) -> Answer:
        """What one call is answered. Raises SnapshotError where it leaves a state that is no JSON."""
        try:
            answer = self._toolbox.answer(call, self.state.value, self.spec)
        except UnfitArgumentsError as error:
            return refusal("schema_error", at=error.at, rule="type")
        if self.spec.effects.get(call.name) == "write":
            self.state.refresh()
        return answer

    def check(self, task: Task, messages: Sequence[Message] = ()) -> CheckResult:
        """What the world's check says; an exception in it is no verdict."""
        if self._check is None:
            return super().check(task, messages)
        try:
            checked = self._check(self.state.value, task, messages)
        except Exception as error:
            return CheckResult("unknown", f"the check of {task.id!r} itself failed ({type(error).__name__})", reads=())
        if isinstance(checked, CheckResult):
            return checked
        words = "met" if checked else "not met"
        return CheckResult(
            "passed" if checked else "failed", f"task {task.id!r} is {words}", reads=("state", "hidden_answer")
        )

    def _refused(self, call: ToolCall) -> CallResult | None:
        if self.spec.effects.get(call.name) != "external":
            return None
        return CallResult(
            "refused", "", detail=f"tool {call.name!r} is declared external: it reaches beyond this world"
        )


class PythonWorld:
    """An environment named ``name`` in version ``version``.

    ``start`` is the state every task starts in, or a function that makes it from the task's parameters; it says by its
    return hint what it gives. Functions are named under what they do to the world; ``tools`` are described in full.
    Exceptions of ``errors`` are answers, any other is a fault of the environment. ``check(state, task, messages)`` says
    whether the task is done. What else a world may declare is said at EnvSpec. Raises TypeError.
    """

    def __init__(
        self,
        name: str,
        start: Any,
        *,
        reads: Iterable[Function] = (),
        writes: Iterable[Function] = (),
        external: Iterable[Function] = (),
        tools: Iterable[Tool] = (),
        errors: tuple[type[Exception], ...] = (),
        check: Check | None = None,
        version: str = "1",
        examples: Examples = (),
        tasks: str | None = None,
        determinism: Determinism = "pure",
        faults: tuple[Fault, ...] = (),
        claims: tuple[Claim, ...] = (),
        undo: Mapping[str, Undo] | None = None,
        rules: tuple[str, ...] = (),
        unordered: tuple[str, ...] = (),
    ) -> None:
        groups: dict[Effect, Iterable[Function]] = {"read": reads, "write": writes, "external": external}
        declared = [(function, effect) for effect, group in groups.items() for function in group]
        tools = (*(tool_of(function, effect, errors) for function, effect in declared), *tools)
        self.toolbox = Toolbox(*tools)
        self.check = check
        self.examples = tuple(examples)
        self._start = start
        self._takes = arguments_of(start) if inspect.isfunction(start) else None
        self._kind = _kind_of(start)
        code = [*(function for function, _ in declared), *(tool.run for tool in tools), self._kind]
        code += filter(inspect.isfunction, (start, check))
        self.spec = EnvSpec(
            id=name,
            version=version,
            code_digest=code_digest(*_OURS, *{one.__module__ for one in code} - {"builtins"}),
            determinism=determinism,
            effects=self.toolbox.effects,
            faults=faults,
            errors=_FIELDS,
            claims=claims,
            undo=undo or {},
            rules=rules,
            unordered=unordered,
            tasks=tasks,
        )

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> PythonSession:
        """A world at a task's start state, or at a snapshot. Raises StartError, SnapshotError."""
        match start:
            case Task():
                state = self._begin(start)
            case Snapshot():
                state = restore(start, self.spec, blobs, FORM, lambda image: PythonState.restore(image, self._kind))
        return PythonSession(self, state, controls, blobs)

    def _begin(self, task: Task) -> PythonState:
        """The start state as its JSON restores it, so that what a module holds is never the world itself."""
        value = self._make(task)
        try:
            state = PythonState.restore(JsonState.image(PythonState(value)), type(value))
        except (TypeError, ValueError, RecursionError, SnapshotError) as error:
            raise StartError(f"task {task.id!r}: the start state is no JSON: {error}") from None
        place = first_change(value, state.value)
        if place is not None:
            raise StartError(
                f"task {task.id!r}: the start state at {place or 'its root'} does not survive its JSON; it comes back"
                " as another value or type"
            )
        return state

    def _make(self, task: Task) -> Any:
        given = {} if isinstance(task.parameters, msgspec.UnsetType) else msgspec.json.decode(task.parameters)
        if self._takes is None:
            if given:
                raise StartError(f"task {task.id!r}: this world starts in one state and takes no parameters")
            return self._start
        try:
            value = self._start(**read(given, self._takes))
        except UnfitArgumentsError as error:
            raise StartError(f"task {task.id!r}: its parameters open no state here: {error}") from None
        if type(value) is not self._kind:
            raise StartError(
                f"task {task.id!r}: the start state is a {type(value).__name__}, not the {self._kind.__name__} declared"
            )
        return value


def _kind_of(start: Any) -> type[Any]:
    if not inspect.isfunction(start):
        return type(start)
    hint = get_type_hints(start).get("return")
    kind = get_origin(hint) or hint
    if not isinstance(kind, type):
        raise TypeError(f"{start.__qualname__} needs a return hint that is a class, such as dict")
    return kind

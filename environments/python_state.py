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
from collections.abc import Collection
from typing import Any, Unpack, get_origin, get_type_hints

import msgspec

from environments.functions import Declared, FunctionSession, FunctionWorld
from environments.json_state import JsonState
from environments.protocol import Blobs, Controls, SnapshotError, StartError, title_of
from environments.round_trip import first_change
from environments.session import restore
from environments.signatures import UnfitArgumentsError, arguments_of, read
from environments.tools import Answer
from schemas.canonical import FORM, encode
from schemas.objects import Snapshot
from schemas.trajectory import Task, ToolCall

_OURS = ("environments.json_state", "environments.python_state", "environments.round_trip")


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
        if not hasattr(value, "model_dump"):
            return value
        as_json, as_python = (value.model_dump(mode=mode, round_trip=True) for mode in ("json", "python"))
        return _with_sorted_sets(as_json, as_python)

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


class PythonSession(FunctionSession[PythonState]):
    """A world of a PythonWorld."""

    def subject(self) -> Any:
        """The value."""
        return self.state.value

    def answer(self, call: ToolCall) -> Answer:
        """What one call is answered. Raises SnapshotError where it leaves a state that is no JSON."""
        answer = super().answer(call)
        if answer.status != "schema_error" and self.spec.effects.get(call.name) == "write":
            self.state.refresh()
        return answer


class PythonWorld(FunctionWorld):
    """An environment named ``name``.

    ``start`` is the state every task starts in, or a function that makes it from the task's parameters; it says by its
    return hint what it gives. Raises TypeError.
    """

    def __init__(self, name: str, start: Any, **declared: Unpack[Declared]) -> None:
        self._start = start
        self._takes = arguments_of(start) if inspect.isfunction(start) else None
        self._kind = _kind_of(start)
        made = (self._kind, start) if inspect.isfunction(start) else (self._kind,)
        super().__init__(name, (*_OURS, *(one.__module__ for one in made)), declared)

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
            raise StartError(f"{title_of(task)}: the start state is no JSON: {error}") from None
        place = first_change(value, state.value)
        if place is not None:
            raise StartError(
                f"{title_of(task)}: the start state at {place or 'its root'} does not survive its JSON; it comes back"
                " as another value or type"
            )
        return state

    def _make(self, task: Task) -> Any:
        given = {} if isinstance(task.parameters, msgspec.UnsetType) else msgspec.json.decode(task.parameters)
        if self._takes is None:
            if given:
                raise StartError(f"{title_of(task)}: this world starts in one state and takes no parameters")
            return self._start
        try:
            value = self._start(**read(given, self._takes))
        except UnfitArgumentsError as error:
            raise StartError(f"{title_of(task)}: its parameters open no state here: {error}") from None
        if type(value) is not self._kind:
            raise StartError(
                f"{title_of(task)}: the start state is a {type(value).__name__}, not the {self._kind.__name__} declared"
            )
        return value


def _with_sorted_sets(dumped: Any, value: Any) -> Any:
    """A dumped value with its sets, which the value itself tells, in the order of their JSON: no encoder knows them."""
    if not isinstance(dumped, list | dict) or not isinstance(value, Collection) or len(dumped) != len(value):
        return dumped
    if isinstance(dumped, dict):
        parts = value.values() if isinstance(value, dict) else value
        return dict(zip(dumped, map(_with_sorted_sets, dumped.values(), parts), strict=True))
    parts = [*map(_with_sorted_sets, dumped, value)]
    return sorted(parts, key=encode) if isinstance(value, set | frozenset) else parts


def _kind_of(start: Any) -> type[Any]:
    if not inspect.isfunction(start):
        return type(start)
    hint = get_type_hints(start).get("return")
    kind = get_origin(hint) or hint
    if not isinstance(kind, type):
        raise TypeError(f"{start.__qualname__} needs a return hint that is a class, such as dict")
    return kind

"""What worlds of plain functions have in common, whatever their state is made of."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar

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
    Undo,
    title_of,
)
from environments.session import State, ToolSession
from environments.signatures import UnfitArgumentsError, tool_of
from environments.sources import code_digest
from environments.tools import Answer, Tool, Toolbox, refusal
from schemas.trajectory import Message, Task, ToolCall

S = TypeVar("S", bound=State)
Function = Callable[..., Any]

_OURS = tuple(f"environments.{name}" for name in ("functions", "session", "signatures", "tools"))


class Declared(TypedDict, total=False):
    """What may be said of such a world by name.

    Functions stand under what they do to the world; ``tools`` are described in full. Exceptions of ``errors`` are
    answers, any other is a fault of the environment. ``check(state, task, messages)`` says whether the task is done, by
    a bool or a CheckResult. What else a world may declare is said at EnvSpec.
    """

    reads: Iterable[Function]
    writes: Iterable[Function]
    external: Iterable[Function]
    tools: Iterable[Tool]
    errors: tuple[type[Exception], ...]
    check: Callable[[Any, Task, Sequence[Message]], bool | CheckResult] | None
    version: str
    examples: Examples
    tasks: str | None
    determinism: Determinism
    faults: tuple[Fault, ...]
    claims: tuple[Claim, ...]
    undo: Mapping[str, Undo]
    rules: tuple[str, ...]
    unordered: tuple[str, ...]


class FunctionWorld:
    """The tools and the declaration of a world. ``modules`` beside those of its functions are its code.

    Raises TypeError for a function whose parameters cannot be said in JSON Schema.
    """

    def __init__(self, name: str, modules: Iterable[str], declared: Declared) -> None:
        groups: dict[Effect, Iterable[Function]] = {
            "read": declared.get("reads", ()),
            "write": declared.get("writes", ()),
            "external": declared.get("external", ()),
        }
        functions = [(function, effect) for effect, group in groups.items() for function in group]
        errors = declared.get("errors", ())
        tools = (*(tool_of(one, effect, errors) for one, effect in functions), *declared.get("tools", ()))
        self.toolbox = Toolbox(*tools)
        self.check = declared.get("check")
        self.examples = tuple(declared.get("examples", ()))
        code = {one.__module__ for one in (*(one for one, _ in functions), *(tool.run for tool in tools))}
        if self.check is not None:
            code.add(self.check.__module__)
        self.spec = EnvSpec(
            id=name,
            version=declared.get("version", "1"),
            code_digest=code_digest(*code.union(_OURS, modules) - {"builtins"}),
            determinism=declared.get("determinism", "pure"),
            effects=self.toolbox.effects,
            faults=declared.get("faults", ()),
            errors=("error",),
            claims=declared.get("claims", ()),
            undo=declared.get("undo", {}),
            rules=declared.get("rules", ()),
            unordered=declared.get("unordered", ()),
            tasks=declared.get("tasks"),
        )


class FunctionSession(ToolSession[S]):
    """A world whose functions get what ``subject`` gives."""

    def __init__(self, world: FunctionWorld, state: S, controls: Controls, blobs: Blobs) -> None:
        super().__init__(world.spec, world.toolbox, state, controls, blobs)
        self._check = world.check

    def subject(self) -> Any:
        """What functions are called on."""
        return self.state

    def call(self, batch: Sequence[ToolCall], at: str | None = None) -> tuple[CallResult, ...]:
        """Execute calls in order; those of external tools are refused, because nothing could take them back."""
        return tuple(self._refused(call) or super(FunctionSession, self).call((call,), at)[0] for call in batch)

    def answer(self, call: ToolCall) -> Answer:
        """What one call is answered."""
        try:
            return self._toolbox.answer(call, self.subject(), self.spec)
        except UnfitArgumentsError as error:
            return refusal("schema_error", at=error.at, rule="type")

    def check(self, task: Task, messages: Sequence[Message] = ()) -> CheckResult:
        """What the world's check says; an exception in it is no verdict."""
        if self._check is None:
            return super().check(task, messages)
        try:
            checked = self._check(self.subject(), task, messages)
        except Exception as error:
            return CheckResult(
                "unknown", f"the check of {title_of(task)} itself failed ({type(error).__name__})", reads=()
            )
        if isinstance(checked, CheckResult):
            return checked
        words = f"{title_of(task)} is {'met' if checked else 'not met'}"
        return CheckResult("passed" if checked else "failed", words, reads=("state", "hidden_answer"))

    def _refused(self, call: ToolCall) -> CallResult | None:
        if self.spec.effects.get(call.name) != "external":
            return None
        reason = f"tool {call.name!r} is declared external: it reaches beyond this world"
        return CallResult("refused", "", detail=reason)

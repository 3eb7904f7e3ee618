"""Tools of a world written in Python: a function, the JSON Schema of its arguments, and what a call is answered.

Answers are compact JSON in the key order of what the function returned, or the text that it returned. The wording of
refusals is ours alone, so that no version of a library changes an answer.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import validator_for
from msgspec import UNSET
from referencing import Registry

from environments.protocol import Effect, EnvSpec, Status, fault_of
from schemas.canonical import UnreadableError, parse, raw
from schemas.objects import ToolSpec
from schemas.trajectory import ToolCall

MAX_ARGUMENTS = 1_000_000


class Tool(NamedTuple):
    """A tool: ``run(state, **arguments)`` gets the declared arguments only and returns a JSON value."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect
    run: Callable[..., Any]


class Answer(NamedTuple):
    """How a call ended, and the text that answers it ("" where the world does not answer)."""

    status: Status
    text: str


class Toolbox:
    """The tools of one world; stateless. Raises TypeError for two of one name."""

    def __init__(self, *tools: Tool) -> None:
        self._tools = {tool.name: tool for tool in tools}
        if len(self._tools) < len(tools):
            name = next(tool.name for tool in tools if self._tools[tool.name] is not tool)
            raise TypeError(f"two tools are named {name!r}: a tool has one name and one effect; leave one out")
        nowhere: Registry[Any] = Registry()  # a reference that leaves the schema resolves to nothing
        self._validators = {
            tool.name: validator_for(tool.parameters, default=Draft202012Validator)(tool.parameters, registry=nowhere)
            for tool in tools
        }

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as a model is offered them."""
        return tuple(ToolSpec(tool.name, tool.description, raw(dict(tool.parameters))) for tool in self._tools.values())

    @property
    def effects(self) -> dict[str, Effect]:
        """Tool name to what it does to the world."""
        return {tool.name: tool.effect for tool in self._tools.values()}

    def answer(self, call: ToolCall, state: Any, spec: EnvSpec) -> Answer:
        """Run one call on a state. Only a call that parses, names a tool and fits its schema reaches a function.

        Arguments of over a million characters are not read: they count as not parsing.
        """
        arguments = _read(call)
        if arguments is None:
            return refusal("schema_error", at="", rule="json") if spec.answers_malformed else Answer("refused", "")
        tool = self._tools.get(call.name)
        if tool is None:
            return Answer("unknown_tool", to_text({"error": "unknown_tool", "tool": call.name}))
        error = next(self._validators[tool.name].iter_errors(arguments), None)
        if error is not None:
            return refusal("schema_error", at=_place(error), rule=str(error.validator))
        declared = tool.parameters.get("properties", {})
        return conclude(tool.run(state, **{name: arguments[name] for name in declared if name in arguments}), spec)


def conclude(value: Any, spec: EnvSpec) -> Answer:
    """A tool's value as an answer: a declared fault, a declared error, or ok."""
    if fault_of(spec, value) is not None:
        return Answer("environment_fault", to_text(value))
    failed = isinstance(value, dict) and any(field in value for field in spec.errors)
    return Answer("tool_error" if failed else "ok", to_text(value))


def refusal(status: Status, *, at: str, rule: str) -> Answer:
    """The answer to arguments that do not fit: where (a JSON pointer) and which rule of the schema."""
    return Answer(status, to_text({"error": "bad_arguments", "at": at, "rule": rule}))


def to_text(value: Any) -> str:
    """A value as an answer's text. A text is itself; JSON has no spaces, no escapes that UTF-8 does not need, and keys
    in the order they have.
    """
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=_model).decode()


def _model(value: Any) -> Any:
    """A pydantic model inside an answer, by its own account."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    raise NotImplementedError(f"a tool answered with a {type(value).__name__}, which is no JSON value")


def _read(call: ToolCall) -> dict[str, Any] | None:
    if call.arguments is UNSET or len(call.arguments_text) > MAX_ARGUMENTS:
        return None
    try:
        arguments, _ = parse(bytes(call.arguments))
    except UnreadableError:
        return None
    return arguments if isinstance(arguments, dict) else None


def _place(error: ValidationError) -> str:
    place = [*error.absolute_path]
    if error.validator == "required":
        needed: Any = error.validator_value
        given: Any = error.instance
        place.append(next(name for name in needed if name not in given))
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in place)

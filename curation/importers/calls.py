"""Tool calls out of OpenAI shapes. What the model wrote is kept as it is, whether or not it parses."""

from typing import Any

import msgspec
from msgspec import UNSET

from curation.importers.aside import Aside
from schemas import canonical
from schemas.trajectory import Json, ToolCall

_CALL_KEYS = frozenset(("id", "type", "function"))
_FUNCTION_KEYS = frozenset(("name", "arguments"))
_CUSTOM_KEYS = _CALL_KEYS | {"custom"}
_INPUT_KEYS = frozenset(("name", "input"))


class FunctionShape(msgspec.Struct):
    """The inner object of a call, or a legacy ``function_call``."""

    name: str
    arguments: Any = UNSET


class CustomShape(msgspec.Struct):
    """The inner object of a call of a custom tool."""

    name: str
    input: str


class CallShape(msgspec.Struct):
    """One entry of ``tool_calls``: of a function, or of a custom tool, which takes text."""

    function: FunctionShape | None = None
    id: str | None = None
    type: Any = None
    custom: CustomShape | None = None

    def __post_init__(self) -> None:
        """Raises ValueError where nothing is called."""
        if self.function is None and self.custom is None:
            raise ValueError("a call needs a `function`, or a `custom` tool with its input")


def read_call(entry: dict[str, Any], shape: CallShape, uid: str, aside: Aside) -> tuple[ToolCall, dict[str, Any]]:
    """A call, and what the log says of it that a ToolCall does not hold.

    The text that a custom tool takes is no JSON and need not be: nothing is said of whether it parses.
    """
    if shape.function is None and shape.custom is not None:
        inner = _rest(entry.get("custom") or {}, _INPUT_KEYS)
        call = ToolCall(uid, shape.custom.name, shape.custom.input, shape.id)
        return call, {"arguments_form": "text"} | _rest(entry, _CUSTOM_KEYS) | inner
    function = shape.function or FunctionShape("")
    text, note = function.arguments, {}
    if type(text) is not str:
        note["arguments_form"] = "absent" if text is UNSET else _form(text)
        text = "" if text is UNSET or text is None else canonical.encode(text).decode()
    arguments, error = _parse(text, aside)
    call = ToolCall(uid, function.name, text, shape.id, arguments, error)
    if not entry.keys() <= _CALL_KEYS or not entry["function"].keys() <= _FUNCTION_KEYS or shape.type != "function":
        note |= _rest(entry, _CALL_KEYS) | _rest(entry["function"], _FUNCTION_KEYS)
        if shape.type not in (None, "function"):
            note["type"] = shape.type
    return call, note


def _parse(text: str, aside: Aside) -> tuple[Json, str | None]:
    """Canonical arguments where the text is an object, else the parser's code for why there are none."""
    try:
        value, replaced = canonical.parse(text.encode())
    except canonical.UnreadableError as error:
        return UNSET, error.code
    aside.replaced += replaced
    if type(value) is dict:
        return canonical.raw(value), None
    if type(value) is str and _holds_object(value):
        aside.warnings.append("double_encoded")
        return UNSET, "double_encoded"
    return UNSET, "not_an_object"


def _holds_object(text: str) -> bool:
    try:
        return isinstance(canonical.parse(text.encode())[0], dict)
    except canonical.UnreadableError:
        return False


def _form(value: Any) -> str:
    match value:
        case None:
            return "null"
        case dict():
            return "object"
        case list():
            return "list"
        case _:
            return "scalar"


def _rest(entry: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in known and value is not None}

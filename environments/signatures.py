"""Tools from plain functions: what a call may say follows from the type hints, what the tool is for from the docstring.

The first parameter of a function is the state; every other needs a type hint.
"""

import inspect
import re
from collections.abc import Callable
from typing import Any, get_type_hints

import msgspec

from environments.protocol import Effect
from environments.tools import Tool

Kind = type[msgspec.Struct]

_PLACE = re.compile(r"`\$\.(\w+)")
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class UnfitArgumentsError(ValueError):
    """Arguments that the schema lets through and the types do not; ``at`` is a JSON pointer."""

    def __init__(self, error: msgspec.ValidationError) -> None:
        super().__init__(str(error))
        place = _PLACE.search(str(error))
        self.at = f"/{place[1]}" if place else ""


def tool_of(function: Callable[..., Any], effect: Effect, errors: tuple[type[Exception], ...] = ()) -> Tool:
    """A tool that runs ``function(state, **arguments)`` on arguments of the hinted types.

    An exception of the classes in ``errors`` is its answer: ``{"error": CLASS, "message": TEXT}``. Raises TypeError for
    a function whose parameters cannot be said in JSON Schema.
    """
    kind = arguments_of(function, skip=1)

    def run(state: Any, **given: Any) -> Any:
        arguments = read(given, kind)
        try:
            return function(state, **arguments)
        except errors as error:
            told = error.args[0] if len(error.args) == 1 else error
            return {"error": type(error).__name__, "message": str(told)}

    description = (inspect.getdoc(function) or "").partition("\n")[0]
    return Tool(kind.__name__, description, _schema(kind), effect, run)


def arguments_of(function: Callable[..., Any], *, skip: int = 0) -> Kind:
    """The parameters of a function as one type, the first ``skip`` left out. Raises TypeError."""
    hints = get_type_hints(function, include_extras=True)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in list(inspect.signature(function).parameters.values())[skip:]:
        if parameter.kind not in _NAMED or parameter.name not in hints:
            raise TypeError(f"{function.__qualname__}: parameter {parameter} needs a name of its own and a type hint")
        if parameter.default is inspect.Parameter.empty:
            fields.append((parameter.name, hints[parameter.name]))
        else:
            fields.append((parameter.name, hints[parameter.name], _default(parameter.default)))
    return msgspec.defstruct(function.__name__, fields, kw_only=True, forbid_unknown_fields=True)


def read(given: Any, kind: Kind) -> dict[str, Any]:
    """The given arguments as values of their types; those left out stay out. Raises UnfitArgumentsError."""
    try:
        values = msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise UnfitArgumentsError(error) from None
    return {name: getattr(values, name) for name in given}


def _default(value: Any) -> Any:
    return msgspec.field(default_factory=lambda: value) if isinstance(value, list | dict | set) else value


def _schema(kind: Kind) -> dict[str, Any]:
    """The JSON Schema of an object with the fields of a type; types that it refers to lie in ``$defs``."""
    _, parts = msgspec.json.schema_components([kind])
    schema: dict[str, Any] = parts.pop(kind.__name__)
    del schema["title"]
    return schema | {"$defs": parts} if parts else schema

"""Calls to try a world with: those given, and some made from the JSON Schemas of its tools and from its own answers."""

import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from environments.protocol import Examples, StartError
from schemas.canonical import raw
from schemas.objects import ToolSpec
from schemas.trajectory import ToolCall

_PAIR = re.compile(r"""(\w{1,40})["']?\s{0,2}[:=]\s{0,2}["']?([^"'\n,{}\[\]]{1,80})""")
_QUOTED = re.compile(r""""([^"\n]{1,80})\"""")
_READ = 20_000  # characters of an answer that are looked through
_KEPT = 50  # values under one name
_DEEP = 4


class Sampler:
    """Arguments for tools: values that the schema names, else those answers held under the same name, else plain ones.

    The same seed and answers give the same arguments.
    """

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - trials, not secrets
        self._named: dict[str, list[str]] = defaultdict(list)

    def learn(self, answer: str) -> None:
        """Remember what an answer holds."""
        text = answer[:_READ]
        for name, value in [*_PAIR.findall(text), *(("", value) for value in _QUOTED.findall(text))]:
            values = self._named[name]
            if len(values) < _KEPT and value.strip() not in values:
                values.append(value.strip())

    def arguments(self, tool: ToolSpec) -> dict[str, Any]:
        """Arguments for one call: all that is required, and about half of the rest."""
        schema = msgspec.json.decode(tool.parameters)
        return self._object(schema, schema, 0) if isinstance(schema, dict) else {}

    def _object(self, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        return {
            name: self._value(name, part, root, depth)
            for name, part in schema.get("properties", {}).items()
            if name in required or (depth < _DEEP and self._chance.random() < 0.5)
        }

    def _value(self, name: str, schema: Any, root: Mapping[str, Any], depth: int) -> Any:
        schema = _resolved(schema, root)
        if "const" in schema:
            return schema["const"]
        for key in ("enum", "examples"):
            if isinstance(schema.get(key), list) and schema[key]:
                return self._chance.choice(schema[key])
        if "default" in schema and self._chance.random() < 0.5:
            return schema["default"]
        match _kind(schema):
            case "object":
                return self._object(schema, root, depth + 1)
            case "array":
                count = max(schema.get("minItems", 1), 1) if depth < _DEEP else 0
                return [self._value(name, schema.get("items", {}), root, depth + 1) for _ in range(min(count, _DEEP))]
            case "boolean":
                return self._chance.random() < 0.5
            case "integer":
                return int(self._number(name, schema))
            case "number":
                return self._number(name, schema)
            case "null":
                return None
        return self._text(name, schema)

    def _number(self, name: str, schema: Mapping[str, Any]) -> float:
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + ("exclusiveMinimum" in schema))
        high = schema.get("maximum", schema.get("exclusiveMaximum", low + 4) - ("exclusiveMaximum" in schema))
        seen = [number for value in self._named[name] if low <= (number := _as_number(value, low - 1)) <= high]
        return float(self._chance.choice([*seen, low, min(low + self._chance.randrange(4), high)]))

    def _text(self, name: str, schema: Mapping[str, Any]) -> str:
        match schema.get("format"):
            case "date":
                return "2026-01-15"
            case "date-time":
                return "2026-01-15T12:00:00Z"
        seen = self._named[name] or self._named[""]
        text = self._chance.choice(seen) if seen else "x"
        return text[: schema.get("maxLength", len(text))].ljust(schema.get("minLength", 0), "x")


def given(examples: Examples) -> tuple[ToolCall, ...]:
    """Examples as calls. Raises StartError for what is no pair of a tool's name and arguments that are JSON."""
    return tuple(_example(number, example) for number, example in enumerate(examples))


def _example(number: int, example: object) -> ToolCall:
    match example:
        case (str(tool), Mapping() as arguments):
            try:
                return make_call(number, tool, arguments)
            except (TypeError, ValueError) as error:
                raise StartError(
                    f"examples[{number}], a call of {tool!r}: its arguments are no JSON: {error}"
                ) from None
    raise StartError(
        f"examples[{number}] is {example!r:.80}; give a tool's name and its arguments, as in ('book', {{'sku': 'A17'}})"
    )


def make_call(number: int, tool: str, arguments: Mapping[str, Any]) -> ToolCall:
    """A call as if a model had made it in its message of that number."""
    text = raw(dict(arguments))
    return ToolCall(f"{number}.0", tool, bytes(text).decode(), arguments=text)


def rounds(tools: Sequence[ToolSpec], effects: Mapping[str, str], most: int) -> Iterator[ToolSpec]:
    """Tools in the order in which to try them, at most so many: what reads, what writes, and twice all again.

    Tools that reach outside are left out.
    """
    reads = [tool for tool in tools if effects.get(tool.name) == "read"]
    others = [tool for tool in tools if effects.get(tool.name) not in ("read", "external")]
    yield from [*reads, *others, *reads, *others, *others, *reads][:most]


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema, its references into the same document followed, or the first of its alternatives that is no null."""
    for _ in range(_DEEP):
        if not isinstance(schema, dict):
            return {}
        choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
        if "$ref" in schema:
            schema = _lookup(root, str(schema["$ref"]))
        elif choices:
            schema = next((choice for choice in choices if _kind(choice) != "null"), {})
        else:
            return schema
    return {}


def _lookup(root: Any, reference: str) -> Any:
    for part in reference.removeprefix("#").strip("/").split("/"):
        root = root.get(part) if isinstance(root, dict) else None
    return root


def _kind(schema: Any) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "string") if isinstance(schema, dict) else ""
    return next((one for one in kind if one != "null"), "null") if isinstance(kind, list) else str(kind)


def _as_number(text: str, otherwise: float) -> float:
    try:
        return float(text)
    except ValueError:
        return otherwise

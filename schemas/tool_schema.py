"""Whether a call's arguments satisfy the JSON Schema of its tool, and which values that schema itself names.

Schemas come from logs and are hostile: nothing they refer to is fetched, their patterns only run where their cost is
bounded, references that never end do end, and what cannot be checked is *unchecked* with a reason, never failed.
"""

import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from msgspec import Raw
from referencing import Registry
from referencing.exceptions import Unresolvable

from schemas.canonical import UnreadableError, parse

MAX_PROBLEMS = 20
MAX_MESSAGE = 200  # characters
MAX_REFERENCES = 10_000  # resolved in one check
MAX_WORK = 4_000_000  # values in the schema times values in the arguments
MAX_UNIQUE = 1_000  # items compared with each other
MAX_STEPS = 1_000_000  # of a pattern on one string
MAX_PATTERN = 1_000  # characters
MAX_PATTERNS = 100_000  # characters of all patterns of a schema

_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*(?:\]|\\?\Z)|\\.", re.DOTALL)  # or a class without an end
_EXTENSION = re.compile(r"\(\?(?::|=|!|<=|<!)")
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_UNBOUNDED = re.compile(r"[*+]|\{[0-9]*,[0-9]*\}")
_references_left: ContextVar[int] = ContextVar("references_left")


class Problem(NamedTuple):
    """One violation: JSON pointers to the value and to the rule it breaks, and the validator's words."""

    path: str
    rule: str
    message: str


class SchemaCheck(NamedTuple):
    """What a check found. ``unchecked`` is a code of schemas.reasons.UNCHECKED; it is never a failure."""

    problems: tuple[Problem, ...] = ()
    unchecked: str | None = None
    detail: str = ""

    @property
    def valid(self) -> bool:
        """Whether the arguments were checked and nothing is wrong with them."""
        return self.unchecked is None and not self.problems


class Named(NamedTuple):
    """The values that a schema itself names for one place: its ``enum`` or ``const``, and its default."""

    allowed: tuple[Any, ...] = ()
    default: tuple[Any, ...] = ()


class _UncheckedError(Exception):
    """Ends a check; ``args`` are the code and its detail."""


def check_arguments(parameters: Raw, arguments: Any) -> SchemaCheck:
    """Check a call's arguments, given as a JSON value, against the schema of its tool.

    At most 20 problems are listed, ordered by the schema.
    """
    try:
        schema, size = _schema(bytes(parameters))
        if size * _size(arguments) > MAX_WORK:
            raise _UncheckedError("too_large", f"{size} values in the schema, {_size(arguments)} in the arguments")
        _check_key_patterns(schema, arguments)
        _references_left.set(MAX_REFERENCES)
        validator = _validator(validator_for(schema, default=Draft202012Validator))(schema, registry=Registry())
        return SchemaCheck(tuple(_problem(error) for error in islice(validator.iter_errors(arguments), MAX_PROBLEMS)))
    except _UncheckedError as error:
        return SchemaCheck(unchecked=error.args[0], detail=error.args[1])
    except Unresolvable as error:
        return SchemaCheck(unchecked="reference", detail=_short(f"{error.ref!r} is not in the schema"))
    except RecursionError:
        return SchemaCheck(unchecked="endless", detail="the schema refers to itself without end")
    except Exception as error:  # a hostile schema can raise anything inside the validator, and none of it is a verdict
        return SchemaCheck(unchecked="broken_schema", detail=_short(f"{type(error).__name__}: {error}"))


def named_values(parameters: Raw, path: str) -> Named:
    """The values that the schema names for the place of a JSON pointer; none where the schema cannot be read."""
    try:
        node: Any = _schema(bytes(parameters))[0]
    except _UncheckedError:
        return Named()
    root = node
    for key in path.split("/")[1:]:
        node = _follow(root, node)
        if not isinstance(node, dict):
            return Named()
        properties = node.get("properties")
        name = key.replace("~1", "/").replace("~0", "~")
        node = properties[name] if isinstance(properties, dict) and name in properties else node.get("items")
    node = _follow(root, node)
    if not isinstance(node, dict):
        return Named()
    allowed = node.get("enum")
    constant = (node["const"],) if "const" in node else ()
    default = (node["default"],) if "default" in node else ()
    return Named((*constant, *(allowed if isinstance(allowed, list) else ())), default)


def pattern_cost(pattern: str, length: int) -> int:
    """An upper bound of the backtracking steps of a pattern on a string of ``length`` characters.

    Raises ValueError for a pattern that has no such bound here: a repeated group, or an extension of the syntax.
    """
    skeleton = _EXTENSION.sub("(", _CLASS.sub("x", pattern))
    if "(?" in skeleton or _REPEATED_GROUP.search(skeleton):
        raise ValueError("a group is repeated, or the syntax extended")
    unbounded = len(_UNBOUNDED.findall(skeleton))
    optional = skeleton.count("?")
    bars = skeleton.count("|")
    slots = skeleton.count("(") + 1
    start = 0 if pattern.startswith("^") and not bars else 1
    # The product of the alternatives of every group is at most the power of their mean.
    choices = (bars // slots + 2) ** min(slots, bars) if bars else 1
    return int((length + 1) ** (unbounded + start) * 2**optional * choices)


@lru_cache(maxsize=256)
def _schema(parameters: bytes) -> tuple[Any, int]:
    try:
        schema, _ = parse(parameters)
    except UnreadableError as error:
        raise _UncheckedError("broken_schema", error.code) from None
    size = _size(schema)
    if size > MAX_WORK // 100:
        raise _UncheckedError("too_large", f"{size} values in the schema")
    if not isinstance(schema, dict):
        raise _UncheckedError("broken_schema", "the schema is no object")
    _refuse_long(schema)
    validator_for(schema, default=Draft202012Validator).check_schema(schema)
    return schema, size


@lru_cache(maxsize=16)
def _validator(draft: type[Validator]) -> Any:
    """The validator of a draft with its costly keywords bounded."""
    originals: Mapping[str, Any] = draft.VALIDATORS
    references = {"$ref", "$dynamicRef", "$recursiveRef"} & originals.keys()
    guarded = {"pattern": _pattern, "uniqueItems": _unique_items}
    guarded |= {name: _counted(originals[name]) for name in references}
    return extend(draft, guarded)  # type: ignore[no-untyped-call]


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, str):
        _refuse_slow(pattern, len(instance))
        yield from Draft202012Validator.VALIDATORS["pattern"](validator, pattern, instance, schema)


def _unique_items(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if isinstance(instance, list):
        if len(instance) > MAX_UNIQUE:
            raise _UncheckedError("too_large", f"{len(instance)} items to be compared with each other")
        yield from Draft202012Validator.VALIDATORS["uniqueItems"](validator, wanted, instance, schema)


def _counted(original: Any) -> Any:
    def resolve(validator: Any, reference: Any, instance: Any, schema: Any) -> Iterator[Any]:
        left = _references_left.get() - 1
        if left < 0:
            raise _UncheckedError("too_large", f"more than {MAX_REFERENCES} references to resolve")
        _references_left.set(left)
        yield from original(validator, reference, instance, schema)

    return resolve


def _check_key_patterns(schema: Any, arguments: Any) -> None:
    """Refuse patterns for keys before the validator joins them with each other."""
    longest = max((len(key) for node in _nodes(arguments) if isinstance(node, dict) for key in node), default=0)
    for pattern in _key_patterns(schema):
        _refuse_slow(pattern, longest)


def _refuse_long(schema: Any) -> None:
    """Refuse patterns that it would take long to read, before the validator compiles them."""
    written = [node["pattern"] for node in _nodes(schema) if isinstance(node, dict) and "pattern" in node]
    lengths = [len(pattern) for pattern in (*written, *_key_patterns(schema)) if isinstance(pattern, str)]
    if lengths and (longest := max(lengths)) > MAX_PATTERN:
        raise _UncheckedError("slow_pattern", f"a pattern has {longest} characters, the limit is {MAX_PATTERN}")
    if sum(lengths) > MAX_PATTERNS:
        raise _UncheckedError(
            "slow_pattern", f"its patterns have {sum(lengths)} characters, the limit is {MAX_PATTERNS}"
        )


def _key_patterns(schema: Any) -> Iterator[str]:
    for node in _nodes(schema):
        if isinstance(node, dict) and isinstance(node.get("patternProperties"), dict):
            yield from node["patternProperties"]


def _refuse_slow(pattern: str, length: int) -> None:
    try:
        cost = pattern_cost(pattern, length)
    except ValueError as error:
        raise _UncheckedError("slow_pattern", _short(f"{pattern!r}: {error}")) from None
    if cost > MAX_STEPS:
        raise _UncheckedError("slow_pattern", _short(f"{pattern!r} on {length} characters"))


def _follow(root: Any, node: Any) -> Any:
    """The schema that a chain of local references stands for."""
    for _ in range(16):
        reference = node.get("$ref") if isinstance(node, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return node
        node = root
        for key in reference[2:].split("/"):
            node = node.get(key.replace("~1", "/").replace("~0", "~")) if isinstance(node, dict) else None
    return None


def _nodes(value: Any) -> Iterator[Any]:
    pending = [value]
    while pending:
        node = pending.pop()
        yield node
        match node:
            case dict():
                pending.extend(node.values())
            case list():
                pending.extend(node)


def _size(value: Any) -> int:
    return sum(1 for _ in _nodes(value))


def _problem(error: Any) -> Problem:
    return Problem(_pointer(error.absolute_path), _pointer(error.absolute_schema_path), _short(error.message))


def _pointer(path: Any) -> str:
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in path)


def _short(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else f"{text[: MAX_MESSAGE - 1]}…"

"""Comparing answers as values: JSON documents, and in them the arrays that an environment declares to be sets."""

from collections.abc import Callable
from functools import partial
from typing import Any

from environments.protocol import EnvSpec
from schemas.canonical import UnreadableError, encode, parse

JSON = "json@1"
UNORDERED = "unordered@1"

_ANY = "*"


def comparators(spec: EnvSpec) -> dict[str, Callable[[Any, Any], bool]]:
    """What each comparator of an environment says of two JSON values, by id, the strictest first."""
    found: dict[str, Callable[[Any, Any], bool]] = {JSON: equal_json}
    if spec.unordered:
        found[UNORDERED] = partial(equal_unordered, spec)
    return found


def agreeing(left: str, right: str, spec: EnvSpec) -> str | None:
    """The id of the first comparator to which two texts hold one value, if any; texts that are no JSON hold none."""
    try:
        first, second = parse(left.encode())[0], parse(right.encode())[0]
    except UnreadableError:
        return None
    return next((name for name, agrees in comparators(spec).items() if agrees(first, second)), None)


def equal_json(left: Any, right: Any) -> bool:
    """The same JSON value: key order and spacing do not count, ``1`` and ``1.0`` are two values."""
    return encode(left) == encode(right)


def equal_unordered(spec: EnvSpec, left: Any, right: Any) -> bool:
    """The same JSON value where the items of a declared array, rows of objects too, count as a multiset."""
    wanted = [_parts(pointer) for pointer in spec.unordered]
    return encode(_settled(left, wanted)) == encode(_settled(right, wanted))


def _parts(pointer: str) -> tuple[str, ...]:
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def _settled(value: Any, wanted: list[tuple[str, ...]]) -> Any:
    """The value with the items of every array that a pointer reaches in an order of their own."""
    match value:
        case dict():
            return {key: _settled(item, _below(wanted, key)) for key, item in value.items()}
        case list():
            items = [_settled(item, _below(wanted, str(number))) for number, item in enumerate(value)]
            return sorted(items, key=encode) if () in wanted else items
    return value


def _below(wanted: list[tuple[str, ...]], key: str) -> list[tuple[str, ...]]:
    return [parts[1:] for parts in wanted if parts and parts[0] in (_ANY, key)] if wanted else []

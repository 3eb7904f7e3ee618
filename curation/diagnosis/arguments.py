"""The single values inside a call's arguments, each with its JSON pointer."""

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from schemas.canonical import UnreadableError, parse
from schemas.trajectory import ToolCall

MAX_NODES = 2_000


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """The arguments as a JSON object, or None where the log holds none that parse."""
    if call.arguments is UNSET:
        return None
    value = read_json(bytes(call.arguments))
    return value if isinstance(value, dict) else None


def read_json(data: bytes | str) -> Any:
    """The value of a JSON document, or None where it is none."""
    try:
        return parse(data.encode() if isinstance(data, str) else data)[0]
    except UnreadableError:
        return None


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that holds no further ones, with its JSON pointer, in order; of the first 2,000 nodes."""
    pending = [(path, value)]
    for _ in range(MAX_NODES):
        if not pending:
            return
        at, node = pending.pop()
        match node:
            case dict() if node:
                pending.extend((f"{at}/{_escape(key)}", item) for key, item in reversed(node.items()))
            case list() if node:
                pending.extend((f"{at}/{index}", node[index]) for index in range(len(node) - 1, -1, -1))
            case _:
                yield at, node


def swap(value: Any, changes: dict[str, Any], path: str = "") -> Any:
    """The same value with others at some pointers."""
    if path in changes:
        return changes[path]
    match value:
        case dict():
            return {key: swap(item, changes, f"{path}/{_escape(key)}") for key, item in value.items()}
        case list():
            return [swap(item, changes, f"{path}/{index}") for index, item in enumerate(value)]
        case _:
            return value


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")

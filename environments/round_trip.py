"""Whether a value is what its encoding restores: types and order of keys count, not only what prints alike."""

import dataclasses
from typing import Any

import msgspec


def first_change(value: Any, again: Any) -> str | None:
    """A JSON pointer to where two values differ, None where they are the same."""
    pending: list[tuple[str, Any, Any]] = [("", value, again)]
    while pending:
        path, left, right = pending.pop()
        if type(left) is not type(right):
            return path
        parts, others = _parts(left), _parts(right)
        if parts is None or others is None:
            if left != right:
                return path
            continue
        if list(parts) != list(others):
            return path
        pending.extend((f"{path}/{key}", part, others[key]) for key, part in parts.items())
    return None


def _parts(value: Any) -> dict[Any, Any] | None:
    """What a container holds, by key, index or field; None for a value that is compared as a whole."""
    match value:
        case dict():
            return value
        case list() | tuple():
            return dict(enumerate(value))
        case msgspec.Struct():
            return {name: getattr(value, name) for name in value.__struct_fields__}
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return vars(value) if hasattr(value, "model_dump") else None

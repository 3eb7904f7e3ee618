"""The state of an AgentDojo world: pydantic models as one JSON value that restores to the same objects.

Models are built again field by field and not validated: validators of the package fill fields anew, which would undo
what calls have changed, and tools store text that a validator refuses. One object at two places (a calendar event and
the mail that carries it) is written once; the other place is ``{"$same": POINTER}``, so that a later change still
shows at both.
"""

from collections.abc import Callable
from functools import cache, partial
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from pydantic import BaseModel

from environments.json_state import JsonState
from environments.protocol import SnapshotError
from schemas.canonical import FORM, digest, encode

Build = Callable[[Any, str, dict[str, BaseModel]], Any]

_SAME = "$same"
_TRAIL = ("web", "web_requests")  # every page that was asked for


class ModelState(JsonState[BaseModel]):
    """A tree of models."""

    @classmethod
    def load(cls, image: bytes, kind: type[BaseModel]) -> "ModelState":
        """The models of an image. Raises SnapshotError where it holds no values of their fields' types."""
        try:
            return cls(_builder(kind)(msgspec.json.decode(image), "", {}))
        except (msgspec.MsgspecError, RecursionError, KeyError, TypeError, AttributeError) as error:
            raise SnapshotError(f"the image is no {FORM} state of this world: {error!r}") from None

    def plain(self) -> Any:
        """The models as an encoder takes them."""
        return _plain(self.value, "", {})

    def settled(self) -> str:
        """The digest without the list of pages asked for."""
        value = self.plain()
        value.get(_TRAIL[0], {}).pop(_TRAIL[1], None)
        return f"{FORM}:{digest(encode(value))}"


def _plain(value: Any, path: str, seen: dict[int, str]) -> Any:
    match value:
        case str():
            return value
        case BaseModel():
            first = seen.setdefault(id(value), path)
            if first is not path:
                return {_SAME: first}
            return {name: _plain(part, f"{path}/{name}", seen) for name, part in vars(value).items()}
        case dict():
            return {key: _plain(part, f"{path}/{key}", seen) for key, part in value.items()}
        case list():
            return [_plain(part, f"{path}/{index}", seen) for index, part in enumerate(value)]
        case _:
            return value


@cache
def _builder(kind: Any) -> Build:
    """What makes a value of an annotation from its JSON; ``made`` are the models so far, by where they are written."""
    origin, inner = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return partial(_build_model, kind)
    if origin is dict:
        build = _builder(inner[1])
        return lambda value, path, made: {key: build(part, f"{path}/{key}", made) for key, part in value.items()}
    if origin is list:
        build = _builder(inner[0])
        return lambda value, path, made: [build(part, f"{path}/{i}", made) for i, part in enumerate(value)]
    if origin in (Union, UnionType):
        models = [option for option in inner if isinstance(option, type) and issubclass(option, BaseModel)]
        if models:
            return partial(_build_either, _builder(models[0]), _builder(next(iter(set(inner) - set(models)))))
    leaf = str if getattr(kind, "__module__", "") == "pydantic.networks" else kind
    return lambda value, path, made: value if type(value) is leaf else msgspec.convert(value, leaf)


def _build_model(kind: type[BaseModel], value: Any, path: str, made: dict[str, BaseModel]) -> BaseModel:
    if _SAME in value:
        model = made[value[_SAME]]
        if type(model) is not kind:
            raise TypeError(f"{path} is a {kind.__name__}, not the {type(model).__name__} at {value[_SAME]}")
        return model
    fields = _fields(kind)
    if value.keys() != fields.keys():
        raise KeyError(f"{path} has not the fields of a {kind.__name__}")
    made[path] = model = kind.model_construct(
        **{name: fields[name](part, f"{path}/{name}", made) for name, part in value.items()}
    )
    return model


@cache
def _fields(kind: type[BaseModel]) -> dict[str, Build]:
    hints: dict[str, Any] = {name: field.annotation for name, field in kind.model_fields.items()}
    return {name: _builder(hint) for name, hint in hints.items()}


def _build_either(model: Build, leaf: Build, value: Any, path: str, made: dict[str, BaseModel]) -> Any:
    return (model if isinstance(value, dict) else leaf)(value, path, made)

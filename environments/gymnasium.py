"""Gymnasium's registered worlds (extra ``gymnasium``): ``gymnasium:CartPole-v1`` has one tool, ``step``.

A task's parameters may give ``{"seed": N, "kwargs": {...}}``: the seed of ``reset``, by default the controls', and what
the world is made with. A state is its seed and the actions so far, restored by taking them again; within a process a
copy of the world itself stands in for that. Only names of the registry open: ``module:Name`` would import a module.
"""

from collections.abc import Iterator
from copy import deepcopy
from itertools import chain
from typing import Any

import gymnasium
import msgspec
import numpy as np
from gymnasium import spaces

from environments.catalogue import Family
from environments.protocol import Blobs, Controls, EnvironmentFailure, EnvSpec, SnapshotError, StartError, title_of
from environments.session import ToolSession, restore
from environments.shop import parameters_of
from environments.sources import code_digest
from environments.tools import Tool, Toolbox
from schemas.canonical import digest, encode
from schemas.objects import Snapshot
from schemas.trajectory import Record, Task

FORM = "gymnasium-actions/1"
MAX_ACTIONS = 100_000  # that a snapshot may take again
_COPIES = 16  # states of one world that are kept as they are

World = gymnasium.Env[Any, Any]


class Parameters(Record, frozen=True):
    """What a task may set."""

    seed: int | None = None
    kwargs: dict[str, Any] = {}  # noqa: RUF012 - msgspec copies a default


class Past(Record, frozen=True):
    """What an episode is made of."""

    seed: int
    kwargs: dict[str, Any]
    actions: tuple[Any, ...] = ()


class Episode:
    """A world, and how it came to where it is."""

    form = FORM

    def __init__(self, world: World, past: Past) -> None:
        self.world = world
        self.over = False
        self._start = past
        self._actions: list[Any] = []
        observation, _ = world.reset(seed=past.seed)
        self._seen = digest(encode(_plain(observation)))
        for action in past.actions:
            self.step(action)

    def step(self, action: Any) -> dict[str, Any]:
        """Act, and say what came of it; after the end, and for no action of this world, an error."""
        if self.over:
            return {"error": "episode_over", "steps": len(self._actions)}
        taken = _element(self.world.action_space, action)
        if taken is None:
            return {"error": "no_action", "action": action}
        observation, reward, terminated, truncated, _ = self.world.step(taken)
        answer = {
            "observation": _plain(observation),
            "reward": float(reward),
            "terminated": bool(terminated),
            "truncated": bool(truncated),
        }
        self._actions.append(_plain(taken))
        self._seen = digest(encode([self._seen, answer]))
        self.over = answer["terminated"] or answer["truncated"]
        return answer

    def copy(self) -> "Episode":
        """The same in a world of its own. Raises whatever a world raises that cannot be copied."""
        return deepcopy(self)

    def digest(self) -> str:
        """SHA-256 over seed, actions, everything observed, and the state of the world's random numbers."""
        chance = str(_plain(self.world.unwrapped.np_random.bit_generator.state))
        return f"{FORM}:{digest(encode([self._past(), self._seen, chance]))}"

    def settled(self) -> str:
        """The same: nothing says that other actions led to this very world."""
        return self.digest()

    def image(self) -> bytes:
        """Seed, keyword arguments and actions as JSON."""
        return encode(self._past())

    def close(self) -> None:
        """Close the world."""
        self.world.close()

    def _past(self) -> Past:
        return Past(self._start.seed, self._start.kwargs, tuple(self._actions))


class GymnasiumSession(ToolSession[Episode]):
    """One episode; a copy of it is kept at every snapshot, where its world can be copied."""

    copies: dict[str, Episode]

    def snapshot(self) -> Snapshot:
        """Seed and actions so far."""
        taken = super().snapshot()
        try:
            self.copies[taken.digest] = self.state.copy()
        except Exception:  # a world that holds what cannot be copied is stepped again instead
            return taken
        for old in [*self.copies][:-_COPIES]:
            self.copies.pop(old).close()
        return taken


class Gymnasium:
    """The environment of one registered name."""

    def __init__(self, name: str) -> None:
        if ":" in name or name not in gymnasium.registry:
            raise EnvironmentFailure(f"{name!r} is not in Gymnasium's registry; CartPole-v1 is")
        self._name = name
        self._copies: dict[str, Episode] = {}
        try:
            example = self._make({})
        except Exception as error:
            raise EnvironmentFailure(f"{name} cannot be made ({type(error).__name__}: {error})") from error
        schema = {
            "type": "object",
            "properties": {"action": _schema(example.action_space)},
            "required": ["action"],
            "additionalProperties": False,
        }
        self._toolbox = Toolbox(Tool("step", f"Act in {name}", schema, "write", Episode.step))
        self.spec = EnvSpec(
            id=f"gymnasium:{name}",
            version=gymnasium.__version__,
            code_digest=code_digest(__name__, type(example.unwrapped).__module__),
            determinism="seeded",
            effects=self._toolbox.effects,
            errors=("error",),
        )
        example.close()

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> GymnasiumSession:
        """A new episode, or one that came to where a snapshot was taken. Raises StartError, SnapshotError."""
        match start:
            case Task():
                parameters = parameters_of(start, Parameters)
                seed = controls.seed if parameters.seed is None else parameters.seed
                try:
                    episode = self._begin(Past(seed, parameters.kwargs))
                except Exception as error:
                    raise StartError(f"{title_of(start)}: {self._name} does not start: {error}") from error
            case Snapshot():
                episode = restore(start, self.spec, blobs, FORM, lambda image: self._load(start, image))
        session = GymnasiumSession(self.spec, self._toolbox, episode, controls, blobs)
        session.copies = self._copies
        return session

    def _load(self, snapshot: Snapshot, image: bytes) -> Episode:
        kept = self._copies.get(snapshot.digest)
        if kept is not None and kept.image() == image:
            return kept.copy()
        try:
            past = msgspec.json.decode(image, type=Past)
            if len(past.actions) > MAX_ACTIONS:
                raise SnapshotError(f"{len(past.actions)} actions, over the limit of {MAX_ACTIONS}")
            return self._begin(past)
        except SnapshotError:
            raise
        except Exception as error:  # kwargs or actions that this world does not have may fail anywhere in it
            raise SnapshotError(f"the image is no episode of {self._name}: {error}") from error

    def _begin(self, past: Past) -> Episode:
        world = self._make(past.kwargs)
        try:
            return Episode(world, past)
        except BaseException:
            world.close()
            raise

    def _make(self, kwargs: dict[str, Any]) -> World:
        if "render_mode" in kwargs:
            raise EnvironmentFailure("render_mode: nothing is drawn here; leave it out")
        path = next(
            (text for text in _texts(kwargs) if text.startswith(("~", ".")) or "/" in text or "\\" in text), None
        )
        if path is not None:
            raise EnvironmentFailure(
                f"kwargs hold {path!r}: worlds are made from no file that a task names; leave it out"
            )
        return gymnasium.make(self._name, disable_env_checker=True, **kwargs)


def open_world(rest: str) -> Gymnasium:
    """The world of ``:NAME`` or ``:NAME@VERSION``. Raises EnvironmentFailure."""
    name, _, version = rest.removeprefix(":").partition("@")
    if version and version != gymnasium.__version__:
        raise EnvironmentFailure(f"version {version} is not installed, {gymnasium.__version__} is")
    return Gymnasium(name)


def members(rest: str) -> tuple[str, ...]:
    """The one world that a name stands for. Raises EnvironmentFailure."""
    world = open_world(rest)
    return (world.spec.name,)


FAMILY = Family(open_world, members, lambda: (gymnasium.__version__,))


def _schema(space: gymnasium.Space[Any]) -> dict[str, Any]:
    """The JSON Schema of a space's elements. Raises EnvironmentFailure for a space that JSON has no values of."""
    match space:
        case spaces.Discrete():
            return {"type": "integer", "minimum": int(space.start), "maximum": int(space.start + space.n - 1)}
        case spaces.Box() | spaces.MultiDiscrete() | spaces.MultiBinary():
            number = "number" if space.dtype is not None and space.dtype.kind == "f" else "integer"
            schema: dict[str, Any] = {"type": number}
            for length in reversed(space.shape or ()):
                schema = {"type": "array", "items": schema, "minItems": length, "maxItems": length}
            return schema
        case spaces.Tuple():
            parts = [_schema(part) for part in space.spaces]
            return {"type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)}
        case spaces.Dict():
            named = {name: _schema(part) for name, part in space.spaces.items()}
            return {"type": "object", "properties": named, "required": [*named], "additionalProperties": False}
    raise EnvironmentFailure(f"actions of {space} cannot be said in JSON")


def _element(space: gymnasium.Space[Any], value: Any) -> Any:
    """A JSON value as an element of a space, or None where it is none."""
    try:
        element = _read(space, value)
    except OverflowError:
        return None
    return element if space.contains(element) else None


def _read(space: gymnasium.Space[Any], value: Any) -> Any:
    match space:
        case spaces.Tuple():
            return tuple(_read(part, item) for part, item in zip(space.spaces, value, strict=True))
        case spaces.Dict():
            return {name: _read(part, value[name]) for name, part in space.spaces.items()}
        case spaces.Discrete():
            return int(value)
    return np.array(value, dtype=space.dtype)


def _texts(value: Any) -> Iterator[str]:
    """All texts in a JSON value but its keys."""
    match value:
        case str():
            yield value
        case list():
            yield from chain.from_iterable(map(_texts, value))
        case dict():
            yield from _texts([*value.values()])


def _plain(value: Any) -> Any:
    """An observation as a JSON value."""
    match value:
        case np.ndarray() | np.generic():
            return value.tolist()
        case tuple() | list():
            return [_plain(item) for item in value]
        case dict():
            return {str(name): _plain(item) for name, item in value.items()}
    return value

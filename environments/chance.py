"""The random numbers of worlds that share a process: each draws from where it left off, whatever the others do."""

import random
import sys
from typing import Any, NamedTuple


class _State(NamedTuple):
    python: Any
    numpy: Any


class Chance:
    """The global generators of ``random`` and, once it is imported, ``numpy.random``; each world's start at the seed.

    What takes its randomness from the system (``uuid4``, ``secrets``, ``os.urandom``) is not covered.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._left: dict[int, _State] = {}
        self._world: int | None = None

    def turn_to(self, world: int) -> None:
        """Set the generators to where this world left them, or to the seed where it is new."""
        if world == self._world:
            return
        if self._world is not None:
            self._left[self._world] = _State(random.getstate(), _numpy().get_state() if _numpy() else None)
        self._world = world
        state = self._left.pop(world, _State(None, None))
        if state.python is None:
            random.seed(self._seed)
        else:
            random.setstate(state.python)
        if _numpy() and state.numpy is None:
            _numpy().seed(self._seed)
        elif _numpy():
            _numpy().set_state(state.numpy)

    def forget(self, world: int) -> None:
        """Drop what is kept for a world that is closed."""
        self._left.pop(world, None)


def _numpy() -> Any:
    """The generators of numpy, only where somebody imported them."""
    return sys.modules.get("numpy.random")

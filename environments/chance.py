"""The random numbers of worlds that share a process: each draws from where it left off, whatever the others do."""

import random
import sys
from typing import Any, NamedTuple


class _State(NamedTuple):
    python: Any
    numpy: Any


class Chance:
    """The global generators of ``random`` and, where it is imported, ``numpy.random``; each world's start at the seed.

    What takes its randomness from the system (``uuid4``, ``secrets``, ``os.urandom``) is not covered, nor is
    ``numpy.random`` in the very call that imports it first.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._left: dict[int, _State] = {}
        self._world: int | None = None
        self._numpy: Any = None  # the module, once its generator is this world's

    def turn_to(self, world: int) -> None:
        """Set the generators to where this world left them, or to the seed where it is new."""
        state = _State(None, None)
        if world != self._world:
            if self._world is not None:
                self._left[self._world] = _State(random.getstate(), self._numpy.get_state() if self._numpy else None)
            state = self._left.pop(world, state)
            self._world, self._numpy = world, None
            if state.python is None:
                random.seed(self._seed)
            else:
                random.setstate(state.python)
        if self._numpy is None and (numpy := sys.modules.get("numpy.random")):
            self._numpy = numpy
            if state.numpy is None:
                self._numpy.seed(self._seed)
            else:
                self._numpy.set_state(state.numpy)

    def forget(self, world: int) -> None:
        """Drop what is kept for a world that is closed."""
        self._left.pop(world, None)
        if world == self._world:
            self._world = None

"""Paths of digests as one tree in arrays: a step costs some 35 bytes, however many paths go through it."""

from array import array
from collections.abc import Iterable
from hashlib import blake2b

SIZE = 16  # bytes of a digest

_FIRST = 1 << 10  # slots


class DigestTrie:
    """Nodes by number, each after the one before it on its path; node 0 is where every path begins."""

    def __init__(self) -> None:
        self.parents = array("I", [0])
        self.depths = array("I", [0])
        self._steps = bytearray(SIZE)
        self._slots = array("I", bytes(4 * _FIRST))  # node by hash of its parent and its step; 0 is free

    def __len__(self) -> int:
        return len(self.parents)

    def step(self, node: int) -> bytes:
        """The digest that leads to a node from the one before it."""
        return bytes(self._steps[SIZE * node : SIZE * node + SIZE])

    def walk(self, node: int, steps: Iterable[bytes]) -> int:
        """The node at the end of a path, made where it is new."""
        for step in steps:
            node = self.child(node, step, self.depths[node] + 1)
        return node

    def find(self, parent: int, step: bytes) -> int:
        """The node that a step leads to; 0 where nothing went there."""
        return self._slots[self._slot(parent, step)]

    def child(self, parent: int, step: bytes, depth: int) -> int:
        """The node that a step leads to, made where it is new; ``depth`` is what it then has."""
        slot = self._slot(parent, step)
        if found := self._slots[slot]:
            return found
        node = self._slots[slot] = len(self.parents)
        self.parents.append(parent)
        self.depths.append(depth)
        self._steps += step
        if 3 * node > 2 * len(self._slots):
            self._grow()
        return node

    def _slot(self, parent: int, step: bytes) -> int:
        """Where the node of a step lies, or would."""
        slots, steps, parents, mask = self._slots, self._steps, self.parents, len(self._slots) - 1
        slot = hash((parent, step)) & mask
        while node := slots[slot]:
            if parents[node] == parent and steps[SIZE * node : SIZE * node + SIZE] == step:
                break
            slot = (slot + 1) & mask
        return slot

    def _grow(self) -> None:
        size = 2 * len(self._slots)
        self._slots = array("I", bytes(4 * size))
        for node in range(1, len(self.parents)):
            self._slots[self._slot(self.parents[node], self.step(node))] = node


class Names:
    """Names with a number each: the first that a name was given stays."""

    def __init__(self) -> None:
        self._names = DigestTrie()
        self._numbers = array("I", [0])

    def add(self, name: str, number: int) -> None:
        """Give a name its number, unless it has one."""
        if self._names.child(0, _digest(name), 0) == len(self._numbers):
            self._numbers.append(number)

    def find(self, name: str) -> int | None:
        """The number of a name; None where it has none."""
        found = self._names.find(0, _digest(name))
        return self._numbers[found] if found else None


def _digest(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "replace"), digest_size=SIZE).digest()

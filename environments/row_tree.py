"""A multiset of rows as a tree of their hashes: its digest follows a changed row without reading the others.

The shape depends on nothing but the rows, so equal multisets have equal digests however they came about. Trees are
values: a fork shares all of its parent's.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import NamedTuple

LEAF = 4096  # most hashes in one leaf
_SIZE = 32
_FAN = 256


class Tree(NamedTuple):
    """So many rows: either their sorted hashes, or a child for each value of the hashes' next byte."""

    size: int
    digest: bytes
    hashes: bytes = b""
    children: tuple["Tree", ...] = ()


def _leaf(hashes: list[bytes]) -> Tree:
    joined = b"".join(sorted(hashes))
    return Tree(len(hashes), sha256(b"leaf" + joined).digest(), joined)


EMPTY = _leaf([])


def fold(tree: Tree, added: Sequence[bytes], removed: Sequence[bytes] = (), depth: int = 0) -> Tree:
    """The tree with some 32-byte hashes more and some less. Raises ValueError where one that goes is not there."""
    size = tree.size + len(added) - len(removed)
    if size <= LEAF or depth == _SIZE:
        return _leaf(_without([*_hashes(tree), *added], removed))
    children = tree.children
    if not children:
        added, children = [*_hashes(tree), *added], (EMPTY,) * _FAN
    come, go = _by_byte(added, depth), _by_byte(removed, depth)
    grown = list(children)
    for byte in come.keys() | go.keys():
        grown[byte] = fold(children[byte], come.get(byte, ()), go.get(byte, ()), depth + 1)
    digest = sha256(b"node" + b"".join(child.digest for child in grown)).digest()
    return Tree(size, digest, children=tuple(grown))


def _hashes(tree: Tree) -> Iterator[bytes]:
    for child in tree.children:
        yield from _hashes(child)
    for start in range(0, len(tree.hashes), _SIZE):
        yield tree.hashes[start : start + _SIZE]


def _without(hashes: list[bytes], removed: Sequence[bytes]) -> list[bytes]:
    if not removed:
        return hashes
    left = Counter(hashes)
    left.subtract(removed)
    if min(left.values()) < 0:
        raise ValueError("a row that is taken away is not there")
    return list(left.elements())


def _by_byte(hashes: Iterable[bytes], depth: int) -> dict[int, list[bytes]]:
    found: defaultdict[int, list[bytes]] = defaultdict(list)
    for item in hashes:
        found[item[depth]].append(item)
    return found

"""The face of an importer: ``sniff`` says whether a file is of its format, ``read`` yields what is in it.

Importers are pure iterators: they open nothing but the path they are given, know nothing of the store, and turn every
item of the file into exactly one ``Parsed`` or ``Rejected``.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from schemas.objects import Object
from schemas.statements import Result, Value
from schemas.trajectory import AuthorKind, Trajectory


class Fact(NamedTuple):
    """A fact about an attempt that is no part of its record, and who says it.

    ``field`` is an annotation's field, or ``outcome`` with a task-layer result as ``value`` (and perhaps a score).
    """

    field: str
    value: Value | Result
    by: AuthorKind = "log"
    rule: str = ""
    score: float | int | None = None


class Parsed(NamedTuple):
    """One attempt as read: its record, what it refers to, facts beside it, and the bytes it was read from.

    ``place`` is a line number (from 1) or an index in the file, ``offset`` the byte where it starts. ``replaced``
    counts lone surrogates, ``warnings`` are codes of schemas.reasons.WARNINGS.
    """

    trajectory: Trajectory
    raw: bytes
    place: int
    offset: int
    objects: tuple[Object, ...] = ()
    facts: tuple[Fact, ...] = ()
    replaced: int = 0
    warnings: tuple[str, ...] = ()


class Rejected(NamedTuple):
    """One item that is no attempt, with a code of schemas.reasons.QUARANTINE and the words of what refused it."""

    code: str
    detail: str
    raw: bytes
    place: int
    offset: int


Item = Parsed | Rejected


class Importer(NamedTuple):
    """A format: its name, its version (in sightings), and its two functions."""

    name: str
    version: str
    sniff: Callable[[bytes], bool]
    read: Callable[[Path], Iterator[Item]]

"""The face of an importer: ``sniff`` says whether a file is of its format, ``read`` yields what is in it.

Importers are pure iterators: they open nothing but the path they are given, know nothing of the store, and turn every
item of the file into exactly one ``Parsed`` or ``Rejected``.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from schemas.objects import Object
from schemas.statements import Result, Value
from schemas.trajectory import AuthorKind, Reads, Trajectory

MAX_RECORD_BYTES = 256 * 1024 * 1024


class Fact(NamedTuple):
    """A fact about an attempt that is no part of its record, and who says it.

    ``field`` is an annotation's field, or ``outcome`` with a task-layer result as ``value`` (and perhaps a score).
    ``rule`` names the rule, with its version, where a rule says so; ``reads`` is what it looked at.
    """

    field: str
    value: Value | Result
    by: AuthorKind = "log"
    rule: str = ""
    score: float | int | None = None
    reads: tuple[Reads, ...] = ()


class Parsed(NamedTuple):
    """One attempt as read: its record, what it refers to, facts beside it, and the bytes it was read from.

    ``place`` is the line number or the position in the file's list, both from 1, ``offset`` the byte where it starts.
    ``key`` is the record's own id, for side files. ``replaced`` counts lone surrogates, ``warnings`` are codes of
    schemas.reasons.WARNINGS.
    """

    trajectory: Trajectory
    raw: bytes
    place: int
    offset: int
    key: str | None = None
    objects: tuple[Object, ...] = ()
    facts: tuple[Fact, ...] = ()
    replaced: int = 0
    warnings: tuple[str, ...] = ()


class Rejected(NamedTuple):
    """One item that is no attempt, with a code of schemas.reasons.QUARANTINE and the words of what refused it.

    ``raw`` is empty where the item is over the size limit: it was skipped, never held.
    """

    code: str
    detail: str
    raw: bytes
    place: int
    offset: int


Item = Parsed | Rejected


class Read(Protocol):
    """What is in a file of a format, item by item."""

    def __call__(self, path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Item]:
        """Every item of the file; one over ``limit`` bytes is rejected ``too_large``. Raises OSError only."""


class Importer(NamedTuple):
    """A format: its name, its version (in sightings), and its two functions.

    ``sniff`` gets the first bytes of a file, perhaps cut in the middle of a record.
    """

    name: str
    version: str
    sniff: Callable[[bytes], bool]
    read: Read

"""The face of an importer: ``sniff`` says whether a file is of its format, ``slices`` cuts it into records, ``build``
makes an attempt of one.

Importers are pure: they open nothing but the path they are given, know nothing of the store, and turn every record of
the file into exactly one ``Parsed`` or ``Rejected``. Slices can be built apart from one another, in any process.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from schemas import canonical
from schemas.objects import Object
from schemas.statements import Result, Value
from schemas.trajectory import AuthorKind, Reads, Trajectory

MAX_RECORD_BYTES = 256 * 1024 * 1024
FAULT = "importer_fault"


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
    ``part`` names the attempt among several that one slice holds, the same whenever it is read. ``key`` is the record's
    own id, for side files. ``replaced`` counts lone surrogates, ``warnings`` are codes of schemas.reasons.WARNINGS.
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
    part: str | None = None


class Rejected(NamedTuple):
    """One item that is no attempt, with a code of schemas.reasons.QUARANTINE and the words of what refused it.

    ``raw`` is empty where the item is over the size limit: it was skipped, never held. ``part`` is as in Parsed.
    """

    code: str
    detail: str
    raw: bytes
    place: int
    offset: int
    part: str | None = None


Item = Parsed | Rejected


class RefusedError(Exception):
    """A record that is not of its format's shape: a quarantine code, and words that name the path in the record."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


class Slice(NamedTuple):
    """The exact bytes of one record in a file; ``data`` is None where they are over the size limit.

    ``context`` is what stands elsewhere and belongs to it, such as the header of its archive.
    """

    data: bytes | None
    place: int
    offset: int
    context: bytes = b""


class Slices(Protocol):
    """A file of a format as the slices that hold its records, at most one of them in memory.

    A slice is what has to be read together: mostly one attempt, else a session or a tree of attempts.
    """

    def __call__(self, path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
        """Every record of the file; one over ``limit`` bytes is skipped unheld. Raises OSError only."""


class Importer(NamedTuple):
    """A format: its name, its version (in sightings), and its three functions.

    ``sniff`` gets the first bytes of a file, perhaps cut in the middle of a record, and says what in them is of this
    format, or nothing. ``build`` makes the attempts of a
    slice's parsed value, its bytes, the slice, and the number of replaced surrogates; it raises RefusedError. ``parse``
    reads the bytes of a slice that is no one JSON value. ``claims`` are the files that are read as parts of a file.
    """

    name: str
    version: str
    sniff: Callable[[bytes], str]
    slices: Slices
    build: Callable[[Any, bytes, Slice, int], Parsed | Iterable[Item]]
    parse: Callable[[bytes], tuple[Any, int]] = canonical.parse
    claims: Callable[[Path], Iterable[Path]] = lambda path: ()

    def items(self, piece: Slice, limit: int = MAX_RECORD_BYTES) -> Iterator[Item]:
        """What a slice holds: its attempts, or why there is none; at least one item.

        ``limit`` is the size in bytes that it was cut with.
        """
        data = piece.data
        if data is None:
            words = f"the record is over the limit of {limit} bytes"
            yield Rejected("too_large", words, b"", piece.place, piece.offset)
            return
        found = 0
        try:
            value, replaced = self.parse(data)
            built = self.build(value, data, piece, replaced)
            for item in (built,) if isinstance(built, Parsed) else built:
                found += 1
                yield item
            if not found:
                yield Rejected("not_a_record", "it holds no attempt", data, piece.place, piece.offset)
        except Exception as error:  # a mistake of an importer must not keep the other records out
            part = f"after {found}" if found else None
            code, detail = FAULT, f"{type(error).__name__}: {error}"
            if isinstance(error, canonical.UnreadableError | RefusedError):
                code, detail = error.code, error.detail
            yield Rejected(code, detail, data, piece.place, piece.offset, part)

    def read(self, path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Item]:
        """Every item of a file. Raises OSError only."""
        return chain.from_iterable(self.items(piece, limit) for piece in self.slices(path, limit))

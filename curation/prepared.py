"""Records of a file, read, named and digested: all of an import that needs neither the store nor the other records."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import pyarrow as pa
from msgspec.structs import replace

from curation.exposures import exposing
from curation.importers.attempt_keys import name_run
from curation.importers.face import MAX_RECORD_BYTES, Fact, Item, Parsed, Slice
from curation.importers.formats import find
from curation.importers.side_file import SideFile
from curation.losses import Losses
from curation.masking import masked
from curation.store.tables import Row, record_batch, trajectory_row
from schemas.canonical import digest, encode
from schemas.digests import attempt_id
from schemas.objects import Object
from schemas.trajectory import Attempt, Trajectory

KnownBy = Literal["names", "order", "bytes"]


class Reading(NamedTuple):
    """How the records of a log become attempts.

    ``side`` says what the log does not; ``namespace`` stands where the log names none; ``run`` names another try.
    """

    side: SideFile | None = None
    namespace: str | None = None
    run: str | None = None


class Log(NamedTuple):
    """A file that is read: its digest, its name, and the importer with its version."""

    file: str
    name: str
    importer: str

    @property
    def format(self) -> str:
        """The name of the importer, without its version."""
        return self.importer.partition("@")[0]


class Stretch(NamedTuple):
    """Some records of one log. ``numbers`` tells identical ones apart: 1 is the first."""

    log: Log
    slices: Sequence[Slice]
    numbers: Sequence[int] | None = None


class Chunk(NamedTuple):
    """Records to be read together, and the size in bytes that none of them may exceed."""

    stretches: Sequence[Stretch]
    reading: Reading = Reading()
    limit: int = MAX_RECORD_BYTES

    @property
    def slices(self) -> Iterator[Slice]:
        """Those of all its stretches."""
        return (piece for stretch in self.stretches for piece in stretch.slices)


class Entry(NamedTuple):
    """What is to be known of a record to let it in: its names and facts, or why it is no attempt, without secrets.

    ``place`` and ``offset`` are where it stands in its log, ``raw`` is the digest of its slice and ``part`` its name
    there. ``row`` is its position in the rows of its chunk, ``side_line`` the line of the side file that is about it,
    ``known_by`` what its attempt is known by: the names of its run or index, its order among identical records, or its
    bytes alone. ``entered``: its record was let in, and is new.
    """

    log: Log
    place: int
    offset: int
    raw: str
    part: str | None = None
    id: str = ""
    attempt: str = ""
    row: int = -1
    known_by: KnownBy = "bytes"
    facts: tuple[Fact, ...] = ()
    warnings: tuple[str, ...] = ()
    side_line: int | None = None
    code: str | None = None
    detail: str = ""
    entered: bool = False

    @property
    def source(self) -> str:
        """What it was read from: its slice, or its part of one that holds several attempts."""
        return source_of(self.raw, self.part)


class Prepared(NamedTuple):
    """A chunk with its entries in order, the digests of its slices, the ``trajectories`` rows of its attempts, what
    these refer to, and what is lost of the log.
    """

    entries: tuple[Entry, ...]
    raws: tuple[str, ...]
    rows: pa.RecordBatch
    objects: tuple[Object, ...]
    losses: Losses


def source_of(raw: str, part: str | None) -> str:
    """The name of what an attempt was read from: a slice's digest, or one of it and a part's name."""
    return raw if part is None else digest(encode([raw, part]))


def prepare(chunk: Chunk) -> Prepared:
    """Read, name and digest the records of a chunk. Pure: the same chunk gives the same, in any process."""
    rows: list[Row] = []
    objects: dict[str, Object] = {}
    losses = Losses()
    raws = tuple(digest(piece.data or b"") for piece in chunk.slices)
    entries = tuple(_entries(chunk, raws, rows, objects, losses))
    return Prepared(entries, raws, record_batch("trajectories", rows), tuple(objects.values()), losses)


def _items(chunk: Chunk, raws: Iterable[str]) -> Iterator[tuple[Item, Log, str, int]]:
    """Every item of a chunk, with its log, the digest of its slice, and its number among identical ones."""
    digests = iter(raws)
    for log, slices, numbers in chunk.stretches:
        importer = find(log.format)
        for piece, number in zip(slices, numbers or [1] * len(slices), strict=True):
            raw = next(digests)
            for item in importer.items(piece, chunk.limit):
                yield item, log, raw, number


def _entries(
    chunk: Chunk, raws: Iterable[str], rows: list[Row], objects: dict[str, Object], losses: Losses
) -> Iterator[Entry]:
    side = chunk.reading.side
    for item, log, raw, number in _items(chunk, raws):
        losses.count(item)
        entry = Entry(log, item.place, item.offset, raw, item.part)
        if not isinstance(item, Parsed):
            yield entry._replace(code=item.code, detail=masked(item.detail))
            continue
        side_line = None if side is None else side.find(item, log.name)
        if side is not None:
            item = side.apply(item, log.name)
        trajectory, known_by = _named(item.trajectory, chunk.reading, entry.source, number)
        attempt = attempt_id(trajectory, entry.source)
        assert attempt is not None, "a log holds no forks of ours"  # noqa: S101 - no importer sets ``fork``
        row = trajectory_row(trajectory, encode(trajectory), attempt)
        objects.update((held.id, held) for held in item.objects)
        yield entry._replace(
            id=row["id"],
            attempt=attempt,
            row=len(rows),
            known_by=known_by,
            facts=(*item.facts, *exposing(row["record"])),
            warnings=tuple(map(masked, item.warnings)),
            side_line=side_line,
        )
        rows.append(row)


def _named(trajectory: Trajectory, reading: Reading, source: str, number: int) -> tuple[Trajectory, KnownBy]:
    if reading.namespace is not None and trajectory.task.namespace is None:
        trajectory = replace(trajectory, task=replace(trajectory.task, namespace=reading.namespace))
    by_order = number > 1 and trajectory.attempt is None
    if by_order:
        trajectory = replace(trajectory, attempt=Attempt(run=source, index=number))
    if reading.run is not None:
        trajectory = name_run(trajectory, reading.run)
    if by_order:
        return trajectory, "order"
    return trajectory, "bytes" if trajectory.attempt is None else "names"

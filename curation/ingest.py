"""From files to the store: duplicates, quarantine, and the facts beside a record.

Every record of every file becomes one sighting: of a new trajectory, of one that was there, or quarantined with a code.
"""

import gc
import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import msgspec

from curation.errors import UsageError
from curation.gate import Gate
from curation.importers.face import MAX_RECORD_BYTES, Importer, Slice
from curation.importers.formats import detect, find
from curation.prepared import Chunk, Entry, Prepared, Reading, prepare
from curation.store import Batch, Store
from schemas.canonical import digest
from schemas.objects import Object, Sighting

_CHUNK_RECORDS = 1_000
_CHUNK_BYTES = 8 * 2**20


class Source(NamedTuple):
    """A file to read, as its reader calls it, and the importer that reads it."""

    path: Path
    name: str
    importer: Importer


class IngestOptions(NamedTuple):
    """How what is read enters the store.

    ``revise`` says that known attempts are read better, ``number`` tells identical rows apart by their order, ``limit``
    is the size in bytes that no record may exceed, ``processes`` are how many read (more than one: the main module of
    the program must be safe to import).
    """

    reading: Reading = Reading()
    revise: bool = False
    number: bool = False
    limit: int = MAX_RECORD_BYTES
    processes: int = 1


class FormatCount(msgspec.Struct):
    """What one importer read."""

    files: int
    read: int
    accepted: int
    quarantined: int


class IngestResult(msgspec.Struct):
    """What an import did; accepted + duplicates + quarantined = read."""

    read: int
    accepted: int
    duplicates: int
    quarantined: int
    reasons: dict[str, int]
    warnings: dict[str, int]
    tasks: int
    bytes: int
    formats: dict[str, FormatCount]


def find_sources(paths: Sequence[Path], format_name: str) -> list[Source]:
    """The files of these paths, folders taken whole, each with its importer; ``auto`` decides by content.

    Raises UsageError for a file of no known format, or where a folder holds no file.
    """
    files: list[Path] = []
    for path in paths:
        inside = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
        if not inside:
            raise UsageError(f"{path}: no file in this folder; name a log, or a folder of logs")
        files.extend(inside)
    return [
        Source(file, file.as_posix(), detect(file) if format_name == "auto" else find(format_name))
        for file in dict.fromkeys(files)
    ]


def ingest(store: Store, sources: Sequence[Source], options: IngestOptions) -> IngestResult:
    """Read all sources into one batch and commit it. What is no attempt is quarantined, never raised.

    Raises UsageError for a revision that would leave a log line without its attempt.
    """
    occurrences: Counter[str] = Counter()
    with store.batch() as batch, _mapping(options.processes) as over:
        gate = Gate(store, batch, rename=options.reading.run is not None, revise=options.revise)
        for source in sources:
            file = _file_digest(source.path)
            for chunk, prepared in over(prepare, _chunks(source, options, occurrences)):
                for entry, piece in zip(gate.judge(prepared), chunk.slices, strict=True):
                    _sight(batch, source, file, entry, piece)
        gate.finish()
        store.write(batch)
        return _count(store, sources, batch)


def _sight(batch: Batch, source: Source, file: str, entry: Entry, piece: Slice) -> None:
    batch.add_object(Object(entry.raw, "raw", piece.data or b""))
    batch.add_sighting(
        Sighting(
            file=file,
            name=source.name,
            place=piece.place,
            offset=piece.offset,
            raw=entry.raw,
            importer=f"{source.importer.name}@{source.importer.version}",
            trajectory=None if entry.code else entry.id,
            code=entry.code,
            detail=entry.detail or None,
            warnings=entry.warnings,
        )
    )


def _count(store: Store, sources: Sequence[Source], batch: Batch) -> IngestResult:
    """What the store says of the sightings of this batch."""
    seen = "SELECT * FROM sightings WHERE id IN (SELECT unnest(?))"
    sightings, new = sorted(batch.ids("sightings")), sorted(batch.ids("trajectories"))
    formats = store.sql(
        f"""SELECT importer, count(DISTINCT (file, name)) AS files, count(*) AS read, count(code) AS quarantined,
            count(DISTINCT trajectory) FILTER (trajectory IN (SELECT unnest(?))) AS accepted
            FROM ({seen}) GROUP BY importer ORDER BY importer""",
        [new, sightings],
    ).to_pylist()
    reasons = store.sql(
        f"SELECT code, count(*) AS n FROM ({seen}) WHERE code IS NOT NULL GROUP BY code ORDER BY code", [sightings]
    ).to_pylist()
    warnings = store.sql(
        f"SELECT w AS code, count(*) AS n FROM (SELECT unnest(warnings) AS w FROM ({seen})) GROUP BY w ORDER BY w",
        [sightings],
    ).to_pylist()
    tasks = store.sql(
        f"""SELECT count(DISTINCT task_key) AS n FROM attempts
            WHERE trajectory_id IN (SELECT trajectory FROM ({seen}))""",
        [sightings],
    )
    read, accepted = (sum(row[name] for row in formats) for name in ("read", "accepted"))
    quarantined = sum(row["quarantined"] for row in formats)
    return IngestResult(
        read=read,
        accepted=accepted,
        duplicates=read - quarantined - accepted,
        quarantined=quarantined,
        reasons={row["code"]: row["n"] for row in reasons},
        warnings={row["code"]: row["n"] for row in warnings},
        tasks=tasks["n"][0].as_py(),
        bytes=sum(source.path.stat().st_size for source in sources),
        formats={
            row["importer"].partition("@")[0]: FormatCount(
                row["files"], row["read"], row["accepted"], row["quarantined"]
            )
            for row in formats
        },
    )


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _chunks(source: Source, options: IngestOptions, occurrences: Counter[str]) -> Iterator[Chunk]:
    for slices in _groups(source.importer.slices(source.path, options.limit)):
        numbers = [_occurrence(piece, occurrences) for piece in slices] if options.number else None
        yield Chunk(source.importer.name, source.name, slices, options.reading, numbers)


def _groups(slices: Iterable[Slice]) -> Iterator[list[Slice]]:
    group: list[Slice] = []
    weight = 0
    for piece in slices:
        group.append(piece)
        weight += len(piece.data or b"")
        if len(group) >= _CHUNK_RECORDS or weight >= _CHUNK_BYTES:
            yield group
            group, weight = [], 0
    if group:
        yield group


def _occurrence(piece: Slice, occurrences: Counter[str]) -> int:
    raw = digest(piece.data or b"")
    occurrences[raw] += 1
    return occurrences[raw]


_Prepare = Callable[[Chunk], Prepared]
_Over = Callable[[_Prepare, Iterable[Chunk]], Iterator[tuple[Chunk, Prepared]]]


@contextmanager
def _mapping(processes: int) -> Iterator[_Over]:
    """A map over chunks, in order, here or in so many processes, with a few chunks under way at a time."""
    if processes < 2:
        yield lambda function, chunks: ((chunk, function(chunk)) for chunk in chunks)
        return
    # Nothing that is read makes a reference cycle, so the workers need no collector.
    with ProcessPoolExecutor(processes, get_context("spawn"), initializer=gc.disable) as pool:

        def over(function: _Prepare, chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, Prepared]]:
            waiting: deque[tuple[Chunk, Future[Prepared]]] = deque()
            for chunk in chunks:
                waiting.append((chunk, pool.submit(function, chunk)))
                if len(waiting) > 2 * processes:
                    first, future = waiting.popleft()
                    yield first, future.result()
            for first, future in waiting:
                yield first, future.result()

        yield over

"""From files to the store: duplicates, quarantine, and the facts beside a record.

Every record of every file becomes one sighting: of a new trajectory, of one that was there, or quarantined with a code.
"""

import gc
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from curation.erasures import Erasures
from curation.errors import UsageError
from curation.exposures import SecretLine, read_exposures
from curation.gate import Gate
from curation.importers.face import MAX_RECORD_BYTES, Importer, Slice
from curation.importers.formats import detect, find
from curation.importers.side_file import SideFile
from curation.losses import Losses, read_losses
from curation.prepared import Chunk, Entry, Reading, prepare
from curation.readers import Readers
from curation.store import Batch, Store
from curation.store.files import is_table
from curation.store.tables import Row, object_row, record_batch
from schemas.canonical import digest
from schemas.objects import Object, Sighting

_SHOWN = 10
_CHUNK_RECORDS = 1_000
_CHUNK_BYTES = 8 * 2**20
_LISTED = 10


class Source(NamedTuple):
    """A file to read, as its reader calls it, the importer that reads it, and why that one."""

    path: Path
    name: str
    importer: Importer
    why: str


class Sources(NamedTuple):
    """The files to read, and those of no known format that lie beside them, each with the reason."""

    files: tuple[Source, ...]
    passed_over: dict[str, str]


class IngestOptions(NamedTuple):
    """How what is read enters the store.

    ``revise`` says that known attempts are read better, ``number`` tells identical rows apart by their order, ``limit``
    is the size in bytes that no record may exceed, ``readmit`` lets in again what was erased.
    """

    reading: Reading = Reading()
    revise: bool = False
    number: bool = False
    limit: int = MAX_RECORD_BYTES
    readmit: bool = False


class FormatCount(msgspec.Struct):
    """What one importer read, and what in the first of its files was of its format."""

    why: str
    files: int
    read: int
    accepted: int
    quarantined: int


class Quarantined(msgspec.Struct):
    """A record that is no attempt: its file, its line or index (from 1), the code, and the words of what refused it."""

    file: str
    place: int
    code: str
    detail: str | None


class IngestResult(msgspec.Struct):
    """What an import did; accepted + duplicates + quarantined = read. Files passed over hold no log.

    ``secrets`` counts by kind the secrets in the records read, each once; ``secret_places`` are the first ten.
    ``quarantine`` holds the first ten of the quarantined, ``unmatched_lines`` the first ten of the ``unmatched`` lines
    of the side file, which are about no record read. ``seconds`` is for whoever holds a clock.
    """

    read: int
    accepted: int
    duplicates: int
    quarantined: int
    reasons: dict[str, int]
    quarantine: list[Quarantined]
    warnings: dict[str, int]
    secrets: dict[str, int]
    secret_places: list[SecretLine]
    tasks: int
    seconds: float
    bytes: int
    unmatched: int
    unmatched_lines: tuple[int, ...]
    passed_over: dict[str, str]
    losses: Losses
    formats: dict[str, FormatCount]


def find_sources(paths: Sequence[Path], format_name: str) -> Sources:
    """The files of these paths, folders taken whole, each with its importer; ``auto`` decides by content.

    A file that is named must be of a known format, one inside a folder is passed over where it is of none, and so is
    what is hidden there (its name starts with a dot) and what is a store. Raises UsageError for a named file of no
    format, and for a folder without a log.
    """
    files: dict[Path, Source] = {}
    passed_over: dict[str, str] = {}
    for path in paths:
        if not path.is_dir():
            files[path] = _source(path, format_name)
            continue
        before = len(files)
        for file in _files_in(path, passed_over):
            try:
                files[file] = _source(file, format_name)
            except UsageError as error:
                passed_over[file.as_posix()] = str(error).removeprefix(f"{file}: ")
        if len(files) == before:
            raise UsageError(f"{path}: no log of a known format in this folder; name one, with --format")
    for source in tuple(files.values()):
        for part in source.importer.claims(source.path):
            if part in files and part != source.path:
                del files[part]
                passed_over[part.as_posix()] = f"read as a part of {source.name}"
    return Sources(tuple(files.values()), passed_over)


def _files_in(folder: Path, passed_over: dict[str, str]) -> Iterator[Path]:
    """The files of a folder and of those in it, in order."""
    for inside in sorted(folder.iterdir()):
        if inside.name.startswith("."):
            passed_over[inside.as_posix()] = "hidden; name it to import it"
        elif inside.is_file():
            yield inside
        elif inside.is_dir() and not inside.is_symlink():
            if is_table(inside.as_posix(), "trajectories"):
                passed_over[inside.as_posix()] = "a store, no log"
            else:
                yield from _files_in(inside, passed_over)


def _source(path: Path, format_name: str) -> Source:
    name = path.as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not path.is_file():
        raise UsageError(f"{name}: not a regular file; save what it gives to a file first")
    return Source(path, name, *(detect(path) if format_name == "auto" else (find(format_name), "named by --format")))


def ingest(store: Store, sources: Sources, options: IngestOptions, readers: Readers | None = None) -> IngestResult:
    """Read all sources into one batch and commit it. What is no attempt is quarantined, never raised.

    ``readers`` do the reading, in processes of their own; without them it is done here.

    Raises UsageError for a revision that would leave a log line without its attempt.
    """
    occurrences: Counter[str] = Counter()
    used: set[int | None] = set()
    with store.batch() as batch, _uncollected():
        gate = Gate(store, batch, rename=options.reading.run is not None, revise=options.revise)
        erasures = Erasures(store, batch, readmit=options.readmit)
        for source in sources.files:
            file = _file_digest(source.path)
            for chunk, read in (readers or Readers()).map(prepare, _chunks(source, options, occurrences)):
                prepared, withheld = erasures.screen(read)
                used.update(entry.side_line for entry in prepared.entries)
                raws = zip(prepared.raws, chunk.slices, strict=True)
                rows = [_raw(name, piece) for name, piece in raws if name not in withheld]
                batch.add_rows("objects", record_batch("objects", rows))
                for entry in gate.judge(prepared):
                    _sight(batch, source, file, entry)
        gate.finish()
        store.write(batch)
        return _count(store, sources, batch, _unmatched(options.reading.side, used))


def _raw(name: str, piece: Slice) -> Row:
    return object_row(Object(name, "raw", piece.data or b""))


def _sight(batch: Batch, source: Source, file: str, entry: Entry) -> None:
    batch.add_sighting(
        Sighting(
            file=file,
            name=source.name,
            place=entry.place,
            offset=entry.offset,
            raw=entry.raw,
            importer=f"{source.importer.name}@{source.importer.version}",
            trajectory=None if entry.code else entry.id,
            code=entry.code,
            detail=entry.detail or None,
            warnings=entry.warnings,
            part=entry.part,
        )
    )


def _count(store: Store, sources: Sources, batch: Batch, unmatched: tuple[int, ...]) -> IngestResult:
    """What the store says of the sightings of this batch."""
    counts = store.sql(
        """WITH seen AS MATERIALIZED (
            SELECT file, name, importer, trajectory, code, warnings FROM sightings WHERE id IN (SELECT unnest(?))
        )
        SELECT 'format' AS what, importer AS name, count(*) AS n, count(DISTINCT (file, name)) AS files,
            count(code) AS quarantined,
            count(DISTINCT trajectory) FILTER (trajectory IN (SELECT unnest(?))) AS accepted FROM seen GROUP BY importer
        UNION ALL SELECT 'reason', code, count(*), 0, 0, 0 FROM seen WHERE code IS NOT NULL GROUP BY code
        UNION ALL SELECT 'warning', w, count(*), 0, 0, 0 FROM (SELECT unnest(warnings) AS w FROM seen) GROUP BY w
        UNION ALL SELECT 'tasks', '', count(DISTINCT task_key), 0, 0, 0 FROM attempts
            WHERE trajectory_id IN (SELECT trajectory FROM seen)
        ORDER BY what, name""",
        [sorted(batch.ids("sightings")), sorted(batch.ids("trajectories"))],
    ).to_pylist()
    formats = [row for row in counts if row["what"] == "format"]
    why = {source.importer.name: source.why for source in reversed(sources.files)}
    read, accepted, quarantined = (sum(row[name] for row in formats) for name in ("n", "accepted", "quarantined"))
    exposed = read_exposures(store, sorted(batch.ids("sightings")))
    return IngestResult(
        read=read,
        accepted=accepted,
        duplicates=read - quarantined - accepted,
        quarantined=quarantined,
        reasons={row["name"]: row["n"] for row in counts if row["what"] == "reason"},
        quarantine=_quarantined(store, batch),
        warnings={row["name"]: row["n"] for row in counts if row["what"] == "warning"},
        secrets=exposed.kinds,
        secret_places=exposed.lines,
        tasks=sum(row["n"] for row in counts if row["what"] == "tasks"),
        seconds=0.0,
        bytes=sum(source.path.stat().st_size for source in sources.files),
        unmatched=len(unmatched),
        unmatched_lines=unmatched[:_SHOWN],
        passed_over=sources.passed_over,
        losses=read_losses(store, sorted(batch.ids("sightings"))),
        formats={
            name: FormatCount(why[name], row["files"], row["n"], row["accepted"], row["quarantined"])
            for row in formats
            for name in [row["name"].partition("@")[0]]
        },
    )


def _quarantined(store: Store, batch: Batch) -> list[Quarantined]:
    first = store.sql(
        """SELECT name AS file, place, code, detail FROM sightings
           WHERE id IN (SELECT unnest(?)) AND code IS NOT NULL ORDER BY name, place LIMIT ?""",
        [sorted(batch.ids("sightings")), _LISTED],
    )
    return [Quarantined(**row) for row in first.to_pylist()]


def _unmatched(side: SideFile | None, used: set[int | None]) -> tuple[int, ...]:
    """The lines of the side file that are about no record of this import."""
    return () if side is None else tuple(sorted(side.lines.keys() - used))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the cyclic collector: nothing that is read holds a cycle, and it would walk all rows that wait."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _chunks(source: Source, options: IngestOptions, occurrences: Counter[str]) -> Iterator[Chunk]:
    for slices in _groups(source.importer.slices(source.path, options.limit)):
        numbers = [_occurrence(piece, occurrences) for piece in slices] if options.number else None
        yield Chunk(source.importer.name, source.name, slices, options.reading, numbers, options.limit)


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

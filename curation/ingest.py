"""From files to the store: duplicates, quarantine, and the facts beside a record.

Every record of every file becomes one sighting: of a new trajectory, of one that was there, or quarantined with a code.
"""

import gc
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path, PurePath
from typing import NamedTuple

from curation.erasures import Erasures
from curation.errors import UsageError
from curation.gate import Gate
from curation.importers.face import MAX_RECORD_BYTES, Importer, Slice
from curation.importers.formats import detect, find
from curation.prepared import Chunk, Entry, Log, Prepared, Reading, Stretch, prepare
from curation.readers import Readers
from curation.store import Batch, Store
from curation.store.files import is_table
from curation.store.tables import Row, object_row, record_batch, sighting_row
from curation.tally import IngestResult, Tally
from schemas.canonical import digest
from schemas.objects import Object, Sighting

_CHUNK_RECORDS = 1_000
_CHUNK_BYTES = 4 * 2**20
_PORTION_RECORDS = 25_000
_PORTION_BYTES = 32 * 2**20
_HIDDEN = "hidden; name it to import it"


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
            raise UsageError(f"{path}: no log of a known format in this folder; {_way_out(path, passed_over)}")
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
            passed_over[inside.as_posix()] = _HIDDEN
        elif inside.is_file():
            yield inside
        elif inside.is_dir() and not inside.is_symlink():
            if is_table(inside.as_posix(), "trajectories"):
                passed_over[inside.as_posix()] = "a store, no log"
            else:
                yield from _files_in(inside, passed_over)


def _way_out(folder: Path, passed_over: Mapping[str, str]) -> str:
    """What to do where a folder holds no log."""
    hidden = [name for name, why in passed_over.items() if why == _HIDDEN and folder in PurePath(name).parents]
    if not hidden:
        return "name one, with --format"
    more = f" and {len(hidden) - 1} more" if len(hidden) > 1 else ""
    return f"what is hidden was passed over: name {hidden[0]!r}{more} to import it"


def _source(path: Path, format_name: str) -> Source:
    name = path.as_posix().encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not path.is_file():
        raise UsageError(f"{name}: not a regular file; save what it gives to a file first")
    return Source(path, name, *(detect(path) if format_name == "auto" else (find(format_name), "named by --format")))


def ingest(store: Store, sources: Sources, options: IngestOptions, readers: Readers | None = None) -> IngestResult:
    """Read all sources into the store. What is no attempt is quarantined, never raised.

    It is committed a portion at a time, so that memory does not grow with what is read: an import that is cut off
    leaves whole portions, and the same import again adds the rest. A revision is one portion.

    ``readers`` do the reading, in processes of their own; without them it is done here.

    Raises UsageError for a revision that would leave a log line without its attempt.
    """
    tally = Tally({source.importer.name: source.why for source in reversed(sources.files)}, options.reading.side)
    read = (readers or Readers()).map(prepare, _chunks(sources.files, options))
    logs: set[str] = set()
    with _uncollected():
        for first in read:
            with store.batch() as batch:
                entered = _enter(store, batch, _portion(first, read, whole=options.revise), logs, options, tally)
                store.write(batch)
                tally.accept(entry for entry in entered if batch.has("trajectories", entry.id))
    return tally.result(sum(source.path.stat().st_size for source in sources.files), sources.passed_over)


def _enter(
    store: Store,
    batch: Batch,
    portion: Iterable[tuple[Chunk, Prepared]],
    logs: set[str],
    options: IngestOptions,
    tally: Tally,
) -> list[Entry]:
    """Put what is new of a portion into a batch, and count it; the entries whose records are new.

    ``logs`` are the digests of the files read so far; those of the portion are added.
    """
    erasures = Erasures(store, batch, readmit=options.readmit)
    gate = Gate(store, batch, logs, rename=options.reading.run is not None, revise=options.revise)
    entered: list[Entry] = []
    # What is stored is looked up once for all; where nothing is, each chunk is judged while others are read.
    lots = ([one] for one in portion) if store.is_empty("trajectories") else [portion]
    for lot in lots:
        admitted: list[Prepared] = []
        for chunk, read in lot:
            prepared, withheld = erasures.screen(read)
            raws = dict(zip(prepared.raws, chunk.slices, strict=True))
            rows = [_raw(name, piece) for name, piece in raws.items() if name not in withheld]
            batch.add_rows("objects", record_batch("objects", rows))
            logs.update(stretch.log.file for stretch in chunk.stretches)
            admitted.append(prepared)
        for entries, prepared in zip(gate.judge(admitted), admitted, strict=True):
            batch.add_rows("sightings", record_batch("sightings", [_sighting(entry) for entry in entries]))
            tally.count(entries, prepared)
            entered.extend(entry for entry in entries if entry.entered)
    gate.finish()
    tally.carry(gate.carried, gate.not_carried)
    return entered


def _raw(name: str, piece: Slice) -> Row:
    return object_row(Object(name, "raw", piece.data or b""))


def _sighting(entry: Entry) -> Row:
    return sighting_row(
        Sighting(
            file=entry.log.file,
            name=entry.log.name,
            place=entry.place,
            offset=entry.offset,
            raw=entry.raw,
            importer=entry.log.importer,
            trajectory=None if entry.code else entry.id,
            code=entry.code,
            detail=entry.detail or None,
            warnings=entry.warnings,
            part=entry.part,
        )
    )


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


def _portion(
    first: tuple[Chunk, Prepared], rest: Iterator[tuple[Chunk, Prepared]], *, whole: bool
) -> Iterator[tuple[Chunk, Prepared]]:
    """What is read next, until it is enough to be committed, or all of it."""
    records = weight = 0
    for chunk, prepared in chain((first,), rest):
        yield chunk, prepared
        records += len(prepared.entries)
        weight += sum(len(piece.data or b"") for piece in chunk.slices) + prepared.rows.nbytes
        if not whole and (records >= _PORTION_RECORDS or weight >= _PORTION_BYTES):
            return


def _chunks(sources: Iterable[Source], options: IngestOptions) -> Iterator[Chunk]:
    """The records of all logs in chunks; one holds the records of many small logs, or some of a large one."""
    occurrences: Counter[str] = Counter()
    stretches: list[Stretch] = []
    records = weight = 0
    for source in sources:
        log = Log(_file_digest(source.path), source.name, f"{source.importer.name}@{source.importer.version}")
        slices: list[Slice] = []
        for piece in source.importer.slices(source.path, options.limit):
            slices.append(piece)
            records += 1
            weight += len(piece.data or b"")
            if records >= _CHUNK_RECORDS or weight >= _CHUNK_BYTES:
                stretches.append(_stretch(log, slices, options, occurrences))
                yield Chunk(stretches, options.reading, options.limit)
                stretches, slices, records, weight = [], [], 0, 0
        if slices:
            stretches.append(_stretch(log, slices, options, occurrences))
    if stretches:
        yield Chunk(stretches, options.reading, options.limit)


def _stretch(log: Log, slices: list[Slice], options: IngestOptions, occurrences: Counter[str]) -> Stretch:
    return Stretch(log, slices, [_occurrence(piece, occurrences) for piece in slices] if options.number else None)


def _occurrence(piece: Slice, occurrences: Counter[str]) -> int:
    raw = digest(piece.data or b"")
    occurrences[raw] += 1
    return occurrences[raw]


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""From files to the store: identity, duplicates, quarantine, and the facts beside a record.

Every item of every file becomes one sighting: of a new trajectory, of one that was there, or quarantined with a code.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import msgspec
from msgspec.structs import replace

from curation.errors import UsageError
from curation.importers.attempt_keys import name_run
from curation.importers.face import Fact, Importer, Item, Parsed
from curation.importers.formats import detect, find
from curation.importers.side_file import SideFile
from curation.store import Batch, Store
from curation.store.supersede import superseding
from schemas.canonical import digest, encode
from schemas.digests import attempt_id
from schemas.objects import Object, Sighting, make_object
from schemas.statements import Annotation, Result, Statement, Verification
from schemas.trajectory import Attempt, Author, Trajectory

_CHUNK_ITEMS = 1_000
_CHUNK_BYTES = 32 * 2**20


class Source(NamedTuple):
    """A file to read, as its reader calls it, and the importer that reads it."""

    path: Path
    name: str
    importer: Importer


class IngestOptions(NamedTuple):
    """How what is read becomes attempts.

    ``run`` names another try, ``revise`` says that known attempts are read better, ``number`` tells identical rows
    apart by their order, ``namespace`` stands where the log names none.
    """

    side: SideFile | None = None
    run: str | None = None
    namespace: str | None = None
    revise: bool = False
    number: bool = False


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


class _Candidate(NamedTuple):
    trajectory: Trajectory
    id: str
    attempt: str
    record: bytes
    raw: Object
    item: Parsed


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
    """Read all sources into one batch and commit it. What is no attempt is quarantined, never raised."""
    occurrences: Counter[str] = Counter()
    with store.batch() as batch:
        gate = _Gate(store, batch, options)
        for source in sources:
            file = _file_digest(source.path)
            for chunk in _chunks(source.importer.read(source.path)):
                candidates = []
                for item in chunk:
                    if isinstance(item, Parsed):
                        candidates.append(_candidate(item, source, options, occurrences))
                    else:
                        _quarantine(batch, source, file, item, item.code, item.detail)
                for candidate, code, detail in gate.judge(candidates):
                    if code is None:
                        _sight(batch, source, file, candidate)
                    else:
                        _quarantine(batch, source, file, candidate.item, code, detail)
        store.write(batch)
        return _count(store, sources, batch)


class _Gate:
    """Decides which candidates enter, from what the store and this batch hold already."""

    def __init__(self, store: Store, batch: Batch, options: IngestOptions) -> None:
        self._store, self._batch, self._options = store, batch, options
        self._attempts: dict[str, str] = {}
        self._raws: dict[str, str] = {}

    def judge(self, candidates: Sequence[_Candidate]) -> Iterator[tuple[_Candidate, str | None, str]]:
        """Each candidate with no code where it enters or is known, else with a quarantine code and its detail."""
        known = self._look_up(candidates)
        statements: list[Statement] = []
        for candidate in candidates:
            identity, attempt = candidate.id, candidate.attempt
            if identity not in known:
                taken = self._attempts.get(attempt, identity)
                seen = self._raws.get(candidate.raw.id, identity) if self._options.run is None else identity
                other = taken if taken != identity else seen
                if other != identity and not self._options.revise:
                    code = "attempt_taken" if taken != identity else "raw_known"
                    yield candidate, code, f"this would be {identity}, the store holds {other}"
                    continue
                self._batch.add_trajectory(candidate.trajectory, attempt, candidate.record)
                for item in candidate.item.objects:
                    self._batch.add_object(item)
                if other != identity:
                    statements.append(Annotation(identity, "revises", other, Author("human", "import --revise")))
                self._attempts[attempt], self._raws[candidate.raw.id] = identity, identity
                known.add(identity)
            statements.extend(statement_of(identity, fact) for fact in candidate.item.facts)
            yield candidate, None, ""
        for statement in superseding(self._store, statements):
            self._batch.add_statement(statement)

    def _look_up(self, candidates: Sequence[_Candidate]) -> set[str]:
        identities = [candidate.id for candidate in candidates]
        known = {identity for identity in identities if self._batch.has("trajectories", identity)}
        if not self._store.delta("trajectories").version():
            return known
        rows = self._store.sql("SELECT id FROM trajectories WHERE id IN (SELECT unnest(?))", [identities])
        live = self._store.sql(
            "SELECT attempt_id, trajectory_id FROM attempts WHERE attempt_id IN (SELECT unnest(?))",
            [[candidate.attempt for candidate in candidates]],
        )
        raws = self._store.sql(
            "SELECT raw, trajectory FROM sightings WHERE raw IN (SELECT unnest(?)) "
            "AND trajectory IN (SELECT trajectory_id FROM attempts)",
            [[candidate.raw.id for candidate in candidates]],
        )
        for attempt, identity in zip(*(column.to_pylist() for column in live.columns), strict=True):
            self._attempts.setdefault(attempt, identity)
        for raw, identity in zip(*(column.to_pylist() for column in raws.columns), strict=True):
            self._raws.setdefault(raw, identity)
        return known | set(rows["id"].to_pylist())


def _candidate(item: Parsed, source: Source, options: IngestOptions, occurrences: Counter[str]) -> _Candidate:
    raw = make_object("raw", item.raw)
    if options.side is not None:
        item = options.side.apply(item, source.name)
    trajectory = item.trajectory
    if options.namespace is not None and trajectory.task.namespace is None:
        trajectory = replace(trajectory, task=replace(trajectory.task, namespace=options.namespace))
    if options.run is not None:
        trajectory = name_run(trajectory, options.run)
    if options.number:
        occurrences[raw.id] += 1
        if trajectory.attempt is None and occurrences[raw.id] > 1:
            trajectory = replace(trajectory, attempt=Attempt(run=raw.id, index=occurrences[raw.id]))
    attempt = attempt_id(trajectory, raw.id)
    assert attempt is not None, "a log holds no forks of ours"  # noqa: S101 - no importer sets ``fork``
    record = encode(trajectory)
    return _Candidate(trajectory, digest(record), attempt, record, raw, item)


def statement_of(identity: str, fact: Fact) -> Statement:
    """What an importer or a side file says of a record, as a statement by who says it."""
    name, _, version = fact.rule.partition("@")
    author = Author(fact.by, name, version)
    if fact.field == "outcome":
        return Verification(identity, "task", cast("Result", fact.value), author, score=fact.score, reads=fact.reads)
    return Annotation(identity, fact.field, fact.value, author, fact.reads)


def _sight(batch: Batch, source: Source, file: str, candidate: _Candidate) -> None:
    item = candidate.item
    batch.add_object(candidate.raw)
    batch.add_sighting(
        Sighting(
            file=file,
            name=source.name,
            place=item.place,
            offset=item.offset,
            raw=candidate.raw.id,
            importer=f"{source.importer.name}@{source.importer.version}",
            trajectory=candidate.id,
            warnings=item.warnings,
        )
    )


def _quarantine(batch: Batch, source: Source, file: str, item: Item, code: str, detail: str) -> None:
    raw = make_object("raw", item.raw)
    batch.add_object(raw)
    batch.add_sighting(
        Sighting(
            file=file,
            name=source.name,
            place=item.place,
            offset=item.offset,
            raw=raw.id,
            importer=f"{source.importer.name}@{source.importer.version}",
            code=code,
            detail=detail,
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


def _chunks(items: Iterable[Item]) -> Iterator[list[Item]]:
    chunk: list[Item] = []
    weight = 0
    for item in items:
        chunk.append(item)
        weight += len(item.raw)
        if len(chunk) >= _CHUNK_ITEMS or weight >= _CHUNK_BYTES:
            yield chunk
            chunk, weight = [], 0
    if chunk:
        yield chunk

"""Which attempts enter the store: one live record for an attempt, one attempt for a log line, however often read."""

from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from typing import cast

import pyarrow as pa

from curation.carried import carry
from curation.errors import UsageError
from curation.importers.face import Fact
from curation.prepared import Entry, Prepared, source_of
from curation.store import Batch, Store
from curation.store.supersede import NOWHERE, Elsewhere, superseding
from schemas.statements import Annotation, Result, Statement, Verification
from schemas.trajectory import Author

Place = tuple[str, int]


class Gate:
    """Decides which attempts enter, from what the store and this batch hold already.

    ``rename`` says that what is read are other tries, ``revise`` that known tries are read better. ``logs`` are the
    digests of the files that were read so far, of which parts may be stored already. ``carried`` counts what was said
    of revised records and is said again of the new ones, ``not_carried`` by reason what is not.
    """

    def __init__(self, store: Store, batch: Batch, logs: Set[str], *, rename: bool, revise: bool) -> None:
        self._store, self._batch, self._logs = store, batch, logs
        self._rename, self._revise = rename, revise
        self._live: dict[str, str] = {}
        self._readings: dict[str, dict[str, set[Place]]] = defaultdict(lambda: defaultdict(set))
        self._entered: set[str] = set()
        self._revised: set[str] = set()
        self._displaced: dict[str, str] = {}
        self._origins: dict[str, str] = {}
        self.carried = 0
        self.not_carried: Counter[str] = Counter()

    def judge(self, chunks: Sequence[Prepared]) -> list[list[Entry]]:
        """Let the new attempts of these chunks into the batch; their entries, with a code where one is refused."""
        entries = [entry for prepared in chunks for entry in prepared.entries if entry.code is None]
        known, elsewhere = self._look_up(entries), self._told_elsewhere(entries)
        judged: list[list[Entry]] = []
        statements: list[Statement] = []
        for prepared in chunks:
            of_chunk = [self._judge(entry, known, statements) for entry in prepared.entries]
            entering = pa.array([entry.row for entry in of_chunk if entry.entered], pa.int64())
            self._batch.add_rows("trajectories", prepared.rows.take(entering))
            for item in prepared.objects:
                self._batch.add_object(item)
            judged.append(of_chunk)
        if self._origins and not self._store.is_empty("trajectories"):
            carried = carry(self._store, self._origins, statements)
            self.carried += len(carried.statements)
            self.not_carried += carried.left
            statements += carried.statements
        for statement in superseding(self._store, statements, elsewhere):
            self._batch.add_statement(statement)
        return judged

    def finish(self) -> None:
        """Raise UsageError where a revision gave an attempt to another log line and left its own line without one."""
        for record, attempt in self._displaced.items():
            if record not in self._revised:
                raise UsageError(
                    f"--revise would give attempt {attempt} to another log line and drop its record {record}: import "
                    "the log that holds that line too, or mend the side file; nothing was written"
                )

    def _judge(self, entry: Entry, known: set[str], statements: list[Statement]) -> Entry:
        """The entry, marked where its record enters, with a code where it is refused."""
        if entry.code is not None:
            return entry
        if self._live.get(entry.attempt) != entry.id:
            back = entry.id in known
            if not back or self._revise:
                entry = self._enter(entry, statements, back=back)
            if entry.code is not None:
                return entry
            if not back:
                known.add(entry.id)
                entry = entry._replace(entered=True)
        self._readings[entry.source][entry.id].add((entry.log.file, entry.place))
        statements.extend(statement_of(entry.id, fact) for fact in entry.facts)
        return entry

    def _enter(self, entry: Entry, statements: list[Statement], *, back: bool) -> Entry:
        """The entry, with a code where another record stands against it; ``back``: it was revised, and holds again."""
        taken = {self._live[entry.attempt]} if entry.attempt in self._live else set()
        seen = self._rivals(entry)
        if taken and (not self._revise or not taken.isdisjoint(self._entered)):
            return _refused(entry, "attempt_taken", taken)
        if seen and (not self._revise or (len(seen) > 1 and seen.isdisjoint(taken))):
            return _refused(entry, "raw_known", seen)
        if seen and seen.isdisjoint(taken):
            self._displaced.update((record, entry.attempt) for record in taken)
        revised = seen if seen.isdisjoint(taken) and seen else taken
        self._revised |= revised
        self._origins.update((entry.id, self._origins.get(record, record)) for record in revised)
        self._live[entry.attempt] = entry.id
        self._entered.add(entry.id)
        if back:
            revisers = self._store.sql("SELECT later FROM revised WHERE id = ?", [entry.id])["later"].to_pylist()
            statements.extend(_revises(record, None) for record in revisers)
        statements.extend(_revises(entry.id, record) for record in sorted(revised))
        return entry

    def _rivals(self, entry: Entry) -> set[str]:
        """The records that the same bytes were read as before; by names that tell them apart, not elsewhere in its log.

        What is known by its order among identical records has none.
        """
        if self._rename or entry.known_by == "order":
            return set()
        readings = self._readings.get(entry.source, {})
        if entry.known_by == "bytes":
            return set(readings)
        file, place = entry.log.file, entry.place
        return {record for record, at in readings.items() if (file, place) in at or any(one != file for one, _ in at)}

    def _look_up(self, entries: Sequence[Entry]) -> set[str]:
        identities = [entry.id for entry in entries]
        known = {identity for identity in identities if self._batch.has("trajectories", identity)}
        if self._store.is_empty("trajectories"):
            return known
        rows = self._store.sql("SELECT id FROM trajectories WHERE id IN (SELECT unnest(?))", [identities])
        live = self._store.sql(
            "SELECT attempt_id, trajectory_id FROM attempts WHERE NOT erased AND attempt_id IN (SELECT unnest(?))",
            [[entry.attempt for entry in entries]],
        )
        raws = self._store.sql(
            "SELECT raw, part, trajectory, file, place FROM sightings WHERE raw IN (SELECT unnest(?)) "
            "AND trajectory IN (SELECT trajectory_id FROM attempts)",
            [[entry.raw for entry in entries]],
        )
        for attempt, identity in zip(*(column.to_pylist() for column in live.columns), strict=True):
            self._live.setdefault(attempt, identity)
        for raw, part, identity, file, place in zip(*(column.to_pylist() for column in raws.columns), strict=True):
            self._readings[source_of(raw, part)][identity].add((file, place))
        return known | set(rows["id"].to_pylist())

    def _told_elsewhere(self, entries: Sequence[Entry]) -> Elsewhere:
        """Which of their records are told of elsewhere too; a revision is the last word on all of them."""
        if self._revise or self._store.is_empty("sightings"):
            return NOWHERE
        first: dict[str, int] = {}
        files: dict[str, set[str]] = defaultdict(set)
        for entry in entries:
            first[entry.log.file] = min(entry.place, first.get(entry.log.file, entry.place))
            files[entry.id].add(entry.log.file)
        here = {(entry.log.file, entry.place) for entry in entries}
        seen = self._store.sql(
            "SELECT trajectory, file, place FROM sightings WHERE trajectory IN (SELECT unnest(?))", [list(files)]
        )
        rows = zip(*(column.to_pylist() for column in seen.columns), strict=True)
        others = [(record, file, place) for record, file, place in rows if (file, place) not in here]
        same_logs = [(record, file, place) for record, file, place in others if file in self._logs]
        return Elsewhere(
            before={record for record, file, place in same_logs if file not in first or place < first[file]},
            anywhere={record for record, _, _ in same_logs},
            other_logs={record for record, file, _ in others if file not in files[record]},
        )


def statement_of(identity: str, fact: Fact) -> Annotation | Verification:
    """What an importer or a side file says of a record, as a statement by who says it."""
    name, at, version = fact.rule.rpartition("@")
    name, version = (name, version) if at else (version, "")
    author = Author(fact.by, name, version)
    if fact.field == "outcome":
        return Verification(identity, "task", cast("Result", fact.value), author, score=fact.score, reads=fact.reads)
    return Annotation(identity, fact.field, fact.value, author, fact.reads)


def _refused(entry: Entry, code: str, held: set[str]) -> Entry:
    return entry._replace(code=code, detail=f"this would be {entry.id}, the store holds {', '.join(sorted(held))}")


def _revises(identity: str, other: str | None) -> Annotation:
    return Annotation(identity, "revises", other, Author("human", "import --revise"))

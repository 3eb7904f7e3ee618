"""What an import did, counted while it reads."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from curation.exposures import SecretLine, read_exposed
from curation.importers.side_file import SideFile
from curation.losses import Losses
from curation.prepared import Entry, Log, Prepared

_SHOWN = 10
_DIGITS = 32  # of a digest, which tell all tasks of an import apart
_LOTS = 100


class FormatCount(msgspec.Struct):
    """What one importer read, and what in the first of its files was of its format."""

    why: str
    files: int = 0
    read: int = 0
    accepted: int = 0
    quarantined: int = 0


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
    of the side file, which are about no record read. ``carried`` is how much of what people and side files said of
    revised records is said of the new ones, ``not_carried`` by reason how much is not. ``tasks`` are those that
    are named, each once; records ``without_task`` name none: each attempt of them is a task of its own in builds and
    reports. ``seconds`` is for whoever holds a clock.
    """

    read: int
    accepted: int
    duplicates: int
    quarantined: int
    reasons: dict[str, int]
    quarantine: list[Quarantined]
    warnings: dict[str, int]
    carried: int
    not_carried: dict[str, int]
    secrets: dict[str, int]
    secret_places: list[SecretLine]
    tasks: int
    without_task: int
    seconds: float
    bytes: int
    unmatched: int
    unmatched_lines: tuple[int, ...]
    passed_over: dict[str, str]
    losses: Losses
    formats: dict[str, FormatCount]


class Tally:
    """The counts of an import, whose formats were chosen for these reasons; what it holds does not grow with it.

    Only of what can be told apart no other way, tasks and secrets, is a part of the digest held.
    """

    def __init__(self, why: Mapping[str, str], side: SideFile | None) -> None:
        self._why, self._side = why, side
        self._formats: dict[str, FormatCount] = {}
        self._log: Log | None = None
        self._reasons: Counter[str] = Counter()
        self._quarantine: list[Quarantined] = []
        self._warnings: Counter[str] = Counter()
        self._carried = 0
        self._not_carried: Counter[str] = Counter()
        self._secrets: dict[str, set[str]] = {}
        self._secret_places: list[SecretLine] = []
        self._tasks: list[pa.Array] = []
        self._without_task = 0
        self._side_lines: set[int | None] = set()
        self._losses = Losses()

    def count(self, entries: Sequence[Entry], prepared: Prepared) -> None:
        """Count a chunk with its entries as they were judged, but for what is accepted."""
        for entry in entries:
            self._count_entry(entry)
        self._losses.add(prepared.losses)
        attempts = pa.array([entry.row for entry in entries if entry.code is None], pa.int64())
        tasks = prepared.rows["task_key"].take(attempts)
        self._without_task += tasks.null_count
        self._tasks.append(pc.utf8_slice_codeunits(tasks.drop_null(), 0, _DIGITS))
        if len(self._tasks) > _LOTS:
            self._tasks = [self._distinct_tasks()]

    def accept(self, entries: Iterable[Entry]) -> None:
        """Count entries whose records this import brought; another process may have been first with some."""
        for entry in entries:
            self._formats[entry.log.format].accepted += 1

    def carry(self, carried: int, not_carried: Counter[str]) -> None:
        """Count what is said of new records because it was said of those that they revise, and what is not."""
        self._carried += carried
        self._not_carried += not_carried

    def result(self, size: int, passed_over: dict[str, str]) -> IngestResult:
        """All that was counted, of logs of so many bytes."""
        formats = self._formats.values()
        read, accepted, quarantined = (
            sum(getattr(count, name) for count in formats) for name in ("read", "accepted", "quarantined")
        )
        unmatched = () if self._side is None else sorted(self._side.lines.keys() - self._side_lines)
        return IngestResult(
            read=read,
            accepted=accepted,
            duplicates=read - quarantined - accepted,
            quarantined=quarantined,
            reasons=dict(sorted(self._reasons.items())),
            quarantine=self._quarantine,
            warnings=dict(sorted(self._warnings.items())),
            carried=self._carried,
            not_carried=dict(sorted(self._not_carried.items())),
            secrets={kind: len(found) for kind, found in sorted(self._secrets.items())},
            secret_places=self._secret_places,
            tasks=len(self._distinct_tasks()),
            without_task=self._without_task,
            seconds=0.0,
            bytes=size,
            unmatched=len(unmatched),
            unmatched_lines=tuple(unmatched[:_SHOWN]),
            passed_over=passed_over,
            losses=self._losses.ordered(),
            formats=dict(sorted(self._formats.items())),
        )

    def _distinct_tasks(self) -> pa.Array:
        return pc.unique(pa.chunked_array(self._tasks, pa.string()))

    def _count_entry(self, entry: Entry) -> None:
        name = entry.log.format
        counts = self._formats.setdefault(name, FormatCount(self._why[name]))
        if entry.log != self._log:
            self._log = entry.log
            counts.files += 1
        counts.read += 1
        self._side_lines.add(entry.side_line)
        self._warnings.update(entry.warnings)
        if entry.code is not None:
            counts.quarantined += 1
            self._reasons[entry.code] += 1
            if len(self._quarantine) < _SHOWN:
                self._quarantine.append(Quarantined(entry.log.name, entry.place, entry.code, entry.detail or None))
            return
        for item in (item for fact in entry.facts for item in read_exposed(fact)):
            self._secrets.setdefault(item.kind, set()).add(item.digest)
            if len(self._secret_places) < _SHOWN:
                at = item.places[0] if item.places else ""
                line = SecretLine(entry.log.name, entry.place, item.kind, item.digest, item.times, at)
                self._secret_places.append(line)

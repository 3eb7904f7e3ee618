"""A build: every decision of a store judged for some kinds of rows, the rows written, and every judgement kept."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
import pyarrow as pa

from builders.checks import CHECKS
from builders.discover import PARTNERS, count_attempts, discover
from builders.held_out import BothSides, HeldOut, find_held_out, fold_split
from builders.judge import judge
from builders.output import File, RowFile, refuse_place, reload, replacing, write_card, write_manifest
from curation.errors import UsageError
from curation.masking import Mask, masked_in, read_mask
from curation.store import Batch, Store
from schemas.canonical import digest, encode
from schemas.rows import HELD_OUT, Wanted
from schemas.selection import KINDS, Kind, Selection

RULES = "5"
"""The version of the checks and renderings: raised with every change of what a build gives for the same store."""

NO_CANDIDATE = "no_candidate:"
_COUNTED = (
    "kinds",
    "masked",
    "attempts",
    "attempts_kept",
    "tasks",
    "tasks_kept",
    "held_out_attempts",
    "held_out_tasks",
    "both_sides",
)
_READ = ("tombstones", "trajectories", "objects", "annotations", "findings", "verifications")
_SELECTION = msgspec.json.Decoder(Selection)


class Options(msgspec.Struct, frozen=True):
    """What a build was asked to do."""

    kinds: tuple[Kind, ...]
    level: Wanted
    held_out: tuple[str, ...]
    partners: int
    allowed_secrets: tuple[str, ...] = ()


class KindResult(msgspec.Struct, frozen=True):
    """What became of one kind: kept + refused = candidates, ``refused`` by the first failed check of each.

    ``without_candidate`` counts the attempts that had nothing to judge, ``failed`` every failed check.
    """

    candidates: int
    kept: int
    rows: int
    refused: dict[str, int]
    without_candidate: dict[str, int]
    failed: dict[str, int]
    attempts_kept: int
    files: tuple[str, ...] = ()


class BuildResult(msgspec.Struct, frozen=True):
    """What a build did. An attempt is kept if one of its decisions is, a task if one of its attempts is.

    A task is held out if all its attempts are; ``both_sides`` is there where the store has a held-out split. ``masked``
    counts the secrets that rows hold as placeholders, by kind, each once.
    """

    build: str
    out: str
    kinds: dict[str, KindResult]
    masked: dict[str, int]
    attempts: int
    attempts_kept: int
    tasks: int
    tasks_kept: int
    held_out_attempts: int
    held_out_tasks: int
    both_sides: BothSides | None = None


def build(
    store: Store,
    kinds: Sequence[str] | None,
    out: Path,
    *,
    level: Wanted = "execution",
    held_out: Sequence[str] = HELD_OUT,
    partners: int = PARTNERS,
    allowed_secrets: Sequence[str] = (),
    inputs: Sequence[Path] = (),
) -> BuildResult:
    """Write the rows of a store into a folder and the judgements into the store; without ``kinds``, all of them.

    ``level`` is how far a decision must be confirmed, ``held_out`` are splits that give no rows, ``partners`` caps the
    chosen sides of one rejected decision, ``inputs`` are further paths that must not be written over. Secrets are
    masked in rows, after all checks, but for those of which ``allowed_secrets`` has a digest. The same store and
    options give the same build id and the same bytes. Raises UsageError for an unknown kind or level, and where the
    folder may not be written (it or a link leads to an input, or it holds what no build wrote); LoadError where a row
    does not load.
    """
    local = () if "://" in store.uri else (Path(store.uri),)
    place = refuse_place(out, [*local, *inputs])
    wanted = set(kinds or KINDS)
    if unknown := sorted(wanted - set(KINDS)):
        raise UsageError(f"unknown kind {unknown[0]!r}; known: {', '.join(KINDS)}")
    if level not in get_args(Wanted):
        raise UsageError(f"unknown level {level!r}; known: {', '.join(get_args(Wanted))}")
    names = tuple(sorted(set(map(fold_split, held_out))))
    allowed = tuple(sorted(set(allowed_secrets)))
    options = Options(tuple(kind for kind in KINDS if kind in wanted), level, names, partners, allowed)
    mask = read_mask(store, allowed)
    apart = find_held_out(store, names)
    read = _state(store)
    identity = digest(encode([RULES, [check.name for check in CHECKS], options, read]))
    with replacing(place) as folder, store.batch() as batch:
        tallies = {kind: _Tally() for kind in options.kinds}
        files: dict[Kind, File] = {}
        for kind, tally in tallies.items():
            lines = discover(store, kind, apart, partners)
            if file := _write_rows(lines, kind, level, identity, folder, batch, tally, mask):
                files[kind] = file
        write_card(folder, identity, files)
        reload(folder, files)
        result = _result(store, identity, out, tallies, files, apart)
        facts: dict[str, Any] = {"build": identity, "rules": RULES, "options": options, "store": read}
        counted = {name: value for name in _COUNTED if (value := getattr(result, name)) is not None}
        write_manifest(folder, msgspec.to_builtins({**facts, **counted}), files)
        store.write(batch)
    return result


class _Tally:
    """Counts of one kind."""

    def __init__(self) -> None:
        self.candidates = 0
        self.kept = 0
        self.refused: Counter[str] = Counter()
        self.missing: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.attempts: set[str] = set()
        self.masked: set[tuple[str, str]] = set()

    def add(self, selection: Selection) -> None:
        if selection.kept:
            self.candidates += 1
            self.kept += 1
            self.attempts.add(selection.attempt)
        elif selection.failed[0].startswith(NO_CANDIDATE):
            self.missing[selection.failed[0].removeprefix(NO_CANDIDATE)] += 1
        else:
            self.candidates += 1
            self.refused[selection.failed[0]] += 1
            self.failed.update(selection.failed)


def _write_rows(
    lines: Iterable[pa.RecordBatch],
    kind: Kind,
    level: Wanted,
    identity: str,
    folder: Path,
    batch: Batch,
    tally: _Tally,
    mask: Mask,
) -> File | None:
    with RowFile(folder, kind) as rows:
        for some in lines:
            results = judge(some, kind, identity, level, mask)
            for text, sample, row in zip(*(column.to_pylist() for column in results.columns), strict=True):
                selection = _SELECTION.decode(text)
                tally.add(selection)
                batch.add_selection(selection)
                if sample is not None:
                    rows.add(sample, row)
                    tally.masked |= masked_in(row)
        return rows.finish()


def _state(store: Store) -> dict[str, list[str]]:
    """What a build reads of a store, by content: how many rows a table has, and what all their ids give together."""
    found = {}
    for table in _READ:
        counted = store.sql(f"SELECT count(*)::VARCHAR, coalesce(bit_xor(md5_number(id)), 0)::VARCHAR FROM {table}")
        found[table] = [column[0].as_py() for column in counted.columns]
    return found


def _result(
    store: Store,
    identity: str,
    out: Path,
    tallies: dict[Kind, _Tally],
    files: dict[Kind, File],
    held_out: HeldOut,
) -> BuildResult:
    kept = sorted(set[str]().union(*(tally.attempts for tally in tallies.values())))
    totals = count_attempts(store, held_out, kept)
    masked = set[tuple[str, str]]().union(*(tally.masked for tally in tallies.values()))
    kinds: dict[str, KindResult] = {
        kind: KindResult(
            tally.candidates,
            tally.kept,
            files[kind].rows if kind in files else 0,
            dict(sorted(tally.refused.items())),
            dict(sorted(tally.missing.items())),
            dict(sorted(tally.failed.items())),
            len(tally.attempts),
            (str(files[kind].path),) if kind in files else (),
        )
        for kind, tally in tallies.items()
    }
    return BuildResult(
        identity,
        str(out),
        kinds,
        dict(sorted(Counter(kind for kind, _ in masked).items())),
        totals.attempts,
        len(kept),
        totals.tasks,
        totals.tasks_kept,
        totals.held_out_attempts,
        totals.held_out_tasks,
        held_out.sides,
    )

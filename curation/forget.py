"""Taking an attempt's bytes out of a store on request: what goes, what is shared and stays, what must be built again.

The store is append-only but for this. What goes is first named by tombstones, then taken out of every data file; a run
that is cut off between the two is ended by the next one.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from curation.attempt_index import PLACE, AttemptIndex
from curation.erasure_plan import Plan, find_plan
from curation.errors import MovedError, NotFoundError
from curation.store import Batch, Store
from curation.store.clearing import STANDING, is_about
from curation.store.lookup import resolve
from curation.store.tables import STATEMENTS
from schemas.side_file import SideLine
from schemas.tombstones import ErasedAttempt, ErasedKind, Tombstone
from schemas.trajectory import Author

_GONE = f"SELECT erased FROM tombstones WHERE {STANDING}"
_TRIES = 20
_SHARED = ("task", "variant", "group")


class ForgottenAttempt(msgspec.Struct):
    """An attempt that goes; it still counts, with this outcome."""

    attempt: str
    outcome: str


class SharedBytes(msgspec.Struct):
    """Raw bytes that stay, as these other attempts were read from them too."""

    object: str
    attempts: tuple[str, ...]


class AffectedBuild(msgspec.Struct):
    """Rows of an earlier build that hold what goes: its data files of this kind must be built again."""

    build: str
    kind: str
    samples: tuple[str, ...]


class Rebuild(msgspec.Struct):
    """A folder of rows: its data files that hold erased rows, and these rows; build it again."""

    folder: str
    files: list[str]
    samples: list[str]


class ForgetResult(msgspec.Struct):
    """What goes, or went where ``done``.

    ``erased`` counts records, forks and objects by kind, ``statements`` what was said of them; ``sightings`` and
    ``selections`` stay as counts, without words. ``shared`` are raw bytes that stay. ``unread`` are files beside the
    tables that another process is writing, or was writing when it was killed: what they hold is not known. ``rebuild``
    is for whoever knows the folders. ``note`` says what a dry run leaves to do.
    """

    done: bool
    note: str | None
    attempts: list[ForgottenAttempt]
    erased: dict[str, int]
    statements: int
    sightings: int
    selections: int
    shared: list[SharedBytes]
    builds: list[AffectedBuild]
    rebuild: list[Rebuild]
    unread: list[str]


def forget(
    store: Store, names: Sequence[str], *, key: str | None = None, reason: str = "", by: str = "", dry_run: bool = True
) -> ForgetResult:
    """Erase what these names stand for, or in a dry run only say what would go.

    Names are ids of attempts, trajectories, forks and objects (or a run's name), or values of ``key`` as ``annotate``
    knows it. An attempt goes with all its readings and forks and all that only they refer to. Without a name, what an
    earlier run left unfinished is ended. Raises NotFoundError for a name that nothing has, UsageError for an object
    that a record which stays refers to.
    """
    for _ in range(_TRIES):
        with suppress(MovedError):  # another process erases something too
            return _forget(store, names, key, Author("human", by), reason, dry_run=dry_run)
        store.refresh()
    raise MovedError(f"other processes go on erasing from {store.uri!r}: run the same command again")


def _forget(
    store: Store, names: Sequence[str], key: str | None, author: Author, reason: str, *, dry_run: bool
) -> ForgetResult:
    records, objects = _find_ids(store, names) if key is None else (_find_key(store, names, key), set[str]())
    gone = {name for name in store.sql(_GONE)["erased"].to_pylist() if not names or name in records}
    plan = find_plan(store, records - gone, objects)
    result = _describe(store, plan, gone, done=not dry_run)
    if not dry_run:
        with store.batch() as batch:
            _bury(store, batch, plan, author, reason)
            batch.erasing = True
            store.write(batch)
        result.unread = store.sweep()
    return result


def _find_ids(store: Store, names: Iterable[str]) -> tuple[set[str], set[str]]:
    records, objects = set(), set()
    for name in names:
        found = resolve(store, name)
        match found.kind:
            case "trajectory":
                records.add(found.id)
            case "attempt":
                rows = store.sql("SELECT id FROM trajectories WHERE attempt_id = ?", [found.id])
                records.update(rows["id"].to_pylist())
            case "object":
                objects.add(found.id)
            case "erased":
                rows = store.sql("SELECT erased FROM tombstones WHERE erased = $1 OR attempt_id = $1", [found.id])
                records.update(rows["erased"].to_pylist())
            case kind:
                raise NotFoundError(f"{name!r} is a {kind}; name an attempt, a trajectory, a fork or an object")
    return records, objects


def _find_key(store: Store, values: Iterable[str], key: str) -> set[str]:
    index = AttemptIndex(store, key)
    records: set[str] = set()
    for value in values:
        if key == PLACE:
            attempt = index.find(SideLine(key=value))
            found = set() if attempt is None else {attempt.record}
        else:
            found = index.keys.get(value, set())
        if not found:
            raise NotFoundError(f"no attempt in {store.uri!r} has {value!r} at {key!r}; nothing is erased")
        records |= found
    return records


def _bury(store: Store, batch: Batch, plan: Plan, author: Author, reason: str) -> None:
    """A tombstone for every record and object that goes."""
    kinds: dict[str, ErasedKind] = {**plan.records, **plan.objects}
    lifts = store.sql(
        """SELECT erased, list(id ORDER BY id) AS ids FROM tombstones
           WHERE lifted AND erased IN (SELECT unnest(?::VARCHAR[]))
             AND id NOT IN (SELECT unnest(supersedes) FROM tombstones) GROUP BY erased""",
        [sorted(kinds)],
    )
    lifted = dict(zip(lifts["erased"].to_pylist(), lifts["ids"].to_pylist(), strict=True))
    attempts = _attempts_as_counted(store, plan)
    for identity, kind in kinds.items():
        earlier = tuple(lifted.get(identity, ()))
        origins = plan.origins.get(identity, ())
        batch.add_tombstone(Tombstone(identity, kind, author, reason, attempts.get(identity), origins, False, earlier))


def _attempts_as_counted(store: Store, plan: Plan) -> dict[str, ErasedAttempt]:
    """What the live attempts among the records count under, by record."""
    kept = {name: _values_that_stay(store, name, plan) for name in _SHARED}
    found = {}
    for row in _live(store, plan):
        facts: dict[str, Any] = {name: row[name] for name in ErasedAttempt.__struct_fields__}
        facts |= {name: row[name] if row[name] in kept[name] else None for name in _SHARED}
        facts["strata"] = tuple(sorted((name, value) for name, value in row["strata"]))
        found[row["trajectory_id"]] = msgspec.convert(facts, ErasedAttempt)
    return found


def _live(store: Store, plan: Plan) -> list[dict[str, Any]]:
    rows = store.sql(
        """SELECT * FROM attempts WHERE NOT erased AND trajectory_id IN (SELECT unnest(?::VARCHAR[]))
           ORDER BY attempt_id""",
        [sorted(plan.records)],
    )
    return list(rows.to_pylist())


def _values_that_stay(store: Store, column: str, plan: Plan) -> set[str]:
    """The values of a column of ``attempts`` that an attempt has which stays."""
    rows = store.sql(
        f"""SELECT DISTINCT "{column}" AS value FROM attempts
            WHERE "{column}" IS NOT NULL AND trajectory_id NOT IN (SELECT unnest(?::VARCHAR[]))""",
        [sorted(plan.records)],
    )
    return set(rows["value"].to_pylist())


def _describe(store: Store, plan: Plan, gone: set[str], *, done: bool) -> ForgetResult:
    return ForgetResult(
        done=done,
        note=None if done else "nothing is erased yet: give --yes",
        attempts=[ForgottenAttempt(row["attempt_id"], row["outcome"]) for row in _live(store, plan)],
        erased=dict(sorted(Counter((*plan.records.values(), *plan.objects.values())).items())),
        statements=sum(_count_about(store, table, plan) for table in STATEMENTS),
        sightings=_count_about(store, "sightings", plan),
        selections=_count_about(store, "selections", plan),
        shared=[SharedBytes(raw, attempts) for raw, attempts in plan.shared.items()],
        builds=_builds(store, gone.union(plan.records)),
        rebuild=[],
        unread=[],
    )


def _count_about(store: Store, table: str, plan: Plan) -> int:
    about = is_about(table, "SELECT unnest(?::VARCHAR[])")
    names = sorted({*plan.records, *plan.objects})
    query = f"SELECT count(*) AS n FROM {table} WHERE {about}"
    total: int = store.sql(query, [names] * about.count("?"))["n"][0].as_py()
    return total


def _builds(store: Store, records: Iterable[str]) -> list[AffectedBuild]:
    rows = store.sql(
        f"""SELECT build, kind, list(DISTINCT sample ORDER BY sample) AS samples FROM selections
            WHERE kept AND sample IS NOT NULL AND ({is_about("selections", "SELECT unnest($1::VARCHAR[])")})
            GROUP BY build, kind ORDER BY build, kind""",
        [sorted(records)],
    )
    return [AffectedBuild(row["build"], row["kind"], tuple(row["samples"])) for row in rows.to_pylist()]

"""What an erasure takes: the readings and forks of an attempt, and every object that nothing which stays refers to."""

from collections.abc import Iterable
from typing import NamedTuple

from curation.errors import UsageError
from curation.store import Store
from schemas.tombstones import ErasedKind

_DIGESTS = "regexp_extract_all({}, '[0-9a-f]{{64}}')"
_AUTHOR = """from_json(record, '{"fork": {"correction": {"author": {"kind": "VARCHAR", "name": "VARCHAR"}}}}')
    .fork.correction.author"""


class Plan(NamedTuple):
    """Records and objects that go, by kind.

    ``origins`` are the records that go and that a fork was made of; none for a fork that was named itself. ``shared``
    are raw bytes that stay, with the other attempts that were read from them.
    """

    records: dict[str, ErasedKind]
    objects: dict[str, ErasedKind]
    origins: dict[str, tuple[str, ...]]
    shared: dict[str, tuple[str, ...]]


def find_plan(store: Store, records: Iterable[str], objects: Iterable[str]) -> Plan:
    """What goes with these records and objects. Raises UsageError for an object that a record which stays refers to."""
    named, asked = set(objects), set(records)
    going = _family(store, asked)
    candidates = named | _referred(store, going)
    staying = _in_use(store, going, candidates)
    if refused := sorted(named & staying):
        raise UsageError(
            f"object {refused[0]} is referred to by a record that stays: name the attempts it belongs to "
            f"(`curate show` lists them), and it goes with the last of them"
        )
    kinds: dict[str, ErasedKind] = _column(
        store, "SELECT id, kind FROM objects WHERE id IN (SELECT unnest(?::VARCHAR[]))", candidates - staying
    )
    return Plan(going, kinds, _origins(store, going, asked), _shared(store, going, candidates & staying))


def _family(store: Store, records: set[str]) -> dict[str, ErasedKind]:
    """All readings of the attempts of these records, and all forks of any of them or corrected from one of them."""
    rows = store.sql(
        f"""WITH RECURSIVE revisions AS (
                SELECT trajectory AS later, value AS earlier FROM annotations WHERE field = 'revises'),
            goes_with AS MATERIALIZED (
                SELECT parent AS id, id AS other FROM trajectories WHERE parent IS NOT NULL
                UNION ALL SELECT a.id, b.id FROM trajectories a JOIN trajectories b USING (attempt_id)
                UNION ALL SELECT later, earlier FROM revisions
                UNION ALL SELECT earlier, later FROM revisions
                UNION ALL SELECT {_AUTHOR}.name, id FROM trajectories
                    WHERE parent IS NOT NULL AND {_AUTHOR}.kind = 'sibling'),
            going AS (
                SELECT unnest($1::VARCHAR[]) AS id
                UNION SELECT other FROM going JOIN goes_with USING (id))
            SELECT id FROM trajectories WHERE id IN (FROM going)""",
        [sorted(records)],
    )
    return _column(
        store,
        """SELECT id, CASE WHEN attempt_id IS NULL THEN 'fork' ELSE 'trajectory' END FROM trajectories
           WHERE id IN (SELECT unnest(?::VARCHAR[])) ORDER BY attempt_id IS NULL, id""",
        rows["id"].to_pylist(),
    )


def _origins(store: Store, going: Iterable[str], asked: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The parent of every fork that goes but was not asked for, and the attempt its correction is from, if they go."""
    rows = store.sql(
        f"""SELECT id, list_sort([name FOR name IN [parent, CASE {_AUTHOR}.kind WHEN 'sibling' THEN {_AUTHOR}.name END]
                IF list_contains($1::VARCHAR[], name)]) AS origins
            FROM trajectories WHERE parent IS NOT NULL
                AND id IN (SELECT unnest($1::VARCHAR[])) AND id NOT IN (SELECT unnest($2::VARCHAR[]))""",
        [sorted(going), sorted(asked)],
    )
    return {row["id"]: tuple(row["origins"]) for row in rows.to_pylist()}


def _referred(store: Store, going: Iterable[str]) -> set[str]:
    """Objects that these records, what is said of them, or the lines they were read from name.

    A line that was refused as another reading of one of these attempts is of them too.
    """
    found = _names(
        store,
        f"""WITH going AS (SELECT unnest($1::VARCHAR[]) AS id), digests AS (
                SELECT unnest({_DIGESTS.format("record")}) AS id FROM (
                    SELECT record FROM trajectories WHERE id IN (FROM going)
                    UNION ALL SELECT record FROM annotations WHERE trajectory IN (FROM going)
                    UNION ALL SELECT record FROM findings WHERE trajectory IN (FROM going)
                    UNION ALL SELECT record FROM verifications WHERE trajectory IN (FROM going))
                UNION ALL SELECT raw FROM sightings WHERE trajectory IN (FROM going)
                UNION ALL SELECT raw FROM sightings
                    WHERE code = 'attempt_taken' AND list_has_any({_DIGESTS.format("detail")}, $1::VARCHAR[])
            ) SELECT DISTINCT id FROM objects WHERE id IN (FROM digests)""",
        going,
    )
    while more := _names(store, _IN_SNAPSHOTS, found) - found:
        found |= more
    return found


_IN_SNAPSHOTS = f"""SELECT DISTINCT id FROM objects WHERE id IN (
    SELECT unnest({_DIGESTS.format("decode(bytes)")}) FROM objects
    WHERE kind = 'snapshot' AND id IN (SELECT unnest($1::VARCHAR[])))"""


def _in_use(store: Store, going: Iterable[str], candidates: set[str]) -> set[str]:
    """Which of the candidates something names that stays. A quarantined line keeps no bytes."""
    staying = _names(
        store,
        f"""WITH going AS (SELECT unnest($1::VARCHAR[]) AS id), digests AS (
                SELECT unnest({_DIGESTS.format("record")}) AS id FROM (
                    SELECT record FROM trajectories WHERE id NOT IN (FROM going)
                    UNION ALL SELECT record FROM annotations WHERE trajectory NOT IN (FROM going)
                    UNION ALL SELECT record FROM findings WHERE trajectory NOT IN (FROM going)
                    UNION ALL SELECT record FROM verifications WHERE trajectory NOT IN (FROM going))
                UNION ALL SELECT raw FROM sightings WHERE trajectory IS NOT NULL AND trajectory NOT IN (FROM going)
                UNION ALL SELECT unnest({_DIGESTS.format("decode(bytes)")}) FROM objects
                    WHERE kind = 'snapshot' AND id NOT IN (SELECT unnest($2::VARCHAR[]))
            ) SELECT DISTINCT id FROM digests WHERE id IN (SELECT unnest($2::VARCHAR[]))""",
        going,
        candidates,
    )
    while more := (_names(store, _IN_SNAPSHOTS, staying) & candidates) - staying:
        staying |= more
    return staying


def _shared(store: Store, going: Iterable[str], objects: set[str]) -> dict[str, tuple[str, ...]]:
    rows = store.sql(
        """SELECT s.raw, list(DISTINCT t.attempt_id ORDER BY t.attempt_id) AS attempts
           FROM sightings s JOIN trajectories t ON t.id = s.trajectory
           WHERE s.raw IN (SELECT unnest($2::VARCHAR[])) AND s.trajectory NOT IN (SELECT unnest($1::VARCHAR[]))
           GROUP BY s.raw ORDER BY s.raw""",
        [sorted(going), sorted(objects)],
    )
    return {row["raw"]: tuple(row["attempts"]) for row in rows.to_pylist()}


def _names(store: Store, query: str, *names: Iterable[str]) -> set[str]:
    return set(store.sql(query, [sorted(some) for some in names]).column(0).to_pylist())


def _column(store: Store, query: str, names: Iterable[str]) -> dict[str, ErasedKind]:
    rows = store.sql(query, [sorted(names)])
    return dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))

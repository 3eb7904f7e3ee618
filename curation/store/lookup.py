"""Finding what a (shortened) id names."""

from typing import NamedTuple

from curation.errors import NotFoundError
from curation.store.store import Store

_PLACES = (
    ("trajectory", "trajectories", "id"),
    ("attempt", "trajectories", "attempt_id"),
    ("row", "selections", "sample"),
    ("object", "objects", "id"),
    ("annotation", "annotations", "id"),
    ("finding", "findings", "id"),
    ("verification", "verifications", "id"),
    ("selection", "selections", "id"),
    ("sighting", "sightings", "id"),
    ("build", "selections", "build"),
    ("tombstone", "tombstones", "id"),
    ("erased", "tombstones", "erased"),
    ("erased", "tombstones", "attempt_id"),
)


class Named(NamedTuple):
    """What an id names: its kind and the whole id."""

    kind: str
    id: str


def resolve(store: Store, prefix: str) -> Named:
    """The one thing whose id starts with ``prefix``, or the one live attempt whose run has exactly this name.

    Raises NotFoundError where nothing or more than one thing does, StoreError where nothing does in a torn store.
    """
    found: dict[str, Named] = {}
    if not any(store.torn.values()):
        rows = store.sql("SELECT trajectory_id FROM attempts WHERE run = ? ORDER BY ALL LIMIT 5", [prefix])
        found = {identity: Named("trajectory", identity) for identity in rows["trajectory_id"].to_pylist()}
    for kind, table, column in () if found else _PLACES:
        for identity in store.find(table, column, prefix, 5):
            found.setdefault(identity, Named(kind, identity))
    if not found:
        store.refuse_torn()
        raise NotFoundError(
            f"nothing in {store.uri!r} has an id that starts with {prefix!r}; `curate show` lists what is"
        )
    if len(found) > 1:
        some = ", ".join(f"{named.kind} {named.id[:16]}" for named in list(found.values())[:5])
        raise NotFoundError(f"{prefix!r} is not unique: {some}; give more characters")
    return next(iter(found.values()))


def resolve_trajectory(store: Store, prefix: str) -> str:
    """The id of the one trajectory that an id of it, of its attempt, or its run's name as logged stands for.

    For an attempt that is its live record; where every record was revised into other attempts, the first by id.
    """
    named = resolve(store, prefix)
    if named.kind == "attempt":
        rows = store.sql(
            """SELECT id FROM trajectories WHERE attempt_id = ?
               ORDER BY id IN (SELECT trajectory_id FROM attempts) DESC, id LIMIT 1""",
            [named.id],
        )
        identity: str = rows["id"][0].as_py()
        return identity
    if named.kind == "erased":
        raise NotFoundError(f"{prefix!r} is erased; `curate show {named.id[:16]}` prints its tombstone")
    if named.kind != "trajectory":
        raise NotFoundError(f"{prefix!r} is a {named.kind}; name a trajectory or an attempt")
    return named.id

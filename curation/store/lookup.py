"""Finding what a (shortened) id, or a name that a log gives, stands for."""

import re
from collections.abc import Callable
from typing import NamedTuple

from curation.errors import NotFoundError
from curation.store.store import Store
from curation.store.tables import check_name
from schemas.canonical import UnreadableError, parse

_WHOLE = 64
_DIGITS = re.compile(r"[0-9a-f]{6,64}")
_PLAIN = re.compile(r"[\w.-]+", re.ASCII)  # what no writer of JSON escapes
_FOUND = 5
_ROWS = 500

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


def resolve(store: Store, name: str) -> Named:
    """The one thing whose id starts with ``name``, or the one live attempt that a log calls exactly this: by its run,
    else by the ``id`` of its record. A whole id is one; a few characters are what a log says before they are an id.

    Raises NotFoundError where nothing or more than one thing is so called, StoreError where nothing is in a torn store.
    """
    found: dict[str, Named] = {}
    for way in _ways(store, name):
        found = way(store, name)
        if found:
            break
    if not found:
        store.refuse_torn()
        raise NotFoundError(
            f"nothing in {store.uri!r} has an id that starts with {name!r}, and no attempt has it as its run or as the "
            "id in its log; `curate show` lists what is there"
        )
    if len(found) > 1:
        some = ", ".join(f"{named.kind} {named.id[:16]}" for named in list(found.values())[:_FOUND])
        raise NotFoundError(f"{name!r} is not unique: {some}; give more characters, or one of these ids")
    return next(iter(found.values()))


def _ways(store: Store, name: str) -> tuple[Callable[[Store, str], dict[str, Named]], ...]:
    if any(store.torn.values()) or not name:
        return (_by_id,)
    if len(name) == _WHOLE and _DIGITS.fullmatch(name):
        return _by_id, _by_run, _by_logged_id
    return (_by_run, _by_id, _by_logged_id) if _DIGITS.fullmatch(name) else (_by_run, _by_logged_id, _by_id)


def _by_id(store: Store, prefix: str) -> dict[str, Named]:
    found: dict[str, Named] = {}
    for kind, table, column in _PLACES:
        for identity in store.find(table, column, prefix, _FOUND):
            found.setdefault(identity, Named(kind, identity))
    return found


def _by_run(store: Store, run: str) -> dict[str, Named]:
    rows = store.sql(f"SELECT trajectory_id FROM attempts WHERE run = ? ORDER BY ALL LIMIT {_FOUND}", [run])
    return {identity: Named("trajectory", identity) for identity in rows["trajectory_id"].to_pylist()}


def _by_logged_id(store: Store, logged: str) -> dict[str, Named]:
    """The live attempts whose raw record has this ``id``."""
    written = max(_PLAIN.findall(logged), key=len, default="").encode()
    query = """SELECT s.raw, any_value(o.bytes), list(DISTINCT s.trajectory)
               FROM sightings s JOIN objects o ON o.id = s.raw
               WHERE s.trajectory IN (SELECT trajectory_id FROM attempts) GROUP BY s.raw"""
    found: set[str] = set()
    for batch in store.stream(query, {}, _ROWS):
        for raw, data, records in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            if written in data and _id_in(data) == logged:
                check_name("object", raw, data)
                found.update(records)
    return {identity: Named("trajectory", identity) for identity in sorted(found)}


def _id_in(data: bytes) -> str | None:
    try:
        value, _ = parse(data)
    except UnreadableError:
        return None
    identity = value.get("id") if isinstance(value, dict) else None
    return str(identity) if isinstance(identity, str | int) and not isinstance(identity, bool) else None


def resolve_trajectory(store: Store, prefix: str) -> str:
    """The id of the one trajectory that an id of it, of its attempt, its run or its logged id stands for.

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

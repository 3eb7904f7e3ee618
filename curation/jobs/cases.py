"""Trajectories with all that holds beside them, read from a store a few hundred at a time."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import msgspec

from curation.clocks import CLOCKS, NO_CLOCKS, Clocks, read_clocks
from curation.diagnosis.evidence import Case
from curation.errors import UsageError
from curation.store import Store
from environments.catalogue import UnknownEnvironmentError, find, is_ours, members, versions
from environments.protocol import EnvSpec
from schemas.objects import ToolSpec, read_tools
from schemas.statements import Finding, Verification
from schemas.trajectory import Author, Budget

_CHUNK = 500


class Known(NamedTuple):
    """A case, its effective findings, the environment it was recorded in, and whether a better reading is stored."""

    case: Case
    findings: tuple[Finding, ...]
    environment: str | None
    revised: bool


def attempt_ids(store: Store) -> list[str]:
    """The live records by task and attempt."""
    rows = store.sql(f"SELECT trajectory_id FROM attempts a WHERE NOT erased ORDER BY {_ORDER}")
    ids: list[str] = rows["trajectory_id"].to_pylist()
    return ids


def places(store: Store, environment: str) -> dict[str, list[str]]:
    """The live records of every world that a name stands for, by the world's full name; each record in one of them.

    Where the name leaves the version open, a record that says its own is of that one. Raises UnknownEnvironmentError,
    and UsageError where there is no record at all, with the environments that attempts do name.
    """
    found: dict[str, list[str]] = defaultdict(list)
    taken: set[str] = set()
    open_versions = () if "@" in environment else versions(environment)
    for name in members(environment):
        worlds = {f"{name.partition('@')[0]}@{version}" for version in open_versions}
        for identity, recorded in _attempts_in(store, name).items():
            if identity not in taken:
                taken.add(identity)
                found[recorded if recorded in worlds else name].append(identity)
    if not found:
        known = store.sql("SELECT DISTINCT environment AS e FROM attempts WHERE environment IS NOT NULL ORDER BY e")
        named = ", ".join(known["e"].to_pylist()) or "none"
        raise UsageError(
            f"no attempt was recorded in {environment!r} or calls one of its tools; environments that attempts name: "
            f"{named}; say where they come from with the side-file key 'environment'"
        )
    return dict(found)


def place_of(store: Store, environment: str, identity: str) -> str:
    """The full name of the world that one record is to be executed in: the name itself where it stands for one world.

    Raises UnknownEnvironmentError, and UsageError where none of several worlds is the record's.
    """
    names = members(environment)
    if len(names) == 1 and ("@" in environment or not versions(environment)):
        return names[0]
    for name, identities in places(store, environment).items():
        if identity in identities:
            return name
    raise UsageError(f"{environment!r} stands for {', '.join(names)}; {identity} is of none of them: name the world")


def _attempts_in(store: Store, environment: str) -> dict[str, str | None]:
    """The live records of a world, each with the environment that it names: those recorded in it; of those that name
    none, the ones that call one of its tools, and the ones without a call. Where it opens the tasks of one namespace
    only, none of another.

    An attempt names it by its id, ``id@version``, or the name it is found by.
    """
    spec = find(environment).spec
    rows = store.sql(
        f"""SELECT trajectory_id, a.environment, t.calls > 0 OR NOT {UNNAMED} AS sure FROM attempts a
            JOIN trajectories t ON t.id = a.trajectory_id
            WHERE a.environment IN (SELECT unnest($1)) OR split_part(a.environment, '@', 1) = $2
            OR ({UNNAMED} AND ($4 IS NULL OR a.namespace = $4) AND (t.calls = 0 OR list_has_any(
                flatten(list_transform(t.decisions, lambda decision: decision.tools)), $3)))
            ORDER BY {_ORDER}""",
        [[environment, spec.name], spec.id, sorted(spec.effects), spec.tasks],
    )
    if not any(rows["sure"].to_pylist()):
        return {}
    return dict(zip(rows["trajectory_id"].to_pylist(), rows["environment"].to_pylist(), strict=True))


def read_known(store: Store, identities: Sequence[str], environment: str | None = None) -> Iterator[Known]:
    """What is known of these trajectories, in order.

    The declarations that count are those of the environment named, else of the recorded one or the one that executed
    the calls, where it is one of ours.
    """
    offered = cache(lambda digest: read_tools(store.object(digest)))
    for start in range(0, len(identities), _CHUNK):
        chunk = list(identities[start : start + _CHUNK])
        facts = {row["id"]: row for row in store.sql(_FACTS, [chunk]).to_pylist()}
        verifications = _grouped(store, "effective_verifications", Verification, chunk)
        findings = _grouped(store, "effective_findings", Finding, chunk)
        clocks = clocks_of(store, chunk)
        for identity, trajectory in store.trajectories(chunk):
            fact = facts[identity]
            checked = tuple(verifications[identity])
            tools: tuple[ToolSpec, ...] | None = None if fact["tools"] is None else offered(fact["tools"])
            case = Case(
                identity,
                trajectory,
                tools,
                fact["stop"],
                fact["outcome"],
                checked,
                _declared(environment, fact["environment"], _executed_in(checked)),
                _budget(fact["budget"]),
                clocks.get(identity, NO_CLOCKS),
                None if fact["elapsed"] is None else float(fact["elapsed"]),
            )
            yield Known(case, tuple(findings[identity]), fact["environment"], fact["revised"])


def clocks_of(store: Store, identities: Sequence[str]) -> dict[str, Clocks]:
    """When the calls of these trajectories were made, of those where it is known."""
    rows = store.sql(
        "SELECT trajectory, value FROM effective_annotations WHERE field = ? AND trajectory IN (SELECT unnest(?))",
        [CLOCKS, list(identities)],
    )
    return dict(zip(rows["trajectory"].to_pylist(), map(read_clocks, rows["value"].to_pylist()), strict=True))


PLACED = Author("rule", "replay.confirmed", "1")
INFERRED = Author("rule", "replay.version", "1")


def _environment_said_by(author: Author) -> str:
    return f"""a.trajectory_id IN (SELECT trajectory FROM effective_annotations WHERE field = 'environment'
        AND author_kind = '{author.kind}' AND author_name = '{author.name}')"""


UNNAMED = f"(a.environment IS NULL OR {_environment_said_by(PLACED)})"
"""Of an attempt ``a``: no log, side file or person says which environment it is of; at most a replay did."""
VERSION_INFERRED = _environment_said_by(INFERRED)
"""Of an attempt ``a``: its environment's version was chosen for it, so that its own check verifies nothing."""


def version_inferred(store: Store, identities: Sequence[str]) -> frozenset[str]:
    """Those of these trajectories that are, or were forked from, an attempt whose environment's version was chosen."""
    rows = store.sql(
        f"""WITH RECURSIVE lineage AS (
                SELECT id, id AS ancestor, parent FROM trajectories WHERE id IN (SELECT unnest(?))
                UNION ALL
                SELECT l.id, t.id, t.parent FROM lineage l JOIN trajectories t ON t.id = l.parent
            )
            SELECT DISTINCT id FROM lineage JOIN attempts a ON a.trajectory_id = ancestor WHERE {VERSION_INFERRED}""",
        [list(identities)],
    )
    return frozenset(rows["id"].to_pylist())


_ORDER = "a.namespace, a.task, a.run, a.attempt, a.attempt_id"

_FACTS = """
    SELECT t.id, coalesce(t.tools, a.tools) AS tools, a.stop, coalesce(a.outcome, 'unknown') AS outcome, a.environment,
        t.id IN (SELECT id FROM revised) AS revised,
        (SELECT map_from_entries(list({k: field[8:], v: value} ORDER BY field)) FROM effective_annotations f
            WHERE f.trajectory = t.id AND starts_with(f.field, 'budget.')) AS budget,
        (SELECT any_value(value) FROM effective_annotations f
            WHERE f.trajectory = t.id AND f.field = 'elapsed.seconds') AS elapsed
    FROM trajectories t LEFT JOIN attempts a ON a.trajectory_id = t.id
    WHERE t.id IN (SELECT unnest(?))
"""


def _grouped(store: Store, view: str, shape: Any, identities: list[str]) -> dict[str, list[Any]]:
    rows = store.sql(
        f"""SELECT trajectory, record FROM {view} WHERE trajectory IN (SELECT unnest(?))
            ORDER BY trajectory, message NULLS LAST, call, id""",
        [identities],
    )
    decoder = msgspec.json.Decoder(shape)
    found: dict[str, list[Any]] = defaultdict(list)
    for trajectory, record in zip(rows["trajectory"].to_pylist(), rows["record"].to_pylist(), strict=True):
        found[trajectory].append(decoder.decode(record))
    return found


def _executed_in(verifications: Sequence[Verification]) -> str | None:
    names = {item.execution.environment for item in verifications if item.execution is not None}
    return names.pop() if len(names) == 1 else None


def _declared(asked: str | None, *recorded: str | None) -> EnvSpec | None:
    """What the environment asked for declares, else the first recorded one that is one of ours.

    A recorded name is a log's word: it never makes us load code.
    """
    if asked is not None:
        return find(asked).spec
    return next((spec for name in recorded if name is not None and (spec := _spec_of(name)) is not None), None)


def _spec_of(name: str) -> EnvSpec | None:
    """What a world that comes with this package declares; none where its package is not installed."""
    for known in (name, name.partition("@")[0]):
        if is_ours(known):
            with suppress(UnknownEnvironmentError):
                return find(known).spec
    return None


def _budget(entries: Sequence[tuple[str, str]] | None) -> Budget | None:
    if not entries:
        return None
    return msgspec.convert(dict(entries), Budget, strict=False)

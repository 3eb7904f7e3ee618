"""Trajectories with all that holds beside them, read from a store a few hundred at a time."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from curation.diagnosis.evidence import Case
from curation.store import Store
from environments.catalogue import UnknownEnvironmentError, find
from environments.protocol import EnvSpec
from schemas.objects import ToolSpec, read_tools
from schemas.statements import Finding, Verification
from schemas.trajectory import Budget

_CHUNK = 500


class Known(NamedTuple):
    """A case, its effective findings, the environment it was recorded in, and whether a better reading is stored."""

    case: Case
    findings: tuple[Finding, ...]
    environment: str | None
    revised: bool


def attempt_ids(store: Store, environment: str | None = None) -> list[str]:
    """The live records by task and attempt; for an environment, those recorded in it or in none that is known."""
    rows = store.sql(
        """SELECT trajectory_id FROM attempts
           WHERE ? IS NULL OR environment IS NULL OR split_part(environment, '@', 1) = split_part(?, '@', 1)
           ORDER BY namespace, task, run, attempt, attempt_id""",
        [environment, environment],
    )
    ids: list[str] = rows["trajectory_id"].to_pylist()
    return ids


def read_known(store: Store, identities: Sequence[str], environment: str | None = None) -> Iterator[Known]:
    """What is known of these trajectories, in order.

    The environment whose declarations count is the one named, else the one that executed the calls, else the recorded
    one, where it is one that can be found.
    """
    offered = cache(lambda digest: read_tools(store.object(digest)))
    for start in range(0, len(identities), _CHUNK):
        chunk = list(identities[start : start + _CHUNK])
        facts = {row["id"]: row for row in store.sql(_FACTS, [chunk]).to_pylist()}
        verifications = _grouped(store, "effective_verifications", Verification, chunk)
        findings = _grouped(store, "effective_findings", Finding, chunk)
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
                _declared(environment or _executed_in(checked) or fact["environment"]),
                _budget(fact["budget"]),
            )
            yield Known(case, tuple(findings[identity]), fact["environment"], fact["revised"])


_FACTS = """
    SELECT t.id, coalesce(t.tools, a.tools) AS tools, a.stop, coalesce(a.outcome, 'unknown') AS outcome, a.environment,
        t.id IN (SELECT id FROM revised) AS revised,
        (SELECT map_from_entries(list({k: field[8:], v: value} ORDER BY field)) FROM effective_annotations f
            WHERE f.trajectory = t.id AND starts_with(f.field, 'budget.')) AS budget
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


@cache
def _declared(name: str | None) -> EnvSpec | None:
    """The declarations of a recorded environment; none where its name is not one of ours."""
    if name is None:
        return None
    try:
        return find(name.partition("@")[0]).spec
    except UnknownEnvironmentError:
        return None


def _budget(entries: Sequence[tuple[str, str]] | None) -> Budget | None:
    if not entries:
        return None
    return msgspec.convert(dict(entries), Budget, strict=False)

"""Answers that are not the environment's, and that differ from it for several attempts in one and the same way.

Records that agree with each other and not with the environment are no sign of a pasted answer: the environment is not
what it was. The answer stays ``different``; the reason is told with it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from curation.store import Store
from schemas.statements import Evidence, Verification

RECORDED_ALIKE = "recorded_alike"

_NOTE = "another attempt that was told the same instead"

Difference = tuple[str | None, frozenset[tuple[str | None, str | None]]]  # the state, and what is said in place of what


def is_different(item: Verification) -> bool:
    """Whether this says that a logged answer is not the environment's."""
    return item.execution is not None and item.execution.match == "different"


def with_drift_named(store: Store, author: str, found: Iterable[Verification]) -> list[Verification]:
    """Verifications of different answers, with the reason ``recorded_alike`` where other attempts were told the same in
    place of what the environment answers, in the same state.

    ``found`` are those of a replay just made; those of the same environment that stand in the store count with them,
    and are said again where their reason has changed.
    """
    known = {(item.trajectory, item.call): item for item in (*_standing(store, author), *found)}
    told: dict[Difference, list[Verification]] = defaultdict(list)
    for item in known.values():
        told[_difference(item)].append(item)
    return [_named(item, alike) for alike in told.values() for item in alike]


def _standing(store: Store, author: str) -> Iterator[Verification]:
    rows = store.sql(
        """SELECT record FROM effective_verifications
           WHERE match = 'different' AND author_kind = 'environment' AND author_name = ?
             AND trajectory IN (SELECT trajectory_id FROM attempts)""",
        [author],
    )
    return (msgspec.json.decode(record, type=Verification) for record in rows["record"].to_pylist())


def _difference(item: Verification) -> Difference:
    state = None if item.execution is None else item.execution.state_before
    return state, frozenset((one.value, one.note) for one in item.evidence if one.note != _NOTE)


def _named(item: Verification, alike: Iterable[Verification]) -> Verification:
    if item.execution is None:
        return item
    others = sorted({other.trajectory for other in alike} - {item.trajectory})
    evidence = tuple(one for one in item.evidence if one.note != _NOTE)
    if others:
        evidence = (*evidence, Evidence("observation", call=item.call, value=others[0], note=_NOTE))
    reason = RECORDED_ALIKE if others else None
    return replace(item, supersedes=(), execution=replace(item.execution, reason=reason), evidence=evidence)

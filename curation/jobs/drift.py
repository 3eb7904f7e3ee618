"""Answers that are not the environment's, and that differ from it for several attempts in one and the same way.

Records that agree with each other and not with the environment are no sign of a pasted answer: the environment is not
what it was. The answer stays ``different``; the reason is told with it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from curation.store import Store
from schemas.statements import Evidence, Verification

RECORDED_ALIKE = "recorded_alike"

_NOTE = "another attempt that was told the same instead"

Difference = tuple[Any, ...]
"""The environment, the state, and what is said in place of what; texts are shown cut, so how long it is as well."""


def is_different(item: Verification) -> bool:
    """Whether this says that a logged answer is not the environment's."""
    return item.execution is not None and item.execution.match == "different"


def with_drift_named(
    store: Store, found: Iterable[Verification], replayed: Collection[str], authors: Collection[str]
) -> list[Verification]:
    """Verifications of different answers, with the reason ``recorded_alike`` where other attempts were told the same in
    place of what the environment answers, in the same state.

    ``found`` are those of a replay of these attempts just made. What stands in the store of others, said by the same
    environments (``authors``), counts with them, and is said again where its reason has changed.
    """
    told: dict[Difference, list[Verification]] = defaultdict(list)
    for item in (*_standing(store, replayed, authors), *found):
        told[_difference(item)].append(item)
    return [_named(item, alike) for alike in told.values() for item in alike]


def _standing(store: Store, replayed: Collection[str], authors: Collection[str]) -> Iterator[Verification]:
    rows = store.sql(
        """SELECT record FROM effective_verifications
           WHERE match = 'different' AND author_kind = 'environment' AND author_name IN (SELECT unnest(?))
             AND trajectory NOT IN (SELECT unnest(?)) AND trajectory IN (SELECT trajectory_id FROM attempts)
           ORDER BY trajectory, call""",
        [sorted(authors), sorted(replayed)],
    )
    return (msgspec.json.decode(record, type=Verification) for record in rows["record"].to_pylist())


def _difference(item: Verification) -> Difference:
    state = None if item.execution is None else item.execution.state_before
    told = ((one.value, one.note, (one.end or 0) - (one.start or 0)) for one in item.evidence if one.note != _NOTE)
    return item.author.name, state, frozenset(told)


def _named(item: Verification, alike: Iterable[Verification]) -> Verification:
    if item.execution is None:
        return item
    others = sorted({other.trajectory for other in alike} - {item.trajectory})
    evidence = tuple(one for one in item.evidence if one.note != _NOTE)
    if others:
        evidence = (*evidence, Evidence("observation", call=item.call, value=others[0], note=_NOTE))
    reason = RECORDED_ALIKE if others else None
    return replace(item, supersedes=(), execution=replace(item.execution, reason=reason), evidence=evidence)

"""Answers that are not the environment's, but that other attempts were given too for the same call in the same place.

Two records that agree with each other and not with the environment are no sign of a pasted answer: the environment is
not what it was. The answer stays ``different``; the reason is told with it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from curation.match import answer_text
from curation.store import Store
from schemas.digests import decisions_of
from schemas.statements import Evidence, Verification
from schemas.trajectory import Trajectory, answers_of

RECORDED_ALIKE = "recorded_alike"


class _Asked(NamedTuple):
    """A call: what was known before it, the decision it is part of, and its position there."""

    information: str
    action: str
    position: int


def with_drift_named(
    store: Store, records: Sequence[tuple[str, Trajectory]], found: Iterable[Verification]
) -> list[Verification]:
    """The verifications, those of different answers with the reason ``recorded_alike`` where another attempt was given
    the same answer, its call as evidence.
    """
    found, known = list(found), dict(records)
    asked = {
        (item.trajectory, item.call): _asked(known[item.trajectory], item.message, item.call)
        for item in found
        if item.execution is not None and item.execution.match == "different"
        if item.message is not None and item.call is not None
    }
    if not asked:
        return found
    given = _given(store, set(asked.values()))
    return [
        _named(item, known[item.trajectory], given[asked[item.trajectory, item.call]])
        if item.call is not None and (item.trajectory, item.call) in asked
        else item
        for item in found
    ]


def _asked(record: Trajectory, message: int, call: str) -> _Asked:
    decision = next(one for one in decisions_of(record) if one.message == message)
    return _Asked(decision.information, decision.action, int(call.rpartition(".")[2]))


def _given(store: Store, asked: set[_Asked]) -> dict[_Asked, dict[str, str]]:
    """What live attempts were answered, by call and attempt."""
    rows = store.sql(
        """SELECT a.trajectory_id AS id, d.message, d.information, d.action
           FROM (SELECT id, unnest(decisions) AS d FROM trajectories) JOIN attempts a ON a.trajectory_id = id
           WHERE d.information IN (SELECT unnest(?)) ORDER BY a.trajectory_id, d.message""",
        [sorted({one.information for one in asked})],
    ).to_pylist()
    records = dict(store.trajectories(sorted({row["id"] for row in rows})))
    found: dict[_Asked, dict[str, str]] = defaultdict(dict)
    for row in rows:
        for one in asked:
            text = _answer(records[row["id"]], f"{row['message']}.{one.position}")
            if text is not None and (one.information, one.action) == (row["information"], row["action"]):
                found[one][row["id"]] = text
    return found


def _answer(record: Trajectory, call: str) -> str | None:
    at = answers_of(record).get(call)
    return None if at is None else answer_text(record.messages[at])


def _named(item: Verification, record: Trajectory, given: Mapping[str, str]) -> Verification:
    mine = _answer(record, item.call or "")
    alike = sorted(other for other, text in given.items() if other != item.trajectory and text == mine)
    if not alike or item.execution is None:
        return item
    said = Evidence(
        "observation", call=item.call, value=alike[0], note=f"{len(alike)} other attempts were told the same"
    )
    return replace(item, execution=replace(item.execution, reason=RECORDED_ALIKE), evidence=(*item.evidence, said))

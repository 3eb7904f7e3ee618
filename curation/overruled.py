"""What is said, stands, and does not hold, because an author of a higher rank tells otherwise."""

from collections import defaultdict
from collections.abc import Sequence, Set

import msgspec

from curation.masking import masked_start
from curation.store import Store
from curation.store.effective import CHECK_RANK, FACT_RANK
from curation.store.tables import value_text
from schemas.statements import Annotation, Verification

_RANKS = {"annotations": FACT_RANK, "verifications": CHECK_RANK}
_ABOUT = {
    "annotations": "field",
    "verifications": """CASE layer WHEN 'task' THEN 'outcome' ELSE layer END
        || coalesce(' ' || coalesce(call, message::VARCHAR), '')""",
}
_OUTCOMES = {"passed": "success", "failed": "failure"}
_VALUE = 500
_LOOKED = 20_000  # characters of a text that is cut, so that a secret is whole where it is masked


class OverruledLine(msgspec.Struct):
    """What an author says of a fact, the outcome or a check, and what one who outranks that author tells instead."""

    about: str
    says: str
    author: str
    held: str
    held_by: str


def overruled_lines(store: Store, identity: str, *, as_stored: bool = False) -> list[OverruledLine]:
    """What does not hold of a record; that something is unknown is overruled only where a side file says so."""
    lines: list[OverruledLine] = []
    for table, about in _ABOUT.items():
        rows = store.sql(
            f"""WITH said AS (
                    SELECT id, rank, untold, told[:{_LOOKED}] AS told, author_kind, author_name, {about} AS about
                    FROM standing_{table} WHERE trajectory = ?
                )
                SELECT s.about, s.told AS says, s.author_kind || rtrim(' ' || s.author_name) AS author,
                    h.told AS held, h.author_kind AS held_by
                FROM said s JOIN said h ON h.about = s.about AND h.rank < s.rank AND h.told <> s.told AND NOT h.untold
                WHERE NOT s.untold OR s.author_kind = 'side_file'
                QUALIFY row_number() OVER (PARTITION BY s.id ORDER BY h.rank, h.id) = 1
                ORDER BY s.about, s.rank, s.id""",
            [identity],
        )
        lines += [OverruledLine(**{name: _shown(row, name, as_stored) for name in row}) for row in rows.to_pylist()]
    return lines


def count_overruled(store: Store, facts: Sequence[Annotation | Verification], withdrawn: Set[str] = frozenset()) -> int:
    """How many of these facts and outcomes by side files do not hold, since the store has another word that outranks.

    ``withdrawn`` are the ids of what stands no more once they are said.
    """
    records = list({fact.trajectory for fact in facts})
    told: dict[tuple[str, str], set[str]] = defaultdict(set)
    for table, about in _ABOUT.items():
        rows = store.sql(
            f"""SELECT id, trajectory, {about} AS about, told FROM standing_{table}
                WHERE rank < list_position({_RANKS[table]}, 'side_file') AND NOT untold
                  AND trajectory IN (SELECT unnest(?))""",
            [records],
        )
        for identity, *subject, value in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            if identity not in withdrawn:
                told[subject[0], subject[1]].add(value)
    return sum(bool(told.get((fact.trajectory, _about(fact)), set()) - {_told(fact)}) for fact in facts)


def _about(fact: Annotation | Verification) -> str:
    return fact.field if isinstance(fact, Annotation) else "outcome"


def _told(fact: Annotation | Verification) -> str:
    return value_text(fact.value) or "" if isinstance(fact, Annotation) else fact.result


def _shown(row: dict[str, str], name: str, as_stored: bool) -> str:
    text = row[name]
    if row["about"] == "outcome" and name in ("says", "held"):
        return _OUTCOMES.get(text, text)
    return text[:_VALUE] if as_stored else masked_start(text, _VALUE)

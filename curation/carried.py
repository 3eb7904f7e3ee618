"""What people and side files say of an attempt, said again of the record that revises its old one.

The old record keeps what was said of it. What is about its bytes is not carried, and counted.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from curation.store import Store
from curation.store.tables import check_name, slot_digest
from schemas.statements import Annotation, Statement, Verification

_SAYING = "author_kind IN ('human', 'side_file')"
_CARRIED: dict[str, tuple[type[Annotation | Verification], str]] = {
    "annotations": (Annotation, f"{_SAYING} AND field <> 'revises'"),
    "verifications": (Verification, f"{_SAYING} AND layer = 'task' AND message IS NULL AND call IS NULL"),
}
_LEFT = (
    ("about_message", "findings", f"{_SAYING} AND detail <> 'withdrawn'"),
    ("about_message", "verifications", f"{_SAYING} AND (layer <> 'task' OR message IS NOT NULL OR call IS NOT NULL)"),
    ("executed", "verifications", "author_kind = 'environment'"),
)
"""What is about the bytes of a record: the code of schemas.reasons.NOT_CARRIED, a table, and which of its rows."""


class Carried(NamedTuple):
    """Statements about new records, and how many about the old ones say nothing of them, by reason."""

    statements: list[Annotation | Verification]
    left: Counter[str]


def carry(store: Store, revised: Mapping[str, str], said: Iterable[Statement]) -> Carried:
    """What is said of attempts whatever their bytes; ``revised`` names the old record of each new one.

    What a side file says anew of a new record, in ``said``, takes the place of what one said of the old record.
    """
    anew = {slot_digest(statement) for statement in said if statement.author.kind == "side_file"}
    heirs: dict[str, list[str]] = defaultdict(list)
    for new, old in revised.items():
        heirs[old].append(new)
    statements = [
        again
        for statement in _carried(store, list(heirs))
        for heir in heirs[statement.trajectory]
        if slot_digest(again := _said_of(heir, statement)) not in anew
    ]
    return Carried(statements, _left(store, heirs))


def _said_of(record: str, statement: Annotation | Verification) -> Annotation | Verification:
    """The statement about another record; pointers into the old one would point to nothing in it."""
    if isinstance(statement, Verification):
        return replace(statement, trajectory=record, evidence=(), supersedes=())
    return replace(statement, trajectory=record, supersedes=())


def _carried(store: Store, records: list[str]) -> Iterator[Annotation | Verification]:
    for table, (kind, condition) in _CARRIED.items():
        rows = _standing(store, "id, record", table, condition, records)
        for identity, record in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            check_name("statement", identity, record.encode())
            yield msgspec.json.decode(record, type=kind)


def _left(store: Store, heirs: Mapping[str, list[str]]) -> Counter[str]:
    left: Counter[str] = Counter()
    for code, table, condition in _LEFT:
        for record in _standing(store, "trajectory", table, condition, list(heirs))["trajectory"].to_pylist():
            left[code] += len(heirs[record])
    return left


def _standing(store: Store, columns: str, table: str, condition: str, records: list[str]) -> pa.Table:
    return store.sql(
        f"""SELECT {columns} FROM {table} WHERE {condition} AND trajectory IN (SELECT unnest(?))
            AND id NOT IN (SELECT unnest(supersedes) FROM {table}) ORDER BY id""",
        [records],
    )

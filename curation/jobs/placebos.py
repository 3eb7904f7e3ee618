"""What is measured of an environment's checks in a store, and the checks of forks that name it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from curation.power import PREFIX, Rates, pool, with_placebo
from curation.store import Batch, Store
from curation.store.supersede import superseding
from schemas.statements import Power, Verification
from schemas.trajectory import Reads


class Measured(NamedTuple):
    """One measurement at a call: what it counted, and what its check had read."""

    power: Power
    reads: tuple[Reads, ...]


def read_measured(store: Store, identities: Sequence[str]) -> list[Measured]:
    """The measurements that hold at the calls of these trajectories."""
    rows = store.sql(
        """SELECT record FROM verifications
           WHERE author_kind = 'rule' AND starts_with(author_name, ?) AND trajectory IN (SELECT unnest(?))
             AND id NOT IN (SELECT unnest(supersedes) FROM verifications) ORDER BY id""",
        [PREFIX, list(identities)],
    )
    decoded = (msgspec.json.decode(record, type=Verification) for record in rows["record"].to_pylist())
    return [Measured(item.power, item.reads) for item in decoded if item.power is not None]


def read_rates(store: Store, identities: Sequence[str]) -> Rates:
    """The pooled counts of each check and tool at the calls of these trajectories."""
    return pool(item.power for item in read_measured(store, identities))


def rename_placebos(store: Store, batch: Batch, identities: Sequence[str], rates: Rates) -> int:
    """Let the step and task checks of the forks of these attempts name what is measured; how many said otherwise."""
    rows = store.sql(
        """WITH RECURSIVE lineage AS (
               SELECT unnest(?) AS id
               UNION ALL SELECT t.id FROM trajectories t JOIN lineage l ON t.parent = l.id
           )
           SELECT trajectory, record FROM effective_verifications
           WHERE layer IN ('step', 'task') AND author_kind = 'environment' AND trajectory IN (
               SELECT l.id FROM lineage l JOIN trajectories t ON t.id = l.id WHERE t.parent IS NOT NULL)
           ORDER BY trajectory, id""",
        [list(identities)],
    ).to_pylist()
    forks = dict(store.trajectories(sorted({row["trajectory"] for row in rows})))
    checks = (msgspec.json.decode(row["record"], type=Verification) for row in rows)
    named = [with_placebo(check, forks[check.trajectory], rates) for check in checks]
    changed = superseding(store, (msgspec.structs.replace(check, supersedes=()) for check in named))
    _add(batch, changed)
    return len(changed)


def _add(batch: Batch, statements: Iterable[Verification]) -> None:
    for statement in statements:
        batch.add_statement(statement)

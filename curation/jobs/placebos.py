"""What is measured of an environment's checks in a store, and the checks of forks that name it."""

from typing import NamedTuple

import msgspec

from curation.fork_plan import corrected_decisions
from curation.power import PREFIX, Rates, pool
from curation.store import Batch, Store
from curation.store.supersede import superseding
from environments.protocol import EnvSpec
from schemas.statements import Power, Verification
from schemas.trajectory import Reads, Trajectory


class Measured(NamedTuple):
    """One measurement at a call: what it counted, and what its check had read."""

    power: Power
    reads: tuple[Reads, ...]


def read_measured(store: Store, spec: EnvSpec) -> list[Measured]:
    """The measurements that hold at calls of live attempts, made in this environment."""
    rows = store.sql(
        """SELECT record FROM verifications
           WHERE author_kind = 'rule' AND starts_with(author_name, ?)
             AND id NOT IN (SELECT unnest(supersedes) FROM verifications)
             AND trajectory IN (SELECT trajectory_id FROM attempts)
             AND from_json(record, '{"detail": "VARCHAR"}').detail = ?
           ORDER BY id""",
        [PREFIX, spec.name],
    )
    decoded = (msgspec.json.decode(record, type=Verification) for record in rows["record"].to_pylist())
    return [Measured(item.power, item.reads) for item in decoded if item.power is not None]


def read_rates(store: Store, spec: EnvSpec) -> Rates:
    """The pooled counts of each check and tool of an environment."""
    return pool(item.power for item in read_measured(store, spec))


def with_placebo(check: Verification, fork: Trajectory, rates: Rates) -> Verification:
    """A step or task check of a fork with the measured share of wrong calls that it passes too: the largest of those of
    the corrected decision's tools, absent where none is measured.
    """
    if check.layer not in ("step", "task") or check.author.kind != "environment":
        return check
    made = [check.message] if check.message is not None else corrected_decisions(fork)[-1:]
    tools = {call.name for message in made for call in fork.messages[message].tool_calls}
    found = [rates[check.layer, tool] for tool in tools if (check.layer, tool) in rates]
    return msgspec.structs.replace(check, placebo=max((power.passed / power.wrong for power in found), default=None))


def rename_placebos(store: Store, batch: Batch, spec: EnvSpec, rates: Rates) -> int:
    """Let the step and task checks of this environment's forks name what is measured; how many said otherwise."""
    rows = store.sql(
        """SELECT trajectory, record FROM effective_verifications
           WHERE layer IN ('step', 'task') AND author_kind = 'environment' AND author_name = ? AND author_version = ?
             AND trajectory IN (SELECT id FROM trajectories WHERE parent IS NOT NULL)
           ORDER BY trajectory, id""",
        [spec.id, spec.version],
    ).to_pylist()
    forks = dict(store.trajectories(sorted({row["trajectory"] for row in rows})))
    checks = (msgspec.json.decode(row["record"], type=Verification) for row in rows)
    named = [with_placebo(check, forks[check.trajectory], rates) for check in checks]
    changed = superseding(store, (msgspec.structs.replace(check, supersedes=()) for check in named))
    for statement in changed:
        batch.add_statement(statement)
    return len(changed)

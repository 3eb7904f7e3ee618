"""Repairing a store's attempts: every confirmed finding is proposed, planned, executed, and what came of it stored."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from curation.errors import UsageError
from curation.fork import Forked
from curation.jobs.cases import places, read_known
from curation.proposals import Proposal, ProposalLine
from curation.repair import repair
from curation.store import Batch, Store
from curation.store.lookup import resolve_trajectory
from curation.store.supersede import superseding
from curation.worlds import open_worlds
from environments.blobs import MemoryBlobs
from environments.protocol import Controls
from schemas.statements import Statement


class RepairResult(msgspec.Struct):
    """What came of the wrong decisions: each gives a clean fork and a recovery, verified or refused with one reason."""

    failures: int
    proposed: int
    executed: int
    verified: int
    refused: dict[str, int]


def repair_attempts(
    store: Store, environment: str, proposals: Sequence[ProposalLine] = (), controls: Controls | None = None
) -> RepairResult:
    """Fork every attempt of this environment at its confirmed findings, and at the decisions that ``proposals`` name.

    Proposals take the place of what a rule would propose for the same decision. Raises NotFoundError for one about a
    trajectory that is not there, UsageError for one about no attempt of this environment.
    """
    found = places(store, environment)
    known = {identity for identities in found.values() for identity in identities}
    handed = _by_trajectory(store, proposals, known, environment)
    total = RepairResult(0, 0, 0, 0, {})
    for name, identities in found.items():
        _repair_in(store, name, identities, handed, total, controls)
    total.refused = dict(sorted(total.refused.items()))
    return total


def _repair_in(
    store: Store,
    environment: str,
    identities: Sequence[str],
    handed: Mapping[str, list[Proposal]],
    total: RepairResult,
    controls: Controls | None,
) -> None:
    refused = Counter(total.refused)
    with open_worlds(environment, controls) as worlds, store.batch() as batch:
        for known in read_known(store, identities, environment):
            given = handed.get(known.case.trajectory_id, [])
            if not known.findings and not given:
                continue
            done = repair(known.case, known.findings, worlds, MemoryBlobs(), proposals=given, revised=known.revised)
            store_forks(store, batch, done.forks, done.statements)
            total.failures += done.failures
            total.proposed += done.proposed
            total.executed += done.executed
            total.verified += done.verified
            refused.update(done.refused)
        store.write(batch)
    total.refused = dict(refused)


def store_forks(store: Store, batch: Batch, forks: Iterable[Forked], statements: Iterable[Statement]) -> None:
    """Add forks with what they refer to, and statements that take the place of those in their slots."""
    for fork in forks:
        batch.add_trajectory(fork.trajectory)
        for item in fork.objects:
            batch.add_object(item)
    for statement in superseding(store, statements):
        batch.add_statement(statement)


def _by_trajectory(
    store: Store, lines: Sequence[ProposalLine], known: set[str], environment: str
) -> dict[str, list[Proposal]]:
    found: dict[str, list[Proposal]] = {}
    for line in lines:
        name = line.trajectory or line.key or ""
        identity = resolve_trajectory(store, name)
        if identity not in known:
            raise UsageError(f"a proposal names {name!r}, which is no live attempt recorded in {environment!r}")
        found.setdefault(identity, []).append(line.proposal(identity))
    return found

"""Repairing a store's attempts: every confirmed finding is proposed, planned, executed, and what came of it stored."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from curation.errors import UsageError
from curation.fork import Forked
from curation.jobs.cases import place_of, places, read_known
from curation.objections import objections
from curation.proposals import Proposal, ProposalLine
from curation.repair import Result, fork_both, repair, statements_of
from curation.store import Batch, Store
from curation.store.lookup import resolve_trajectory
from curation.store.supersede import superseding
from curation.worlds import open_worlds
from environments.blobs import MemoryBlobs
from schemas.reasons import REPAIR, sentence_of
from schemas.statements import Statement


class RepairResult(msgspec.Struct):
    """What came of the wrong decisions: each gives a clean fork and a recovery, verified or refused with one reason."""

    failures: int
    proposed: int
    executed: int
    verified: int
    refused: dict[str, int]


class ForkLine(msgspec.Struct):
    """One fork asked for: its id where it was executed, else the code and detail of the refusal, and the way out."""

    kind: str
    id: str | None
    verified: bool
    refused: str | None
    detail: str
    way_out: str


class ForkResult(msgspec.Struct):
    """The forks of one decision."""

    parent: str
    message: int
    forks: list[ForkLine]


def repair_attempts(store: Store, environment: str, proposals: Sequence[ProposalLine] = ()) -> RepairResult:
    """Fork every attempt of this environment at its confirmed findings, and at the decisions that ``proposals`` name.

    Proposals take the place of what a rule would propose for the same decision. Raises NotFoundError for one about a
    trajectory that is not there, UsageError for one about no attempt of this environment.
    """
    found = places(store, environment)
    known = {identity for identities in found.values() for identity in identities}
    handed = _by_trajectory(store, proposals, known, environment)
    total = RepairResult(0, 0, 0, 0, {})
    for name, identities in found.items():
        _repair_in(store, name, identities, handed, total)
    total.refused = dict(sorted(total.refused.items()))
    return total


def _repair_in(
    store: Store,
    environment: str,
    identities: Sequence[str],
    handed: Mapping[str, list[Proposal]],
    total: RepairResult,
) -> None:
    refused = Counter(total.refused)
    with open_worlds(environment) as worlds, store.batch() as batch:
        for known in read_known(store, identities, environment):
            given = handed.get(known.case.trajectory_id, [])
            if not known.findings and not given:
                continue
            done = repair(known.case, known.findings, worlds, MemoryBlobs(), proposals=given, revised=known.revised)
            _store(store, batch, done.forks, done.statements)
            total.failures += done.failures
            total.proposed += done.proposed
            total.executed += done.executed
            total.verified += done.verified
            refused.update(done.refused)
        store.write(batch)
    total.refused = dict(refused)


def fork_attempt(store: Store, environment: str, proposal: Proposal) -> ForkResult:
    """Both forks of one proposal, whatever rules would say of the decision; a person's is a finding about it too."""
    name = place_of(store, environment, proposal.trajectory)
    (known,) = read_known(store, [proposal.trajectory], name)
    with open_worlds(name) as worlds, store.batch() as batch:
        results = fork_both(known.case, proposal, worlds, MemoryBlobs(), revised=known.revised)
        forks = [result.fork for result in results if result.fork is not None]
        said = objections(known.case, known.findings, [proposal])
        _store(store, batch, forks, [*said, *statements_of(known.case, results, worlds[0].spec)])
        store.write(batch)
    return ForkResult(proposal.trajectory, proposal.message, [_line(result) for result in results])


def _store(store: Store, batch: Batch, forks: Iterable[Forked], statements: Iterable[Statement]) -> None:
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


def _line(result: Result) -> ForkLine:
    code, detail = result.refusal or (None, "")
    way_out = "" if code is None else sentence_of(REPAIR, code)
    fork = result.fork
    return ForkLine(result.kind, fork.id if fork else None, result.refusal is None, code, detail, way_out)

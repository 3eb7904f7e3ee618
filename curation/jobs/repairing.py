"""Repairing a store's attempts: every confirmed finding is proposed, planned, executed, and what came of it stored."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import msgspec

from curation.erasures import barred_forks
from curation.errors import UsageError
from curation.fork import Forked
from curation.jobs.cases import Known, places, read_known, version_inferred
from curation.jobs.placebos import read_rates, with_placebo
from curation.jobs.siblings import Place, find_siblings, read_siblings
from curation.known_right import RightCall, known_right, refuse_right
from curation.power import Rates
from curation.proposals import Proposal, ProposalLine
from curation.repair import Result, repair
from curation.replay import CHECKED, REPLAYED_OUTCOME
from curation.siblings import Sibling
from curation.store import Batch, Store
from curation.store.lookup import resolve_trajectory
from curation.store.supersede import superseding
from curation.worlds import open_worlds
from environments.blobs import MemoryBlobs
from environments.protocol import Controls, EnvSpec
from schemas.levels import MAX_PLACEBO
from schemas.statements import Annotation, Layer, Statement, Verification
from schemas.trajectory import Trajectory

_CHUNK = 1000  # statements that are compared at once with what the store holds


class Yield(msgspec.Struct):
    """What came of the corrections of one kind of author.

    Of the ``verified`` forks ``at_step`` pass the task's check where they did not before, and ``at_task`` pass it at
    the end of a whole run (a local pass is none of the task): by a check that read something the proposer had not, and
    of which it is not measured that more than one in five wrong calls pass it.
    """

    proposed: int = 0
    executed: int = 0
    verified: int = 0
    at_step: int = 0
    at_task: int = 0
    refused: dict[str, int] = {}


class RepairResult(msgspec.Struct):
    """What came of the wrong decisions: each gives a clean fork and a recovery, verified or refused with one reason.

    ``authors`` tells it by who proposed. ``known_right`` calls were confirmed, no errors, and of attempts that passed
    their task: ``false_corrections`` of them would be changed, ``false_corrections_verified`` by a fork that is
    verified; ``false_refusals`` could never be proposed but by a person, by reason in ``falsely_refused``.
    """

    failures: int = 0
    proposed: int = 0
    executed: int = 0
    verified: int = 0
    known_right: int = 0
    false_corrections: int = 0
    false_corrections_verified: int = 0
    false_refusals: int = 0
    false_correction_rate: float | None = None
    false_refusal_rate: float | None = None
    refused: dict[str, int] = {}
    falsely_refused: dict[str, int] = {}
    authors: dict[str, Yield] = {}


def repair_attempts(
    store: Store,
    environment: str,
    proposals: Sequence[ProposalLine] = (),
    controls: Controls | None = None,
    *,
    siblings: bool = True,
) -> RepairResult:
    """Fork every attempt of this environment at its confirmed findings, and at the decisions that ``proposals`` name.

    Proposals take the place of what a rule would propose for the same decision; where no rule proposes anything,
    another attempt's call at equal information does, unless ``siblings`` is false. Raises NotFoundError for a proposal
    about a trajectory that is not there, UsageError for one about no attempt of this environment.
    """
    found = places(store, environment)
    known = {identity for identities in found.values() for identity in identities}
    handed = _by_trajectory(store, proposals, known, environment)
    total = RepairResult()
    for name, identities in found.items():
        _repair_in(store, name, identities, handed, total, controls, siblings=siblings)
    if total.known_right:
        total.false_correction_rate = total.false_corrections / total.known_right
        total.false_refusal_rate = total.false_refusals / total.known_right
    return total


def _repair_in(
    store: Store,
    environment: str,
    identities: Sequence[str],
    handed: Mapping[str, list[Proposal]],
    total: RepairResult,
    controls: Controls | None,
    *,
    siblings: bool,
) -> None:
    offered = find_siblings(store, identities) if siblings else {}
    barred = barred_forks(store)
    with open_worlds(environment, controls) as worlds, store.batch() as batch:
        rates = read_rates(store, worlds[0].spec)
        forks: list[Forked] = []
        said: list[Statement] = []
        for known in read_known(store, identities, environment):
            given = handed.get(known.case.trajectory_id, [])
            results: tuple[Result, ...] = ()
            if known.findings or given:
                done = repair(
                    known.case,
                    known.findings,
                    worlds,
                    MemoryBlobs(),
                    proposals=given,
                    siblings=partial(_siblings_of, store, environment, known.case.trajectory_id, offered),
                    revised=known.revised,
                    barred=barred,
                )
                forks.extend(done.forks)
                said.extend(done.statements)
                results = done.results
                total.failures += done.failures
                total.proposed += done.proposed
            _count_results(total, results, rates)
            _count_known_right(total, known, results, worlds[0].spec)
            if len(said) > _CHUNK:
                store_forks(store, batch, forks, said, rates)
                forks, said = [], []
        store_forks(store, batch, forks, said, rates)
        store.write(batch)


def _count_results(total: RepairResult, results: Sequence[Result], rates: Rates) -> None:
    """Add what came of some forks, in all and by who proposed them."""
    total.executed += sum(result.executed for result in results)
    total.verified += sum(result.refusal is None for result in results)
    total.refused = _added(total.refused, results)
    for kind in sorted({result.proposal.author.kind for result in results if result.proposal is not None}):
        mine = [item for item in results if item.proposal is not None and item.proposal.author.kind == kind]
        verified = [item.fork for item in mine if item.fork is not None and item.refusal is None]
        counted = total.authors.setdefault(kind, Yield())
        counted.proposed += sum(item.kind == "clean" for item in mine)  # each gives two results
        counted.executed += sum(item.executed for item in mine)
        counted.verified += len(verified)
        counted.at_step += sum(_passes(fork, "step", rates) for fork in verified)
        counted.at_task += sum(_passes(fork, "task", rates) for fork in verified)
        counted.refused = _added(counted.refused, mine)


def _added(counts: Mapping[str, int], results: Iterable[Result]) -> dict[str, int]:
    refused = Counter(result.refusal.code for result in results if result.refusal is not None)
    return dict(sorted((Counter(counts) + refused).items()))


def _passes(fork: Forked, layer: Layer, rates: Rates) -> bool:
    """Whether a check passes that supports the correction."""
    correction = None if fork.trajectory.fork is None else fork.trajectory.fork.correction
    read = set() if correction is None else set(correction.reads)
    checks = (with_placebo(item, fork.trajectory, rates) for item in fork.verifications if item.layer == layer)
    return any(
        item.result == "passed" and (item.placebo or 0) <= MAX_PLACEBO and not read.issuperset(item.reads)
        for item in checks
    )


def _count_known_right(total: RepairResult, known: Known, results: Sequence[Result], spec: EnvSpec) -> None:
    for right in known_right(known.case, known.findings):
        total.known_right += 1
        changed = [item for item in results if _changes(item, right)]
        total.false_corrections += bool(changed)
        total.false_corrections_verified += any(item.refusal is None for item in changed)
        refusal = refuse_right(known.case, right, spec)
        if refusal is not None:
            total.false_refusals += 1
            total.falsely_refused[refusal.code] = total.falsely_refused.get(refusal.code, 0) + 1


def _changes(result: Result, right: RightCall) -> bool:
    """Whether somebody but a person proposed another call in the place of a right one."""
    proposal = result.proposal
    if proposal is None or proposal.author.kind == "human" or proposal.message != right.message:
        return False
    return proposal.call in (None, right.call.uid)


def _siblings_of(
    store: Store, environment: str, trajectory: str, offered: Mapping[tuple[str, int], Sequence[Place]], message: int
) -> Sequence[Sibling]:
    return tuple(read_siblings(store, environment, offered.get((trajectory, message), ())))


def store_forks(
    store: Store, batch: Batch, forks: Iterable[Forked], statements: Iterable[Statement], rates: Rates
) -> None:
    """Add forks with what they refer to, and statements that take the place of those in their slots.

    The checks of the forks name the measured rates. What a task's check says in a version that was inferred is told and
    verifies nothing, in a fork as in its attempt.
    """
    forks = tuple(forks)
    records = {fork.id: fork.trajectory for fork in forks}
    for fork in forks:
        batch.add_trajectory(fork.trajectory)
        for item in fork.objects:
            batch.add_object(item)
    named = (
        with_placebo(item, records[item.trajectory], rates)
        if isinstance(item, Verification) and item.trajectory in records
        else item
        for item in _ungraded(store, records, statements)
    )
    for statement in superseding(store, named):
        batch.add_statement(statement)


def _ungraded(store: Store, forks: Mapping[str, Trajectory], statements: Iterable[Statement]) -> Iterator[Statement]:
    statements = list(statements)
    checked = {item.trajectory for item in statements if _is_task_check(item) and item.trajectory in forks}
    parents = {identity: fork.parent for identity in checked if (fork := forks[identity].fork) is not None}
    inferred = version_inferred(store, sorted(set(parents.values()))) if parents else frozenset()
    for item in statements:
        if isinstance(item, Verification) and _is_task_check(item) and parents.get(item.trajectory) in inferred:
            yield Annotation(item.trajectory, REPLAYED_OUTCOME, item.result, CHECKED, item.reads)
        else:
            yield item


def _is_task_check(item: Statement) -> bool:
    return isinstance(item, Verification) and item.layer == "task" and item.author.kind == "environment"


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

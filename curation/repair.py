"""From the confirmed findings of a trajectory to its forks: propose, plan, execute, and record what came of each.

Every wrong decision gives a clean fork and a recovery; each ends verified or with one counted reason, which is also an
annotation ``repair.<message>.<kind>`` of the trajectory, so that nothing is left out in silence.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import NamedTuple

from curation.diagnosis.diagnose import diagnose
from curation.diagnosis.evidence import Case
from curation.fork import Forked, execute, refuse_effect
from curation.fork_plan import Checkpoints, Plan, Refusal, corrected_decisions, plan
from curation.objections import CORRECTED, objections
from curation.proposals import Proposal, propose
from curation.siblings import Sibling, propose_from
from curation.worlds import World
from environments.protocol import Blobs, EnvSpec
from schemas.statements import Annotation, Finding, Statement
from schemas.trajectory import Author, AuthorKind, ForkKind

REPAIR = Author("rule", "repair", "1")
KINDS: tuple[ForkKind, ...] = ("clean", "recovery")
FORKED = "forked"
MAX_VALUE = 400  # characters of an annotation

Siblings = Callable[[int], Sequence[Sibling]]
"""Gives the decisions of other attempts that were taken at the same information as one of this trajectory's."""

_CONFIRMING: frozenset[AuthorKind] = frozenset(("rule", "human", "environment"))


class Result(NamedTuple):
    """What came of one fork: the fork to be stored, or why there is none. A flaky one has both.

    ``proposal`` is absent where nobody proposed anything.
    """

    message: int
    kind: ForkKind
    fork: Forked | None = None
    refusal: Refusal | None = None
    executed: bool = False
    proposal: Proposal | None = None


class Repaired(NamedTuple):
    """What came of the wrong decisions of one trajectory.

    ``results`` holds two forks a proposal, or two refusals for a decision without one. ``statements`` are about the
    trajectory and its forks, and belong into the store with them.
    """

    failures: int
    proposed: int
    results: tuple[Result, ...]
    statements: tuple[Statement, ...]

    @property
    def forks(self) -> tuple[Forked, ...]:
        """The forks to be stored."""
        return tuple(result.fork for result in self.results if result.fork is not None)

    @property
    def executed(self) -> int:
        """How many forks had their new calls executed."""
        return sum(result.executed for result in self.results)

    @property
    def verified(self) -> int:
        """How many forks were executed alike in every run and leave nothing of the mistake."""
        return sum(result.refusal is None for result in self.results)

    @property
    def refused(self) -> Counter[str]:
        """How many forks were refused, by the code of the reason."""
        return Counter(result.refusal.code for result in self.results if result.refusal is not None)


def repair(
    case: Case,
    findings: Iterable[Finding],
    worlds: Sequence[World],
    blobs: Blobs,
    *,
    proposals: Iterable[Proposal] = (),
    checkpoints: Checkpoints | None = None,
    siblings: Siblings | None = None,
    revised: bool = False,
    barred: Container[str] = (),
) -> Repaired:
    """Fork a trajectory at every decision with a confirmed finding, earliest first, whatever the outcome.

    The case holds the effective verifications, the findings are the effective ones. ``proposals`` are corrections of
    this trajectory that were handed in; where there are some for a decision, no rule proposes for it, and where no rule
    does, one of its ``siblings``. A person's is also a finding. ``checkpoints`` defaults to the start state alone. The
    worlds are processes of one environment, at least two. ``revised``: a better reading of the same attempt is stored.
    ``barred``: the forks that must not be made again.
    """
    findings, proposals = tuple(findings), tuple(proposals)
    given: dict[int, list[Proposal]] = {}
    for proposal in proposals:
        given.setdefault(proposal.message, []).append(proposal)
    wrong: dict[int, list[Finding]] = {message: [] for message in given}
    for finding in confirmed(findings):
        wrong.setdefault(finding.message, []).append(finding)
    proposed = 0
    results: list[Result] = []
    for message, found in sorted(wrong.items()):
        chosen = given.get(message) or _by_rule(case, found) or _by_sibling(case, found, siblings)
        proposed += bool(chosen)
        if not chosen:
            environmental = all(finding.label == "environment" for finding in found)
            refusal = Refusal("environment_fault" if environmental else "no_proposal")
            results.extend(Result(message, kind, refusal=refusal) for kind in KINDS)
        for proposal in chosen:
            both = fork_both(case, proposal, worlds, blobs, checkpoints=checkpoints, revised=revised, barred=barred)
            results.extend(both)
    statements = (*objections(case, findings, proposals), *statements_of(case, results, worlds[0].spec))
    return Repaired(len(wrong), proposed, tuple(results), statements)


def fork_both(
    case: Case,
    proposal: Proposal,
    worlds: Sequence[World],
    blobs: Blobs,
    *,
    checkpoints: Checkpoints | None = None,
    revised: bool = False,
    barred: Container[str] = (),
) -> tuple[Result, Result]:
    """The clean fork and the recovery of one proposal. The recovery has to leave nothing of the mistake behind."""
    spec = worlds[0].spec
    opened = {0: case.trajectory.task} if checkpoints is None else checkpoints
    made: list[Plan | Refusal] = [
        Refusal("parent_revised", case.trajectory_id) if revised else plan(kind, case, proposal, spec, opened)
        for kind in KINDS
    ]
    clean, recovery = (
        _result(proposal.message, kind, found, worlds, blobs) for kind, found in zip(KINDS, made, strict=True)
    )
    if isinstance(made[1], Plan) and recovery.fork is not None and recovery.refusal is None:
        remains = refuse_effect(made[1], recovery.fork, clean.fork)
        if remains is not None:
            recovery = recovery._replace(fork=None, refusal=remains)
    clean, recovery = (_unless_barred(result, barred)._replace(proposal=proposal) for result in (clean, recovery))
    return clean, recovery


def confirmed(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that say what went wrong and are no model's opinion, earliest first.

    Not those that came with a correction: its forks were made when it was handed in.
    """
    kept = (
        item
        for item in findings
        if item.label != "undetermined" and item.detail != CORRECTED and item.author.kind in _CONFIRMING
    )
    return sorted(kept, key=lambda item: (item.message, item.call or "", item.label))


def statements_of(case: Case, results: Iterable[Result], spec: EnvSpec) -> Iterator[Statement]:
    """What is to be said of the parent (``repair.<message>.<kind>``: forked, or why not) and of its forks.

    A fork is diagnosed like any record: its corrected call is held against the same rules. What takes an effect back
    before it has to repeat the wrong value, and where it leads to is confirmed.
    """
    said: dict[str, Annotation] = {}
    for result in results:
        annotation = _annotation(case.trajectory_id, result)
        if result.refusal is not None or annotation.field not in said:
            said[annotation.field] = annotation
        if result.fork is not None:
            fork = result.fork
            yield from fork.verifications
            again = Case(fork.id, fork.trajectory, case.tools, verifications=fork.verifications, spec=spec)
            diagnosis = diagnose(again)
            yield from diagnosis.verifications
            undone = set(corrected_decisions(fork.trajectory)[:-1])
            yield from (finding for finding in diagnosis.findings if finding.message not in undone)
    yield from said.values()


def _unless_barred(result: Result, barred: Container[str]) -> Result:
    if result.fork is None or result.fork.id not in barred:
        return result
    return result._replace(fork=None, refusal=Refusal("erased", result.fork.id))


def _by_rule(case: Case, findings: Iterable[Finding]) -> list[Proposal]:
    first = next(filter(None, (propose(case, finding) for finding in findings)), None)
    return [] if first is None else [first]


def _by_sibling(case: Case, findings: Sequence[Finding], siblings: Siblings | None) -> list[Proposal]:
    offered = () if siblings is None else siblings(findings[0].message)
    first = next(filter(None, (propose_from(case, finding, offered) for finding in findings)), None)
    return [] if first is None else [first]


def _annotation(trajectory: str, result: Result) -> Annotation:
    value = FORKED
    if result.refusal is not None:
        value = ": ".join(filter(None, result.refusal))[:MAX_VALUE]
    return Annotation(trajectory, f"repair.{result.message}.{result.kind}", value, REPAIR)


def _result(message: int, kind: ForkKind, made: Plan | Refusal, worlds: Sequence[World], blobs: Blobs) -> Result:
    done = execute(made, worlds, blobs) if isinstance(made, Plan) else made
    if isinstance(done, Refusal):
        return Result(message, kind, refusal=done)
    refusal = None if done.verified else Refusal("flaky", done.flaw)
    return Result(message, kind, done, refusal, executed=True)

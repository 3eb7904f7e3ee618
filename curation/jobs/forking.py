"""Forking one decision of a stored trajectory, with a call that somebody gives, and going on after it."""

from collections.abc import Container

import msgspec

from curation.continuation import Continued, Ending, Players, continue_fork
from curation.erasures import barred_forks
from curation.jobs.cases import place_of, read_known
from curation.jobs.checkpoints import checkpoints_of
from curation.jobs.placebos import read_rates
from curation.jobs.repairing import store_forks
from curation.objections import objections
from curation.proposals import Proposal
from curation.repair import Result, fork_both, statements_of
from curation.store import Store
from curation.worlds import open_worlds
from environments.blobs import MemoryBlobs
from environments.protocol import Controls
from schemas.reasons import CONTINUATION, REPAIR, sentence_of
from schemas.trajectory import Usage


class ForkLine(msgspec.Struct):
    """One fork asked for: its id where it was executed, else the code and detail of the refusal, and the way out."""

    kind: str
    id: str | None
    verified: bool
    refused: str | None
    detail: str
    way_out: str


class ContinuedLine(msgspec.Struct):
    """A fork that a policy went on with: its id where at least one turn was added, and why it ended.

    ``decisions`` are the policy's turns, ``task`` is what the task's check says in the end (in a version that was
    inferred it verifies nothing), ``budget`` what the parent's budget had left. Tokens and cost are null where the
    policy does not say.
    """

    kind: str
    id: str | None
    policy: str | None
    decisions: int
    ended: str
    detail: str
    way_out: str
    task: str | None
    budget: str
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | int | None


class ForkResult(msgspec.Struct):
    """The forks of one decision, and those that go on after them."""

    parent: str
    message: int
    forks: list[ForkLine]
    continued: list[ContinuedLine]


def fork_attempt(
    store: Store,
    environment: str,
    proposal: Proposal,
    players: Players | None = None,
    controls: Controls | None = None,
) -> ForkResult:
    """Both forks of one proposal, whatever rules would say of the decision; a person's is a finding about it too.

    With ``players`` each verified fork goes on, as another fork of the same parent.
    """
    name = place_of(store, environment, proposal.trajectory)
    (known,) = read_known(store, [proposal.trajectory], name)
    case, blobs, barred = known.case, MemoryBlobs(), barred_forks(store)
    with open_worlds(name, controls) as worlds, store.batch() as batch:
        checkpoints = checkpoints_of(store, case, worlds[0], blobs)
        results = fork_both(
            case, proposal, worlds, blobs, checkpoints=checkpoints, revised=known.revised, barred=barred
        )
        continued = [
            (result.kind, _unless_barred(continue_fork(case, result.fork, players, worlds, blobs), barred))
            for result in results
            if players is not None and result.fork is not None and result.refusal is None
        ]
        longer = [Result(proposal.message, kind, done.fork) for kind, done in continued if done.fork is not None]
        said = [
            *objections(case, known.findings, [proposal]),
            *statements_of(case, [*results, *longer], worlds[0].spec),
            *(fact for _, done in continued for fact in done.statements),
        ]
        made = [result.fork for result in (*results, *longer) if result.fork is not None]
        store_forks(store, batch, made, said, read_rates(store, worlds[0].spec))
        store.write(batch)
    lines = [_continued_line(kind, done) for kind, done in continued]
    return ForkResult(proposal.trajectory, proposal.message, [_line(result) for result in results], lines)


def _unless_barred(done: Continued, barred: Container[str]) -> Continued:
    if done.fork is None or done.fork.id not in barred:
        return done
    return done._replace(fork=None, ending=Ending("erased", done.fork.id))


def _line(result: Result) -> ForkLine:
    code, detail = result.refusal or (None, "")
    way_out = "" if code is None else sentence_of(REPAIR, code)
    fork = result.fork
    return ForkLine(result.kind, fork.id if fork else None, result.refusal is None, code, detail, way_out)


def _continued_line(kind: str, done: Continued) -> ContinuedLine:
    trajectory = None if done.fork is None else done.fork.trajectory
    usage = (None if trajectory is None else trajectory.usage) or Usage()
    return ContinuedLine(
        kind=kind,
        id=None if done.fork is None else done.fork.id,
        policy=None if trajectory is None or trajectory.fork is None else trajectory.fork.continued_by,
        decisions=done.decisions,
        ended=done.ending.code,
        detail=done.ending.detail,
        way_out=sentence_of(CONTINUATION, done.ending.code),
        task=None if done.checked is None else done.checked.result,
        budget=done.allowance.detail,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cost=usage.cost,
    )

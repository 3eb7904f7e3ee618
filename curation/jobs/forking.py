"""Forking one decision of a stored trajectory, with a call that somebody gives."""

import msgspec

from curation.jobs.cases import place_of, read_known
from curation.jobs.repairing import store_forks
from curation.objections import objections
from curation.proposals import Proposal
from curation.repair import Result, fork_both, statements_of
from curation.store import Store
from curation.worlds import open_worlds
from environments.blobs import MemoryBlobs
from schemas.reasons import REPAIR, sentence_of


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


def fork_attempt(store: Store, environment: str, proposal: Proposal) -> ForkResult:
    """Both forks of one proposal, whatever rules would say of the decision; a person's is a finding about it too."""
    name = place_of(store, environment, proposal.trajectory)
    (known,) = read_known(store, [proposal.trajectory], name)
    with open_worlds(name) as worlds, store.batch() as batch:
        results = fork_both(known.case, proposal, worlds, MemoryBlobs(), revised=known.revised)
        forks = [result.fork for result in results if result.fork is not None]
        said = objections(known.case, known.findings, [proposal])
        store_forks(store, batch, forks, [*said, *statements_of(known.case, results, worlds[0].spec)])
        store.write(batch)
    return ForkResult(proposal.trajectory, proposal.message, [_line(result) for result in results])


def _line(result: Result) -> ForkLine:
    code, detail = result.refusal or (None, "")
    way_out = "" if code is None else sentence_of(REPAIR, code)
    fork = result.fork
    return ForkLine(result.kind, fork.id if fork else None, result.refusal is None, code, detail, way_out)

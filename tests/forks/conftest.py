from collections.abc import Callable, Iterator
from typing import Any

import pytest

from curation.diagnosis.evidence import Case
from curation.proposals import Proposal, ProposedCall
from curation.replay import replay
from curation.worlds import World, open_worlds
from environments.blobs import MemoryBlobs
from schemas.canonical import raw
from schemas.trajectory import Author, Reads, Trajectory, trajectory_id

Worlds = tuple[World, ...]
RULE = Author("rule", "test", "1")


@pytest.fixture(scope="session")
def inventory() -> Iterator[Worlds]:
    with open_worlds("inventory") as worlds:
        yield worlds


@pytest.fixture(scope="session")
def booking() -> Iterator[Worlds]:
    with open_worlds("booking") as worlds:
        yield worlds


@pytest.fixture
def blobs() -> MemoryBlobs:
    return MemoryBlobs()


@pytest.fixture
def replayed(blobs: MemoryBlobs) -> Callable[[Trajectory, Worlds], Case]:
    """A trajectory with what executing its calls again says of it."""

    def build(trajectory: Trajectory, worlds: Worlds) -> Case:
        identity = trajectory_id(trajectory)
        return Case(
            identity,
            trajectory,
            verifications=replay(identity, trajectory, worlds[0], blobs).verifications,
            spec=worlds[0].spec,
        )

    return build


@pytest.fixture
def propose() -> Callable[..., Proposal]:
    """A proposal for the first call of a decision, by default of a rule that read the request."""

    def build(
        case: Case,
        message: int,
        *calls: tuple[str, dict[str, Any]],
        by: Author = RULE,
        reads: tuple[Reads, ...] = ("request",),
    ) -> Proposal:
        made = tuple(ProposedCall(name, raw(arguments)) for name, arguments in calls)
        return Proposal(case.trajectory_id, message, f"{message}.0", made, by, reads)

    return build

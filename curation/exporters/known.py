"""What is written of a trajectory beside its record."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from curation.clocks import NO_CLOCKS, Clocks
from schemas.statements import Annotation, Verification
from schemas.trajectory import Attempt, Trajectory


class Known(NamedTuple):
    """A trajectory with its id, the attempt at the root of its lineage, its tool list, and the statements that hold.

    ``blobs`` are the bytes that its messages refer to, by digest; ``findings`` are counted.
    """

    id: str
    trajectory: Trajectory
    root: Attempt = Attempt()
    tools: list[Any] | None = None
    annotations: tuple[Annotation, ...] = ()
    verifications: tuple[Verification, ...] = ()
    clocks: Clocks = NO_CLOCKS
    blobs: Mapping[str, bytes] = {}
    findings: int = 0

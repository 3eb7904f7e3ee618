"""What was erased and is made again by right: whoever writes it lifts its tombstone in the same batch.

A fork may come back when every record it went with has; one that was erased by its own name never does. An object may,
where what is written with it is about nothing erased: then another, or a readmitted, record brings it. Raw lines and
attempts come back by ``import --readmit`` alone, whose tombstones are in the batch already.
"""

from collections.abc import Iterable

from curation.store import clearing
from curation.store.batch import Batch
from schemas.tombstones import Tombstone
from schemas.trajectory import Author

_AUTHOR = Author("rule", "made_again")


def lift(uri: str, batch: Batch, names: Iterable[str], erased: frozenset[str]) -> set[str]:
    """Put into a batch the tombstones that lift those of these erased digests that it brings back by right.

    Returns the others: what is about them must not be written.
    """
    stones = clearing.read_stones(uri, set(names))
    back = {
        name
        for name, held in stones.items()
        if batch.has("objects", name) and all(stone.kind not in ("raw", "trajectory", "fork") for _, stone in held)
    }
    while more := {name for name in stones.keys() - back if _follows(batch, name, stones[name], erased - back)}:
        back |= more
    for name in sorted(back):
        for identity, stone in stones[name]:
            batch.add_tombstone(Tombstone(name, stone.kind, _AUTHOR, lifted=True, supersedes=(identity,)))
    return stones.keys() - back


def _follows(batch: Batch, name: str, held: Iterable[tuple[str, Tombstone]], erased: frozenset[str]) -> bool:
    """Whether this batch makes a fork again, of records that are all there again."""
    return batch.has("trajectories", name) and all(
        stone.kind == "fork" and stone.of and erased.isdisjoint(stone.of) for _, stone in held
    )

"""The states from which a stored trajectory can be forked: its start, else the snapshots that earlier forks left."""

import msgspec

from curation.diagnosis.evidence import Case
from curation.fork_plan import Checkpoints, state_at
from curation.store import Store
from curation.worlds import World
from environments.protocol import Blobs, StartError
from schemas.objects import Snapshot
from schemas.trajectory import Task, decode


def checkpoints_of(store: Store, case: Case, world: World, blobs: Blobs) -> Checkpoints:
    """What opens the state before which message; the images of snapshots are put into ``blobs``.

    Where the start state opens, it alone, so that a fork that is made again is the same one. A snapshot counts if it is
    of this environment and of the state that the record is known to have been in.
    """
    try:
        with world.open(case.trajectory.task, blobs):
            return {0: case.trajectory.task}
    except StartError:
        found: dict[int, Task | Snapshot] = {}
    rows = store.sql("SELECT record FROM trajectories WHERE parent = $1 OR id = $1 ORDER BY id", [case.trajectory_id])
    for record in rows["record"].to_pylist():
        fork = decode(record).fork
        if fork is None or fork.restore.snapshot is None or fork.restore.environment != world.spec.name:
            continue
        snapshot = msgspec.json.decode(store.object(fork.restore.snapshot), type=Snapshot)
        if state_at(case.verifications, fork.branch_point) in (None, snapshot.digest):
            blobs.put(store.object(snapshot.blob))
            found[fork.branch_point] = snapshot
    return found

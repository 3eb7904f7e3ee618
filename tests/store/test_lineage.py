"""Forks of forks: a chain of thousands is written, read, shown, checked and erased like one of two."""

from pathlib import Path

from msgspec.structs import replace

from curation.forget import forget
from curation.jobs.cases import version_inferred
from curation.show import TrajectoryView, show
from curation.store.fsck import check
from curation.store.lookup import resolve
from schemas.trajectory import Trajectory, trajectory_id
from tests.ingest.logs import new_store
from tests.store.stores import failing, fork_of, put

LENGTH = 5_000


def chain(first: Trajectory, length: int) -> list[Trajectory]:
    """A record, a fork of it, a fork of that, and so on."""
    found = [first]
    pattern = fork_of(trajectory_id(first))
    assert pattern.fork is not None
    for _ in range(length):
        found.append(replace(pattern, fork=replace(pattern.fork, parent=trajectory_id(found[-1]))))
    return found


def test_a_chain_of_thousands_of_forks_is_followed_to_its_ends(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    ids = put(store, *chain(failing(), LENGTH))
    assert len(set(ids)) == LENGTH + 1
    last = store.trajectory(ids[-1])
    assert last.fork is not None
    assert last.fork.parent == ids[-2]
    view = show(store, resolve(store, ids[LENGTH // 2]))
    assert isinstance(view, TrajectoryView)
    assert [line.id for line in view.forks] == [ids[LENGTH // 2 + 1]]
    assert version_inferred(store, ids[-1:]) == frozenset()
    assert check(store.uri).problems == []
    assert forget(store, [ids[0]]).erased == {"fork": LENGTH, "trajectory": 1}

"""A damaged store says what is damaged, loses nothing else, and is never mended in silence."""

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from curation.errors import StoreError
from curation.show import BytesView, show
from curation.store import Store
from curation.store.fsck import check
from curation.store.lookup import resolve
from schemas.objects import make_object
from schemas.statements import Annotation
from schemas.trajectory import Author
from tests.store.stores import attempt, cut, failing, forge, fork_of, newest, put

Damage = Callable[[Path], Path]


def cut_data(table: Path) -> Path:
    """Cut the newest data file."""
    file = newest(table, "*.parquet")
    cut(file)
    return file


def cut_log(table: Path) -> Path:
    """Cut the newest log entry."""
    file = newest(table / "_delta_log", "0*.json")
    cut(file)
    return file


def cut_log_between_lines(table: Path) -> Path:
    """Cut the newest log entry where a line ends: what is left of it is valid."""
    file = newest(table / "_delta_log", "0*.json")
    file.write_bytes(file.read_bytes().splitlines(keepends=True)[0])
    return file


def empty_log(table: Path) -> Path:
    """Leave an empty newest log entry, as a full disk does."""
    file = newest(table / "_delta_log", "0*.json")
    file.write_bytes(b"")
    return file


def cut_log_after_checkpoint(table: Path) -> Path:
    """Cut the newest log entry of a table whose earlier state stands in a checkpoint."""
    version = DeltaTable(table.as_posix()).version()
    DeltaTable(table.as_posix(), version=version - 1).create_checkpoint()
    return cut_log(table)


def cut_log_under_checkpoint(table: Path) -> Path:
    """Cut the newest log entry of a table whose newest state stands in a checkpoint."""
    DeltaTable(table.as_posix()).create_checkpoint()
    return cut_log(table)


@pytest.mark.parametrize(
    "damage",
    [cut_data, cut_log, cut_log_between_lines, empty_log, cut_log_after_checkpoint, cut_log_under_checkpoint],
)
def test_a_torn_end_is_named_and_earlier_records_stay(tmp_path: Path, damage: Damage) -> None:
    folder = tmp_path / "store"
    store = Store.create(str(folder))
    earlier = [put(store, attempt(number))[0] for number in range(3)]
    (last,) = put(store, attempt(3))
    torn = damage(folder / "trajectories").name
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    assert any(torn in problem.id for problem in check(store.uri).problems)
    damaged = Store.open(store.uri)
    assert [damaged.trajectory(identity) for identity in earlier] == [attempt(number) for number in range(3)]
    view = show(damaged, resolve(damaged, earlier[0][:20]))
    assert isinstance(view, BytesView)
    assert (view.id, view.kind) == (earlier[0], "trajectory")
    for read in (
        lambda: damaged.sql("SELECT count(*) FROM attempts"),
        lambda: list(damaged.stream("SELECT id FROM trajectories", {}, 10)),
        lambda: damaged.trajectory(last),
        lambda: resolve(damaged, last),
    ):
        with pytest.raises(StoreError, match=torn.replace(".", r"\.")):
            read()
    with pytest.raises(StoreError, match=torn.replace(".", r"\.")):
        put(damaged, attempt(9))
    with pytest.raises(StoreError, match=torn.replace(".", r"\.")):
        put(store, attempt(9))
    left = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert before.items() <= left.items(), "nothing that was there is changed"
    assert {path.name for path in left.keys() - before.keys()} <= {path.name for path in folder.rglob("part-*.parquet")}


@pytest.mark.parametrize("damage", [cut_log, cut_log_between_lines, empty_log])
def test_the_way_out_of_a_torn_log_entry_works(tmp_path: Path, damage: Damage) -> None:
    folder = tmp_path / "store"
    store = Store.create(str(folder))
    put(store, attempt(1))
    put(store, attempt(2))
    damage(folder / "trajectories").unlink()

    store = Store.open(store.uri)
    put(store, attempt(2))
    assert store.sql("SELECT * FROM attempts").num_rows == 2
    assert check(store.uri) == (2, [], {})


def test_a_torn_first_entry_is_a_refusal(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = Store.create(str(folder))
    torn = cut_log(folder / "findings")
    with pytest.raises(StoreError, match=torn.name):
        Store.open(store.uri)
    assert any(torn.name in problem.problem for problem in check(store.uri).problems)


def test_a_missing_data_file_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = Store.create(str(folder))
    put(store, attempt(1))
    gone = newest(folder / "trajectories", "*.parquet")
    gone.unlink()
    assert [problem.id for problem in check(store.uri).problems] == [gone.name]
    with pytest.raises(StoreError, match=gone.name):
        Store.open(store.uri).sql("SELECT * FROM attempts")


def test_a_changed_record_is_named_by_every_read_with_the_forks_that_hang_on_it(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = Store.create(str(folder))
    (parent,) = put(store, failing())
    (fork,) = put(store, fork_of(parent))
    (fork_of_fork,) = put(store, fork_of(fork))
    (other,) = put(store, attempt(1))
    assert check(store.uri) == (4, [], {})
    forge(folder / "trajectories", parent, "A18", "A17")

    changed = Store.open(store.uri)
    assert not any(changed.torn.values()), "size and log agree"
    for read in (
        lambda: changed.trajectory(parent),
        lambda: list(changed.trajectories([other, parent])),
        lambda: changed.sql("SELECT record FROM trajectories"),
        lambda: show(changed, resolve(changed, parent)),
    ):
        with pytest.raises(StoreError, match=f"(?s)id_mismatch.*{parent}"):
            read()
    assert changed.trajectory(other) == attempt(1)

    problems = {problem.id: problem.problem for problem in check(store.uri).problems}
    assert problems.keys() == {parent, fork, fork_of_fork}
    assert "id_mismatch" in problems[parent]
    assert all(parent in problems[identity] for identity in (fork, fork_of_fork))


def test_changed_bytes_of_an_object_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = Store.create(str(folder))
    item = make_object("raw", b'{"messages":[]}')
    with store.batch() as batch:
        batch.add_object(item)
        store.write(batch)
    forge(folder / "objects", item.id, "messages", "massages", "bytes")
    with pytest.raises(StoreError, match=item.id):
        Store.open(store.uri).object(item.id)
    assert [problem.id for problem in check(store.uri).problems] == [item.id]


def test_a_column_that_no_longer_says_what_its_record_says_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = Store.create(str(folder))
    (identity,) = put(store, attempt(1))
    with store.batch() as batch:
        said = batch.add_statement(Annotation(identity, "split", "test", Author("human", "someone")))
        store.write(batch)
    forge(folder / "annotations", said, "test", "tesy", "value")
    (problem,) = check(store.uri).problems
    assert (problem.id, problem.table) == (said, "annotations")


def test_a_history_that_is_not_appending_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = Store.create(str(folder))
    for number in range(2):
        put(store, attempt(number))
    DeltaTable((folder / "trajectories").as_posix()).restore(1)
    problems = check(store.uri).problems
    assert any("RESTORE" in problem.problem for problem in problems)

"""One write path: what is written once stays, whoever writes at the same time."""

import subprocess
import sys
from pathlib import Path

import pytest

from curation.errors import NotFoundError, StoreError, UsageError
from curation.store import Store
from curation.store.fsck import check
from schemas.objects import Object, make_object
from schemas.statements import Annotation
from schemas.trajectory import Author, trajectory_id
from tests.store.stores import attempt, put

ROOT = Path(__file__).parents[2]

APPEND = """
import sys
from curation.store import Store
from tests.store.stores import attempt, put

store, first, last = Store.open(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for number in range(first, last):
    put(store, attempt(number))
"""


def append(store: Store, first: int, last: int) -> "subprocess.Popen[bytes]":
    """A process that writes records, each in a commit of its own."""
    return subprocess.Popen([sys.executable, "-c", APPEND, store.uri, str(first), str(last)], cwd=ROOT)


def test_eight_processes_append_and_nothing_is_lost(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    writers = [append(store, 25 * number, 25 * (number + 1)) for number in range(8)]
    assert [writer.wait() for writer in writers] == [0] * 8

    ids = Store.open(store.uri).sql("SELECT id FROM trajectories")["id"].to_pylist()
    assert sorted(ids) == sorted(trajectory_id(attempt(number)) for number in range(200))
    assert check(store.uri) == (200, [], {})


def test_processes_that_write_the_same_records_leave_one_row_each(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    writers = [append(store, first, first + 8) for first in (0, 2, 4, 0)]
    assert [writer.wait() for writer in writers] == [0] * 4
    assert check(store.uri) == (12, [], {})


def test_what_is_there_is_not_written_again(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    with store.batch() as batch:
        identity = batch.add_trajectory(attempt(1), "1" * 64)
        batch.add_statement(Annotation(identity, "split", "train", Author("human")))
        batch.add_object(make_object("blob", b"bytes"))
        written = store.write(batch)
    assert {table: rows for table, rows in written.items() if rows} == {
        "objects": 1,
        "annotations": 1,
        "trajectories": 1,
    }

    with store.batch() as batch:
        batch.add_trajectory(attempt(1), "1" * 64)
        batch.add_trajectory(attempt(2), "2" * 64)
        batch.add_object(make_object("blob", b"bytes"))
        written = store.write(batch)
    assert {table: rows for table, rows in written.items() if rows} == {"trajectories": 1}
    assert store.sql("SELECT count(*) AS n FROM attempts")["n"].to_pylist() == [2]


def test_of_two_writers_with_different_records_of_one_attempt_the_second_is_refused(tmp_path: Path) -> None:
    Store.create(str(tmp_path))
    first, second = Store.open(str(tmp_path)), Store.open(str(tmp_path))
    with first.batch() as ours, second.batch() as theirs:
        kept = ours.add_trajectory(attempt(1), "one and the same")
        theirs.add_trajectory(attempt(2), "one and the same")
        first.write(ours)
        with pytest.raises(StoreError, match="run the same command again"):
            second.write(theirs)
    assert Store.open(str(tmp_path)).sql("SELECT id FROM trajectories")["id"].to_pylist() == [kept]


def test_a_batch_that_is_not_written_is_invisible(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    with store.batch() as batch:
        batch.add_trajectory(attempt(1), "1" * 64)
        batch.finish()
    assert list((tmp_path / "store" / "trajectories").glob("*.parquet")), "the staged file is there"
    assert Store.open(store.uri).sql("SELECT * FROM trajectories").num_rows == 0
    assert check(store.uri) == (0, [], {})


def test_only_init_creates_a_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="curate init"):
        Store.open(str(tmp_path / "nothing"))
    assert not (tmp_path / "nothing").exists()
    Store.create(str(tmp_path / "store"))
    with pytest.raises(StoreError, match="store"):
        Store.create(str(tmp_path / "store"))


@pytest.mark.parametrize(
    "query",
    [
        "DROP VIEW attempts",
        "SELECT 1; SELECT 2",
        "COPY (SELECT 1) TO 'x.csv'",
        "SELECT * FROM read_text('/etc/hostname')",
        "ATTACH 'x.db'",
        "SELECT nope FROM attempts",
    ],
)
def test_sql_reads_this_store_and_nothing_else(tmp_path: Path, query: str) -> None:
    store = Store.create(str(tmp_path / "store"))
    with pytest.raises(UsageError):
        store.sql(query)
    assert store.sql("SELECT * FROM attempts").num_rows == 0


def test_a_store_in_a_folder_with_a_name_like_a_pattern(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "it's [a] *store?"))
    (identity,) = put(store, attempt(1))
    assert store.trajectory(identity) == attempt(1)
    assert check(store.uri) == (1, [], {})


def test_an_unknown_id_is_not_found(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    with pytest.raises(NotFoundError, match="f00"):
        store.trajectory("f00")
    with pytest.raises(NotFoundError, match="f00"):
        store.object("f00")


def test_bytes_under_a_name_that_is_not_theirs_are_refused(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path))
    with store.batch() as batch, pytest.raises(StoreError, match="id_mismatch"):
        batch.add_object(Object("0" * 64, "raw", b"x"))
    assert store.sql("SELECT * FROM objects").num_rows == 0

"""What a name stands for: an id, a run, the id that a log gives."""

from pathlib import Path

import pytest

from curation.errors import NotFoundError
from curation.store.lookup import resolve, resolve_trajectory
from tests.ingest.logs import attempts, import_lines, new_store, run


def test_a_record_with_a_run_is_found_by_its_logged_id_too(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("first/é", run="nightly", attempt=1), run("second", "A18", run="weekly")])
    ids = {row["run"]: row["trajectory_id"] for row in attempts(store)}
    for name, wanted in (("first/é", "nightly"), ("nightly", "nightly"), ("second", "weekly")):
        assert resolve_trajectory(store, name) == ids[wanted]
    for name in ("first", "first/", "third", ""):
        with pytest.raises(NotFoundError):
            resolve(store, name)


def test_a_logged_id_of_several_attempts_is_refused_with_their_ids(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("same", run="one"), run("same", run="two")])
    with pytest.raises(NotFoundError, match="not unique") as refused:
        resolve(store, "same")
    assert all(row["trajectory_id"][:16] in str(refused.value) for row in attempts(store))


def test_a_number_is_a_logged_id(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    line = run(None, run="one") | {"id": 17}
    import_lines(store, tmp_path, [line])
    assert resolve(store, "17").id == attempts(store)[0]["trajectory_id"]


def test_no_log_takes_the_id_of_another_record(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a")])
    (known,) = attempts(store)
    whole, short = known["trajectory_id"], known["trajectory_id"][:12]
    import_lines(
        store, tmp_path, [run(whole, "A18", run="b"), run(whole, "B17"), run(short, "C17", run="d")], "b.jsonl"
    )
    assert resolve(store, whole).id == whole
    assert resolve(store, short).id == whole

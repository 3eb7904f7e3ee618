"""Reading logs into the store: nothing is lost, nothing is invented, nothing is read twice."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from builders.build import build
from curation.errors import UsageError
from curation.ingest import IngestOptions, find_sources, ingest
from curation.readers import Readers
from curation.selections import RowView
from curation.show import TrajectoryView, list_attempts, show
from curation.store import Store
from curation.store.fsck import check
from curation.store.lookup import resolve, resolve_trajectory
from reports.selection_bias import selection_bias
from tests.ingest.logs import attempts, import_file, import_lines, new_store, records, run, write

ROOT = Path(__file__).parents[2]


def test_torn_and_trailing_lines_are_quarantined_with_their_place(tmp_path: Path) -> None:
    whole = json.dumps(run("a")).encode()
    lines = [whole, b'{"type":"result","call":"c1","out', json.dumps(run("b")).encode(), b'{"a":2}TRAILER']
    store = new_store(tmp_path)
    result = import_lines(store, tmp_path, lines)

    assert (result.read, result.accepted, result.duplicates, result.quarantined) == (4, 2, 0, 2)
    assert result.reasons == {"trailing_text": 1, "truncated": 1}
    rows = store.sql(
        'SELECT name, place, "offset", code, detail, raw FROM sightings WHERE code IS NOT NULL ORDER BY place'
    )
    first, second = rows.to_pylist()
    assert (first["place"], first["offset"], first["code"]) == (2, len(whole) + 1, "truncated")
    assert (second["place"], second["code"]) == (4, "trailing_text")
    for row, line in ((first, lines[1]), (second, lines[3])):
        assert row["name"].endswith("log.jsonl")
        assert row["detail"]
        assert store.object(row["raw"]) == line
    assert store.sql("SELECT * FROM trajectories WHERE record IS NULL OR attempt_id IS NULL").num_rows == 0
    assert check(store.uri).problems == []


def test_an_outcome_that_nobody_states_is_unknown(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    silent, null = run("silent", error="verifier timed out"), run("null", outcome=None, score=None)
    import_lines(store, tmp_path, [silent, null, run("failed", outcome=False)])
    outcomes = {row["run"]: (row["outcome"], row["outcome_by"], row["score"]) for row in attempts(store)}
    assert outcomes == {
        "silent": ("unknown", None, None),
        "null": ("unknown", None, None),
        "failed": ("failure", "log", None),
    }


def test_tasks_are_those_that_are_named_and_an_attempt_without_one_is_its_own_everywhere(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    named = [run(name, task=task) for name, task in (("a", "t1"), ("b", "t1"), ("c", "t2"))]
    result = import_lines(store, tmp_path, [*named, *(run(f"own-{number}", f"A{number}") for number in range(5))])
    assert (result.tasks, result.without_task) == (2, 5)
    found = build(store, None, tmp_path / "rows")
    report = selection_bias(store)
    assert found.tasks == report.tasks == result.tasks + result.without_task
    assert report.attempts_without_task == result.without_task


def test_nothing_is_left_out_inside_a_record(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    yes = {"role": "user", "content": "yes"}
    turns = [yes, {"role": "assistant", "content": "Sure?"}, yes, {"role": "assistant", "content": "Sure?"}, yes]
    import_lines(store, tmp_path, [{"id": "a", "messages": turns}])
    ((record, _),) = [(identity, text) for identity, text in records(store).items()]
    assert [message.content for message in store.trajectory(record).messages] == [turn["content"] for turn in turns]


def test_reading_again_adds_sightings_and_nothing_else(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    first = write(tmp_path / "first.jsonl", [run("a", outcome=True), run("b", "A18", outcome=False), b"{"])
    import_file(store, first)
    before, rows = attempts(store), store.sql("SELECT * FROM sightings").num_rows
    other = tmp_path / "elsewhere" / "second.jsonl"
    other.parent.mkdir()
    shutil.copy(first, other)
    os.utime(other, (1, 1))

    again = import_file(store, other)
    assert (again.read, again.accepted, again.duplicates, again.quarantined) == (3, 0, 2, 1)
    assert store.sql("SELECT * FROM sightings").num_rows == rows + 3
    assert attempts(store) == before
    import_file(store, other)
    assert store.sql("SELECT * FROM sightings").num_rows == rows + 3, "the same place is seen once"
    assert check(store.uri).problems == []


def test_a_folder_is_read_whole_and_the_same_in_several_processes(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / "logs" / f"{number}.jsonl", [run(f"{number}-{line}") for line in range(40)])
    sources = find_sources([tmp_path / "logs"], "auto")
    with Readers(2) as readers:
        one, several = new_store(tmp_path, "one"), new_store(tmp_path, "several")
        assert ingest(one, sources, IngestOptions()) == ingest(several, sources, IngestOptions(), readers)
    assert records(one) == records(several)
    assert attempts(one) == attempts(several)
    assert len(attempts(one)) == 120


def test_files_of_no_format_inside_a_folder_are_passed_over_and_named(tmp_path: Path) -> None:
    write(tmp_path / "logs" / "a.jsonl", [run("a")])
    (tmp_path / "logs" / "PROVENANCE.txt").write_text("where these come from")
    result = ingest(new_store(tmp_path), find_sources([tmp_path / "logs"], "auto"), IngestOptions())
    assert (result.read, result.accepted) == (1, 1)
    ((name, why),) = result.passed_over.items()
    assert name.endswith("logs/PROVENANCE.txt")
    assert "not a log of a known format" in why


def test_what_is_no_log_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("no log")
    for path in (tmp_path / "empty", tmp_path / "notes.txt"):
        with pytest.raises(UsageError, match=path.name):
            find_sources([path], "auto")
    with pytest.raises(UsageError, match="nope"):
        find_sources([tmp_path / "notes.txt"], "nope")


def test_eight_processes_read_overlapping_files_into_one_row_an_id(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    lines = [run(f"run-{number}", outcome=number % 2 == 0) for number in range(30)]
    files = [write(tmp_path / f"{part}.jsonl", lines[part * 2 : part * 2 + 16]) for part in range(8)]
    script = (
        "import sys; from pathlib import Path; from curation.store import Store;"
        "from tests.ingest.logs import import_file;"
        "print(import_file(Store.open(sys.argv[1]), Path(sys.argv[2])).accepted)"
    )
    command = [sys.executable, "-c", script, store.uri]
    readers = [subprocess.Popen([*command, str(file)], cwd=ROOT, stdout=subprocess.PIPE, text=True) for file in files]
    said = [reader.communicate()[0] for reader in readers]
    assert [reader.returncode for reader in readers] == [0] * 8
    assert sum(map(int, said)) == 30, "each record was brought by one of them"

    opened = Store.open(store.uri)
    assert len(attempts(opened)) == 30
    assert {row["outcome"] for row in attempts(opened)} == {"success", "failure"}
    assert check(store.uri).problems == []
    alone = new_store(tmp_path, "alone")
    import_lines(alone, tmp_path, lines, "all.jsonl")
    assert attempts(alone) == attempts(opened)


KILLED = """
import os, signal, sys
from pathlib import Path
from curation.store import Store, files
from tests.ingest.logs import import_file

commit = files.try_commit
def stop(uri, table, *rest):
    if table == "trajectories":
        print("before the import", flush=True)
        signal.pause()
    return commit(uri, table, *rest)

files.try_commit = stop
import_file(Store.open(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_killed_import_is_invisible_and_finished_by_running_it_again(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("earlier", outcome=True)], "earlier.jsonl")
    log = write(tmp_path / "log.jsonl", [run("a", outcome=True, split="train"), run("b", "A18", outcome=False), b"{"])
    child = subprocess.Popen([sys.executable, "-c", KILLED, store.uri, str(log)], cwd=ROOT, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"before the import\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()

    after = Store.open(store.uri)
    assert [row["run"] for row in attempts(after)] == ["earlier"]
    assert after.sql("SELECT * FROM annotations").num_rows == 1, "what is said is there already, of nothing"
    assert after.sql("SELECT * FROM effective_annotations").num_rows == 0
    assert check(store.uri).problems == []

    result = import_file(after, log)
    assert (result.accepted, result.quarantined) == (2, 1)
    whole = new_store(tmp_path, "whole")
    import_file(whole, tmp_path / "earlier.jsonl")
    import_file(whole, log)
    assert attempts(after) == attempts(whole)
    assert check(store.uri).problems == []


@pytest.mark.parametrize(
    "name", ["../../x", "CON", "a/b", "x" * 300, "a\x00b", "nul.jsonl", "' OR 1=1 --", "*", "\u202egpj.exe", ""]
)
def test_names_out_of_a_log_name_no_file(tmp_path: Path, name: str) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run(name, task=name, strata={name: name}, group=name)])
    (row,) = attempts(store)
    assert (row["run"], row["task"], row["group"], row["strata"]) == (name, name, name, {name: name})
    assert resolve_trajectory(store, row["attempt_id"][:16]) == row["trajectory_id"]
    files = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.parts[0] for path in files} == {"log.jsonl", "store"}
    assert all(
        part.replace("-", "").replace("_", "").replace(".", "").isalnum() for path in files for part in path.parts
    )
    assert not list(tmp_path.parent.glob("x"))


def test_an_attempt_is_shown_down_to_its_log_line(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a"), run("b", "A18", outcome=False, strata={"level": "hard"}, error="gave up")])
    listed = list_attempts(store, 1)
    assert (listed.attempts, listed.shown) == (2, 1)
    (row,) = [row for row in attempts(store) if row["run"] == "b"]
    for name in (row["trajectory_id"], row["attempt_id"], row["trajectory_id"][:12], "b"):
        view = show(store, resolve(store, name))
        assert not isinstance(view, RowView)
        assert view.id == row["trajectory_id"]
    assert isinstance(view, TrajectoryView)
    assert (view.outcome, view.stop_text, view.facts["strata.level"]) == ("failure", "gave up", "hard")
    (place,) = view.read_from
    assert (place.file, place.place) == ((tmp_path / "log.jsonl").as_posix(), 2)
    assert json.loads(store.object(place.raw)) == run(
        "b", "A18", outcome=False, strata={"level": "hard"}, error="gave up"
    )

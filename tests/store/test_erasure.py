"""Erasure: the one thing that is ever taken away, gone from every byte on disk, and nothing else with it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from deltalake import DeltaTable
from msgspec.structs import replace

from curation.erasures import barred_forks
from curation.errors import NotFoundError, StoreError, UsageError
from curation.forget import ForgetResult, forget
from curation.store import Store
from curation.store.fsck import check
from schemas.canonical import encode
from schemas.objects import Object, Snapshot, make_object, tools_object
from schemas.selection import Difference, Selection
from schemas.statements import Annotation, Evidence, Finding, Verification
from schemas.tombstones import Tombstone
from schemas.trajectory import Author, Conditions, Message, Part, Trajectory, trajectory_id
from tests.ingest.logs import import_lines, run
from tests.records import record
from tests.store.erasing import bytes_of, files_with
from tests.store.stores import attempt, failing, fork_of, put

ROOT = Path(__file__).parents[2]
WORD = "Zaphodbeeble"
HUMAN = Author("human", "someone")


def erase(store: Store, *names: str) -> ForgetResult:
    """Erase for good."""
    return forget(store, names, reason="asked to", by="somebody", dry_run=False)


def secret(number: int = 0) -> Trajectory:
    """A record with the word that must go."""
    return record(f"I am {WORD}, A{number}?", ("get_stock", {"sku": f"A{number}"}), {"stock": 1}, "One.")


def saying(trajectory: str, outcome: str = "passed") -> list[Annotation | Finding | Verification]:
    """Facts, an outcome, and a finding that quotes the record."""
    quoted = (Evidence("request", 0, value=WORD),)
    return [
        Annotation(trajectory, "strata.customer", "large", Author("side_file")),
        Annotation(trajectory, "split", "test", Author("side_file")),
        Annotation(trajectory, "group", f"{WORD}s", Author("side_file")),
        Finding(trajectory, 1, "argument", Author("rule", "r"), evidence=quoted),
        Verification(trajectory, "task", "passed" if outcome == "passed" else "failed", Author("log"), detail=WORD),
    ]


def told(folder: Path) -> tuple[Store, str, str]:
    """A store in which one attempt of two, and its fork, hold the word; all of it in the same data files."""
    store = Store.create(str(folder / "store"))
    with store.batch() as batch:
        going, staying = batch.add_trajectory(secret(), "1" * 64), batch.add_trajectory(failing(), "2" * 64)
        fork = fork_of(going)
        batch.add_trajectory(replace(fork, messages=(*secret().messages[:1], *fork.messages[1:])))
        for statement in (*saying(going), *saying(staying, "failed")[:2]):
            batch.add_statement(statement)
        quote = (Difference("not_derivable", "name", WORD),)
        batch.add_selection(Selection("b", "recovery", "1" * 64, going, 1, kept=True, sample="5" * 64, detail=quote))
        batch.add_selection(Selection("b", "preference", "2" * 64, staying, 1, partner=going, detail=quote))
        batch.add_selection(Selection("b", "recovery", "2" * 64, staying, 1, kept=True, sample="6" * 64))
        store.write(batch)
    return store, going, staying


def test_the_bytes_are_in_no_file_and_all_else_is_as_it_was(tmp_path: Path) -> None:
    store, going, staying = told(tmp_path)
    folder = tmp_path / "store"
    assert len(files_with(folder, WORD)) == 5
    before = bytes_of(folder)

    done = erase(store, going)
    assert (done.erased, done.statements, done.selections) == ({"fork": 1, "trajectory": 1}, 5, 2)
    assert files_with(folder, WORD) == []
    after = bytes_of(folder)
    gone = {name.partition("/")[0] for name in before.keys() - after.keys()}
    assert gone == {"annotations", "findings", "selections", "trajectories", "verifications"}
    assert {name for name in before.keys() & after.keys() if before[name] != after[name]} == set()

    assert store.trajectory(staying) == failing()
    assert Store.open(store.uri).trajectory(staying) == failing()
    with pytest.raises(NotFoundError, match="was erased"):
        store.trajectory(going)
    assert check(store.uri) == (8, [], {"fork": 1, "trajectory": 1})


def test_an_erased_attempt_still_counts(tmp_path: Path) -> None:
    store, going, staying = told(tmp_path)
    counted = (
        "SELECT attempt_id, trajectory_id, outcome, strata, split, messages, calls FROM attempts ORDER BY attempt_id"
    )
    before = store.sql(counted).to_pylist()
    assert [row["outcome"] for row in before] == ["success", "unknown"]
    erase(store, going)
    assert store.sql(counted).to_pylist() == before
    assert store.sql("SELECT trajectory_id FROM attempts WHERE erased")["trajectory_id"].to_pylist() == [going]
    (stone,) = store.sql("SELECT reason, author_name FROM tombstones WHERE attempt_id IS NOT NULL").to_pylist()
    assert stone == {"reason": "asked to", "author_name": "somebody"}
    assert store.sql("SELECT id FROM effective_findings WHERE trajectory = ?", [going]).num_rows == 0
    assert store.sql("SELECT value FROM effective_annotations WHERE trajectory = ?", [staying]).num_rows == 2


def test_what_an_attempt_shares_with_no_other_is_not_kept_in_its_tombstone(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    ids = put(store, attempt(1), attempt(2), attempt(3))
    with store.batch() as batch:
        for identity, group in zip(ids, ("one", "one", WORD), strict=True):
            batch.add_statement(Annotation(identity, "group", group, Author("side_file")))
        store.write(batch)
    erase(store, ids[0], ids[2])
    groups = store.sql('SELECT trajectory_id, "group" FROM attempts').to_pylist()
    assert {row["trajectory_id"]: row["group"] for row in groups} == {ids[0]: "one", ids[1]: "one", ids[2]: None}
    assert files_with(tmp_path / "store", WORD) == []


def test_the_decisions_of_a_build_stay_and_say_which_side_is_erased(tmp_path: Path) -> None:
    store, going, _ = told(tmp_path)
    (build,) = erase(store, going).builds
    assert (build.build, build.kind, build.samples) == ("b", "recovery", ("5" * 64,))
    rows = store.sql("SELECT kind, sample, record FROM selections ORDER BY kind, sample").to_pylist()
    marks = [f'"detail":[{{"check":"erased","field":"{side}","left":"{going}"}}]' for side in ("partner", "trajectory")]
    assert [mark in row["record"] for row, mark in zip(rows, marks, strict=False)] == [True, True]
    assert "erased" not in rows[2]["record"]
    held = bytes_of(tmp_path / "store" / "selections")
    erase(store)
    assert bytes_of(tmp_path / "store" / "selections") == held, "what is marked is not written again"


def test_a_dry_run_tells_the_same_and_changes_no_byte(tmp_path: Path) -> None:
    store, going, _ = told(tmp_path)
    before = bytes_of(tmp_path / "store")
    dry = forget(store, [going[:12]])
    assert bytes_of(tmp_path / "store") == before
    done = erase(store, going)
    assert (dry.done, done.done) == (False, True)
    assert (dry.erased, dry.attempts, dry.statements) == (done.erased, done.attempts, done.statements)


def test_what_others_refer_to_goes_with_the_last_of_them(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    tools, picture, own = tools_object([{"name": WORD}]), make_object("blob", b"picture"), make_object("blob", b"own")
    image, base = make_object("blob", WORD.encode()), make_object("blob", b"base")
    snapshot = Snapshot("world", "1", "", "logical", "whole", image.id, base.id)
    shot = make_object("snapshot", encode(snapshot))
    conditions = Conditions(tools=tools.id)

    def seen(number: int, *pictures: Object) -> Trajectory:
        parts = tuple(Part("image", sha256=item.id) for item in pictures)
        return replace(attempt(number), messages=(Message("user", parts),), conditions=conditions)

    first, second = seen(1, picture, own), seen(2, picture)
    with store.batch() as batch:
        for item in (tools, picture, own, image, base, shot):
            batch.add_object(item)
        one, two = batch.add_trajectory(first, "1" * 64), batch.add_trajectory(second, "2" * 64)
        fork = fork_of(one)
        assert fork.fork is not None
        restore = replace(fork.fork.restore, snapshot=shot.id)
        batch.add_trajectory(replace(fork, fork=replace(fork.fork, restore=restore)))
        store.write(batch)

    assert erase(store, one).erased == {"blob": 3, "fork": 1, "snapshot": 1, "trajectory": 1}
    assert store.object(picture.id) == b"picture"
    assert check(store.uri).problems == []
    with pytest.raises(UsageError, match="record that stays"):
        erase(store, picture.id)
    assert erase(store, two).erased == {"blob": 1, "tools": 1, "trajectory": 1}
    assert store.sql("SELECT id FROM objects").num_rows == 0
    assert files_with(tmp_path / "store", WORD) == []


def test_a_correction_that_was_taken_from_an_attempt_goes_with_it(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    going, staying = put(store, secret(), failing())
    fork = fork_of(staying)
    assert fork.fork is not None
    correction = replace(fork.fork.correction, author=Author("sibling", going))
    (copied,) = put(store, replace(fork, fork=replace(fork.fork, correction=correction)))
    (other,) = put(store, fork)
    assert erase(store, going).erased == {"fork": 1, "trajectory": 1}
    left = set(store.sql("SELECT id FROM trajectories")["id"].to_pylist())
    assert left == {staying, other}
    assert copied not in left


@pytest.mark.parametrize("names", [(), ("1" * 64,)])
def test_an_erasure_that_was_killed_is_told_and_ended_by_the_next(tmp_path: Path, names: tuple[str, ...]) -> None:
    store, going, staying = told(tmp_path)
    with store.batch() as batch:  # what a run killed after its first commit leaves
        batch.add_tombstone(Tombstone(going, "trajectory", HUMAN))
        store.write(batch)
    left = [problem for problem in check(store.uri).problems if "curate forget" in problem.problem]
    assert {problem.table for problem in left} == {
        "annotations",
        "findings",
        "selections",
        "trajectories",
        "verifications",
    }

    erase(store, *names or [going])
    erase(store)
    assert files_with(tmp_path / "store", WORD) == []
    assert check(store.uri).problems == []
    assert store.trajectory(staying) == failing()


def test_files_that_a_killed_run_left_beside_a_table_go_too(tmp_path: Path) -> None:
    store, going, _ = told(tmp_path)
    (held,) = (tmp_path / "store" / "trajectories").glob("*.parquet")
    other = Store.create(str(tmp_path / "other"))
    put(other, attempt(1))
    (foreign,) = (tmp_path / "other" / "trajectories").glob("*.parquet")
    shutil.copy(held, held.with_name("part-left.parquet"))
    shutil.copy(foreign, held.with_name("part-other.parquet"))
    held.with_name("part-torn.parquet#1").write_bytes(b"PAR1")
    done = erase(store, going)
    assert done.unread == ["trajectories/part-torn.parquet#1"]
    assert files_with(tmp_path / "store", WORD) == []
    assert held.with_name("part-other.parquet").exists(), "what holds nothing erased is not ours to delete"

    shutil.copy(foreign, held.with_name("part-left.parquet"))
    assert check(store.uri).problems == []


def test_a_file_that_holds_what_is_erased_beside_a_table_is_told(tmp_path: Path) -> None:
    store, going, _ = told(tmp_path)
    (held,) = (tmp_path / "store" / "trajectories").glob("*.parquet")
    copy = shutil.copy(held, tmp_path / "copy")
    erase(store, going)
    shutil.copy(copy, held)
    assert [problem.id for problem in check(store.uri).problems] == [held.name]
    erase(store)
    assert not held.exists()


def test_who_writes_about_what_was_erased_meanwhile_is_refused(tmp_path: Path) -> None:
    store, going, staying = told(tmp_path)
    late = Store.open(store.uri)
    erase(store, going)
    said, fork = Annotation(going, "note", WORD, HUMAN), fork_of(going)
    for late_word, again, late_fork in ((said, None, None), (None, secret(), None), (None, None, fork)):
        with late.batch() as batch:
            if late_word:
                batch.add_statement(late_word)
            if again:
                batch.add_trajectory(again, "1" * 64)
            if late_fork:
                batch.add_trajectory(late_fork)
            with pytest.raises(StoreError, match="run the same command again"):
                late.write(batch)
    store.sweep()
    assert files_with(tmp_path / "store", WORD) == []
    assert check(store.uri).problems == []
    with late.batch() as batch:
        batch.add_statement(Annotation(staying, "note", "kept", HUMAN))
        assert late.write(batch)["annotations"] == 1


FORGET = """
import sys
from curation.forget import forget
from curation.store import Store

forget(Store.open(sys.argv[1]), sys.argv[2:], dry_run=False)
"""
APPEND = """
import sys
from curation.store import Store
from tests.store.stores import attempt, put

for number in range(100, 112):
    put(Store.open(sys.argv[1]), attempt(number))
"""


def test_two_that_erase_and_one_that_writes_do_not_hurt_each_other(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    going = put(store, *(secret(number) for number in range(4)))
    put(store, *(attempt(number) for number in range(4)))
    commands = [[FORGET, store.uri, *going[:2]], [FORGET, store.uri, *going[2:]], [APPEND, store.uri]]
    running = [subprocess.Popen([sys.executable, "-c", *command], cwd=ROOT) for command in commands]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert files_with(tmp_path / "store", WORD) == []
    left = Store.open(store.uri).sql("SELECT id FROM trajectories")["id"].to_pylist()
    assert sorted(left) == sorted(trajectory_id(attempt(number)) for number in (*range(4), *range(100, 112)))
    assert check(store.uri) == (20, [], {"trajectory": 4})


def test_the_log_says_that_something_was_erased_and_hides_no_other_change(tmp_path: Path) -> None:
    store, going, _ = told(tmp_path)
    erase(store, going)
    path = (tmp_path / "store" / "trajectories").as_posix()
    assert DeltaTable(path).metadata().configuration["delta.appendOnly"] == "true"
    assert [commit.get("erasure") for commit in DeltaTable(path).history()] == [1, None, None]
    DeltaTable(path).create_checkpoint()
    assert check(store.uri).problems == []
    for number in range(3):
        put(store, attempt(number))
    DeltaTable(path).restore(DeltaTable(path).version() - 1)
    assert ["RESTORE" in problem.problem for problem in check(store.uri).problems] == [True]


def test_the_same_bytes_are_refused_and_so_is_the_same_attempt_in_other_bytes(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    lines = [run("a", person=WORD), run("b", "A18")]
    import_lines(store, tmp_path, lines)
    (going,) = store.sql("SELECT id FROM trajectories WHERE run = 'a'")["id"].to_pylist()
    assert erase(store, "a").erased == {"raw": 1, "trajectory": 1}

    again = import_lines(store, tmp_path, lines)
    assert (again.accepted, again.duplicates, again.reasons) == (0, 1, {"erased": 1})
    other = import_lines(store, tmp_path, [run("a", person=WORD, more=1), run("c")], "other.jsonl")
    assert (other.accepted, other.reasons) == (1, {"erased": 1})
    assert files_with(tmp_path / "store", WORD) == []
    assert check(store.uri).problems == []
    assert store.sql("SELECT id FROM trajectories WHERE id = ?", [going]).num_rows == 0


def test_a_line_that_was_refused_as_another_reading_goes_with_the_attempt(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    import_lines(store, tmp_path, [run("a"), run("b")])
    taken = import_lines(store, tmp_path, [run("a", "A18", person=WORD)], f"{WORD}.jsonl")
    assert taken.reasons == {"attempt_taken": 1}
    assert erase(store, "a").erased == {"raw": 2, "trajectory": 1}
    assert files_with(tmp_path / "store", WORD) == []
    assert check(store.uri).problems == []
    assert store.sql("SELECT count(*) AS n FROM sightings")["n"].to_pylist() == [3]


def test_a_raw_line_of_two_tries_stays_until_both_are_erased(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    import_lines(store, tmp_path, [run("a", person=WORD)])
    import_lines(store, tmp_path, [run("a", person=WORD)], run_name="second")
    (first, second) = store.sql("SELECT attempt_id FROM attempts ORDER BY run = 'second'")["attempt_id"].to_pylist()
    done = erase(store, first)
    assert (done.erased, [item.attempts for item in done.shared]) == ({"trajectory": 1}, [(second,)])
    assert check(store.uri).problems == []
    assert erase(store, second).erased["raw"] == 1
    assert files_with(tmp_path / "store", WORD) == []


def test_all_readings_of_an_attempt_go(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    import_lines(store, tmp_path, [run("a", person=WORD)])
    import_lines(store, tmp_path, [run("a", "A18", person=WORD)], "better.jsonl", revise=True)
    assert erase(store, "a").erased["trajectory"] == 2
    assert files_with(tmp_path / "store", WORD) == []
    assert store.sql("SELECT erased FROM attempts")["erased"].to_pylist() == [True]
    assert check(store.uri).problems == []


def test_an_unknown_name_erases_nothing(tmp_path: Path) -> None:
    store, going, _ = told(tmp_path)
    before = bytes_of(tmp_path / "store")
    with pytest.raises(NotFoundError, match="nobody"):
        erase(store, going, "nobody")
    with pytest.raises(NotFoundError, match="nobody"):
        forget(store, ["nobody"], key="/id", dry_run=False)
    assert bytes_of(tmp_path / "store") == before


def again(store: Store, folder: Path, identity: str, *, readmit: bool = False) -> str:
    """The id of the run of that name, read from its log once more."""
    import_lines(store, folder, [run(identity, person=WORD)], readmit=readmit)
    (found,) = store.sql("SELECT id FROM trajectories WHERE run = ?", [identity])["id"].to_pylist()
    return str(found)


def standing(store: Store) -> dict[str, int]:
    """How much of which kind is erased, in a store in which nothing is wrong."""
    checked = check(store.uri)
    assert checked.problems == []
    return checked.erased


def test_what_went_with_an_attempt_is_made_again_after_it_is_back_and_not_before(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    going = again(store, tmp_path, "a")
    fork = fork_of(going)
    (made,) = put(store, fork)
    child = fork_of(made)
    put(store, child)
    assert erase(store, "a").erased == {"fork": 2, "raw": 1, "tools": 1, "trajectory": 1}
    for late in ((fork,), (child,), (fork, child)):
        with pytest.raises(StoreError, match="erased"):
            put(store, *late)
        assert standing(store) == {"fork": 2, "raw": 1, "tools": 1, "trajectory": 1}

    assert again(store, tmp_path, "a", readmit=True) == going
    assert standing(store) == {"fork": 2}
    with pytest.raises(StoreError, match="erased"):
        put(store, child)
    with store.batch() as batch:
        batch.add_statement(Annotation(trajectory_id(child), "note", "of no record", HUMAN))
        with pytest.raises(StoreError, match="erased"):
            store.write(batch)
    with store.batch() as batch:
        for record_ in (child, fork):
            batch.add_trajectory(record_)
        for statement in saying(made):
            batch.add_statement(statement)
        store.write(batch)
    assert standing(store) == {}
    assert erase(store, "a").erased["fork"] == 2
    assert files_with(tmp_path / "store", WORD) == []
    with pytest.raises(StoreError, match="erased"):
        put(store, fork)
    assert standing(store)["fork"] == 2


def test_a_fork_that_was_erased_by_its_name_stays_out_while_its_attempt_is_there(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    going, _ = put(store, secret(), failing())
    fork = fork_of(going)
    (made,) = put(store, fork)
    assert barred_forks(store) == frozenset()
    assert erase(store, made).erased == {"fork": 1}
    assert barred_forks(store) == {made}
    with pytest.raises(StoreError, match="erased"):
        put(store, fork)
    assert store.trajectory(going) == secret()
    assert standing(store) == {"fork": 1}


def test_a_correction_that_was_taken_from_an_attempt_comes_back_after_it_alone(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    going = again(store, tmp_path, "a")
    (staying,) = put(store, failing())
    fork = fork_of(staying)
    assert fork.fork is not None
    copied = replace(
        fork, fork=replace(fork.fork, correction=replace(fork.fork.correction, author=Author("sibling", going)))
    )
    (made,) = put(store, copied)
    erase(store, "a")
    other = replace(copied, messages=(*copied.messages, *failing().messages[-1:]))
    for late in (copied, other):
        with pytest.raises(StoreError, match="erased"):
            put(store, late)
    assert standing(store) == {"fork": 1, "raw": 1, "tools": 1, "trajectory": 1}
    again(store, tmp_path, "a", readmit=True)
    assert barred_forks(store) == frozenset()
    assert put(store, copied) == [made]
    assert standing(store) == {}


def test_an_object_that_went_with_its_last_record_comes_with_the_next_that_has_it(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    import_lines(store, tmp_path, [run("a", person=WORD)])
    assert erase(store, "a").erased == {"raw": 1, "tools": 1, "trajectory": 1}
    new = import_lines(store, tmp_path, [run("a", person=WORD), run("b")], "other.jsonl")
    assert (new.accepted, new.reasons) == (1, {"erased": 1})
    assert standing(store) == {"raw": 1, "trajectory": 1}
    assert files_with(tmp_path / "store", WORD) == []

    late = Store.open(store.uri)
    (held,) = store.sql("SELECT id FROM trajectories")["id"].to_pylist()
    picture = make_object("blob", WORD.encode())
    shown = Annotation(held, "picture", picture.id, HUMAN)
    with store.batch() as batch:
        batch.add_object(picture)
        batch.add_statement(shown)
        store.write(batch)
    assert erase(store, "b").erased["blob"] == 1
    with late.batch() as batch:
        batch.add_object(picture)
        batch.add_statement(shown)
        with pytest.raises(StoreError, match="erased"):
            late.write(batch)
    assert files_with(tmp_path / "store", WORD) == []


def test_the_decisions_of_a_build_that_say_they_are_erased_say_so_when_a_side_is_back(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    going = again(store, tmp_path, "a")
    (made,) = put(store, fork_of(going))
    with store.batch() as batch:
        quote = (Difference("not_derivable", "name", WORD),)
        batch.add_selection(Selection("b", "recovery", "1" * 64, going, 1, made, kept=True, detail=quote))
        store.write(batch)
    erase(store, "a")
    told = store.sql("SELECT record FROM selections").to_pylist()
    again(store, tmp_path, "a", readmit=True)
    assert standing(store) == {"fork": 1}
    erase(store)
    assert store.sql("SELECT record FROM selections").to_pylist() == told


def test_at_a_uri_the_same_goes_and_comes_back(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = Store.create(folder.as_uri())
    going = again(store, tmp_path, "a")
    (held,) = (folder / "trajectories").glob("*.parquet")
    late = Store.open(store.uri)
    put(store, fork_of(going), failing())
    shutil.copy(held, held.with_name("part-left.parquet"))
    assert erase(store, "a").erased == {"fork": 1, "raw": 1, "tools": 1, "trajectory": 1}
    assert files_with(folder, WORD) == []
    assert not held.with_name("part-left.parquet").exists()
    with pytest.raises(StoreError, match="erased"):
        put(late, fork_of(going))
    assert standing(store) == {"fork": 1, "raw": 1, "tools": 1, "trajectory": 1}
    assert again(Store.open(store.uri), tmp_path, "a", readmit=True) == going
    put(late, fork_of(going))
    assert standing(late) == {}

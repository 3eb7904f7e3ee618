"""Whatever order things become known in, attempts and their denominators are those of one reading of the last word."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from curation.annotate import annotate
from curation.errors import UsageError
from curation.gate import Gate
from curation.prepared import Chunk, Log, Prepared, Stretch, prepare
from curation.show import TrajectoryView, show
from curation.store import Store
from curation.store.fsck import check
from curation.store.lookup import resolve
from curation.store.supersede import NOWHERE, Elsewhere, superseding
from reports.selection_bias import selection_bias
from schemas.reasons import QUARANTINE
from schemas.statements import Annotation
from schemas.trajectory import Author, trajectory_id
from tests.importers.reading import calls
from tests.ingest.logs import attempts, import_file, import_lines, new_store, records, run, said, write
from tests.store.stores import fork_of

FIRST = [
    {"key": "a", "task": "t1", "strata": {"level": "easy"}},
    {"key": "b", "task": "t1", "attempt": 1, "strata": {"level": "easy"}, "split": "train"},
]
SECOND = [
    {"key": "a", "task": "t1", "strata": {"level": "hard"}, "outcome": "success", "environment": "inv@2"},
    {"key": "b", "task": "t1", "attempt": 1, "strata": {"level": "hard"}, "split": "test", "outcome": "failure"},
]


def seen(store: Store) -> list[tuple[Any, ...]]:
    """What a report counts: identity and conditions of each attempt, not which bytes hold it."""
    return [(row["attempt_id"], row["task"], row["run"], row["attempt"], row["outcome"]) for row in attempts(store)]


@pytest.mark.parametrize("by_import", [False, True], ids=["annotate", "import again"])
def test_a_side_file_that_is_corrected_later_leaves_what_one_that_was_right_leaves(
    tmp_path: Path, by_import: bool
) -> None:
    log = write(tmp_path / "log.jsonl", [run("a"), run("b", "A18"), run("c")])
    first, second = write(tmp_path / "1.jsonl", FIRST), write(tmp_path / "2.jsonl", SECOND)
    late, only = new_store(tmp_path, "late"), new_store(tmp_path, "only")
    import_file(late, log, side=first)
    before = records(late)
    if by_import:
        result = import_file(late, log, side=second)
        assert (result.accepted, result.duplicates) == (0, 3)
    else:
        told = annotate(late, said(second))
        assert (told.lines, told.matched, told.unmatched, told.attempts_without_line) == (2, 2, 0, 1)
        assert told.written == told.statements == 6
    import_file(only, log, side=second)

    assert records(late) == before == records(only)
    assert attempts(late) == attempts(only)
    assert {row["strata"].get("level") for row in attempts(late)} == {"hard", None}
    levels = late.sql("SELECT value FROM annotations WHERE field = 'strata.level' ORDER BY value")["value"].to_pylist()
    assert levels == ["easy", "easy", "hard", "hard"], "both stay readable"
    first_word, last_word = (selection_bias(store, by=["level"]).strata for store in (late, only))
    assert first_word == last_word, "a report counts what a store counts that only ever saw the last word"
    assert check(late.uri).problems == []


def test_forks_stay_where_they_hang_when_facts_come_later(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a", "A18")])
    (row,) = attempts(store)
    with store.batch() as batch:
        fork = batch.add_trajectory(fork_of(row["trajectory_id"]))
        store.write(batch)
    annotate(store, said(write(tmp_path / "side.jsonl", [{"key": "a", "outcome": "failure", "stop": "max_steps"}])))
    (after,) = attempts(store)
    assert after == row | {"outcome": "failure", "outcome_by": "side_file", "stop": "max_steps"}
    view = show(store, resolve(store, "a"))
    assert isinstance(view, TrajectoryView)
    assert [line.id for line in view.forks] == [fork]


def test_a_new_version_of_a_rule_takes_the_place_of_the_old_one(tmp_path: Path, logs: Path) -> None:
    from curation.importers import tau_bench
    from curation.importers.face import Fact
    from curation.importers.tau_bench import IMPORTER

    source = logs / "tau-bench" / "gpt-4o-airline-tasks-00-24.json"
    slices = [piece for _, piece in zip(range(5), tau_bench.IMPORTER.slices(source), strict=False)]
    prepared = prepare(Chunk([Stretch(Log("0" * 64, "log.json", f"{IMPORTER.name}@1"), slices)]))

    def with_rule(version: str, value: str) -> Prepared:
        fact = Fact("strata.size", value, "rule", f"size@{version}")
        return prepared._replace(
            entries=tuple(entry._replace(facts=(*entry.facts, fact)) for entry in prepared.entries)
        )

    def enter(store: Store, *readings: Prepared) -> list[dict[str, Any]]:
        for reading in readings:
            with store.batch() as batch:
                Gate(store, batch, set(), rename=False, revise=False).judge([reading])
                store.write(batch)
        return attempts(store)

    old, new = with_rule("1", "small"), with_rule("2", "large")
    late, only = new_store(tmp_path, "late"), new_store(tmp_path, "only")
    assert enter(late, old, new) == enter(only, new)
    assert {row["strata"]["size"] for row in attempts(late)} == {"large"}
    assert late.sql("SELECT * FROM annotations WHERE field = 'strata.size'").num_rows == 10


def test_other_bytes_or_another_name_for_a_known_attempt_are_refused_with_the_ways_out(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a"), run(None)])
    before = attempts(store)
    side = write(tmp_path / "side.jsonl", [{"file": "renamed.jsonl", "line": 2, "task": "t", "run": "z"}])
    result = import_lines(store, tmp_path, [run("a", "A18"), run(None)], "renamed.jsonl", side=side)
    assert result.reasons == {"attempt_taken": 1, "raw_known": 1}
    for code in result.reasons:
        assert all(way in QUARANTINE[code].way_out for way in ("--run NAME", "--revise"))
    details = store.sql("SELECT detail FROM sightings WHERE code IS NOT NULL")["detail"].to_pylist()
    held = {row["trajectory_id"] for row in before}
    assert all(any(identity in detail for identity in held) for detail in details)
    assert attempts(store) == before


def test_a_run_that_is_named_is_another_try(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a")])
    for _ in range(2):
        result = import_lines(store, tmp_path, [run("a")], run_name="again")
    assert (result.accepted, result.duplicates) == (0, 1)
    assert sorted(row["run"] for row in attempts(store)) == ["a", "again/a"]


def test_a_revision_keeps_attempts_and_denominators_and_the_old_record(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a", outcome=False), run("b", outcome=True)])
    before = {row["run"]: row for row in attempts(store)}
    old = before["a"]["trajectory_id"]
    kept = store.trajectory(old)
    with store.batch() as batch:
        batch.add_trajectory(fork_of(old))
        store.write(batch)

    result = import_lines(store, tmp_path, [run("a", "A18", outcome=False)], "better.jsonl", revise=True)
    assert (result.accepted, result.quarantined) == (1, 0)
    after = {row["run"]: row for row in attempts(store)}
    assert seen(store) == [
        (row["attempt_id"], None, name, None, row["outcome"])
        for name, row in sorted(before.items(), key=lambda item: item[1]["attempt_id"])
    ]
    assert after["b"] == before["b"]
    assert after["a"]["trajectory_id"] != old
    assert store.trajectory(old) == kept
    view = show(store, resolve(store, old))
    assert isinstance(view, TrajectoryView)
    assert view.revised_by == after["a"]["trajectory_id"]
    assert len(view.forks) == 1
    again = import_lines(store, tmp_path, [run("a", "A18", outcome=False)], "better.jsonl", revise=True)
    assert (again.accepted, again.duplicates) == (0, 1)
    assert {row["run"]: row for row in attempts(store)} == after
    assert check(store.uri).problems == []


def test_a_revision_can_be_taken_back_and_made_again(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    readings = [run("a"), run("a", "A18"), run("a", "A19")]
    ids = []
    for number in (0, 1, 0, 2, 1, 1, 0):
        import_lines(store, tmp_path, [readings[number]], f"{number}.jsonl", revise=True)
        (row,) = attempts(store)
        ids.append((number, row["trajectory_id"]))
        assert len(set(ids)) == len({name for name, _ in ids}), "what was read last holds"
    assert len(records(store)) == 3


def test_a_side_file_that_renames_attempts_revises_each_by_its_line(tmp_path: Path) -> None:
    """Indexes shift by one: every new name but the last was the name of another line."""
    log = write(tmp_path / "log.jsonl", [run(None, f"A{number}") for number in range(4)])

    def side(name: str, first: int) -> Path:
        places = [{"file": "log.jsonl", "line": n + 1, "task": "t", "attempt": first + n} for n in range(4)]
        return write(tmp_path / name, places)

    late, only = new_store(tmp_path, "late"), new_store(tmp_path, "only")
    import_file(late, log, side=side("zero.jsonl", 0))
    import_file(late, log, side=side("one.jsonl", 1), revise=True)
    import_file(only, log, side=tmp_path / "one.jsonl")
    assert attempts(late) == attempts(only)

    part = write(tmp_path / "part" / "log.jsonl", [run(None, "A0")])
    with pytest.raises(UsageError, match="nothing was written"):
        import_file(
            late,
            part,
            side=write(
                tmp_path / "bad.jsonl", [{"key": None, "file": "log.jsonl", "line": 1, "task": "t", "attempt": 2}]
            ),
            revise=True,
        )
    assert attempts(late) == attempts(only)


def test_identical_rows_are_one_attempt_or_numbered_by_their_order(tmp_path: Path) -> None:
    plain, ordered = new_store(tmp_path, "plain"), new_store(tmp_path, "ordered")
    log = write(tmp_path / "log.jsonl", [run(None), run(None), run(None, "A18"), run(None)])
    result = import_file(plain, log)
    assert (result.accepted, result.duplicates) == (2, 2)
    for expected in (4, 0):
        result = import_file(ordered, log, number=True)
        assert (result.accepted, result.quarantined) == (expected, 0)
    assert len(attempts(ordered)) == 4
    result = import_file(plain, log, number=True)
    assert (result.accepted, result.duplicates, result.quarantined) == (2, 2, 0)
    assert attempts(plain) == attempts(ordered)


def test_identical_lines_that_a_side_file_tells_apart_are_tries_of_their_own(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    log = write(tmp_path / "log.jsonl", [run(None), run(None)])
    side = write(tmp_path / "side.jsonl", [{"file": "log.jsonl", "line": n, "task": "t", "attempt": n} for n in (1, 2)])
    for expected in (2, 0):
        assert import_file(store, log, side=side).accepted == expected
    assert [row["attempt"] for row in sorted(attempts(store), key=lambda row: row["attempt"])] == [1, 2]


def test_a_tool_list_out_of_a_later_side_file_is_stored(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    line = {key: value for key, value in run("a").items() if key != "tools"}
    log = write(tmp_path / "log.jsonl", [line])
    import_file(store, log)
    tools = [{"type": "function", "function": {"name": "get_stock"}}]
    import_file(store, log, side=write(tmp_path / "side.jsonl", [{"key": "a", "tools": tools}]))
    (row,) = attempts(store)
    assert json.loads(store.object(row["tools"])) == tools


def test_a_namespace_tells_equal_task_ids_apart(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    for namespace in ("airline", "retail"):
        import_lines(
            store, tmp_path, [run(None, task=1, attempt=0, x=namespace)], f"{namespace}.jsonl", namespace=namespace
        )
    assert len({row["task_key"] for row in attempts(store)}) == 2
    copied = tmp_path / "copy.jsonl"
    shutil.copy(tmp_path / "airline.jsonl", copied)
    assert import_file(store, copied, namespace="airline").duplicates == 1


def test_the_order_of_keys_says_nothing_and_a_float_is_no_whole_number(tmp_path: Path) -> None:
    """One rule for the record, for telling attempts apart and for SQL."""
    written = ['{"qty":1,"sku":"A17"}', '{"sku":"A17","qty":1}', '{"sku":"A17","qty":1.0}']
    store = new_store(tmp_path)
    for number, arguments in enumerate(written):
        line = json.dumps(run("a")).replace('"{\\"sku\\": \\"A17\\"}"', arguments)
        assert arguments in line
        result = import_lines(store, tmp_path, [line.encode()], f"{number}.jsonl")
        assert (result.accepted, result.duplicates) == ((1, 0), (0, 1), (0, 0))[number]
    assert result.reasons == {"attempt_taken": 1}
    (row,) = attempts(store)
    assert [call.arguments_text for call in calls(store.trajectory(row["trajectory_id"]))] == [written[0]]
    import_lines(store, tmp_path, [(tmp_path / "2.jsonl").read_bytes().strip()], "2.jsonl", run_name="again")
    texts = store.sql(
        "SELECT DISTINCT record->>'$.messages[1].tool_calls[0].arguments.qty' AS qty FROM trajectories ORDER BY qty"
    )
    assert texts["qty"].to_pylist() == ["1", "1.0"]


def test_ids_depend_on_content_alone(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a"), run("b")])
    for identity in records(store):
        record = store.trajectory(identity)
        assert trajectory_id(record) == identity
        assert trajectory_id(replace(record, stop_text="other")) != identity


@pytest.mark.parametrize("order", ["ab", "ba", "aba", "abab", "abb"])
def test_logs_that_contradict_each_other_leave_what_one_import_of_them_leaves(tmp_path: Path, order: str) -> None:
    logs = {
        "a": write(tmp_path / "a.jsonl", [run("a", outcome=True, split="test")]),
        "b": write(tmp_path / "b.jsonl", [run("a", outcome=False, split="train")]),
    }
    store = new_store(tmp_path)
    for name in order:
        import_file(store, logs[name])
    (row,) = attempts(store)
    assert (row["outcome"], row["split"]) == ("unknown", None)
    splits = store.sql("SELECT value FROM effective_annotations WHERE field = 'split' ORDER BY value")
    together = new_store(tmp_path, "together")
    import_lines(together, tmp_path, [run("a", outcome=True, split="test"), run("a", outcome=False, split="train")])
    assert attempts(together) == attempts(store)
    assert together.sql("SELECT value FROM effective_annotations WHERE field = 'split' ORDER BY value") == splits

    import_file(store, logs["b"], revise=True)
    (row,) = attempts(store)
    assert (row["outcome"], row["split"]) == ("failure", "train")


def test_a_log_that_is_read_again_by_a_better_reader_says_one_thing(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    log = write(tmp_path / "log.jsonl", [run("a")])
    import_file(store, log)
    (row,) = attempts(store)
    said = [Annotation(row["trajectory_id"], "stop", "completed", Author("rule", "reads", version)) for version in "12"]
    for elsewhere in (NOWHERE, Elsewhere(other_logs={row["trajectory_id"]})):
        for statement in said:
            with store.batch() as batch:
                for item in superseding(store, [statement], elsewhere):
                    batch.add_statement(item)
                store.write(batch)
        held = store.sql("SELECT author_version FROM effective_annotations WHERE field = 'stop'")
        assert held["author_version"].to_pylist() == ["2"]

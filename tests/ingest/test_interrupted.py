"""An import that is killed at any moment: what it left is whole, and the same import again makes it complete."""

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from curation.store import Store
from curation.store.fsck import check
from tests.ingest.logs import attempts, new_store, run, write
from tests.ingest.processes import contents, count_files, finish, kill_after, start_import

LINES = 2_000
PORTION = 400
WHOLE = 2 * LINES  # a portion that holds all
KILLS = 3
SEED = 8  # early, in the middle and late in what is left to do
PAUSE = 0.05  # seconds at most between a file of the store and the end
AT_ONCE = 8


def lines(version: str = "") -> list[Any]:
    """A log: attempts with outcomes and strata, the same twice, one that is none."""
    told = [
        run(f"run-{number}", "A17" if number % 3 else "A18", outcome=number % 2 == 0, task=f"t{number % 7}")
        for number in range(LINES)
    ]
    for line in told if version else ():
        line["messages"][-1]["content"] = version
    return [*told, *told[:50], b'{"id": "torn", "mess']


def side(outcome_of: int) -> list[dict[str, Any]]:
    """What the log does not say of every other attempt."""
    return [
        {
            "key": f"run-{number}",
            "split": "test" if number % outcome_of else "train",
            "strata": {"level": f"{number % 4}"},
        }
        for number in range(0, LINES, 2)
    ]


def import_whole(store: Store, *arguments: str | Path, portion: int) -> int:
    """Import without being disturbed; how many files that made."""
    before = count_files(store)
    assert finish(start_import(store, *arguments, portion=portion)) == 1, "a line of the log is none"
    return count_files(store) - before


def kill_import(store: Store, arguments: Sequence[str | Path], full: int, chance: random.Random) -> bool:
    """Kill an import somewhere before the store has so many files; whether it still ran."""
    files = chance.randrange(max(1, full - count_files(store)))
    return kill_after(start_import(store, *arguments, portion=PORTION), store, files, chance.random() * PAUSE)


def test_a_killed_import_is_whole_and_is_completed_by_the_same_import(tmp_path: Path) -> None:
    log, manifest = write(tmp_path / "log.jsonl", lines()), write(tmp_path / "side.jsonl", side(3))
    arguments = (log, "--manifest", manifest)
    whole, killed = new_store(tmp_path, "whole"), new_store(tmp_path, "killed")
    made = import_whole(whole, *arguments, portion=WHOLE)
    everything = contents(Store.open(whole.uri))

    chance = random.Random(SEED)
    full, hit = count_files(killed) + made * (LINES // PORTION), 0
    for _ in range(KILLS):
        hit += kill_import(killed, arguments, full, chance)
        assert check(killed.uri).problems == []
        held = contents(Store.open(killed.uri))
        assert all(set(ids) <= set(everything[table]) for table, ids in held.items())
    assert hit
    import_whole(killed, *arguments, portion=PORTION)
    assert contents(Store.open(killed.uri)) == everything
    assert attempts(Store.open(killed.uri)) == attempts(Store.open(whole.uri))
    assert check(killed.uri).problems == []


def test_a_log_that_contradicts_itself_far_apart_leaves_its_outcome_unknown(tmp_path: Path) -> None:
    between = [run(f"run-{number}") for number in range(2 * PORTION)]
    log = write(tmp_path / "log.jsonl", [run("a", outcome=True), *between, run("a", outcome=False)])
    store = new_store(tmp_path)
    held = []
    for _ in range(2):
        assert finish(start_import(store, log, portion=PORTION)) == 0
        (row,) = [row for row in attempts(Store.open(store.uri)) if row["run"] == "a"]
        assert row["outcome"] == "unknown"
        held.append(contents(Store.open(store.uri)))
    assert held[0] == held[1]


def test_a_killed_revision_leaves_the_store_as_before_or_as_after(tmp_path: Path) -> None:
    log = write(tmp_path / "log.jsonl", lines())
    better = write(tmp_path / "better.jsonl", lines("Better read."))
    manifest = write(tmp_path / "side.jsonl", side(5))
    arguments = (better, "--manifest", manifest, "--revise")
    whole = new_store(tmp_path, "whole")
    import_whole(whole, log, portion=WHOLE)
    killed = Store.open(str(shutil.copytree(whole.uri, tmp_path / "killed")))
    before = attempts(Store.open(whole.uri))
    made = import_whole(whole, *arguments, portion=PORTION)
    after = attempts(Store.open(whole.uri))
    assert before != after

    chance = random.Random(SEED)
    full, hit = count_files(killed) + made, 0
    for _ in range(KILLS):
        hit += kill_import(killed, arguments, full, chance)
        assert check(killed.uri).problems == []
        assert attempts(Store.open(killed.uri)) in (before, after)
    assert hit
    import_whole(killed, *arguments, portion=PORTION)
    assert attempts(Store.open(killed.uri)) == after
    assert contents(Store.open(killed.uri)) == contents(Store.open(whole.uri))
    assert check(killed.uri).problems == []


def test_eight_imports_of_overlapping_logs_of_three_formats_at_once_one_of_them_killed(tmp_path: Path) -> None:
    chats = [run(f"run-{number}", outcome=number % 2 == 0) for number in range(200)]
    talks = [
        {
            "id": f"talk-{number}",
            "conversations": [{"from": "human", "value": f"{number}?"}, {"from": "gpt", "value": "2"}],
        }
        for number in range(100)
    ]
    rows = [
        {"instance_id": f"row-{number}", "run_id": "r", "resolved": number % 2, "messages": line["messages"]}
        for number, line in enumerate(chats[:100])
    ]
    folder = tmp_path / "logs"
    for part in range(3):
        write(folder / f"chats-{part}.jsonl", chats[part * 50 : part * 50 + 100])
        write(folder / f"talks-{part}.jsonl", talks[part * 25 : part * 25 + 50])
    write(folder / "rows.jsonl", rows)
    alone, together = new_store(tmp_path, "alone"), new_store(tmp_path, "together")
    assert finish(start_import(alone, folder, portion=WHOLE)) == 0

    paths = [*sorted(folder.iterdir()), folder]
    assert len(paths) == AT_ONCE
    importing = [start_import(together, path, portion=40) for path in paths]
    assert kill_after(importing[-1], together, 20)
    assert [finish(each) for each in importing[:-1]] == [0] * (AT_ONCE - 1)
    assert check(together.uri).problems == []
    assert finish(start_import(together, folder, portion=40)) == 0
    assert contents(Store.open(together.uri)) == contents(Store.open(alone.uri))
    assert attempts(Store.open(together.uri)) == attempts(Store.open(alone.uri))
    assert check(together.uri).problems == []

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.importers.face import Parsed
from curation.importers.formats import detect
from curation.importers.side_file import SideFile
from curation.replay import replay
from curation.worlds import open_worlds
from environments.blobs import MemoryBlobs
from examples.make_logs import HERE, make_logs
from schemas.trajectory import trajectory_id

WORLDS = ("inventory", "booking")


def read(world: str) -> list[Parsed]:
    path = HERE / "logs" / f"{world}.jsonl"
    side = SideFile(HERE / "logs" / "side.jsonl")
    items = list(detect(path)[0].read(path))
    assert all(isinstance(item, Parsed) for item in items)
    return [side.apply(item, path.name) for item in items if isinstance(item, Parsed)]


def facts(item: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in item.facts}


def texts() -> Iterator[str]:
    for world in WORLDS:
        for line in (HERE / "logs" / f"{world}.jsonl").read_bytes().splitlines():
            yield from (message["content"] for message in msgspec.json.decode(line)["messages"])


def test_the_files_checked_in_are_those_that_the_policies_give(tmp_path: Path) -> None:
    make_logs(tmp_path)
    made = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    assert made == {path.relative_to(HERE): path.read_bytes() for path in HERE.rglob("*.jsonl")}
    assert sum(map(len, made.values())) < 1_500_000


def test_a_hundred_tasks_half_of_them_hard_have_three_attempts_each() -> None:
    attempts = Counter(
        (world, facts(item)["strata.difficulty"], item.trajectory.task.id) for world in WORLDS for item in read(world)
    )
    assert set(attempts.values()) == {3}
    assert Counter((world, difficulty) for world, difficulty, _ in attempts) == {
        (world, difficulty): 25 for world in WORLDS for difficulty in ("easy", "hard")
    }


def test_a_task_is_in_one_split() -> None:
    splits = defaultdict(set)
    for world in WORLDS:
        for item in read(world):
            splits[world, item.trajectory.task.id].add(facts(item)["split"])
    assert Counter(split for found in splits.values() for split in found) == {"train": 88, "test": 12}


def test_hard_tasks_fail_more_often_and_some_attempts_have_no_outcome() -> None:
    outcomes: defaultdict[str, Counter[Any]] = defaultdict(Counter)
    for world in WORLDS:
        for item in read(world):
            outcomes[facts(item)["strata.difficulty"]][facts(item).get("outcome")] += 1
    assert 0.8 <= outcomes["easy"]["passed"] / 150 <= 0.95
    assert 0.2 <= outcomes["hard"]["passed"] / 150 <= 0.4
    assert all(counted[None] > 0 for counted in outcomes.values())


def test_every_way_to_stop_and_every_mistake_is_there() -> None:
    stops = Counter(facts(item)["stop"] for world in WORLDS for item in read(world))
    assert stops.keys() == {"completed", "max_steps", "provider_error", "parse_error"}
    said = "\n".join(texts())
    for trace in ("unknown_sku", "unknown_tool", "bad_arguments", "timeout", "out_of_stock", "I have booked", "已为您"):
        assert trace in said


@pytest.mark.parametrize("world", WORLDS)
def test_every_logged_answer_is_what_the_environment_gives(world: str) -> None:
    blobs = MemoryBlobs()
    found: Counter[tuple[str, str | None]] = Counter()
    with open_worlds(world, processes=1) as (process,):
        for item in read(world):
            for check in replay(trajectory_id(item.trajectory), item.trajectory, process, blobs).verifications:
                if check.layer == "execution" and check.execution is not None:
                    found[str(check.execution.match), check.execution.reason] += 1
                if check.layer == "task":
                    assert check.result == facts(item).get("outcome", check.result)
    assert found["equal_bytes", None] > 150
    faults = {("unverifiable", "environment_fault"), ("not_run", "state_unknown"), ("not_run", "not_executable")}
    assert found.keys() - {("equal_bytes", None)} <= faults

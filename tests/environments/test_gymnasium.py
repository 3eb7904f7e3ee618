import json
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from msgspec.structs import replace

from environments.blobs import MemoryBlobs
from environments.catalogue import UnknownEnvironmentError, find, is_ours, members, versions
from environments.gymnasium import MAX_ACTIONS
from environments.protocol import CallResult, Controls, Session, SnapshotError, StartError
from environments.worker import Worker
from schemas.canonical import encode
from schemas.objects import Snapshot
from schemas.trajectory import Task
from tests.environments.calls import call, task

WALKS: dict[str, list[Any]] = {
    "CartPole-v1": [0, 1] * 6 + [0] * 12,
    "FrozenLake-v1": [2, 1, 1, 2, 0, 3] * 12,
    "Pendulum-v1": [[0.5], [-1], [2.0]],
    "Blackjack-v1": [1, 1, 1, 1, 1],
}


@pytest.fixture
def blobs() -> MemoryBlobs:
    return MemoryBlobs()


@pytest.fixture(params=WALKS)
def name(request: pytest.FixtureRequest) -> str:
    return f"gymnasium:{request.param}"


def start(name: str, blobs: MemoryBlobs, at: Task | Snapshot = Task(), seed: int = 0) -> Session:  # noqa: B008
    return find(name).open(at, Controls(seed=seed), blobs)


def walk(session: Session, actions: list[Any]) -> list[CallResult]:
    return [*session.call([call("step", action=action) for action in actions])]


def seen(results: list[CallResult]) -> list[tuple[str, str, str | None]]:
    return [(result.status, result.raw, result.state_after) for result in results]


def walk_of(name: str) -> list[Any]:
    return WALKS[name.partition(":")[2]]


def test_two_processes_see_the_same_and_continue_alike_from_a_snapshot(name: str, blobs: MemoryBlobs) -> None:
    with start(name, blobs) as here:
        expected = walk(here, walk_of(name))
    for hash_seed in (1, 2):
        with Worker(name, Controls(hash_seed=hash_seed)) as worker, worker.open(Task(), blobs) as there:
            walked = walk(there, walk_of(name)[:2])
            snapshot = there.snapshot()
            with worker.open(snapshot, blobs) as fork:
                assert seen(walked + walk(fork, walk_of(name)[2:])) == seen(expected)
            with start(name, blobs, snapshot) as fork:
                assert seen(walk(fork, walk_of(name)[2:])) == seen(expected)[2:]


def test_a_fork_leaves_its_parent_as_it_is(name: str, blobs: MemoryBlobs) -> None:
    world = find(name)
    with world.open(Task(), Controls(), blobs) as parent:
        walk(parent, walk_of(name)[:1])
        snapshot = parent.snapshot()
        for _ in range(2):
            with world.open(snapshot, Controls(), blobs) as fork:
                assert fork.snapshot() == snapshot
                walk(fork, walk_of(name)[1:])
                assert fork.state_digest() != snapshot.digest
        assert parent.state_digest() == snapshot.digest


def test_the_seed_is_the_tasks_or_else_the_controls(name: str, blobs: MemoryBlobs) -> None:
    digests = [
        start(name, blobs, at, seed).state_digest()
        for at, seed in ((Task(), 5), (task(seed=5), 0), (task(seed=5), 9), (Task(), 0))
    ]
    assert digests[0] == digests[1] == digests[2] != digests[3]


def test_an_answer_says_what_came_of_the_action_until_the_end(blobs: MemoryBlobs) -> None:
    with start("gymnasium:CartPole-v1", blobs) as world:
        results = walk(world, [0] * 30)
        told = [json.loads(result.raw) for result in results]
        last = next(index for index, answer in enumerate(told) if answer["terminated"])
        assert all(len(answer["observation"]) == 4 and answer["reward"] == 1.0 for answer in told[: last + 1])
        assert told[last + 1] == {"error": "episode_over", "steps": last + 1}
        assert results[last + 1].status == "tool_error"
        assert results[last + 1].state_after == results[last].state_after
        with pytest.raises(KeyError):
            _ = told[last]["error"]


@pytest.mark.parametrize("action", [2, -1, "0", True, None, 0.5, [0]])
def test_what_is_no_action_changes_nothing(blobs: MemoryBlobs, action: object) -> None:
    with start("gymnasium:CartPole-v1", blobs) as world:
        (result,) = walk(world, [action])
        assert result.status == "schema_error"
        assert result.state_after == result.state_before == world.state_digest()


def test_a_number_out_of_bounds_is_an_error_of_the_tool(blobs: MemoryBlobs) -> None:
    with start("gymnasium:Pendulum-v1", blobs) as world:
        (result,) = walk(world, [[7.5]])
        assert (result.status, result.raw) == ("tool_error", '{"error":"no_action","action":[7.5]}')
        assert result.state_after == result.state_before


@pytest.mark.parametrize(
    "space",
    [spaces.MultiBinary(1), spaces.MultiDiscrete([3]), spaces.Box(0, 255, (1,), np.uint8), spaces.Box(-1, 1, (1,))],
)
def test_a_number_beyond_the_machine_s_is_an_error_of_the_tool(blobs: MemoryBlobs, space: gymnasium.Space[Any]) -> None:
    class Still(gymnasium.Env[Any, Any]):
        action_space, observation_space = space, spaces.Discrete(1)

        def reset(self, **given: Any) -> tuple[int, dict[str, Any]]:
            super().reset(**given)
            return 0, {}

        def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
            return 0, 0.0, False, False, {}

    gymnasium.register("Still-v0", lambda **made_with: Still())
    try:
        with start("gymnasium:Still-v0", blobs) as world:
            assert [result.status for result in walk(world, [[10**30], [1]])] == ["tool_error", "ok"]
    finally:
        del gymnasium.registry["Still-v0"]


@pytest.mark.parametrize("path", ["/etc/passwd", "../x.xml", "~/x.xml", "a\\b", "assets/ant.xml"])
def test_no_task_names_a_file_to_make_a_world_from(blobs: MemoryBlobs, path: str) -> None:
    for kwargs in ({"map_name": path}, {"desc": ["SG", {"x": path}]}):
        with pytest.raises(StartError, match="no file that a task names"):
            start("gymnasium:FrozenLake-v1", blobs, task(kwargs=kwargs))


def test_what_a_world_is_made_with_comes_from_the_task(blobs: MemoryBlobs) -> None:
    still = task(kwargs={"is_slippery": False})
    with start("gymnasium:FrozenLake-v1", blobs, still) as world:
        assert [json.loads(result.raw)["observation"] for result in walk(world, [1, 1, 2, 2])] == [4, 8, 9, 10]
        snapshot = world.snapshot()
    with start("gymnasium:FrozenLake-v1", blobs, snapshot) as fork:
        assert json.loads(walk(fork, [1])[0].raw)["observation"] == 14
    for kwargs in ({"slippery": True}, {"render_mode": "human"}, {"map_name": 7}):
        with pytest.raises(StartError, match="does not start"):
            start("gymnasium:FrozenLake-v1", blobs, task(kwargs=kwargs))


@pytest.mark.parametrize(
    "image",
    [
        {"seed": 0, "kwargs": {}, "actions": [0, 0]},
        {"seed": 1, "kwargs": {}, "actions": [0]},
        {"seed": 0, "kwargs": {"render_mode": "human"}, "actions": [0]},
        {"seed": 0, "kwargs": {}, "actions": ["up"]},
        {"seed": 0, "kwargs": {}, "actions": [None]},
        {"seed": 0, "kwargs": {}, "actions": [{"a": 1}]},
        {"seed": -1, "kwargs": {}, "actions": [0]},
        {"seed": 0, "kwargs": {}, "actions": [0] * (MAX_ACTIONS + 1)},
        ["no episode"],
    ],
)
def test_an_image_of_another_episode_is_refused(blobs: MemoryBlobs, image: object) -> None:
    with start("gymnasium:CartPole-v1", blobs) as world:
        walk(world, [0])
        snapshot = world.snapshot()
    with pytest.raises(SnapshotError):
        start("gymnasium:CartPole-v1", blobs, replace(snapshot, blob=blobs.put(encode(image))))


def test_a_kept_copy_stands_in_for_no_other_image(blobs: MemoryBlobs) -> None:
    world = find("gymnasium:CartPole-v1")
    with world.open(Task(), Controls(), blobs) as session:
        walk(session, [0])
        snapshot = session.snapshot()
        walk(session, [1])
        other = session.snapshot()
    with pytest.raises(SnapshotError, match="its bytes are not that state"):
        world.open(replace(snapshot, blob=other.blob), Controls(), blobs)


@pytest.mark.parametrize("rest", [":tests.environments.rough:Env-v0", ":Nope-v1", "", ":CartPole-v1@0", "@1"])
def test_only_names_of_the_registry_open(rest: str) -> None:
    with pytest.raises(UnknownEnvironmentError, match="opens no world of 'gymnasium'"):
        find(f"gymnasium{rest}")


def test_its_full_name_opens_it_again() -> None:
    (full,) = members("gymnasium:CartPole-v1")
    assert full.endswith(versions("gymnasium")[-1])
    assert find(full).spec == find("gymnasium:CartPole-v1").spec
    assert is_ours(full)
    assert not is_ours("cassette:/etc/passwd")

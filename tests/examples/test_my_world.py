from typing import Any

import msgspec
import pytest

from environments.blobs import MemoryBlobs
from environments.catalogue import find
from environments.protocol import Controls, Session
from environments.worker import Worker
from examples.desk.runs import tool_call
from schemas.objects import Snapshot
from schemas.trajectory import Task

NAME = "examples.my_world:house"
BLOBS = MemoryBlobs()


def open_here(start: Task | Snapshot) -> Session:
    return find(NAME).open(start, Controls(), BLOBS)


def heat(world: Session, **arguments: Any) -> dict[str, Any]:
    [result] = world.call([tool_call("0.0", "heat", msgspec.json.encode(arguments).decode())])
    answer: dict[str, Any] = msgspec.json.decode(result.raw)
    return answer


def test_a_room_is_heated_and_an_unknown_one_is_an_error() -> None:
    with open_here(Task()) as house:
        assert heat(house, room="office", degrees=23) == {"degrees": 23, "before": 20}
        assert heat(house, room="cellar", degrees=23) == {"error": "KeyError", "message": "cellar"}
        assert heat(house, room="office", degrees="warm")["error"] == "bad_arguments"


def test_its_declared_undo_takes_a_call_back() -> None:
    undo = find(NAME).spec.undo["heat"]
    with open_here(Task()) as house:
        start = house.settled_digest()
        asked: dict[str, Any] = {"room": "office", "degrees": 23}
        sources = {"arguments": asked, "answer": heat(house, **asked)}
        assert house.settled_digest() != start
        heat(house, **{name: sources[source][field] for name, (source, field) in undo.arguments.items()})
        assert house.settled_digest() == start


def test_a_fork_starts_where_the_snapshot_was_taken_and_leaves_it_alone() -> None:
    with open_here(Task()) as house:
        heat(house, room="kitchen", degrees=18)
        snapshot = house.snapshot()
    with open_here(snapshot) as fork:
        assert heat(fork, room="kitchen", degrees=22)["before"] == 18
    with open_here(snapshot) as again:
        assert again.state_digest() == snapshot.digest


@pytest.mark.parametrize("room", ["kitchen", "cellar"])
def test_it_answers_alike_in_a_process_of_its_own(room: str) -> None:
    with Worker(NAME) as worker, worker.open(Task(), BLOBS) as there, open_here(Task()) as here:
        assert heat(there, room=room, degrees=19) == heat(here, room=room, degrees=19)
        assert there.state_digest() == here.state_digest()

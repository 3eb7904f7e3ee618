"""A model that takes its own mistake back: what is called wrong, what is repaired, and which rows come of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.jobs.diagnosing import diagnose_attempts
from curation.jobs.repairing import RepairResult, repair_attempts
from curation.jobs.replaying import replay_attempts
from tests.builders.desk import Desk
from tests.records import Call

DECLARED, UNDECLARED = "tests.forks.parcels:Depot", "tests.forks.parcels:Undeclared"
REQUEST = "Please send order O-1003 to Hamburg instead."
WRONG: Call = ("send", {"order": "O-1004", "city": "Hamburg"})
UNDO: Call = ("send", {"order": "O-1004", "city": "Kiel"})
RIGHT: Call = ("send", {"order": "O-1003", "city": "Hamburg"})
LOOK: Call = ("find", {"order": "O-1004"})
SENT_WRONG = {"order": "O-1004", "city": "Hamburg", "before": "Kiel"}
SENT_BACK = {"order": "O-1004", "city": "Kiel", "before": "Hamburg"}
SENT_RIGHT = {"order": "O-1003", "city": "Hamburg", "before": "Berlin"}
SEEN = {"order": "O-1004", "city": "Hamburg"}


def tool(name: str, *names: str) -> dict[str, Any]:
    properties = {name: {"type": "string"} for name in names}
    parameters = {"type": "object", "properties": properties, "required": list(names)}
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


TOOLS = [tool("send", "order", "city"), tool("find", "order")]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def process(desk: Desk, world: str, *turns: Any) -> RepairResult:
    desk.attempt(REQUEST, *turns, "Done.", tools=TOOLS, confirm=False)
    desk.flush()
    replay_attempts(desk.store, world)
    diagnose_attempts(desk.store, world)
    return repair_attempts(desk.store, world)


def wrong(desk: Desk) -> list[int]:
    found: list[int] = desk.store.sql(
        "SELECT message FROM effective_findings f JOIN attempts a ON f.trajectory = a.trajectory_id ORDER BY message"
    )["message"].to_pylist()
    return found


def trained(desk: Desk, column: str = "completion") -> list[dict[str, str]]:
    """The arguments of the calls that the recovery rows train."""
    desk.build("recovery")
    rows = map(json.loads, desk.rows("recovery"))
    return [row[column][0]["tool_calls"][0]["function"]["arguments"] for row in rows]


def test_the_same_wrong_thing_looked_up_again_recovers_nothing(desk: Desk) -> None:
    """The world answered the first look without an error, so that the second is no finding of its own."""
    more: Call = ("find", {"order": "O-1004", "part": "city"})
    process(desk, DECLARED, LOOK, {"order": "O-1004", "city": "Kiel"}, more, {"order": "O-1004", "city": "Kiel"})
    assert wrong(desk) == [1]
    assert trained(desk) == [{"order": "O-1003"}]
    (logged,) = [line for line in desk.lines("recovery") if line["child"] is None]
    assert "same_action" in logged["failed"]


@pytest.mark.parametrize("world", [DECLARED, UNDECLARED])
def test_an_undo_is_no_mistake_and_with_the_right_call_the_recovery_in_the_log(desk: Desk, world: str) -> None:
    done = process(desk, world, WRONG, SENT_WRONG, UNDO, SENT_BACK, RIGHT, SENT_RIGHT)
    assert wrong(desk) == [1]
    assert (done.failures, done.verified, done.refused) == (1, 1, {"recovered_in_log": 1})
    assert trained(desk) == [UNDO[1]]


def test_looking_at_the_damage_first_is_no_mistake_either(desk: Desk) -> None:
    done = process(desk, DECLARED, WRONG, SENT_WRONG, LOOK, SEEN, UNDO, SENT_BACK, RIGHT, SENT_RIGHT)
    assert wrong(desk) == [1]
    assert (done.failures, done.verified) == (1, 2)
    assert trained(desk) == [UNDO[1]]


def test_the_right_call_alone_is_no_recovery_of_an_effect(desk: Desk) -> None:
    done = process(desk, UNDECLARED, WRONG, SENT_WRONG, RIGHT, SENT_RIGHT)
    assert wrong(desk) == [1]
    assert done.refused == {"effect_not_undone": 1}
    assert trained(desk) == []


def test_where_a_trail_hides_that_the_state_is_the_old_one_the_recovery_is_executed(desk: Desk) -> None:
    """Booking keeps an audit row a call: no state comes back as it was, but the world that a fork ends in does."""
    calls = [("book", {"sku": "B18", "qty": 1}), {"status": "booked", "sku": "B18", "qty": 1, "stock": 2}]
    undone = [("cancel", {"sku": "B18"}), {"status": "cancelled", "sku": "B18", "qty": 1, "stock": 3}]
    right = [("book", {"sku": "B17", "qty": 1}), {"status": "booked", "sku": "B17", "qty": 1, "stock": 3}]
    tools = [tool("book", "sku", "qty"), tool("cancel", "sku")]
    tools[0]["function"]["parameters"]["properties"]["qty"]["type"] = "integer"
    desk.attempt("Book 1 B17 please.", *calls, *undone, *right, "Booked.", tools=tools, confirm=False)
    desk.flush()
    replay_attempts(desk.store, "booking")
    diagnose_attempts(desk.store)
    done = repair_attempts(desk.store, "booking")
    assert wrong(desk) == [1]
    assert (done.verified, done.refused) == (2, {})
    assert trained(desk) == [{"sku": "B18"}]

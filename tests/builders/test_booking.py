"""A mistake that took effect in a stateful world: what its rows train."""

import json
from typing import Any

from builders.build import build
from curation.jobs.diagnosing import diagnose_attempts
from curation.jobs.forking import fork_attempt
from curation.jobs.repairing import repair_attempts
from curation.jobs.replaying import replay_attempts
from curation.proposals import read_calls
from curation.store import Store
from tests.builders.desk import Desk

B18 = ("book", {"sku": "B18", "qty": 1})
B17 = ("book", {"sku": "B17", "qty": 1})
CANCEL = ("cancel", {"sku": "B18"})
BOOKED_B18 = {"status": "booked", "sku": "B18", "qty": 1, "stock": 2}
BOOKED_B17 = {"status": "booked", "sku": "B17", "qty": 1, "stock": 3}


def tool(name: str, **properties: str) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": sorted(properties),
    }
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS = [tool("book", sku="string", qty="integer"), tool("cancel", sku="string")]


def process(desk: Desk) -> Store:
    """Replay, diagnose and repair what was added."""
    desk.flush()
    replay_attempts(desk.store, "booking")
    diagnose_attempts(desk.store)
    repair_attempts(desk.store, "booking")
    return desk.store


def calls(row: dict[str, Any], column: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        (call["function"]["name"], call["function"]["arguments"])
        for message in row[column]
        for call in message.get("tool_calls", ())
    ]


def test_a_recovery_trains_the_first_call_of_the_compensation_alone(desk: Desk) -> None:
    desk.attempt("Book 1 B17 please.", B18, BOOKED_B18, "Booked.", tools=TOOLS, confirm=False, outcome="failed")
    result = build(process(desk), None, desk.out)
    assert [kind.kept for kind in result.kinds.values()] == [1, 1, 1]
    (recovery,) = map(json.loads, desk.rows("recovery"))
    assert calls(recovery, "prompt") == [B18]
    assert calls(recovery, "completion") == [CANCEL]
    (first,) = map(json.loads, desk.rows("first_action"))
    assert calls(first, "completion") == [B17]
    (pair,) = map(json.loads, desk.rows("preference"))
    assert (calls(pair, "chosen"), calls(pair, "rejected")) == ([B17], [B18])


def test_a_recovery_in_the_log_that_leaves_the_effect_is_refused(desk: Desk) -> None:
    desk.attempt("Book 1 B17 please.", B18, BOOKED_B18, B17, BOOKED_B17, "Booked.", tools=TOOLS, confirm=False)
    process(desk)
    result = build(desk.store, ["recovery"], desk.out).kinds["recovery"]
    (logged,) = [line for line in desk.lines("recovery") if line["child"] is None]
    assert logged["failed"] == ["effect_not_undone"]
    assert result.rows == result.kept


def test_a_correction_that_itself_fails_trains_nothing_of_its_compensation(desk: Desk) -> None:
    attempt = desk.attempt("Book 1 B17 please.", B18, BOOKED_B18, "Booked.", tools=TOOLS, confirm=False)
    desk.flush()
    replay_attempts(desk.store, "booking")
    proposal = read_calls(attempt, 1, ['{"name": "book", "arguments": {"sku": "B17", "qty": 99}}'], "Ada")
    assert all(line.verified for line in fork_attempt(desk.store, "booking", proposal).forks), (
        "what was answered is real"
    )
    diagnose_attempts(desk.store)
    result = build(desk.store, None, desk.out)
    assert [kind.kept for kind in result.kinds.values()] == [0, 0, 0]
    assert result.kinds["recovery"].failed["target_fails"] == 1

"""Arguments in rows stand in the order in which the model wrote them; names of rows do not depend on it."""

import json
from pathlib import Path
from typing import Any

import datasets
import pytest

from schemas.canonical import encode
from schemas.rows import TRAINING_COLUMNS, sample_id
from schemas.selection import KINDS, Kind
from tests.builders.desk import PERSON, Desk
from tests.eight import TOOLS
from tests.records import OK, REQUEST, Call

WRONG: Call = ("get_stock", {"sku": "A18", "city": "Hangzhou", "at": {"z": 1, "a": 2}})
RIGHT: Call = ("get_stock", {"at": {"a": 2, "z": 1}, "city": "Hangzhou", "sku": "A17"})
UNKNOWN = {"error": "unknown_sku"}
NUMBERS = f"{REQUEST} (1, 2)"


def arguments(messages: list[dict[str, Any]]) -> list[str]:
    """The arguments of all calls, as JSON text in their order."""
    return [json.dumps(call["function"]["arguments"]) for message in messages for call in message.get("tool_calls", ())]


def canonical(call: Call) -> Call:
    """A call as a correction holds it: its keys sorted."""
    assert isinstance(call[1], dict)
    return call[0], json.loads(encode(call[1]))


def test_a_row_shows_the_calls_as_the_model_wrote_them(desk: Desk, tmp_path: Path) -> None:
    written = [{"sku": "A17", "city": "Hangzhou"}, {"sku": "A17", "list": [{"b": 1, "a": 2}, {"a": 1, "b": 2}]}]
    first, second = (("get_stock", item) for item in written)
    desk.attempt(NUMBERS, first, OK, second, OK)
    desk.build("first_action")
    loaded = datasets.load_dataset(str(desk.out), "first_action", split="train", cache_dir=str(tmp_path / "cache"))
    rows = sorted(loaded, key=lambda row: row["message"])
    assert arguments(rows[0]["completion"]) == [json.dumps(written[0])]
    assert arguments(rows[1]["prompt"]) == [json.dumps(written[0])]
    assert arguments(rows[1]["completion"]) == [json.dumps(written[1])]


@pytest.mark.parametrize("kind", KINDS)
def test_a_corrected_call_stands_in_the_order_of_the_wrong_one(kind: Kind, desk: Desk) -> None:
    attempt = desk.attempt(NUMBERS, WRONG, UNKNOWN)
    desk.find(attempt)
    desk.fork(attempt, "clean", 1, canonical(RIGHT), OK)
    desk.fork(attempt, "recovery", 3, canonical(RIGHT), OK)
    desk.build(kind)
    (row,) = map(json.loads, desk.rows(kind))
    (wrong,) = arguments([{"tool_calls": [{"function": {"arguments": WRONG[1]}}]}])
    assert arguments(row["chosen" if kind == "preference" else "completion"]) == [wrong.replace("A18", "A17")]
    if kind != "first_action":
        assert arguments(row["rejected" if kind == "preference" else "prompt"]) == [wrong]


def test_a_call_that_no_model_wrote_takes_the_order_of_the_prompt_or_of_the_schema(desk: Desk) -> None:
    book = {"name": "book", "parameters": {"type": "object", "required": ["sku", "city"]}}
    tools = [*TOOLS, {"type": "function", "function": book}]
    broken: Call = ("get_stock", '{"sku": A17')
    looked: Call = ("get_stock", {"sku": "A17", "city": "Hangzhou"})
    for run, fixed, name in (("prompt", 3, "get_stock"), ("schema", 1, "book")):
        before = (looked, OK) if run == "prompt" else ()
        attempt = desk.attempt(REQUEST, *before, broken, {"harness": "not JSON"}, run=run, tools=tools)
        desk.find(attempt, fixed, "format")
        right = {"city": "杭州", "sku": "A17"}
        desk.fork(attempt, "clean", fixed, (name, right), OK, by=PERSON)
    desk.build("first_action")
    rows = [row for row in map(json.loads, desk.rows("first_action")) if row["fork_kind"] == "clean"]
    assert [list(call["function"]["arguments"]) for row in rows for call in row["completion"][0]["tool_calls"]] == [
        ["sku", "city"],
        ["sku", "city"],
    ]


def test_the_order_of_keys_names_no_other_row(desk: Desk) -> None:
    one: Call = ("get_stock", {"sku": "A17", "city": "Hangzhou"})
    desk.attempt(REQUEST, one, OK)
    desk.attempt(REQUEST, canonical(one), OK, run="b")
    result = desk.build("first_action").kinds["first_action"]
    assert (result.kept, result.rows) == (2, 1)
    (row,) = map(json.loads, desk.rows("first_action"))
    training = {name: row[name] for name in TRAINING_COLUMNS["first_action"]}
    assert row["sample_id"] == sample_id("first_action", training)
    assert row["sample_id"] == sample_id("first_action", json.loads(encode(training)))

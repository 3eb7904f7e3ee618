import math
import socket
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from referencing.exceptions import Unresolvable

from environments.protocol import EnvSpec, Fault
from environments.tools import Answer, Tool, Toolbox
from schemas.canonical import raw
from schemas.trajectory import ToolCall
from tests.environments.calls import call

SPEC = EnvSpec("one", "1", "", "pure", {}, faults=(Fault("code", "busy", "service"),), errors=("error", "problem"))


def tell(state: Any, **arguments: Any) -> Any:
    return state if state is not None else arguments


def answer(schema: dict[str, Any], asked: ToolCall, state: Any = None) -> Answer:
    return Toolbox(Tool("tell", "", schema, "read", tell)).answer(asked, state, SPEC)


@pytest.mark.parametrize(
    ("value", "status"),
    [
        ({"code": "busy"}, "environment_fault"),
        ({"code": "other"}, "ok"),
        ({"problem": None}, "tool_error"),
        ({"result": {"error": "inside"}}, "ok"),
        (["error"], "ok"),
        ("error", "ok"),
    ],
)
def test_the_status_of_an_answer_is_what_the_world_declares(value: Any, status: str) -> None:
    assert answer({"type": "object"}, call("tell"), value).status == status


def test_an_answer_is_compact_and_keeps_the_order_it_was_built_in() -> None:
    assert answer({}, call("tell"), {"b": "杭州", "a": [1, 1.0, None]}).text == '{"b":"杭州","a":[1,1.0,null]}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([math.nan, math.inf, -math.inf], "[null,null,null]"),
        (math.nan, "null"),
        ({"page": b"\x00ab"}, '{"page":"AGFi"}'),
        ((datetime(2026, 1, 2, 3, 4), Decimal("1.10"), {7}), '["2026-01-02T03:04:00","1.10",[7]]'),
    ],
)
def test_what_json_does_not_have_is_answered_in_one_stated_form(value: Any, text: str) -> None:
    assert answer({}, call("tell"), value) == Answer("ok", text)


def test_a_function_gets_declared_arguments_only() -> None:
    schema = {"type": "object", "properties": {"sku": {"type": "string"}}}
    assert answer(schema, call("tell", sku="A17", note="x")).text == '{"sku":"A17"}'


@pytest.mark.parametrize(
    ("arguments", "at", "rule"),
    [
        ({"lines": [{"sku": "A17"}, {}]}, "/lines/1/sku", "required"),
        ({"lines": [{"sku": 1}]}, "/lines/0/sku", "type"),
        ({"lines": [], "a/b~c": 1}, "/a~1b~0c", "type"),
        ({"lines": [], "z": 1}, "", "additionalProperties"),
        ({"lines": "A17"}, "/lines", "type"),
    ],
)
def test_arguments_that_do_not_fit_are_answered_with_the_place_and_the_rule(
    arguments: dict[str, Any], at: str, rule: str
) -> None:
    line = {"type": "object", "properties": {"sku": {"type": "string"}}, "required": ["sku"]}
    schema = {
        "type": "object",
        "properties": {"lines": {"type": "array", "items": line}, "a/b~c": {"type": "string"}},
        "additionalProperties": False,
    }
    given = answer(schema, call("tell", **arguments))
    assert given == Answer("schema_error", f'{{"error":"bad_arguments","at":"{at}","rule":"{rule}"}}')


@pytest.mark.parametrize(
    "asked",
    [
        ToolCall("1.0", "tell", "[]", arguments=raw([])),
        ToolCall("1.0", "tell", "{" + " " * 1_000_000 + "}", arguments=raw({})),
        ToolCall("1.0", "tell", "{"),
    ],
)
def test_what_is_no_readable_object_reaches_no_function(asked: ToolCall) -> None:
    assert answer({"type": "object"}, asked) == Answer("refused", "")


def test_a_schema_that_points_outside_makes_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = server.getsockname()[1]
        with pytest.raises(Unresolvable):
            answer({"$ref": f"http://127.0.0.1:{port}/schema"}, call("tell"))
        with pytest.raises(BlockingIOError):
            server.accept()

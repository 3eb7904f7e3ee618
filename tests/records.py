"""Small records for tests, written as a conversation: a text of the user, calls, answers, a text of the agent."""

import json
from typing import Any

from schemas.canonical import raw
from schemas.trajectory import Answers, Message, Task, ToolCall, Trajectory, call_uid

Call = tuple[str, dict[str, Any] | str]


def record(*turns: str | Call | list[Call] | dict[str, Any] | Message, parameters: Any = None) -> Trajectory:
    """A trajectory: the first text is the user's, a tuple or list is calls, a dict answers the earliest open call."""
    messages: list[Message] = []
    waiting: list[str] = []
    for index, turn in enumerate(turns):
        match turn:
            case Message():
                messages.append(turn)
            case str():
                messages.append(Message("assistant" if messages else "user", turn))
            case dict():
                text = json.dumps(turn, separators=(",", ":"), ensure_ascii=False)
                messages.append(Message("tool", text, answers=Answers(waiting.pop(0), "id")))
            case _:
                calls = [turn] if isinstance(turn, tuple) else turn
                made = tuple(call(index, position, *item) for position, item in enumerate(calls))
                waiting = [item.uid for item in made]
                messages.append(Message("assistant", "", tool_calls=made))
    task = Task() if parameters is None else Task(parameters=raw(parameters))
    return Trajectory(tuple(messages), task=task)


def call(message: int, position: int, name: str, arguments: dict[str, Any] | str) -> ToolCall:
    """A call as logged; arguments given as text do not parse."""
    uid = call_uid(message, position)
    identity = f"c{message}{position}"
    if isinstance(arguments, str):
        return ToolCall(uid, name, arguments, id=identity, parse_error="does not parse")
    return ToolCall(uid, name, json.dumps(arguments), id=identity, arguments=raw(arguments))


REQUEST = "请查询 A17 在杭州的库存 / stock of A17 in Hangzhou please"
A17: Call = ("get_stock", {"sku": "A17"})
A18: Call = ("get_stock", {"sku": "A18"})
OK = {"sku": "A17", "city": "Hangzhou", "stock": 2}
BAD = {"error": "unknown_sku", "sku": "A18"}

EIGHT = {
    "fail_A18": record(REQUEST, A18, BAD, "Sorry, the item does not exist."),
    "first_ok": record(REQUEST, A17, OK, "A17: 2 in Hangzhou."),
    "recovered": record(REQUEST, A18, BAD, A17, OK, "A17: 2 in Hangzhou."),
    "pasted_old_error": record(REQUEST, A17, BAD, "Sorry, the item does not exist."),
    "pasted_result": record(REQUEST, A18, OK, "A17: 2 in Hangzhou."),
    "timeout": record(REQUEST, A17, {"error": "timeout"}, "Service unavailable."),
    "misread": record(REQUEST, A17, OK, "Booked! A17 is reserved for you."),
    "bad_json": record(REQUEST, "get_stock(A17", "get_stock(A17"),
}

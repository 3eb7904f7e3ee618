"""The eight shared records: one task, eight ways in which a log of it can read."""

import json
from typing import Any

REQUEST = "请查询 A17 在杭州的库存 / stock of A17 in Hangzhou please"
FOUND = '{"sku":"A17","city":"Hangzhou","stock":2}'
UNKNOWN = '{"error":"unknown_sku","sku":"A18"}'
TIMEOUT = '{"error":"timeout"}'
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_stock",
            "description": "Stock of one SKU",
            "parameters": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "city": {"type": "string"}},
                "required": ["sku"],
            },
        },
    }
]

Message = dict[str, Any]


def look_up(call_id: str, sku: str, answer: str) -> list[Message]:
    """A call of ``get_stock`` and what stands in the log as its answer."""
    function = {"name": "get_stock", "arguments": json.dumps({"sku": sku})}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": answer},
    ]


def record(run: str, *messages: Message, error: str | None = None, success: bool = False) -> dict[str, Any]:
    """One log line: the request, what followed, how it stopped and whether it succeeded."""
    return {
        "id": run,
        "messages": [{"role": "user", "content": REQUEST}, *messages],
        "tools": TOOLS,
        "error": error,
        "outcome": {"success": success},
    }


def say(text: str) -> Message:
    """A message of the assistant without a call."""
    return {"role": "assistant", "content": text}


def records() -> list[dict[str, Any]]:
    """The eight, in their order."""
    stock, sorry = say("A17: 2 in Hangzhou."), say("Sorry, the item does not exist.")
    return [
        record("fail_A18", *look_up("c1", "A18", UNKNOWN), sorry, error="bad_args: sku A18 but the user asked for A17"),
        record("first_ok", *look_up("c1", "A17", FOUND), stock, success=True),
        record("recovered", *look_up("c1", "A18", UNKNOWN), *look_up("c2", "A17", FOUND), stock, success=True),
        record("pasted_old_error", *look_up("c1", "A17", UNKNOWN), sorry),
        record("pasted_result", *look_up("c1", "A18", FOUND), stock),
        record("timeout", *look_up("c1", "A17", TIMEOUT), say("Service unavailable."), error="service timeout"),
        record(
            "misread",
            *look_up("c1", "A17", FOUND),
            say("Booked! A17 is reserved for you."),
            error="policy violation: claims booking but only queried",
        ),
        record(
            "bad_json",
            say("get_stock(A17"),
            say("get_stock(A17"),
            error="format error: not valid json; then budget exhausted",
        ),
    ]


def lines() -> bytes:
    """The eight as JSON Lines."""
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in records())

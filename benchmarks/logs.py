"""A log to measure on: OpenAI chat rows of a stock desk, about 13 kB each, made from a seed."""

import json
import random
from pathlib import Path
from typing import Any

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": f"{name.replace('_', ' ')} of one article",
            "parameters": {
                "type": "object",
                "properties": {"sku": {"type": "string"}, "qty": {"type": "integer"}},
                "required": ["sku"],
            },
        },
    }
    for name in ("get_stock", "book", "cancel", "list_bookings")
]
_WORDS = """
    the shelf in hall seven holds blue boxes of spare parts that were counted on monday by the night shift and found
    complete except for one pallet near the gate which waits for a second count before it can be booked out
""".split()


def write_log(path: Path, rows: int, seed: int = 0) -> int:
    """Write ``rows`` trajectories of 21 messages as JSON lines; returns the size in bytes."""
    random_source = random.Random(seed)
    with path.open("w", encoding="utf-8") as file:
        for number in range(rows):
            file.write(json.dumps(_row(number, random_source), ensure_ascii=False, separators=(",", ":")) + "\n")
    return path.stat().st_size


def _row(number: int, random_source: random.Random) -> dict[str, Any]:
    asked = [f"A{sku}" for sku in random_source.sample(range(100, 1_000), 9)]
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": _text(random_source, 120)},
        {"role": "user", "content": f"How many are left of {', '.join(asked)}? {_text(random_source, 20)}"},
    ]
    for step, sku in enumerate(asked):
        call = {"name": "get_stock", "arguments": json.dumps({"sku": sku})}
        messages += [
            {
                "role": "assistant",
                "content": _text(random_source, 30),
                "tool_calls": [{"id": f"call_{number}_{step}", "type": "function", "function": call}],
            },
            {"role": "tool", "tool_call_id": f"call_{number}_{step}", "content": _text(random_source, 160)},
        ]
    messages.append({"role": "assistant", "content": _text(random_source, 40)})
    return {
        "id": f"run-{number}",
        "task": f"stock-{number % 5_000}",
        "attempt": number // 5_000,
        "messages": messages,
        "tools": TOOLS,
        "outcome": {"success": random_source.random() < 0.5},
        "strata": {"shelf": str(number % 7)},
    }


def _text(random_source: random.Random, words: int) -> str:
    return " ".join(random_source.choices(_WORDS, k=words))

"""Logs of the booking world: what a run asked for, called and was answered there, as lines to import."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from curation.jobs.diagnosing import diagnose_attempts
from curation.jobs.replaying import replay_attempts
from curation.store import Store
from curation.worlds import open_worlds
from environments.blobs import MemoryBlobs
from schemas.canonical import raw
from schemas.trajectory import Task, ToolCall
from tests.builders.test_booking import tool
from tests.ingest.logs import import_lines, new_store

Call = tuple[str, dict[str, Any]]

TOOLS = [
    tool("get_stock", sku="string"),
    tool("book", sku="string", qty="integer"),
    tool("cancel", sku="string"),
]


def look(sku: str) -> Call:
    return "get_stock", {"sku": sku}


def book(sku: str, qty: int = 1) -> Call:
    return "book", {"sku": sku, "qty": qty}


def lines(runs: Sequence[tuple[str, str, dict[str, int], Sequence[Call]]]) -> list[dict[str, Any]]:
    """Log lines of runs, each given by its name, its request, the wanted bookings and its calls; the answers are the
    world's. Runs of one request and wanted bookings are of one task.
    """
    with open_worlds("booking", processes=1) as (world,):
        return [_line(world, *run) for run in runs]


def _line(world: Any, name: str, request: str, wanted: dict[str, int], calls: Sequence[Call]) -> dict[str, Any]:
    parameters = {"wanted": {"bookings": wanted}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": request}]
    with world.open(Task("desk", "t", parameters=raw(parameters)), MemoryBlobs()) as session:
        for number, (tool_name, arguments) in enumerate(calls):
            function = {"name": tool_name, "arguments": json.dumps(arguments)}
            (answer,) = session.call([ToolCall("1.0", tool_name, json.dumps(arguments), arguments=raw(arguments))])
            messages += [
                {"role": "assistant", "content": "", "tool_calls": [{"id": f"c{number}", "function": function}]},
                {"role": "tool", "tool_call_id": f"c{number}", "content": answer.raw},
            ]
    messages.append({"role": "assistant", "content": "That is done."})
    facts = {"task": request, "run": name, "parameters": parameters, "environment": "booking"}
    return {"messages": messages, "tools": TOOLS, **facts}


def replayed(folder: Path, runs: Sequence[tuple[str, str, dict[str, int], Sequence[Call]]]) -> Store:
    """A store of such runs, replayed and diagnosed."""
    store = new_store(folder)
    import_lines(store, folder, lines(runs))
    result = replay_attempts(store, "booking")
    assert result.equal_bytes == result.calls
    diagnose_attempts(store)
    return store

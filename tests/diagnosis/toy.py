"""Cases of the toy world, read from log lines by the importer as a user's log would be."""

import json
from pathlib import Path
from typing import Any

import msgspec

from curation.diagnosis.evidence import Case
from curation.importers import openai_chat
from curation.importers.face import Parsed
from environments.catalogue import find
from environments.protocol import EnvSpec
from schemas.canonical import raw
from schemas.objects import ToolSpec
from schemas.statements import Execution, Match, Outcome, Result, Verification
from schemas.trajectory import Author, trajectory_id
from tests.eight import TOOLS, Message

BOOK = {
    "type": "function",
    "function": {
        "name": "book",
        "description": "Book a SKU",
        "parameters": {
            "type": "object",
            "properties": {"sku": {"type": "string"}, "qty": {"type": "integer", "default": 1}},
            "required": ["sku"],
        },
    },
}
INVENTORY: EnvSpec = find("inventory").spec
BOOKING: EnvSpec = find("booking").spec


def call(name: str, arguments: dict[str, Any] | str, answer: Any = None, call_id: str = "c1") -> list[Message]:
    """A call, its arguments as an object or as the text that was written, and its answer if there is one."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": name, "arguments": text}
    made = {"id": call_id, "type": "function", "function": function}
    asked = {"role": "assistant", "content": "", "tool_calls": [made]}
    if answer is None:
        return [asked]
    return [asked, {"role": "tool", "tool_call_id": call_id, "content": json.dumps(answer)}]


def case(
    folder: Path,
    request: str,
    *messages: Message,
    tools: list[dict[str, Any]] | None = TOOLS,
    spec: EnvSpec | None = INVENTORY,
    outcome: Outcome = "failure",
    stop: str | None = None,
    verifications: tuple[Verification, ...] = (),
) -> Case:
    """A case from one log line that holds a request and what followed."""
    line: dict[str, Any] = {"id": "one", "messages": [{"role": "user", "content": request}, *messages]}
    if tools is not None:
        line["tools"] = tools
    path = folder / "one.jsonl"
    path.write_text(json.dumps(line, ensure_ascii=False) + "\n", encoding="utf-8")
    (item,) = openai_chat.IMPORTER.read(path)
    assert isinstance(item, Parsed), item
    return case_of(item, spec, outcome, stop, verifications)


def case_of(
    item: Parsed,
    spec: EnvSpec | None = INVENTORY,
    outcome: Outcome = "failure",
    stop: str | None = None,
    verifications: tuple[Verification, ...] = (),
) -> Case:
    """The case of an imported log line."""
    lists = [msgspec.json.decode(one.bytes) for one in item.objects if one.kind == "tools"]
    tools = tuple(
        ToolSpec(tool["function"]["name"], tool["function"]["description"], raw(tool["function"]["parameters"]))
        for tool in (lists[0] if lists else [])
    )
    trajectory = item.trajectory
    return Case(trajectory_id(trajectory), trajectory, tools if lists else None, stop, outcome, verifications, spec)


def executed(
    case: Case,
    uid: str,
    match: Match = "equal_bytes",
    status: str = "ok",
    state: str | None = "s:1",
    after: str = "s:1",
) -> Verification:
    """What replay says of a call."""
    execution = Execution("inventory@1", match=match, status=status, state_before=state, state_after=state and after)
    result: Result = "passed" if match.startswith("equal") else "failed" if match == "different" else "unknown"
    author = Author("environment", "inventory", "1")
    return Verification(case.trajectory_id, "execution", result, author, int(uid[0]), uid, execution=execution)

"""Small logs written to disk and read back through an importer's face."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from curation.importers import openai_chat
from curation.importers.face import FAULT, Item, Parsed, Rejected
from schemas.canonical import encode
from schemas.digests import decisions_of
from schemas.reasons import QUARANTINE, WARNINGS
from schemas.trajectory import ToolCall, Trajectory, decode


def write(path: Path, records: Iterable[Any]) -> Path:
    """A JSON Lines file; bytes are written as they are, anything else as JSON."""
    lines = (one if isinstance(one, bytes) else json.dumps(one, ensure_ascii=False).encode() for one in records)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def read_chats(folder: Path, *records: Any) -> list[Item]:
    """What the OpenAI importer makes of these records."""
    return list(openai_chat.IMPORTER.read(write(folder / "chats.jsonl", records)))


def read_chat(folder: Path, record: Any) -> Parsed:
    """One record that must be accepted."""
    (item,) = read_chats(folder, record)
    return accepted(item)


def refuse_chat(folder: Path, record: Any) -> Rejected:
    """One record that must be refused."""
    (item,) = read_chats(folder, record)
    assert isinstance(item, Rejected)
    return item


def accepted(item: Item) -> Parsed:
    """The item, which must be an attempt."""
    assert isinstance(item, Parsed), item
    return item


def assert_whole(item: Item) -> None:
    """The item is an attempt that can be written, read again and digested, or has a code of a refusal."""
    if isinstance(item, Parsed):
        written = encode(item.trajectory)
        assert encode(decode(written)) == written
        decisions_of(item.trajectory)
        assert WARNINGS.keys() >= set(item.warnings)
    else:
        assert item.code in QUARANTINE.keys() - {FAULT}


def calls(trajectory: Trajectory) -> list[ToolCall]:
    """Every call of a trajectory, in order."""
    return [call for message in trajectory.messages for call in message.tool_calls]


def call(arguments: Any, *, call_id: str | None = "c1", name: str = "get_stock") -> dict[str, Any]:
    """One entry of ``tool_calls``."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def ask(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A message of the assistant that carries these calls."""
    return {"role": "assistant", "content": None, "tool_calls": list(entries), **more}


def answer(content: Any, call_id: str | None = "c1", **more: Any) -> dict[str, Any]:
    """A tool message."""
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def chat(*messages: Any, **more: Any) -> dict[str, Any]:
    """A record that begins with the request."""
    return {"messages": [{"role": "user", "content": "How many A17 are left?"}, *messages], **more}

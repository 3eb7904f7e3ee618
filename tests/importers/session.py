"""Lines of Claude Code sessions, written to disk and read back."""

from pathlib import Path
from typing import Any

from curation.importers import claude_code
from curation.importers.face import Item, Parsed, Rejected
from schemas.trajectory import Message
from tests.importers.reading import write


def line(kind: str, uuid: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    """One line of a session ``s1``; keys of its message are given as ``message``."""
    message = {"role": kind, "content": content, **more.pop("message", {})}
    named = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1", "isSidechain": False}
    return {**named, "version": "2.0.1", "message": message, **more}


def user(uuid: str, parent: str | None, content: Any = "How many A17 are left?", **more: Any) -> dict[str, Any]:
    """What a user says."""
    return line("user", uuid, parent, content, **more)


def model(uuid: str, parent: str | None, *blocks: Any, turn: str | None = None, **message: Any) -> dict[str, Any]:
    """A part of a turn of the model, the turn named by its message id: by default one of its own."""
    return line("assistant", uuid, parent, list(blocks), message={"id": turn or f"m-{uuid}", "model": "m", **message})


def text(words: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": words}


def use(call_id: str | None, name: str = "get_stock", **arguments: Any) -> dict[str, Any]:
    """A call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def result(uuid: str, parent: str | None, call_id: str | None, content: Any = "2", **more: Any) -> dict[str, Any]:
    """The answer to one call, on a line of its own."""
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, **more.pop("block", {})}
    return user(uuid, parent, [block], **more)


def note(uuid: str, parent: str | None, kind: str = "system", **more: Any) -> dict[str, Any]:
    """A line that is no message."""
    return {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s1", "isSidechain": False, **more}


def read(folder: Path, *lines: Any) -> list[Item]:
    """What the importer makes of a session."""
    return list(claude_code.IMPORTER.read(write(folder / "session.jsonl", lines)))


def runs(items: list[Item]) -> dict[str | None, Parsed]:
    """The attempts by their keys; there must be nothing else."""
    found = {item.key: item for item in items if isinstance(item, Parsed)}
    assert len(found) == len(items), items
    return found


def only(items: list[Item]) -> Parsed:
    """The one attempt that there is."""
    (found,) = runs(items).values()
    return found


def refused(items: list[Item]) -> list[tuple[str, int]]:
    """Code and line of what was refused."""
    return [(item.code, item.place) for item in items if isinstance(item, Rejected)]


def facts(parsed: Parsed) -> dict[str, Any]:
    """The facts by their fields."""
    return {fact.field: fact.value for fact in parsed.facts}


def shown(messages: tuple[Message, ...]) -> list[Any]:
    """Of every message its text, or the names of its calls."""
    return [[call.id for call in message.tool_calls] if message.tool_calls else message.content for message in messages]

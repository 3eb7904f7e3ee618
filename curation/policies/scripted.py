"""A policy that reads its turns from a file: a JSON list, one entry a turn.

An entry is a text, or an object ``{"content": ..., "calls": [{"name": ..., "arguments": {...}}], "usage": {...}}`` of
which all keys may be left out; ``arguments`` may also be the text that a model wrote. After the last entry it says
nothing more.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from curation.errors import UsageError
from curation.policies.policy import Call, Response
from schemas.canonical import digest
from schemas.named_file import read_named
from schemas.objects import ToolSpec
from schemas.trajectory import Message, Usage


class _Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] | str = msgspec.field(default_factory=dict)


class _Turn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    content: str | None = None
    calls: tuple[_Call, ...] = ()
    usage: Usage | None = None


class Scripted:
    """Turns in order, whatever was said before. Its version is the digest of what it was made of."""

    name = "scripted"

    def __init__(self, turns: Sequence[Response], version: str) -> None:
        self.version = version
        self._turns = tuple(turns)
        self._next = 0

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Response:
        """The next turn; an empty one after the last."""
        taken, self._next = self._next, self._next + 1
        return self._turns[taken] if taken < len(self._turns) else Response()


def from_file(path: Path) -> Scripted:
    """The policy of a file. Raises UsageError with what is wrong in it."""
    try:
        data = read_named(path)
        entries = msgspec.json.decode(data, type=list[str | _Turn])
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; give a readable JSON file") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"{path}: {error}; write a JSON list of texts and "
            '{"content": ..., "calls": [{"name": ..., "arguments": {...}}]}'
        ) from None
    return Scripted([_response(entry) for entry in entries], digest(data)[:12])


def _response(entry: str | _Turn) -> Response:
    if isinstance(entry, str):
        return Response(entry)
    return Response(entry.content, tuple(Call(call.name, call.arguments) for call in entry.calls), entry.usage)

"""The histories that spans repeat: a message is read once, however many spans hold it.

What tells messages apart is how they are written: the JSON text of one, or its flattened keys and their values.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from curation.importers.span_messages import chat_messages, flattened_message, loaded
from curation.importers.spans import listed, nest, nest_names, numbered
from schemas import canonical

Chat = dict[str, Any]
Chats = tuple[Chat, ...] | None  # of one entry of a history; None where it is no message

_SPLIT = msgspec.json.Decoder(list[msgspec.Raw])


class Histories:
    """Messages of the OpenAI chat shape, as spans tell of them. Those that are written alike are one object."""

    def __init__(self) -> None:
        self._written: dict[bytes, Chats] = {}
        self._flattened: dict[tuple[tuple[str, ...], tuple[str, ...]], Chats] = {}
        self._made: dict[bytes, Chat] = {}

    def read(self, value: Any) -> list[Chat] | None:
        """The messages of a value that is a list of messages, or an object or JSON text that holds one; else None."""
        if (entries := self._entries(value)) is not None:
            return _joined(entries)
        value = loaded(value)
        if not isinstance(value, dict):
            return None
        if (entries := self._entries(value.get("messages"))) is not None:
            return _with_system(value, _joined(entries))
        prompt = value.get("prompt")
        return _with_system(value, [{"role": "user", "content": prompt}]) if isinstance(prompt, str) else None

    def read_flattened(self, attributes: Mapping[str, Any], prefix: str) -> list[Chat]:
        """The messages that dotted keys under a prefix hold, in the order of their numbers."""
        if (found := numbered(attributes, prefix)) is not None:
            return [chat for number in sorted(found, key=int) for chat in self._raised(*found[number]) or ()]
        return [flattened_message(entry) for entry in listed(nest(attributes, prefix)) if isinstance(entry, dict)]

    def make(self, entry: Chat, made: Callable[[Chat], Chat]) -> Chat:
        """What is made of an entry of a history that lies there as a value; always in the same way."""
        written = canonical.encode(entry)
        if written not in self._made:
            self._made[written] = made(entry)
        return self._made[written]

    def _entries(self, value: Any) -> Iterable[Chats] | None:
        """The entries of a list, or of JSON text of one; None of anything else."""
        if isinstance(value, str) and value.lstrip()[:1] == "[":
            try:
                return [self._loaded(bytes(piece)) for piece in _SPLIT.decode(value)]
            except (msgspec.MsgspecError, RecursionError, canonical.UnreadableError):
                value = loaded(value)
        return map(_chats, value) if isinstance(value, list) else None

    def _loaded(self, text: bytes) -> Chats:
        try:
            return self._written[text]
        except KeyError:
            (entry,), _ = canonical.parse(b"[%b]" % text)  # as deep in a list as it stands
            found = self._written[text] = _chats(entry)
            return found

    def _raised(self, names: list[str], values: list[Any]) -> Chats:
        if {*map(type, values)} != {str}:
            return _raised(names, values)
        written = (tuple(names), tuple(values))
        if written not in self._flattened:
            self._flattened[written] = _raised(names, values)
        return self._flattened[written]


def _chats(entry: Any) -> Chats:
    return tuple(chat_messages(entry)) if isinstance(entry, dict) and "role" in entry else None


def _raised(names: list[str], values: list[Any]) -> Chats:
    entry = nest_names(names, values)
    return (flattened_message(entry),) if isinstance(entry, dict) else None


def _joined(entries: Iterable[Chats]) -> list[Chat] | None:
    """The messages of all entries, where each is one."""
    found: list[Chat] = []
    for chats in entries:
        if chats is None:
            return None
        found += chats
    return found


def _with_system(value: Mapping[str, Any], messages: list[Chat] | None) -> list[Chat] | None:
    system = value.get("system")
    if messages is None or not system:
        return messages
    return [*chat_messages({"role": "system", "content": system}), *messages]

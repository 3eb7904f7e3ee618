"""Content that records refer to by its digest: tool lists, snapshots, raw log lines, blobs."""

from typing import Any, Literal, NamedTuple

import msgspec

from schemas.canonical import digest, encode
from schemas.trajectory import Record

ObjectKind = Literal["tools", "snapshot", "raw", "blob"]


class Object(NamedTuple):
    """Bytes with their name and kind."""

    id: str
    kind: ObjectKind
    bytes: bytes


class ToolSpec(Record, frozen=True):
    """A tool as a model is offered it: name, description and the JSON Schema of its arguments."""

    name: str
    description: str = ""
    parameters: msgspec.Raw = msgspec.Raw(b"{}")


class Snapshot(Record, frozen=True):
    """A whole state of an environment: its logical digest, and the blob that holds it.

    ``base``: the blob of another state's image, where ``blob`` holds only what has changed since it.
    """

    environment: str
    version: str
    code_digest: str
    digest: str
    form: str
    blob: str
    base: str | None = None

    @property
    def blobs(self) -> tuple[str, ...]:
        """The names of all bytes that it takes to restore it."""
        return (self.blob,) if self.base is None else (self.blob, self.base)


def make_object(kind: ObjectKind, data: bytes) -> Object:
    """Bytes named by their digest."""
    return Object(digest(data), kind, data)


def tools_object(tools: list[Any]) -> Object:
    """A tool list as stored: canonical bytes of the list as the log gives it."""
    return make_object("tools", encode(tools))


class Sighting(Record, frozen=True):
    """One item read from a file, whatever became of it.

    ``file`` and ``raw`` are digests of the file and of the bytes that hold the item, ``place`` its line (from 1) or
    index, ``offset`` its first byte, ``part`` its name where the same bytes hold several. Either ``trajectory`` is set,
    or ``code`` says why it is quarantined.
    """

    file: str
    name: str
    place: int
    offset: int
    raw: str
    importer: str
    trajectory: str | None = None
    code: str | None = None
    detail: str | None = None
    warnings: tuple[str, ...] = ()
    part: str | None = None


def read_tools(data: bytes) -> tuple[ToolSpec, ...]:
    """The tools of a stored tool list: entries with a ``function`` object, or with name and schema at the top.

    An entry without a name offers no tool and is left out.
    """
    found = []
    for entry in msgspec.json.decode(data):
        tool = entry.get("function", entry) if isinstance(entry, dict) else {}
        if isinstance(tool, dict) and isinstance(tool.get("name"), str):
            schema = tool.get("parameters", tool.get("input_schema", {}))
            found.append(ToolSpec(tool["name"], str(tool.get("description") or ""), msgspec.Raw(encode(schema))))
    return tuple(found)

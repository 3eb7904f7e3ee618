"""``format``: what the model wrote is no call, though it was meant as one."""

import re
from collections.abc import Iterator

import msgspec
from msgspec import UNSET

from curation.diagnosis.evidence import Reading, shown
from schemas.statements import Evidence, Finding
from schemas.trajectory import Message, ToolCall, text_of

_OPENING = re.compile(r"\s{0,100}([^\s({]{1,100})[({]")


def find(reading: Reading) -> Iterator[Finding]:
    """Arguments that do not parse, and text that opens with a declared tool's name and ``(`` or ``{``."""
    for index, call in reading.calls:
        if unparsed(reading.messages[index], call):
            written = Evidence("parser", index, call.uid, value=shown(call.arguments_text), note=call.parse_error)
            yield reading.finding("format", index, "arguments_not_json", (written,), call=call.uid)
    for index, message in enumerate(reading.messages):
        if message.role == "assistant" and (name := call_as_text(reading, index)) is not None:
            text = text_of(message.content)
            evidence = (
                Evidence("parser", index, start=0, end=len(text), value=shown(text)),
                Evidence("schema", value=name),
            )
            yield reading.finding("format", index, "call_as_text", evidence, ("schema",))


def unparsed(message: Message, call: ToolCall) -> bool:
    """Whether the model wrote arguments that do not parse.

    Absent arguments, JSON text inside JSON text, and what a recording cut off may be the log's doing and are not held
    against the model.
    """
    wrong = call.parse_error not in (None, "double_encoded") and bool(call.arguments_text.strip())
    return wrong and not is_cut(message)


def is_cut(message: Message) -> bool:
    """Whether the log says that its recording ends within the message: what is missing there says nothing of it."""
    kept = {} if message.extra is UNSET else msgspec.json.decode(message.extra, type=dict[str, msgspec.Raw])
    return bytes(kept.get("truncated", b"")) == b"true"


def call_as_text(reading: Reading, index: int) -> str | None:
    """The declared tool that a message without calls opens with, as if to call it."""
    message = reading.messages[index]
    if message.tool_calls or reading.tools is None:
        return None
    match = _OPENING.match(text_of(message.content))
    return match[1] if match and match[1] in reading.tools else None

"""Messages and model calls as Inspect logs them: arguments as objects, tool errors as ``{type, message}``, long texts
as references to the sample's attachments, and histories as ranges of a pool.

An event's provider response keeps the arguments as the model wrote them; where it is there, they are taken from it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from curation.clocks import iso_time
from curation.importers.aside import Aside
from curation.importers.face import RefusedError
from curation.importers.messages import MessageShape, read_messages
from curation.importers.written import written_arguments
from schemas import canonical
from schemas.trajectory import Message, MessageError, Origin, ToolCall

MAX_EXPANDED = 256 * 2**20  # characters that the attachments of one sample may grow it by
MAX_REFERENCES = 10_000_000  # messages of the pool that the events of one sample may name

_PROTOCOLS = ("attachment://", "tc://")
_HARNESS = frozenset(("approval", "cancelled", "limit", "output_limit"))
_DROPPED = frozenset(("id", "tool_error", "error", "function", "function_call"))

Hidden = Literal["reasoning", "compaction"]


class Turn(NamedTuple):
    """A call of the model: its event, and the id of the message that it answered with, where the log gives ids."""

    event: dict[str, Any]
    answer: str | None


@dataclass(slots=True)
class Sample:
    """What a sample's events say beside its messages."""

    attachments: dict[str, str]
    pool: list[Any]
    turns: list[Turn] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    expanded: int = 0
    named: int = 0

    def resolve(self, value: Any) -> Any:
        """A value with the texts that its references stand for. Raises RefusedError where they are too long."""
        match value:
            case str() if value.startswith(_PROTOCOLS):
                text = self.attachments.get(value.partition("://")[2])
                if not isinstance(text, str):
                    return value
                self.expanded += len(text)
                if self.expanded > MAX_EXPANDED:
                    raise RefusedError("too_large", f"its attachments expand to over {MAX_EXPANDED} characters")
                return text
            case list():
                return [self.resolve(item) for item in value]
            case dict():
                return {key: self.resolve(item) for key, item in value.items()}
        return value

    def shown(self, turn: Turn) -> set[str]:
        """The ids of the messages that a call of the model was given."""
        given = [*_dicts(turn.event.get("input"))]
        spans = turn.event.get("input_refs")
        for span in spans if isinstance(spans, list) else ():
            match span:
                case [int(start), int(end)]:
                    part = self.pool[max(start, 0) : max(end, 0)]
                    self.named += len(part)
                    if self.named > MAX_REFERENCES:
                        raise RefusedError("too_large", f"its events name over {MAX_REFERENCES} messages of the pool")
                    given.extend(_dicts(part))
        return {name for entry in given if (name := _name(entry, "id")) is not None}


def read_events(events: list[Any], attachments: dict[str, str], pool: list[Any], messages: list[Any]) -> Sample:
    """The calls of the model that made the messages, and those of tools.

    Where messages have ids these are the calls that answered with one of them, else all that no scorer made.
    """
    sample = Sample(attachments, pool)
    spans: set[str] = set()
    steps: list[bool] = []
    unscored = []
    for event in _dicts(events):
        match event:
            case {"event": "span_begin", "id": str(span)} if (
                event.get("type") == "scorer" or _name(event, "parent_id") in spans
            ):
                spans.add(span)
            case {"event": "step", "action": "begin"}:
                steps.append(event.get("type") == "scorer")
            case {"event": "step", "action": "end"} if steps:
                steps.pop()
            case {"event": "model"}:
                turn = Turn(event, _answer_id(event))
                sample.turns.append(turn)
                if not any(steps) and _name(event, "span_id") not in spans:
                    unscored.append(turn)
            case {"event": "tool"}:
                sample.tools.append(event)
    ids = {_name(message, "id") for message in messages if message.get("role") == "assistant"} - {None}
    own = [turn for turn in sample.turns if turn.answer in ids]
    sample.turns = own if own or ids else unscored
    return sample


def read_sample(entries: list[dict[str, Any]], sample: Sample, aside: Aside) -> tuple[Message, ...]:
    """The messages of a sample. Raises RefusedError with the path of what is not of the format's shape."""
    written = Counter[str]()
    texts: dict[str, str] = {}
    for turn in sample.turns:
        call = turn.event.get("call")
        for call_id, text in written_arguments(call.get("response") if isinstance(call, dict) else None):
            written[call_id] += 1
            texts[call_id] = sample.resolve(text)
    texts = {call_id: text for call_id, text in texts.items() if written[call_id] == 1}
    cut = {_name(tool, "id") for tool in sample.tools if tool.get("truncated")} - {None}
    answers = {turn.answer: turn.event["output"]["choices"][0]["message"] for turn in sample.turns if turn.answer}
    entries = [_as_answered(entry, answers.get(_name(entry, "id") or ""), sample) for entry in entries]
    chats = [_chat(entry, sample, texts, cut) for entry in entries]
    try:
        shapes = msgspec.convert(chats, list[MessageShape])
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", f"$.messages: {error}") from None
    messages = read_messages(chats, shapes, "$.messages", aside)
    _tell_times(messages, sample, aside)
    hidden = _hidden(entries, sample)
    pairs = enumerate(zip(messages, entries, strict=True))
    return tuple(_finished(message, entry, hidden.get(index)) for index, (message, entry) in pairs)


def _as_answered(entry: dict[str, Any], answer: dict[str, Any] | None, sample: Sample) -> dict[str, Any]:
    """A message with the calls that the model answered with, where an agent has taken them out of it, as those do whose
    last call hands in the answer; what stands in the log instead is kept beside.
    """
    if answer is None or entry.get("tool_calls") or not answer.get("tool_calls"):
        return entry
    shown = sample.resolve(entry.get("content"))
    return {**entry, **{key: answer.get(key) for key in ("content", "tool_calls")}, "content_shown": shown}


def _chat(entry: dict[str, Any], sample: Sample, texts: dict[str, str], cut: set[str | None]) -> dict[str, Any]:
    """A message in the shape of a chat; what has no place there keeps its name."""
    chat = {key: value for key, value in entry.items() if key not in _DROPPED and value is not None}
    chat["content"], thoughts = _content(entry, sample)
    if thoughts:
        chat["reasoning_content"] = "\n".join(thoughts)
    if isinstance(calls := entry.get("tool_calls"), list):
        chat["tool_calls"] = [_call(call, texts) for call in calls]
    if entry.get("role") == "tool":
        error = entry.get("error") or entry.get("tool_error")
        kind = error.get("type") if isinstance(error, dict) else None
        chat |= {"name": entry.get("function"), "error": error}
        if kind == "output_limit" or _name(entry, "tool_call_id") in cut:
            chat["truncated"] = True
    return chat


def _content(entry: dict[str, Any], sample: Sample) -> tuple[Any, list[str]]:
    """Text or parts, and the reasoning among them; a reference that leads nowhere is a part that is no text."""
    content = sample.resolve(entry.get("content"))
    if isinstance(content, str) and content.startswith(_PROTOCOLS):
        return [_missing(content)], []
    if not isinstance(content, list):
        return content, []
    parts: list[Any] = []
    thoughts: list[str] = []
    for part in content:
        match part:
            case {"type": "reasoning"} if entry.get("role") == "assistant":
                text = part.get("reasoning") if not part.get("redacted") else None
                thoughts.extend(shown for shown in (text or part.get("summary"),) if isinstance(shown, str) and shown)
            case {"type": "text", "text": str(text)} if text.startswith(_PROTOCOLS):
                parts.append(_missing(text))
            case {"type": "text"}:
                parts.append({key: value for key, value in part.items() if value is not None})
            case _:
                parts.append(part)
    match parts:
        case []:
            return "", thoughts
        case [{"type": "text", "text": str(text), **rest}] if not rest:
            return text, thoughts
    return parts, thoughts


def _missing(reference: str) -> dict[str, str]:
    return {"type": "missing", "reference": reference}


def _call(call: Any, texts: dict[str, str]) -> Any:
    """A call with the arguments as they were written, else with the object that the log holds."""
    if not isinstance(call, dict) or "function" not in call:
        return call
    rest = {key: value for key, value in call.items() if key not in ("function", "arguments", "view")}
    arguments = call.get("arguments")
    text = texts.get(_name(call, "id") or "")
    if text is not None and not _reads_as(text, arguments):
        rest["arguments_used"] = arguments
    made = {"function": {"name": call["function"], "arguments": arguments if text is None else text}}
    return rest | {"type": rest.get("type") or "function"} | made


def _reads_as(text: str, arguments: Any) -> bool:
    try:
        return bool(canonical.parse(text.encode())[0] == arguments)
    except canonical.UnreadableError:
        return False


def _finished(message: Message, entry: dict[str, Any], hidden: Hidden | None) -> Message:
    """The message with what a chat does not say: the origin of an error, calls that did not parse, what is hidden."""
    error = message.error
    if error is not None:
        message = replace(message, error=MessageError(error.message, error.kind, _origin(error.kind)))
    calls = tuple(map(_unread, message.tool_calls, chain(entry.get("tool_calls") or (), repeat({}))))
    if calls != message.tool_calls:
        message = replace(message, tool_calls=calls)
    actor = "operator" if entry.get("source") == "operator" else None
    return replace(message, hidden=hidden, actor=actor) if hidden or actor else message


def _unread(call: ToolCall, logged: dict[str, Any]) -> ToolCall:
    """The call, whose arguments are none where the log says that they did not parse."""
    if not logged.get("parse_error") or call.parse_error is not None:
        return call
    return replace(call, arguments=UNSET, parse_error=str(logged["parse_error"]))


def _origin(kind: str | None) -> Origin:
    if kind == "parsing":
        return "model"
    if kind == "sandbox_unavailable":
        return "environment"
    return "harness" if kind in _HARNESS else "tool"


def _hidden(entries: list[dict[str, Any]], sample: Sample) -> dict[int, Hidden]:
    """Messages before which something is not in the log: an earlier call or answer that the model was not given any
    more, or reasoning of which there is no text.
    """
    places = {_name(entry, "id"): index for index, entry in enumerate(entries)}
    found: dict[int, Hidden] = {}
    firsts: dict[str, int] = {}
    before: list[int] = []  # how many names of answers and of the model's messages stand before a message
    for index, entry in enumerate(entries):
        before.append(len(firsts))
        if entry.get("role") in ("assistant", "tool") and (name := _name(entry, "id")) is not None:
            firsts.setdefault(name, index)
        for part in _dicts(entry.get("content")):
            if part.get("type") == "reasoning" and (part.get("redacted") or not part.get("reasoning")):
                found[index] = "reasoning"
    for turn in sample.turns:
        at = None if turn.answer is None else places.get(turn.answer)
        if at is None:
            continue
        if usage_of(turn.event).get("reasoning_tokens") and not _thinks(entries[at]):
            found[at] = "reasoning"
        given = sample.shown(turn)
        if given and sum(firsts.get(name, at) < at for name in given) < before[at]:
            found[at] = "compaction"
    return found


def _thinks(entry: dict[str, Any]) -> bool:
    return any(part.get("type") == "reasoning" for part in _dicts(entry.get("content")))


def usage_of(event: dict[str, Any]) -> dict[str, Any]:
    """What a call of the model took, in the words of the log; empty where it says nothing."""
    output = event.get("output")
    usage = output.get("usage") if isinstance(output, dict) else None
    return usage if isinstance(usage, dict) else {}


def _tell_times(messages: tuple[Message, ...], sample: Sample, aside: Aside) -> None:
    """When a message's first call began, as the events of tools say."""
    begun: dict[Any, str] = {}
    for tool in sample.tools:
        if (time := iso_time(tool.get("timestamp"))) is not None:
            begun.setdefault(_name(tool, "id"), time)
    for index, message in enumerate(messages):
        time = next((begun[call.id] for call in message.tool_calls if call.id in begun), None)
        if time is not None:
            aside.times[index] = time


def _answer_id(event: dict[str, Any]) -> str | None:
    match event.get("output"):
        case {"choices": [{"message": {"id": str(answer)}}, *_]}:
            return answer
    return None


def _dicts(values: Any) -> Iterator[dict[str, Any]]:
    return (value for value in values if isinstance(value, dict)) if isinstance(values, list) else iter(())


def _name(entry: dict[str, Any], key: str) -> str | None:
    value = entry.get(key)
    return value if isinstance(value, str) else None

"""OpenHands events as messages: a turn where the model answered, an answer where an observation names its call.

``tool_call_metadata`` holds the model's whole response: the calls of one response are one turn, however many actions
they became. Where it is absent (older files) the action itself is the call, with what the harness added left out.
Recalls, state changes and null observations are no turns; what a recall brought was shown in words that are not logged.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from curation.clocks import iso_time
from curation.importers.aside import Aside
from curation.importers.calls import CallShape, read_call
from curation.importers.extra import kept
from schemas import canonical
from schemas.objects import make_object
from schemas.trajectory import Answers, Json, MatchedBy, Message, MessageError, Part, ToolCall, call_uid

HARNESS = "harness"

_LARGE = 4_096  # bytes from which on a value beside an observation is kept as a blob
_SILENT = frozenset(("null", "recall", "change_agent_state", "agent_state_changed", "loading", "pause", "resume"))
_ENDS = frozenset(("finish", "reject"))
_EVENT = frozenset(
    ("id", "timestamp", "source", "message", "action", "args", "timeout", "tool_call_metadata", "llm_metrics", "cause")
)
_HARNESS = frozenset(
    (
        "action_risk",
        "blocking",
        "confirmation_state",
        "cwd",
        "hidden",
        "impl_source",
        "is_confirmed",
        "is_static",
        "keep_prompt",
        "kernel_init_code",
        "security_risk",
        "thought",
    )
)
_OBSERVATION = frozenset((*_EVENT, "observation", "content", "extras"))
_PRIVATE = frozenset(("hostname", "username", "pid", "runtime_hosts"))
_RECALLED = ("microagent_knowledge", "repo_instructions", "additional_agent_instructions", "conversation_instructions")


class _Said(msgspec.Struct):
    content: str | list[Any] | None = None
    tool_calls: list[CallShape] | None = None
    reasoning_content: str | None = None


class _Choice(msgspec.Struct):
    message: _Said


class _Response(msgspec.Struct):
    id: str | None = None
    choices: list[_Choice] = []


class _Metadata(msgspec.Struct):
    function_name: str | None = None
    tool_call_id: str | None = None
    model_response: _Response | None = None


class _Event(msgspec.Struct):
    id: int | None = None
    timestamp: Any = None
    source: str | None = None
    action: str | None = None
    observation: str | None = None
    args: dict[str, Any] | None = None
    content: str | None = None
    extras: dict[str, Any] | None = None
    cause: int | None = None
    tool_call_metadata: _Metadata | None = None


@dataclass(slots=True)
class Events:
    """The messages of a run, and what its events say of its circumstances."""

    messages: list[Message] = field(default_factory=list)
    tools: list[Any] | None = None
    agent_class: str | None = None
    version: str | None = None
    recalled: list[dict[str, Any]] = field(default_factory=list)
    finished: bool = False


def read_events(history: Iterable[Any], aside: Aside) -> Events:
    """Every event of a history. Raises msgspec.ValidationError where one is of another shape."""
    reader = _Reader(aside)
    for entry in _flat(history):
        reader.read(entry, msgspec.convert(entry, _Event))
    return reader.events


def _flat(history: Iterable[Any]) -> Iterator[Any]:
    for entry in history:
        if isinstance(entry, list):
            yield from entry
        else:
            yield entry


class _Reader:
    def __init__(self, aside: Aside) -> None:
        self.aside = aside
        self.events = Events()
        self._turns: set[str] = set()
        self._by_id: dict[str, ToolCall] = {}
        self._by_event: dict[int, ToolCall] = {}
        self._ids: set[int] = set()
        self._waiting: dict[str, ToolCall] = {}
        self._hidden: Literal["compaction"] | None = None

    def read(self, entry: dict[str, Any], event: _Event) -> None:
        """The message of one event, if it is one."""
        if event.id is not None and event.id in self._ids:
            self.aside.warnings.append("repeated_event_id")
        elif event.id is not None:
            self._ids.add(event.id)
        args = {key: value for key, value in entry.items() if key not in _EVENT} if event.args is None else event.args
        if event.observation is not None:
            self._observe(entry, event)
        elif event.action == "system":
            self._add(Message("system", _text(args.get("content"))), event)
            tools = args.get("tools")
            self.events.tools = tools if isinstance(tools, list) else None
            self.events.agent_class = _text(args.get("agent_class"))
            self.events.version = _text(args.get("openhands_version"))
        elif event.action == "condensation":
            self._hidden = "compaction"
        elif event.action is not None and event.action not in _SILENT:
            self._act(entry, event, args)

    def _act(self, entry: dict[str, Any], event: _Event, args: dict[str, Any]) -> None:
        first = not self.events.messages and event.source is None
        if event.action == "message" and (event.source != "agent" or first) and event.tool_call_metadata is None:
            by_agent = event.source is None and bool(self.events.messages)
            self._add(Message("assistant" if by_agent else "user", self._said(args)), event)
            return
        self.events.finished = event.action in _ENDS
        metadata = event.tool_call_metadata
        if metadata is not None and metadata.model_response is not None and metadata.model_response.choices:
            self._respond(entry, event, metadata, metadata.model_response)
        elif event.action == "message" or (event.action in _ENDS and metadata is None):
            words = self._said(args) if event.action == "message" else _text(args.get("thought"))
            self._decide(event, words, ())
        else:
            self._decide(event, _text(args.get("thought")), [self._logged(event, args, metadata)])

    def _respond(self, entry: dict[str, Any], event: _Event, metadata: _Metadata, response: _Response) -> None:
        """The turn that a response is, once; a later action of it only says which call it carries out."""
        call_id, said = metadata.tool_call_id, response.choices[0].message
        written = entry["tool_call_metadata"]["model_response"]["choices"][0]["message"]
        key = None if response.id is None else canonical.digest(canonical.encode([response.id, written]))
        known = key is not None and key in self._turns
        if not known or (call_id is not None and call_id not in self._by_id):
            logged = written.get("tool_calls") or []
            shapes = said.tool_calls or []
            content = said.content if isinstance(said.content, str) else self._parts(said.content)
            self._decide(event, content, list(zip(logged, shapes, strict=True)), said.reasoning_content)
            if key is not None:
                self._turns.add(key)
        if event.id is not None and call_id in self._by_id:
            self._by_event[event.id] = self._by_id[call_id]

    def _logged(self, event: _Event, args: dict[str, Any], metadata: _Metadata | None) -> tuple[Any, CallShape]:
        """The call that an action is, where the model's own is not logged."""
        name = (metadata.function_name if metadata else None) or event.action
        arguments = {key: value for key, value in args.items() if key not in _HARNESS and value is not None}
        logged = {
            "id": metadata.tool_call_id if metadata else None,
            "type": "action",
            "function": {"name": name, "arguments": arguments},
        }
        return logged, msgspec.convert(logged, CallShape)

    def _decide(
        self,
        event: _Event,
        content: str | tuple[Part, ...] | None,
        made: Iterable[tuple[Any, CallShape]],
        reasoning: str | None = None,
    ) -> None:
        index = len(self.events.messages)
        calls, notes = [], {}
        for position, (logged, shape) in enumerate(made):
            call, note = read_call(logged, shape, call_uid(index, position), self.aside)
            note.pop("index", None)
            if note:
                notes[str(position)] = note
            if call.id:
                if call.id in self._by_id:
                    self.aside.warnings.append("repeated_call_id")
                self._by_id[call.id] = call
            calls.append(call)
            self._waiting[call.uid] = call
        if event.id is not None and len(calls) == 1:
            self._by_event[event.id] = calls[0]
        extra = _kept({"tool_calls": notes} if notes else {})
        self._add(
            Message("assistant", content, reasoning, tuple(calls), hidden=self._hidden, extra=extra),
            event,
        )
        self._hidden = None

    def _observe(self, entry: dict[str, Any], event: _Event) -> None:
        extras = event.extras or {}
        if event.observation == "recall":
            self._recall(extras)
            return
        if event.observation in _SILENT:
            return
        found = self._answered(event)
        error = MessageError(event.content or "", origin="tool") if event.observation == "error" else None
        beside = {key: value for key, value in entry.items() if key not in _OBSERVATION and value is not None}
        extra = {"observation": event.observation, **beside, **{key: self._small(extras[key]) for key in extras}}
        if found is None and event.observation == "error":
            complaint = MessageError(event.content or "", origin="harness")
            self._add(Message("user", event.content, error=complaint, actor=HARNESS, extra=_kept(extra)), event)
            return
        answers = None
        if found is None:
            self.aside.warnings.append("orphan_answer")
        else:
            call, by = found
            answers = Answers(call.uid, by)
            self._waiting.pop(call.uid, None)
        self._add(Message("tool", event.content, answers=answers, error=error, extra=_kept(extra)), event)

    def _answered(self, event: _Event) -> tuple[ToolCall, MatchedBy] | None:
        """The call that an observation answers: by its id or the action that caused it; by order where it has none."""
        named = event.tool_call_metadata.tool_call_id if event.tool_call_metadata else None
        for call in (self._by_id.get(named or ""), self._by_event.get(-1 if event.cause is None else event.cause)):
            if call is not None and call.uid in self._waiting:
                return call, "id"
        if named is None and event.cause is None and event.observation != "error" and self._waiting:
            return self._waiting[next(reversed(self._waiting))], "position"
        return None

    def _recall(self, extras: dict[str, Any]) -> None:
        known = {name: extras[name] for name in ("recall_type", *_RECALLED) if extras.get(name)}
        if known:
            self.events.recalled.append(known)
        if not known.keys().isdisjoint(_RECALLED):
            self._hidden = "compaction"

    def _add(self, message: Message, event: _Event) -> None:
        if (time := iso_time(event.timestamp)) is not None:
            self.aside.times[len(self.events.messages)] = time
        if message.role == "user":
            self.events.finished = False
        self.events.messages.append(message)

    def _said(self, args: dict[str, Any]) -> str | tuple[Part, ...] | None:
        """A message's text, with its images as blobs."""
        text = _text(args.get("content"))
        images = args.get("image_urls") or args.get("images_urls")
        if not isinstance(images, list) or not images:
            return text
        shown = [{"type": "image_url", "image_url": {"url": image}} for image in images]
        return (*((Part("text", text),) if text else ()), *self._parts(shown))

    def _parts(self, content: list[Any] | None) -> tuple[Part, ...]:
        parts = []
        for entry in content or ():
            match entry:
                case {"type": "text", "text": str(text)}:
                    parts.append(Part("text", text))
                case _:
                    kind = entry.get("type") if isinstance(entry, dict) else None
                    parts.append(Part(kind if isinstance(kind, str) else "unknown", sha256=self._blob(entry)))
        return tuple(parts)

    def _small(self, value: Any) -> Any:
        """A value that is kept beside a message; a large one as the digest of its blob."""
        if isinstance(value, dict):
            value = {key: item for key, item in value.items() if key not in _PRIVATE}
        return {"sha256": self._blob(value)} if len(canonical.encode(value)) > _LARGE else value

    def _blob(self, value: Any) -> str:
        blob = make_object("blob", canonical.encode(value))
        self.aside.objects.append(blob)
        return blob.id


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _kept(values: dict[str, Any]) -> Json:
    known = {key: value for key, value in values.items() if key not in _PRIVATE and value is not None}
    return kept(known)

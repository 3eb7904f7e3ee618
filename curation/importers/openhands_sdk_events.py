"""Events of the OpenHands SDK, each with its ``kind``, as messages: actions of one response are one turn.

A call that could not be parsed is logged with a note of the SDK's in place of what the model wrote. What was condensed
is no longer shown to the model; where an event does not follow the one before it in the file, history is missing too.
"""

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from curation.clocks import iso_time
from curation.importers.aside import Aside
from curation.importers.calls import CallShape, FunctionShape, read_call
from curation.importers.conversation import Conversation, Said, Turn, kept
from curation.importers.openhands_events import Events
from schemas.trajectory import Message, MessageError, Origin

MALFORMED = "_openhands_malformed_tool_call"

_ORIGINS: dict[str, Origin] = {"AgentErrorEvent": "harness", "UserRejectObservation": "harness"}


def is_sdk_event(value: Any) -> bool:
    """Whether a value, perhaps cut, is an event of the SDK."""
    return isinstance(value, dict) and "source" in value and str(value.get("kind")).endswith("Event")


def read_sdk_events(history: Iterable[Any], aside: Aside) -> Events:
    """Every event of a history; one of an unknown kind says nothing."""
    reader = _Reader(aside)
    for entry in history:
        if isinstance(entry, dict):
            reader.read(entry)
    return reader.events()


class _Reader:
    """The messages of a run as its events come."""

    def __init__(self, aside: Aside) -> None:
        self._aside = aside
        self._talk = Conversation(aside)
        self._turn = Turn(self._talk)
        self._response: str | None = None
        self._last: str | None = None
        self._finished = False

    def events(self) -> Events:
        """The messages of all events, and whether the agent finished."""
        self._turn.close()
        return Events(self._talk.messages, finished=self._finished)

    def read(self, event: dict[str, Any]) -> None:
        """The next event."""
        before, name = event.get("parent_id"), event.get("id")
        if isinstance(before, str) and self._last is not None and before != self._last:
            self._turn.close()
            self._talk.hide()
        self._last = name if isinstance(name, str) else None
        match event:
            case {"kind": "SystemPromptEvent"}:
                self._tell("system", event.get("system_prompt"), event.get("dynamic_context"))
            case {"kind": "MessageEvent", "llm_message": {"role": "assistant"} as said}:
                self._begin(event)
                self._say(said.get("content"), said)
                self._turn.close()
                self._finished = True
            case {"kind": "MessageEvent", "llm_message": {"content": content}}:
                self._tell("user", content, event.get("extended_content"))
            case {"kind": "ActionEvent"}:
                self._act(event)
            case {"kind": "ObservationEvent", "observation": dict(observation)}:
                error = MessageError(origin="tool") if observation.get("is_error") is True else None
                self._answer(event, observation.get("content"), error)
            case {"kind": "AgentErrorEvent" | "UserRejectObservation" as kind}:
                text = event.get("error") if kind == "AgentErrorEvent" else event.get("rejection_reason")
                self._answer(event, text, MessageError(origin=_ORIGINS[kind]))
            case {"kind": "Condensation"}:
                self._turn.close()
                self._talk.hide()
                if isinstance(event.get("summary"), str) and event["summary"]:
                    self._tell("user", event["summary"])

    def _tell(self, role: Any, *contents: Any) -> None:
        self._turn.close()
        extra: dict[str, Any] = {}
        said = Said(extra, self._aside)
        for content in contents:
            for part in _parts(content):
                said.say(part)
        self._talk.add(Message(role, said.content(), extra=kept(extra)))
        self._finished = False

    def _begin(self, event: dict[str, Any]) -> None:
        """A response of the model, unless it is the one under way."""
        response = event.get("llm_response_id")
        if not isinstance(response, str) or response != self._response:
            self._turn.close()
        self._response = response if isinstance(response, str) else None
        if (time := iso_time(event.get("timestamp"))) is not None:
            self._aside.times.setdefault(len(self._talk.messages), time)

    def _say(self, content: Any, told: dict[str, Any]) -> None:
        for part in _parts(content):
            self._turn.said.say(part)
        text, item = told.get("reasoning_content"), told.get("responses_reasoning_item")
        if isinstance(text, str) and text:
            self._turn.said.think(text, {})
        elif isinstance(item, dict) and not item.get("content"):
            self._turn.said.hidden = True

    def _act(self, event: dict[str, Any]) -> None:
        self._begin(event)
        self._say(event.get("thought"), event)
        logged = event.get("tool_call")
        made = logged if isinstance(logged, dict) else {}
        name = next((n for n in (made.get("name"), event.get("tool_name")) if isinstance(n, str)), "")
        call_id = next((n for n in (event.get("tool_call_id"), made.get("id")) if isinstance(n, str)), None)
        shape = CallShape(FunctionShape(name, made.get("arguments", UNSET)), call_id, "function")
        call, note = read_call({"function": {}}, shape, self._turn.uid, self._aside)
        if call.arguments is not UNSET and bytes(call.arguments).startswith(b'{"%s":true' % MALFORMED.encode()):
            call = replace(call, arguments=UNSET, parse_error="not_json")
        self._turn.call(call, note)
        self._finished = name == "finish" and event.get("action") is not None

    def _answer(self, event: dict[str, Any], content: Any, error: MessageError | None) -> None:
        self._turn.close()
        extra: dict[str, Any] = {}
        said = Said(extra, self._aside)
        for part in _parts(content):
            said.say(part)
        call_id = event.get("tool_call_id")
        self._talk.answer(call_id if isinstance(call_id, str) else None, said, error, extra)


def _parts(content: Any) -> list[Any]:
    """The parts of a content, without what only steers a provider's cache."""
    parts = content if isinstance(content, list) else [] if content is None else [content]
    return [
        {key: value for key, value in part.items() if key != "cache_prompt"} if isinstance(part, dict) else part
        for part in parts
    ]

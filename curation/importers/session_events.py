"""Event streams of managed agent sessions: lines ``[call name, object]``, from the making of a session to its idling.

A user's event is sent and then told again by the stream; the streamed one counts, which is where the agent saw it. What
stands between the start and the end of a model request is one message of the assistant.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from curation.clocks import iso_time
from curation.importers.model_calls import ModelCall
from curation.importers.response_items import HIDDEN
from curation.importers.span_messages import chat_messages, written
from curation.importers.token_counts import first_number, prompt_tokens, summed, usage_details
from curation.importers.traces import Trace
from schemas.canonical import encode

_CREATE, _SEND, _STREAM = ".sessions.create", ".sessions.events.send", ".sessions.events.stream"
_CALLS = frozenset(("agent.tool_use", "agent.mcp_tool_use", "agent.custom_tool_use"))
_ANSWERS = {
    "agent.tool_result": "tool_use_id",
    "agent.mcp_tool_result": "mcp_tool_use_id",
    "user.custom_tool_result": "custom_tool_use_id",
}


def is_event(value: Any) -> bool:
    """Whether a value is a line of an event stream, perhaps cut."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], str) and ".sessions." in value[0]


def read_sessions(lines: Iterable[Any]) -> Iterator[Trace]:
    """The sessions of a stream, one after another."""
    session: _Session | None = None
    for line in lines:
        if not is_event(line) or len(line) < 2:
            continue
        name, told = line[0], line[1]
        if name.endswith(_CREATE):
            if session is not None:
                yield session.trace()
            session = _Session(told if isinstance(told, dict) else {})
        elif session is None:
            session = _Session({})
        if name.endswith(_SEND) and isinstance(told, list) and len(told) > 1 and isinstance(told[1], dict):
            session.send(told[1].get("events"))
        elif name.endswith(_STREAM) and isinstance(told, dict):
            session.see(told)
    if session is not None:
        yield session.trace()


class _Session:
    """A session as far as it has been told: its messages, and where each request to the model answered."""

    def __init__(self, made: dict[str, Any]) -> None:
        agent = made.get("agent")
        self.agent: dict[str, Any] = agent if isinstance(agent, dict) else {}
        self.name = made["id"] if isinstance(made.get("id"), str) else None
        system = self.agent.get("system")
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": system}] if isinstance(system, str) else []
        self.sent: dict[bytes, list[tuple[int, dict[str, Any]]]] = {}  # by what they say, with their order
        self.sends = 0
        self.turn: dict[str, Any] | None = None
        self.at = 0  # where the turn stands
        self.texts: dict[int, list[Any]] = {}  # of the model's messages, by where they stand
        self.ends: list[_End] = []
        self.spent = _End()  # requests that ended without a message
        self.stop: str | None = None
        self.error: str | None = None

    def send(self, events: Any) -> None:
        """What a user sends; it is seen when the stream tells of it."""
        for event in events if isinstance(events, list) else ():
            if isinstance(event, dict):
                self.sent.setdefault(_said(event), []).append((self.sends, event))
                self.sends += 1

    def see(self, event: dict[str, Any]) -> None:
        """The next event of the stream."""
        kind = str(event.get("type"))
        if kind.startswith("user."):
            self.sent.pop(_said(event), None)
        if kind == "span.model_request_start":
            self.turn = None
        elif kind == "span.model_request_end":
            self.spent = self.spent.add(event.get("model_usage"), iso_time(event.get("processed_at")))
            if self.turn is not None:
                self.ends.append(self.spent._replace(at=self.at))
                self.spent = _End()
            self.turn = None
        elif kind == "session.status_idle":
            reason = event.get("stop_reason")
            stop = reason.get("type") if isinstance(reason, dict) else None
            self.stop = stop if isinstance(stop, str) else None
        elif kind in ("session.error", "session.status_terminated"):
            error = event.get("error")
            self.error = str(error.get("message") or error.get("type")) if isinstance(error, dict) else kind
        else:
            self._say(kind, event)

    def _say(self, kind: str, event: dict[str, Any]) -> None:
        if kind == "user.message":
            self.messages += chat_messages({"role": "user", "content": event.get("content")})
        elif kind in _ANSWERS:
            (answer,) = chat_messages({"role": "tool", "content": event.get("content")})
            self.messages.append(
                {**answer, "tool_call_id": event.get(_ANSWERS[kind]), "is_error": event.get("is_error") is True}
            )
        elif kind == "agent.message":
            (said,) = chat_messages({"role": "assistant", "content": event.get("content")})
            self._turn()
            if said["content"] is not None:
                self.texts.setdefault(self.at, []).append(said["content"])
        elif kind == "agent.thinking":
            text = event.get("thinking") or event.get("content")
            if isinstance(text, str) and text:
                self._turn()["reasoning_content"] = text
            else:
                self._turn()[HIDDEN] = "reasoning"
        elif kind in _CALLS:
            function = {"name": event.get("name") or "", "arguments": event.get("input")}
            self._turn().setdefault("tool_calls", []).append(
                {"id": event.get("id"), "type": "function", "function": function}
            )

    def _turn(self) -> dict[str, Any]:
        if self.turn is None:
            self.turn, self.at = {"role": "assistant", "content": None}, len(self.messages)
            self.messages.append(self.turn)
        return self.turn

    def trace(self) -> Trace:
        """The session as calls of a model, each of which goes on from the one before it; what the stream never told
        comes last.
        """
        for _, event in sorted(chain.from_iterable(self.sent.values()), key=itemgetter(0)):
            self._say(str(event.get("type")), event)
        for at, said in self.texts.items():
            self.messages[at]["content"] = said[0] if len(said) == 1 else "\n".join(map(written, said))
        ends = self.ends or self._unended()
        model = self.agent.get("model")
        model = model.get("id") if isinstance(model, dict) else model
        tools = self.agent.get("tools")
        calls, start = [], 0
        for number, end in enumerate(ends):
            last = number + 1 == len(ends)
            answer = self.messages[end.at :] if last else self.messages[end.at : end.at + 1]
            calls.append(
                ModelCall(
                    messages=self.messages[start : end.at],
                    answers=[answer] if answer else [],
                    id=str(number),
                    previous=str(number - 1) if number else None,
                    model=model if isinstance(model, str) else None,
                    tools=tools if isinstance(tools, list) else None,
                    prompt_tokens=end.prompt,
                    completion_tokens=end.completion,
                    usage_details=end.details,
                    finishes=[self.stop] if last else [],
                    time=end.time,
                )
            )
            start = end.at + 1
        named = self.agent.get("name")
        return Trace(self.name, calls, (), ("session",), named if isinstance(named, str) else None, error=self.error)

    def _unended(self) -> "list[_End]":
        """Where a session answered whose requests the stream does not tell of, or where it had nothing to say."""
        said = next((at for at, message in enumerate(self.messages) if message["role"] == "assistant"), None)
        if said is None and self.spent == _End():
            return []
        return [self.spent._replace(at=len(self.messages) if said is None else said)]


class _End(NamedTuple):
    """Where the message stands with which a request ended, when that was, and the tokens that it took."""

    at: int = 0
    time: str | None = None
    prompt: int | None = None
    completion: int | None = None
    details: Mapping[str, int] = {}

    def add(self, usage: Any, time: str | None) -> "_End":
        """The same with what one more request took that ended at a time."""
        told = usage if isinstance(usage, dict) else {}
        prompt = _added(self.prompt, prompt_tokens(told))
        completion = _added(self.completion, first_number(told, "output_tokens"))
        return _End(self.at, time, prompt, completion, summed((self.details, usage_details(told))) or {})


def _said(event: dict[str, Any]) -> bytes:
    """What a user says by an event, whether it was sent or told by the stream."""
    kind = str(event.get("type"))
    return encode([kind, event.get("content"), event.get(_ANSWERS.get(kind, "")), event.get("is_error") is True])


def _added(before: int | None, count: int | None) -> int | None:
    return before if count is None else (before or 0) + count

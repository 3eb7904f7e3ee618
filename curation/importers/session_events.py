"""Event streams of managed agent sessions: lines ``[call name, object]``, from the making of a session to its idling.

A user's event is sent and then told again by the stream; the streamed one counts, which is where the agent saw it. What
stands between the start and the end of a model request is one message of the assistant.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from curation.clocks import iso_time
from curation.importers.model_calls import ModelCall
from curation.importers.response_items import HIDDEN
from curation.importers.span_messages import chat_messages
from curation.importers.traces import Trace

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
        self.sent: list[dict[str, Any]] = []
        self.turn: dict[str, Any] | None = None
        self.ends: list[tuple[int, dict[str, Any], str | None]] = []
        self.stop: str | None = None
        self.error: str | None = None

    def send(self, events: Any) -> None:
        """What a user sends; it is seen when the stream tells of it."""
        self.sent += [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []

    def see(self, event: dict[str, Any]) -> None:
        """The next event of the stream."""
        kind = str(event.get("type"))
        if kind.startswith("user."):
            self.sent = [each for each in self.sent if not _is_same(each, event)]
        if kind == "span.model_request_start":
            self.turn = None
        elif kind == "span.model_request_end":
            usage = event.get("model_usage")
            at = next((index for index, each in enumerate(self.messages) if each is self.turn), len(self.messages))
            self.ends.append((at, usage if isinstance(usage, dict) else {}, iso_time(event.get("processed_at"))))
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
            turn = self._turn()
            turn["content"] = said["content"] if turn["content"] is None else f"{turn['content']}\n{said['content']}"
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
            self.turn = {"role": "assistant", "content": None}
            self.messages.append(self.turn)
        return self.turn

    def trace(self) -> Trace:
        """The session as calls of a model, each with the history that it had; what the stream never told comes last."""
        for event in self.sent:
            self._say(str(event.get("type")), event)
        if not self.ends and any(message["role"] == "assistant" for message in self.messages):
            first = next(at for at, message in enumerate(self.messages) if message["role"] == "assistant")
            self.ends.append((first, {}, None))
        model = self.agent.get("model")
        model = model.get("id") if isinstance(model, dict) else model
        tools = self.agent.get("tools")
        calls = []
        for number, (at, usage, time) in enumerate(self.ends):
            last = number + 1 == len(self.ends)
            answer = self.messages[at:] if last else self.messages[at : at + 1]
            calls.append(
                ModelCall(
                    messages=self.messages[:at],
                    answers=[answer] if answer else [],
                    model=model if isinstance(model, str) else None,
                    tools=tools if isinstance(tools, list) else None,
                    prompt_tokens=_total(
                        usage, "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"
                    ),
                    completion_tokens=_total(usage, "output_tokens"),
                    finish=self.stop if last else None,
                    time=time,
                )
            )
        named = self.agent.get("name")
        return Trace(self.name, calls, (), ("session",), named if isinstance(named, str) else None, error=self.error)


def _is_same(sent: dict[str, Any], seen: dict[str, Any]) -> bool:
    return all(seen.get(key) == value for key, value in sent.items())


def _total(usage: dict[str, Any], *keys: str) -> int | None:
    known = [usage[key] for key in keys if type(usage.get(key)) is int]
    return sum(known) if known else None

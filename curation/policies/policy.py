"""What a policy is: something that is shown a conversation and its tools, and says what to do next.

A policy is the user's own code or model and runs in this process. What it writes is kept as it is written; only an
environment answers its calls.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from schemas import canonical
from schemas.objects import ToolSpec
from schemas.trajectory import Message, ToolCall, Usage, call_uid


class Call(NamedTuple):
    """A call as a policy makes it: ``arguments`` is an object, or the text that a model wrote, which may not parse."""

    name: str
    arguments: dict[str, Any] | str


class Response(NamedTuple):
    """One turn: a text, calls, or both, and what it cost where that is known."""

    content: str | None = None
    calls: tuple[Call, ...] = ()
    usage: Usage | None = None


class Policy(Protocol):
    """Something that takes the next turn; it may also have a ``model``, the name of the one behind it.

    The same face serves for a person's turn: then there are no tools, and no text ends the conversation.
    """

    @property
    def name(self) -> str:
        """What it is called."""

    @property
    def version(self) -> str:
        """Which state of it this is."""

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Response:
        """The next turn after these messages. What it raises ends the conversation."""


def title(policy: Policy) -> str:
    """Name and version, as forks name what continued them."""
    return f"{policy.name}@{policy.version}"


def model_of(policy: Policy) -> str | None:
    """The model behind a policy, where it says so."""
    model = getattr(policy, "model", None)
    return model if isinstance(model, str) else None


def message_of(response: Response, index: int, actor: str) -> Message:
    """The assistant message of a response as message ``index`` of a record.

    Raises ValueError or TypeError for an object of arguments that is no JSON.
    """
    calls = tuple(_as_call(call_uid(index, place), call) for place, call in enumerate(response.calls))
    return Message("assistant", response.content, tool_calls=calls, actor=actor)


def _as_call(uid: str, call: Call) -> ToolCall:
    text = call.arguments
    if not isinstance(text, str):
        text = json.dumps(text, ensure_ascii=False, allow_nan=False)
    try:
        value, _ = canonical.parse(text.encode())
    except canonical.UnreadableError as error:
        return ToolCall(uid, call.name, text, parse_error=error.code)
    if not isinstance(value, dict):
        return ToolCall(uid, call.name, text, parse_error="not_an_object")
    return ToolCall(uid, call.name, text, arguments=canonical.raw(value))

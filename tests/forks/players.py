"""Policies to be loaded by module:attr."""

from collections.abc import Sequence

from msgspec import UNSET

from curation.policies.policy import Call, Response
from schemas.objects import ToolSpec
from schemas.trajectory import Message, Usage, text_of


class Restless:
    """It looks at the bookings again and again, and says what each turn costs."""

    name = "restless"
    version = "2"
    model = "clockwork-1"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Response:
        return Response(calls=(Call("list_bookings", {}),), usage=Usage(10, 5, 0.25))


class Echo:
    """It repeats the last message, after what it was offered."""

    name = "echo"
    version = "1"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Response:
        return Response(f"{', '.join(sorted(tool.name for tool in tools))}: {text_of(messages[-1].content)}")


class Curious:
    """It says which messages hold more than a model is shown, and breaks after it has looked once more."""

    name = "curious"
    version = "1"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Response:
        if messages[-1].role == "tool" and messages[-2].actor == "curious@1":
            raise ConnectionError("nobody there")
        more = [item.role for item in messages if item.raw is not None or item.extra is not UNSET]
        return Response(", ".join(more) or None, calls=(Call("list_bookings", {}),))


class Broken:
    name = "broken"
    version = "0"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Response:
        raise ConnectionError("nobody there")


class Leaves(Broken):
    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Response:
        raise SystemExit(0)


class Once:
    """A person who asks one more thing."""

    name = "once"
    version = "1"

    def respond(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Response:
        assert tools == ()
        asked = [message for message in messages if message.role == "user"]
        return Response("And what is booked?" if len(asked) == 1 else None)


class Nameless:
    version = "1"

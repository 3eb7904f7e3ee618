"""The messages of a run as its lines come: what each says, which call an answer answers, what is not in the log."""

from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from curation.importers.aside import Aside
from curation.importers.links import Links
from schemas import canonical
from schemas.objects import make_object
from schemas.trajectory import Answers, Json, Message, MessageError, Part, ToolCall, call_uid

_TEXTS = ("text", "input_text", "output_text")


class Said:
    """The parts of one message as they come, what the log says of them beside, and its reasoning."""

    def __init__(self, extra: dict[str, Any], aside: Aside) -> None:
        self.parts: list[Part] = []
        self.thoughts: list[str] = []
        self.hidden = False
        self._extra, self._aside = extra, aside

    def say(self, block: Any) -> None:
        """Text as text; anything else as a blob that holds the block's canonical bytes."""
        match block:
            case None:
                return
            case str(text):
                self.parts.append(Part("text", text))
            case {"type": kind, "text": str(text)} if kind in _TEXTS:
                self._note(block)
                self.parts.append(Part("text", text))
            case _:
                blob = make_object("blob", canonical.encode(block))
                self._aside.objects.append(blob)
                name = block.get("type") if isinstance(block, dict) else None
                self.parts.append(Part(name if isinstance(name, str) else "unknown", sha256=blob.id))

    def think(self, text: str, rest: dict[str, Any]) -> None:
        """A block of thinking; one that is signed and empty was not shown."""
        if text:
            self.thoughts.append(text)
            if rest:
                self._extra.setdefault("thinking", {})[str(len(self.thoughts) - 1)] = rest
        else:
            self.hidden = True

    def reasoning(self) -> str | None:
        """The thoughts that are shown, as one text."""
        return "\n".join(self.thoughts) if self.thoughts else None

    def content(self) -> str | tuple[Part, ...] | None:
        """The parts; one text alone is that text."""
        match self.parts:
            case []:
                return None
            case [Part(type="text", text=str(text))]:
                return text
            case parts:
                return tuple(parts)

    def _note(self, block: dict[str, Any]) -> None:
        known = {key: value for key, value in block.items() if key not in ("type", "text") and value is not None}
        if known:
            self._extra.setdefault("content", {})[str(len(self.parts))] = known


class Conversation:
    """The messages of one run, its answers linked to its calls."""

    def __init__(self, aside: Aside) -> None:
        self.aside = aside
        self.messages: list[Message] = []
        self._links = Links()
        self._gap = False

    def hide(self) -> None:
        """History before the next message is not in the log."""
        self._gap = True

    def add(self, message: Message) -> None:
        """The next message. Where history before it is hidden, it and all up to the next that is no answer say so."""
        if self._gap:
            message = replace(message, hidden="compaction")
            self._gap = message.role == "tool"
        self.messages.append(message)

    def say(self, said: Said, calls: tuple[ToolCall, ...], extra: dict[str, Any]) -> None:
        """A turn of the model, whose calls wait for answers."""
        self._links.open(calls)
        if self._links.repeated:
            self.aside.warnings.append("repeated_call_id")
        self.add(
            Message(
                "assistant",
                said.content(),
                said.reasoning(),
                calls,
                hidden="reasoning" if said.hidden else None,
                extra=kept(extra),
            )
        )

    def answer(self, call_id: str | None, said: Said, error: MessageError | None, extra: dict[str, Any]) -> None:
        """A tool message; an answer to no call of the run keeps the id that it names."""
        found = self._links.answer(call_id, None)
        if found is None:
            self.aside.warnings.append("orphan_answer")
        if call_id is not None and (found is None or found[0].id != call_id):
            extra["tool_call_id"] = call_id
        answers = None if found is None else Answers(found[0].uid, found[1])
        self.add(Message("tool", said.content(), answers=answers, error=error, extra=kept(extra)))


class Turn:
    """The turn of the model that is under way, piece by piece."""

    def __init__(self, talk: Conversation) -> None:
        self._talk = talk
        self._begin()

    @property
    def uid(self) -> str:
        """Our name of its next call."""
        return call_uid(len(self._talk.messages), len(self._calls))

    def call(self, call: ToolCall, note: dict[str, Any]) -> None:
        """The next call, and what the log says of it beside."""
        if note:
            self.extra.setdefault("tool_calls", {})[str(len(self._calls))] = note
        self._calls.append(call)

    def close(self) -> None:
        """End it, if there is anything in it: what follows is another one's."""
        if self._calls or self.said.parts or self.said.thoughts or self.said.hidden:
            self._talk.say(self.said, tuple(self._calls), self.extra)
            self._begin()

    def _begin(self) -> None:
        self.extra: dict[str, Any] = {}
        self.said = Said(self.extra, self._talk.aside)
        self._calls: list[ToolCall] = []


def kept(extra: dict[str, Any]) -> Json:
    """What the record has no field for; nothing where there is nothing."""
    return canonical.raw(extra) if extra else UNSET

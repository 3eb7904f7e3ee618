"""The items of a Codex rollout as messages: what stands between two messages of others is one turn of the model."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from curation.importers.aside import Aside
from curation.importers.calls import CallShape, CustomShape, FunctionShape, read_call
from curation.importers.conversation import Conversation, Said, Turn, kept
from schemas.trajectory import Message, MessageError, Role

ROLES: dict[str, Role] = {"user": "user", "system": "system", "developer": "system", "assistant": "assistant"}

_UNSEEN = frozenset(("ghost_snapshot",))  # no part of what the model sees
_WRITTEN = ("arguments", "input", "action")
_KNOWN = frozenset(("type", "id", "call_id", "name", *_WRITTEN))


def problem_of(item: Any) -> tuple[str, str] | None:
    """Why something is no item: a quarantine code and words; None where it is one."""
    if not isinstance(item, dict) or not isinstance(item.get("type"), str):
        return "not_a_record", "an item is an object with a type"
    match item:
        case {"type": "message", "role": str(role)} if role not in ROLES:
            return "unknown_role", f"$.role is {role!r}; known: {', '.join(ROLES)}"
        case {"type": "message", "role": str(), "content": str() | list()}:
            return None
        case {"type": "message"}:
            return "not_a_record", "a message needs role and content"
        case {"type": "function_call" | "custom_tool_call", "name": str()}:
            return None
        case {"type": "function_call" | "custom_tool_call"}:
            return "not_a_record", "a call needs a name"
    return None


def is_user(item: Mapping[str, Any]) -> bool:
    """Whether an item is a message with the role of the user."""
    return item.get("type") == "message" and item.get("role") == "user"


class ItemReader:
    """Items of one run in their order, made into messages."""

    def __init__(self, aside: Aside) -> None:
        self.aside = aside
        self._talk = Conversation(aside)
        self._turn = Turn(self._talk)

    @property
    def messages(self) -> list[Message]:
        """All messages, the open turn closed."""
        self.close()
        return self._talk.messages

    def hide(self) -> None:
        """History before the next message is not in the log."""
        self.close()
        self._talk.hide()

    def instruct(self, text: str) -> None:
        """What the harness tells the model before anything else."""
        self._talk.add(Message("system", text))

    def add(self, item: dict[str, Any], time: str | None) -> None:
        """The next item, and when it was logged."""
        kind = item["type"]
        if kind == "message" and item["role"] == "assistant":
            self._speak(item)
        elif kind == "message":
            self.close()
            self._listen(item)
        elif kind == "reasoning":
            self._reason(item)
        elif kind.endswith("_output"):
            self.close()
            self._answer(item)
        elif kind.endswith("_call"):
            self._call(item, kind)
            if time is not None:
                self.aside.times.setdefault(len(self._talk.messages), time)
        elif kind not in _UNSEEN:
            self.hide()

    def close(self) -> None:
        """End the model's turn: what follows is another one's."""
        self._turn.close()

    def _speak(self, item: dict[str, Any]) -> None:
        content = item["content"]
        for part in content if isinstance(content, list) else [content]:
            self._turn.said.say(part)
        if isinstance(item.get("phase"), str):
            self._turn.extra["phase"] = item["phase"]

    def _listen(self, item: dict[str, Any]) -> None:
        extra: dict[str, Any] = {} if item["role"] in ("user", "system") else {"role": item["role"]}
        said = Said(extra, self.aside)
        content = item["content"]
        for part in content if isinstance(content, list) else [content]:
            said.say(part)
        self._talk.add(Message(ROLES[item["role"]], said.content(), extra=kept(extra)))

    def _reason(self, item: dict[str, Any]) -> None:
        """Reasoning in full is shown; a summary of it, or its encrypted form, is not what the model went on from."""
        full = _texts(item.get("content"))
        for text in full or _texts(item.get("summary")):
            self._turn.said.think(text, {})
        if not full:
            self._turn.said.hidden = True

    def _call(self, item: dict[str, Any], kind: str) -> None:
        """A call, named by its tool, or by its kind where the harness or the provider has the tool built in."""
        call_id = next((found for key in ("call_id", "id") if isinstance(found := item.get(key), str)), None)
        name = item["name"] if isinstance(item.get("name"), str) else kind.removesuffix("_call")
        written = next((item[key] for key in _WRITTEN if key in item), UNSET)
        if kind == "custom_tool_call" and isinstance(written, str):
            shape = CallShape(custom=CustomShape(name, written), id=call_id)
        else:
            shape = CallShape(FunctionShape(name, written), call_id, "function")
        call, note = read_call({"function": {}}, shape, self._turn.uid, self.aside)
        note |= {key: value for key, value in item.items() if key not in _KNOWN and value is not None}
        self._turn.call(call, note)

    def _answer(self, item: dict[str, Any]) -> None:
        """An answer: text, parts, or an object with one of these and whether the harness calls it a success."""
        extra: dict[str, Any] = {}
        said, error = Said(extra, self.aside), None
        match item.get("output", item):
            case list(parts):
                for part in parts:
                    said.say(part)
            case {"content": str() | list() as content, **rest} if rest.keys() <= {"success"}:
                for part in content if isinstance(content, list) else [content]:
                    said.say(part)
                error = MessageError() if rest.get("success") is False else None
            case other:
                said.say(other)
        call_id = item.get("call_id")
        self._talk.answer(call_id if isinstance(call_id, str) else None, said, error, extra)


def _texts(parts: Any) -> list[str]:
    """The texts of a list of parts, of which none may be empty."""
    found = [part.get("text") for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return [text for text in found if isinstance(text, str) and text]

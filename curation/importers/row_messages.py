"""Messages as rows of data sets hold them, in their many names for roles and texts, as OpenAI chat messages.

A profile declares what a role stands for; nothing is guessed from the wording of a text.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from curation.importers.face import RefusedError
from curation.importers.span_messages import loaded
from schemas import canonical

_ROLES = {
    "system": "system",
    "developer": "system",
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "assistant": "assistant",
    "agent": "assistant",
    "tool": "tool",
    "observation": "tool",
    "function_response": "tool",
    "tool_response": "tool",
    "function": "function",
    "function_call": "call",
    "tool_call": "call",
}
_TEXTS = ("content", "value", "text")
_WHO = ("role", "from")
_CALL_MARKS = ("<tool_call>", "<function_call>", "<function=", "[TOOL_CALLS]")  # of chat templates, as text


class Profile(NamedTuple):
    """What the roles of a data set stand for: ``system``, ``user``, ``assistant``, ``tool``, or ``call``, a message of
    the assistant whose text is a call in JSON. ``user_answers``: what a user says directly after a call is its answer.
    """

    roles: Mapping[str, str] = _ROLES
    user_answers: bool = False


PLAIN = Profile()
ANSWERED_BY_USER = Profile(user_answers=True)


def read_rows(entries: list[Any], path: str, profile: Profile) -> list[dict[str, Any]]:
    """The messages of a row. Raises RefusedError for what the profile does not declare, and for a call that is none."""
    messages: list[dict[str, Any]] = []
    for index, entry in enumerate(entries):
        where = f"{path}[{index}]"
        if not isinstance(entry, dict):
            raise RefusedError("not_a_record", f"{where} is no object")
        said = next((entry[key] for key in _WHO if entry.get(key) is not None), None)
        role = profile.roles.get(said) if isinstance(said, str) else None
        if role is None:
            known = ", ".join(profile.roles)
            raise RefusedError("unknown_role", f"{where} has the role {said!r}; known: {known}")
        message = _message(entry, role)
        if role == "call":
            message |= {"role": "assistant", "content": None, "tool_calls": _calls(message["content"], where)}
        elif role == "user" and profile.user_answers and messages and messages[-1].get("tool_calls"):
            message["role"] = "tool"
        if said != message["role"]:
            message["said_by"] = said
        messages.append(message)
    return messages


def has_calls_in_text(messages: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a text of the assistant holds what chat templates write for a call, in a message that has none."""
    return any(
        mark in text
        for message in messages
        if message["role"] == "assistant" and not message.get("tool_calls")
        for text in _texts(message["content"])
        for mark in _CALL_MARKS
    )


def _texts(content: Any) -> Iterator[str]:
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            yield text


def without_nulls(value: Any) -> Any:
    """A value without the keys that hold null: columnar stores fill each object with the keys of all others."""
    if isinstance(value, dict):
        return {key: without_nulls(each) for key, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def _message(entry: Mapping[str, Any], role: str) -> dict[str, Any]:
    texts = [entry[key] for key in _TEXTS if entry.get(key) is not None]
    if not texts and role == "system" and isinstance(entry.get("system_prompt"), str):
        texts = [entry["system_prompt"]]
    rest = {
        key: value for key, value in entry.items() if key not in (*_TEXTS, *_WHO, "system_prompt") and value is not None
    }
    content = texts[0] if texts else None
    if isinstance(content, list):
        content = [without_nulls(part) for part in content]
    elif content is not None and not isinstance(content, str):
        content = canonical.encode(content).decode()
    if isinstance(calls := loaded(rest.get("tool_calls")), list):
        rest["tool_calls"] = [_call(call) for call in calls]
    return {"role": role, "content": content, **rest}


def _call(call: Any) -> Any:
    """A call without what a columnar store filled in; its arguments stay as they are."""
    if not isinstance(call, dict):
        return call
    function = call.get("function")
    cleaned = without_nulls({key: value for key, value in call.items() if key != "function"})
    if isinstance(function, dict):
        cleaned["function"] = {key: value for key, value in function.items() if value is not None}
    return cleaned


def _calls(text: Any, where: str) -> list[dict[str, Any]]:
    """The calls that a message of role ``call`` is: JSON of ``{name, arguments}``, or of a list of them."""
    value = loaded(text)
    calls = value if isinstance(value, list) else [value]
    if not calls or not all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls):
        raise RefusedError(
            "no_call", f"{where} is a call by its role, but its text is no JSON with a name and arguments"
        )
    return [
        {
            "id": call["id"] if isinstance(call.get("id"), str) else None,
            "type": "function",
            "function": {"name": call["name"], **({"arguments": call["arguments"]} if "arguments" in call else {})},
        }
        for call in calls
    ]

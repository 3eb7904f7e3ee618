"""The assistant messages of a fork: the corrected decision, and the calls that take a mistake's effect back."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import UNSET

from environments.protocol import EnvSpec
from schemas.canonical import UnreadableError, encode, parse, raw
from schemas.trajectory import Message, ToolCall, call_uid, text_of

Action = tuple[str, Any]  # a tool's name and its arguments as a JSON object


def corrected_message(index: int, message: Message, wrong: ToolCall | None, action: Action) -> Message:
    """A decision with its wrong call swapped and the calls beside it kept.

    Reasoning goes. The text stays only if it holds nothing that the correction replaced; where the text itself was the
    wrong decision (``wrong`` is None) it goes too.
    """
    calls = tuple(
        _call(call.uid, action) if wrong is not None and call.uid == wrong.uid else call for call in message.tool_calls
    )
    if wrong is None:
        calls = (*calls, _call(call_uid(index, len(calls)), action))
    kept = wrong is not None and not _mentions(text_of(message.content), wrong, action)
    return Message("assistant", message.content if kept else None, tool_calls=calls)


def turns_of(index: int, actions: Sequence[Action]) -> tuple[Message, ...]:
    """One assistant message an action from message ``index`` on, each followed by its one answer."""
    return tuple(
        Message("assistant", tool_calls=(_call(call_uid(index + 2 * step, 0), action),))
        for step, action in enumerate(actions)
    )


def compensation(wrong: ToolCall, answer: str, spec: EnvSpec) -> Action | None:
    """The call that takes a write back by the environment's declaration, or None where it declares none that fits."""
    undo = spec.undo.get(wrong.name)
    if undo is None:
        return None
    sources = {"arguments": arguments_of(wrong), "answer": _object(answer)}
    found: dict[str, Any] = {}
    for name, (source, field) in undo.arguments.items():
        value = sources[source]
        if value is None or field not in value:
            return None
        found[name] = value[field]
    return undo.tool, found


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """The arguments of a call as a JSON object, or None where they do not parse."""
    return None if call.arguments is UNSET else _object(bytes(call.arguments))


def same_action(call: ToolCall, action: Action) -> bool:
    """Whether a call is this action: the same tool, and arguments that are the same JSON value."""
    arguments = arguments_of(call)
    return arguments is not None and call.name == action[0] and encode(arguments) == encode(action[1])


def _call(uid: str, action: Action) -> ToolCall:
    name, arguments = action
    written = raw(arguments)
    return ToolCall(uid, name, bytes(written).decode(), arguments=written)


def _mentions(text: str, wrong: ToolCall, action: Action) -> bool:
    if not text:
        return False
    arguments = arguments_of(wrong)
    if arguments is None:
        return True
    kept = {encode(value) for value in _leaves(action[1])}
    replaced = [str(value) for value in _leaves(arguments) if encode(value) not in kept]
    if wrong.name != action[0]:
        replaced.append(wrong.name)
    folded = text.casefold()
    return any(value.casefold() in folded for value in replaced)


def _leaves(value: Any) -> Iterator[Any]:
    match value:
        case dict():
            for item in value.values():
                yield from _leaves(item)
        case list():
            for item in value:
                yield from _leaves(item)
        case _:
            yield value


def _object(text: str | bytes) -> dict[str, Any] | None:
    try:
        value, _ = parse(text.encode() if isinstance(text, str) else text)
    except UnreadableError:
        return None
    return value if isinstance(value, dict) else None

"""The assistant messages of a fork: the corrected decision, and the calls that take a mistake's effect back."""

from collections.abc import Sequence
from typing import Any

from curation.diagnosis.arguments import arguments_of, leaves, read_json
from curation.diagnosis.dates import read_date
from curation.diagnosis.quantities import read_number
from curation.diagnosis.reversal import declared_undo
from curation.diagnosis.tokens import squeeze
from curation.proposals import ProposedCall
from environments.protocol import EnvSpec
from schemas.canonical import encode, raw
from schemas.trajectory import Message, ToolCall, call_uid, text_of


def corrected_message(index: int, message: Message, wrong: Sequence[ToolCall], right: ProposedCall) -> Message:
    """A decision in which the right call stands where the first wrong one stood; the other calls are kept in order.

    Reasoning goes. The text stays only if it holds nothing that the correction replaced, in whatever spelling; where a
    number or a date was replaced, which words may say in many ways, and where the text itself was the wrong decision
    (there is no wrong call), it goes too.
    """
    place = next((at for at, call in enumerate(message.tool_calls) if call in wrong), 0)
    kept = [call for call in message.tool_calls if call not in wrong]
    actions: list[ToolCall | ProposedCall] = [*kept[:place], right, *kept[place:]]
    calls = tuple(_as_call(call_uid(index, at), action) for at, action in enumerate(actions))
    mentioned = not wrong or any(_mentions(text_of(message.content), call, right) for call in wrong)
    return Message("assistant", None if mentioned else message.content, tool_calls=calls)


def turns_of(index: int, actions: Sequence[ProposedCall]) -> tuple[Message, ...]:
    """One assistant message an action from message ``index`` on, each followed by its one answer."""
    return tuple(
        Message("assistant", tool_calls=(_as_call(call_uid(index + 2 * turn, 0), action),))
        for turn, action in enumerate(actions)
    )


def compensation(wrong: ToolCall, answer: str, spec: EnvSpec) -> ProposedCall | None:
    """The call that takes a write back by the environment's declaration, or None where it declares none that fits."""
    undo = declared_undo(wrong, answer, spec)
    return None if undo is None else ProposedCall(undo[0], raw(undo[1]))


def same_action(call: ToolCall, action: ProposedCall) -> bool:
    """Whether a call is this action: the same tool, and arguments that are the same JSON value."""
    arguments = arguments_of(call)
    return arguments is not None and call.name == action.name and encode(arguments) == bytes(action.arguments)


def _as_call(uid: str, action: ToolCall | ProposedCall) -> ToolCall:
    match action:
        case ToolCall():
            return ToolCall(uid, action.name, action.arguments_text, action.id, action.arguments, action.parse_error)
        case ProposedCall():
            return ToolCall(uid, action.name, bytes(action.arguments).decode(), arguments=action.arguments)


def _mentions(text: str, wrong: ToolCall, right: ProposedCall) -> bool:
    if not text:
        return False
    arguments = arguments_of(wrong)
    if arguments is None:
        return True
    before, after = (dict(leaves(value)) for value in (arguments, read_json(bytes(right.arguments))))
    changed = [path for path in before | after if _at(before, path) != _at(after, path)]
    replaced = [before[path] for path in changed if path in before]
    if any(_said_otherwise(value) for value in (*replaced, *(after[path] for path in changed if path in after))):
        return True
    if wrong.name != right.name:
        replaced.append(wrong.name)
    squeezed = squeeze(text)
    return any(squeeze(value) in squeezed for value in replaced)


def _at(values: dict[str, Any], path: str) -> bytes | None:
    return encode(values[path]) if path in values else None


def _said_otherwise(value: Any) -> bool:
    """Whether words can say a value without its letters and digits."""
    return not isinstance(value, str) or read_number(value) is not None or read_date(value) is not None

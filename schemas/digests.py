"""Three digests per decision: what was seen word for word, what was known, and what was done.

``c0 = SHA-256("context/1")``, ``c[j+1] = SHA-256(c[j] || SHA-256(visible(m[j])))``. The context of a decision is the
chain over all messages before it; its information is the same chain without the text and reasoning of assistant
messages that carry a call; its action is the calls, or the text where there is none.
"""

from hashlib import sha256
from operator import itemgetter
from typing import Any

from msgspec import UNSET

from schemas.canonical import digest, encode
from schemas.trajectory import Message, Part, Record, Task, ToolCall, Trajectory

_START = sha256(b"context/1").digest()


class Decision(Record, frozen=True):
    """One assistant message of a trajectory.

    ``partial``: reasoning or history before it, or before any message or answer that it follows, is hidden, so that it
    equals no other.
    """

    message: int
    context: str
    information: str
    action: str
    tools: tuple[str, ...] = ()
    error_seen: bool = False
    partial: bool = False


def decisions_of(trajectory: Trajectory) -> tuple[Decision, ...]:
    """Every assistant message that was decided here, not copied from elsewhere, with its digests, in order."""
    context = information = _START
    found: list[Decision] = []
    waiting: list[tuple[int, bytes]] = []
    ordinals: dict[str, int] = {}
    error_seen = partial = False
    for index, message in enumerate(trajectory.messages):
        if message.hidden is not None:
            partial = True
        if message.role == "tool":
            position = -1 if message.answers is None else ordinals.get(message.answers.uid, -1)
            waiting.append((position, _seen(_answer(message, position))))
        else:
            if waiting:
                waiting.sort(key=itemgetter(0))
                for _, seen in waiting:
                    context, information = _links(context, information, seen, seen)
                waiting.clear()
            seen = known = _seen(visible(message))
            if message.role == "assistant":
                calls = message.tool_calls
                tools = tuple([call.name for call in calls] if len(calls) < 2 else {call.name: 0 for call in calls})
                action = action_digest(message)
                if not message.copied:
                    found.append(Decision(index, context.hex(), information.hex(), action, tools, error_seen, partial))
                if calls:
                    if message.reasoning or message.content not in (None, ""):
                        known = _seen(visible(message, wording=False))
                    for call in calls:
                        ordinals[call.uid] = len(ordinals)
            context, information = _links(context, information, seen, known)
        if message.error is not None:
            error_seen = True
    return tuple(found)


def visible(message: Message, *, wording: bool = True) -> list[Any]:
    """What a model sees of a message that is no tool answer; without ``wording``, only the calls it carries."""
    if message.role != "assistant":
        return [message.role, _text(message.content)]
    text, reasoning = (_text(message.content), message.reasoning or "") if wording else ("", "")
    return ["assistant", text, reasoning, [_call(call) for call in message.tool_calls]]


def action_digest(message: Message) -> str:
    """The digest of what an assistant message does: its calls, or its text where it carries none."""
    return digest(encode([_call(call) for call in message.tool_calls] or _text(message.content)))


def task_key(task: Task) -> str | None:
    """The digest that names a task, or None where the log does not say which task it was."""
    return None if task.id is None else digest(encode(_task(task)))


def attempt_id(trajectory: Trajectory, raw_digest: str) -> str | None:
    """The identity of a try; None for a fork. Without a run and an index it is the raw record itself."""
    if trajectory.fork is not None:
        return None
    task, attempt = trajectory.task, trajectory.attempt
    if attempt is None or (attempt.run is None and attempt.index is None):
        return digest(encode(["raw", raw_digest]))
    return digest(encode([*_task(task), attempt.run, attempt.index]))


def _answer(message: Message, position: int) -> list[Any]:
    return ["tool", position, _text(message.content), "" if message.error is None else message.error.message]


def _seen(value: list[Any]) -> bytes:
    return sha256(encode(value)).digest()


def _links(context: bytes, information: bytes, seen: bytes, known: bytes) -> tuple[bytes, bytes]:
    """Both chains with one more message; up to the first wording that is left out they are one."""
    linked = _link(context, seen)
    return linked, linked if information is context and known is seen else _link(information, known)


def _link(chain: bytes, seen: bytes) -> bytes:
    return sha256(chain + seen).digest()


def _task(task: Task) -> list[Any]:
    return [task.namespace, task.id, task.variant, None if task.parameters is UNSET else task.parameters]


def _call(call: ToolCall) -> list[Any]:
    return [call.name, None, call.arguments_text] if call.arguments is UNSET else [call.name, call.arguments]


def _text(content: str | tuple[Part, ...] | None) -> Any:
    if not isinstance(content, tuple):
        return content or ""
    pieces = [part.text if part.text is not None else [part.type, part.sha256] for part in content]
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], str) else pieces

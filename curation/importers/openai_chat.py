"""OpenAI chat JSONL: ``{messages, tools}`` a line, perhaps with an id, an error, and the side-file keys inline.

The format knows neither task nor outcome. ``id`` names the run; top-level ``error`` is how the run stopped. A time in
a message is that of its calls, one at top level that of the calls before the first such message.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from curation.clocks import logged_time
from curation.importers.agentdojo import is_run
from curation.importers.aside import Aside
from curation.importers.atif_block import restore
from curation.importers.attempt_keys import INLINE_KEYS, facts_of, identify, inline_keys
from curation.importers.claims import Claim, speaker
from curation.importers.extra import kept
from curation.importers.face import Fact, Importer, Parsed, RefusedError, Slice
from curation.importers.heads import head_values
from curation.importers.lines import read_lines
from curation.importers.messages import CLOCKS, MessageShape, read_messages
from schemas import canonical
from schemas.objects import Object, tools_object
from schemas.trajectory import Attempt, Conditions, Message, Trajectory, Usage

FILLS: Mapping[str, str] = {
    "task": "side file",
    "tools": "recorded",
    "budget": "side file",
    "start_state": "side file",
    "attempt": "recorded",
    "outcome": "side file",
    "stop": "side file",
    "model": "recorded",
    "usage": "recorded",
    "reasoning": "recorded",
    "branch": "unknown",
}

_SAMPLING = frozenset(
    (
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "max_tokens",
        "max_completion_tokens",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
        "reasoning_effort",
        "response_format",
        "tool_choice",
        "parallel_tool_calls",
    )
)
_OUTCOMES = frozenset(("reward", "success", "resolved"))
_MODELLED = frozenset(("id", "messages", "tools", "functions", "error", "model", "seed", "usage"))
_BESIDE = _MODELLED | _SAMPLING | INLINE_KEYS | CLOCKS | _OUTCOMES


BLOCK = "curation"
"""The key under which an export says what a chat has no place for."""

MESSAGE_FIELDS = frozenset(("hidden", "copied", "raw", "actor"))
CONDITION_FIELDS = frozenset(("agent", "environment", "budget", "notes"))


class Beside(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """What stands under that key: by field of the side-file keys, who is said to have said it; fields of the
    conditions; and by index, from 0, fields of a message.
    """

    said_by: dict[str, Claim] = {}
    conditions: dict[str, Any] = {}
    messages: dict[str, dict[str, Any]] = {}


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | int | None = None


class _Chat(msgspec.Struct):
    messages: list[MessageShape]
    id: str | int | None = None
    tools: list[Any] | str | None = None
    functions: list[Any] | None = None
    error: Any = None
    model: str | None = None
    seed: int | None = None
    usage: _Usage | None = None


def sniff(head: bytes) -> str:
    """Whether one of the first lines is an object with a list of messages that have roles."""
    return "lines that are objects with messages" if any(map(is_chat, head_values(head))) else ""


def _build(record: Any, data: bytes, piece: Slice, replaced: int) -> Parsed:
    try:
        chat = msgspec.convert(record, _Chat)
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", str(error)) from None
    aside = Aside(replaced=replaced)
    if (time := logged_time(record)) is not None:
        aside.times[0] = time
    messages = read_messages(record["messages"], chat.messages, "$.messages", aside)
    side = inline_keys(record)
    beside = _beside(record)
    facts = _claimed(facts_of(side, "log")[0], beside, aside)
    tools = _tools(chat)
    key = None if chat.id is None else str(chat.id)
    conditions = Conditions(
        tools=None if tools is None else tools.id,
        model=chat.model,
        sampling=kept({name: record[name] for name in _SAMPLING & record.keys() if record[name] is not None}),
        seed=chat.seed,
    )
    trajectory = Trajectory(
        messages if beside is None else _restored(messages, beside),
        attempt=None if key is None else Attempt(key),
        conditions=conditions if beside is None else restore(conditions, beside.conditions, CONDITION_FIELDS),
        stop_text=_stop_text(chat.error),
        usage=None if chat.usage is None else Usage(*msgspec.structs.astuple(chat.usage)),
        extra=kept(
            {
                name: value
                for name, value in record.items()
                if name not in _BESIDE and value is not None and (name != BLOCK or beside is None)
            }
        ),
    )
    return Parsed(
        identify(trajectory, side),
        data,
        piece.place,
        piece.offset,
        key=key,
        objects=(*aside.objects, tools) if tools else tuple(aside.objects),
        facts=(*facts, *aside.clocks(messages)),
        replaced=aside.replaced,
        warnings=aside.codes(),
    )


def _beside(record: dict[str, Any]) -> Beside | None:
    """Who is said to have said what; None where the key is not there, or holds something else."""
    try:
        return msgspec.convert(record.get(BLOCK), Beside)
    except msgspec.ValidationError:
        return None


def _restored(messages: tuple[Message, ...], beside: Beside) -> tuple[Message, ...]:
    """The messages with what is said of them beside; raises RefusedError where that is of no message's shape."""
    said = {index: values for index in range(len(messages)) if (values := beside.messages.get(str(index)))}
    return tuple(
        restore(message, said[index], MESSAGE_FIELDS) if index in said else message
        for index, message in enumerate(messages)
    )


def _claimed(facts: tuple[Fact, ...], beside: Beside | None, aside: Aside) -> tuple[Fact, ...]:
    """The facts with the names of those who are said to have said them: the log's own word for all but rules."""
    said_by = {} if beside is None else beside.said_by
    named = []
    for fact in facts:
        by, rule = speaker(said_by.get(fact.field, Claim()))
        if by == "log" and rule:
            aside.warnings.append("claimed_authors")
        named.append(fact._replace(by=by, rule=rule))
    return tuple(named)


def _tools(chat: _Chat) -> Object | None:
    """The tool list; JSON text of a list (a column that cannot be typed) and legacy ``functions`` count as one."""
    tools = chat.tools
    if isinstance(tools, str):
        try:
            tools, _ = canonical.parse(tools.encode())
        except canonical.UnreadableError as error:
            raise RefusedError("not_a_record", f"$.tools is text that is no JSON list: {error}") from None
        if not isinstance(tools, list):
            raise RefusedError("not_a_record", "$.tools is JSON text, but not of a list")
    if tools is None and chat.functions is not None:
        tools = [{"type": "function", "function": function} for function in chat.functions]
    return None if tools is None else tools_object(tools)


def _stop_text(error: Any) -> str | None:
    return error if error is None or isinstance(error, str) else canonical.encode(error).decode()


def is_chat(value: Any) -> bool:
    """Whether a value is an object with a list of messages that have roles."""
    if not isinstance(value, dict) or is_run(value) or not isinstance(value.get("messages"), list):
        return False
    return all(isinstance(message, dict) and "role" in message for message in value["messages"][:1])


IMPORTER = Importer("openai-chat", "1", sniff, read_lines, _build)

"""Messages as a trainer reads them: content always a string, arguments always an object, call ids by position.

Arguments stand in the order in which the model wrote them, as that is what it is served and what it learns to write.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import UNSET

from builders.candidate import Candidate, offered_tools
from curation.diagnosis.arguments import read_json
from curation.masking import Mask
from schemas.canonical import encode
from schemas.rows import Provenance
from schemas.selection import Kind
from schemas.trajectory import Author, Json, Message, ToolCall, text_of

NO_ORDERS: Mapping[str, str] = MappingProxyType({})


class Ids:
    """Names calls ``call_1``, ``call_2``, ... in the order they are made, for a prompt and what follows it."""

    def __init__(self) -> None:
        self._ids: dict[str, tuple[str, str]] = {}

    def add(self, uid: str, name: str) -> str:
        """The id of a call."""
        return self._ids.setdefault(uid, (f"call_{len(self._ids) + 1}", name))[0]

    def answered(self, uid: str) -> tuple[str, str]:
        """The id and the tool of a call that was answered."""
        return self._ids[uid]

    def branch(self) -> "Ids":
        """A copy that goes on from here, so that two sides of a pair name their calls alike."""
        copy = Ids()
        copy._ids = dict(self._ids)
        return copy


def render_messages(
    messages: Sequence[Message], ids: Ids, *, reasoning: bool = True, orders: Mapping[str, str] = NO_ORDERS
) -> list[dict[str, Any]]:
    """Messages in the form of rows; ``ids`` goes on from one call to the next.

    ``orders`` maps a call to a JSON object whose order of keys its arguments take; else they stand as they are written.
    """
    return list(_rendered(messages, ids, reasoning, orders))


def render_target(candidate: Candidate, ids: Ids, *, reasoning: bool) -> list[dict[str, Any]]:
    """The target alone. A corrected call, which no model wrote, takes the order of one that a model did write."""
    calls = candidate.message.tool_calls if candidate.is_correction else ()
    orders = {call.uid: _order_of(call, candidate) for call in calls}
    return render_messages([candidate.message], ids, reasoning=reasoning, orders=orders)


@lru_cache(maxsize=64)
def render_tools(tools: str | None) -> list[Any]:
    """The tool list as it is logged."""
    value = msgspec.json.decode(tools or "[]")
    return value if isinstance(value, list) else [value]


def provenance(candidate: Candidate, kind: Kind, identity: str, mask: Mask) -> Provenance:
    """Where a row comes from and how much of it is confirmed, in words of the log without its secrets."""
    chosen, facts, fork = candidate.chosen, candidate.other or candidate.facts, candidate.chosen.trajectory.fork
    checks = list(chosen.checked_by(candidate.target.message, "execution"))
    runs = list(chosen.executions(candidate.target.message))
    worlds = sorted({run.environment for run in runs})
    placebo = [
        item.placebo
        for item in (*chosen.checked_by(candidate.target.message, "step"), *chosen.task_checks())
        if item.placebo is not None
    ]
    author = None if chosen.correction is None else chosen.correction.author
    task = None if facts.task is None else f"{facts.namespace or ''}/{facts.task}"
    task, strata = mask.apply_all([task, dict(sorted(facts.strata.items()))])
    return Provenance(
        sample_id=identity,
        kind=kind,
        task=task,
        strata_json=_json(strata),
        trajectory_id=chosen.id,
        message=candidate.target.message,
        parent_trajectory_id=None if fork is None else fork.parent,
        branch_point=None if fork is None else fork.branch_point,
        fork_kind=None if fork is None else fork.kind,
        env_name=", ".join(worlds) or None,
        env_snapshot=None if fork is None else fork.restore.snapshot,
        level=candidate.level(),
        placebo_rate=max(placebo, default=None),
        informative=next((run.informative for run in runs if run.informative is not None), None),
        evidence=", ".join(sorted({item.author.kind for item in checks})),
        correction_source=None if author is None else _source(author),
        error_labels_json=_json(sorted({finding.label for finding in candidate.wrong_findings})),
        attempt_index=facts.index,
        n_attempts=facts.attempts,
        outcome=facts.outcome if fork is None else None,
        context_digest=candidate.target.context,
        tools_sha256=facts.tools,
    )


def _rendered(
    messages: Sequence[Message], ids: Ids, reasoning: bool, orders: Mapping[str, str]
) -> Iterator[dict[str, Any]]:
    for message in messages:
        row: dict[str, Any] = {"role": message.role, "content": text_of(message.content)}
        if message.role == "tool" and message.answers is not None:
            row["tool_call_id"], row["name"] = ids.answered(message.answers.uid)
            if not row["content"] and message.error is not None:
                row["content"] = message.error.message
        if message.reasoning and reasoning:
            row["reasoning_content"] = message.reasoning
        if message.tool_calls:
            row["tool_calls"] = [
                {
                    "id": ids.add(call.uid, call.name),
                    "type": "function",
                    "function": {"name": call.name, "arguments": _arguments(call, orders)},
                }
                for call in message.tool_calls
            ]
        yield row


def _source(author: Author) -> str:
    """Who corrected a decision, without the name that anybody but a rule chose."""
    return f"rule:{author.name}@{author.version}" if author.kind == "rule" else author.kind


def _order_of(call: ToolCall, candidate: Candidate) -> str:
    """The arguments of the wrong call or of the last one of its tool, else the order in which its schema asks for them.

    A call that the correction left as it was keeps its own.
    """
    wrong = () if candidate.wrong_message is None else candidate.wrong_message.tool_calls
    before = (*wrong, *(item for message in reversed(candidate.prompt) for item in message.tool_calls))
    texts = [item.arguments_text for item in before if item.name == call.name and item.arguments is not UNSET]
    if texts:
        return call.arguments_text if call.arguments_text in texts else texts[0]
    match msgspec.json.decode(offered_tools(candidate.tools).get(call.name, b"{}")):
        case {"required": [*names]}:
            return msgspec.json.encode({name: None for name in names if isinstance(name, str)}).decode()
        case _:
            return call.arguments_text


def _arguments(call: ToolCall, orders: Mapping[str, str]) -> Json:
    if call.arguments is UNSET:
        return UNSET
    return msgspec.Raw(_in_order(bytes(call.arguments), orders.get(call.uid, call.arguments_text)))


@lru_cache(maxsize=256)
def _in_order(arguments: bytes, text: str) -> bytes:
    """Canonical arguments with their keys in the order in which a text has them."""
    written = read_json(text)
    same = encode(written) == arguments
    return msgspec.json.encode(written if same else _sorted_like(msgspec.json.decode(arguments), written))


def _sorted_like(value: Any, like: Any) -> Any:
    """A value with the keys of its objects in the order of another one, further keys after them."""
    match value, like:
        case dict(), dict():
            return {key: _sorted_like(value[key], like.get(key)) for key in {**like, **value} if key in value}
        case list(), [first, *_]:
            return [_sorted_like(item, first) for item in value]
        case _:
            return value


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()

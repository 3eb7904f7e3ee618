"""Two runs side by side from their first different message.

Messages are compared as a model sees them: call ids make no difference, nor does the order in which a log holds the
answers of parallel calls.
"""

from itertools import zip_longest
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from curation.store import Store
from schemas.canonical import encode
from schemas.digests import task_key, visible
from schemas.trajectory import Message, ToolCall, Trajectory, text_of

Where = Literal[
    "nowhere", "length", "role", "system", "user", "tool", "arguments", "calls", "text", "reasoning", "answer"
]


class Side(msgspec.Struct):
    """One of the two runs: which it is, how it was made, how it ended, and how many messages it has."""

    id: str
    task: str | None
    variant: str | None
    run: str | None
    attempt: int | None
    model: str | None
    agent: str | None
    environment: str | None
    outcome: str | None
    stop: str | None
    fork_of: str | None
    branch_point: int | None
    messages: int


class Shown(msgspec.Struct):
    """A message as a person reads it; ``message`` is its index in its run, ``calls`` are names with arguments."""

    message: int
    role: str
    text: str
    reasoning: str | None
    calls: list[str]
    error: str | None


class Pair(msgspec.Struct):
    """What stands at the same place of both runs, null where a run is over; ``same`` as a model sees it."""

    same: bool
    left: Shown | None
    right: Shown | None


class Difference(msgspec.Struct):
    """Where two runs part and why.

    ``message`` is the index of the first difference, null where there is none; ``why`` says it in words, ``related``
    how one run comes from the other, or both from a third. ``same_task`` (with the same start state) is null where a
    log does not say which task it was. ``rows`` are the messages from the first difference on.
    """

    where: Where
    message: int | None
    why: str
    related: str | None
    same_task: bool | None
    left: Side
    right: Side
    rows: list[Pair]


class _Placed(msgspec.Struct):
    index: int
    message: Message


def compare(store: Store, left: str, right: str) -> Difference:
    """Two trajectories of the store, attempts or forks, compared. Raises NotFoundError, StoreError."""
    one, other = store.trajectory(left), store.trajectory(right)
    places = list(zip_longest(_in_order(one), _in_order(other)))
    first = next((at for at, (a, b) in enumerate(places) if not _same(a, b)), len(places))
    where, why = _part(*places[first]) if places[first:] else ("nowhere", "they are the same to a model")
    keys = task_key(one.task), task_key(other.task)
    return Difference(
        where=where,
        message=first if places[first:] else None,
        why=why,
        related=_related(store, left, right),
        same_task=None if None in keys else keys[0] == keys[1],
        left=_side(store, left, one),
        right=_side(store, right, other),
        rows=[Pair(_same(a, b), _shown(a), _shown(b)) for a, b in places[first:]],
    )


def _in_order(trajectory: Trajectory) -> list[_Placed]:
    """The messages, the answers of parallel calls in the order of the calls."""
    found: list[_Placed] = []
    waiting: list[_Placed] = []
    for index, message in enumerate(trajectory.messages):
        if message.role == "tool":
            waiting.append(_Placed(index, message))
            continue
        found += [*sorted(waiting, key=_answered), _Placed(index, message)]
        waiting = []
    return found + sorted(waiting, key=_answered)


def _answered(placed: _Placed) -> list[int]:
    answers = placed.message.answers
    return [] if answers is None else [int(number) for number in answers.uid.split(".")]


def _same(left: _Placed | None, right: _Placed | None) -> bool:
    return left is not None and right is not None and _seen(left.message) == _seen(right.message)


def _seen(message: Message) -> bytes:
    answered = None if message.answers is None else message.answers.uid
    return encode([*visible(message), answered, "" if message.error is None else message.error.message])


def _part(left: _Placed | None, right: _Placed | None) -> tuple[Where, str]:
    """What is different at a place, the first that matters: who speaks, what is called, what is said."""
    if left is None or right is None:
        return "length", f"the {'left' if left is None else 'right'} run is over"
    one, other = left.message, right.message
    if one.role != other.role:
        return "role", f"{one.role} on the left, {other.role} on the right"
    match one.role:
        case "system":
            return "system", "the system text differs"
        case "user":
            return "user", "the user says something else"
        case "tool":
            return "answer", "the same call is answered differently"
        case "assistant":
            return _part_of_decision(one, other)


def _part_of_decision(one: Message, other: Message) -> tuple[Where, str]:
    for left, right in zip(one.tool_calls, other.tool_calls, strict=False):
        if left.name != right.name:
            return "tool", f"{left.name} on the left, {right.name} on the right"
        if encode(_arguments(left)) != encode(_arguments(right)):
            return "arguments", f"{left.name} with other {_keys(_arguments(left), _arguments(right))}"
    made, made_there = len(one.tool_calls), len(other.tool_calls)
    if made != made_there:
        left_more, right_more = one.tool_calls[made_there:], other.tool_calls[made:]
        return "calls", f"{_named(left_more)} on the left, {_named(right_more)} on the right"
    if encode(visible(one)[1]) != encode(visible(other)[1]):
        return "text", "the same calls with another text" if made else "another text"
    return "reasoning", "the same message after other reasoning"


def _named(more: tuple[ToolCall, ...]) -> str:
    return ", ".join(call.name for call in more) or "no further call"


def _arguments(call: ToolCall) -> Any:
    return call.arguments_text if call.arguments is UNSET else msgspec.json.decode(call.arguments)


def _keys(left: Any, right: Any) -> str:
    if not (isinstance(left, dict) and isinstance(right, dict)):
        return "arguments, one of which does not parse"
    absent = object()
    return ", ".join(
        key
        for key in dict.fromkeys((*left, *right))
        if (left.get(key, absent) is absent) != (right.get(key, absent) is absent)
        or encode(left[key]) != encode(right[key])
    )


def _related(store: Store, left: str, right: str) -> str | None:
    """How the runs come from one another."""
    ours, theirs = _line_of(store, left), _line_of(store, right)
    shared = next((identity for identity in ours if identity in theirs), None)
    match shared:
        case None:
            return None
        case _ if left == right:
            return "left and right are one run"
        case _ if shared == left:
            return "right is a fork of left" if theirs[right] == left else "right is a fork of a fork of left"
        case _ if shared == right:
            return "left is a fork of right" if ours[left] == right else "left is a fork of a fork of right"
        case _:
            return f"both are forks of {shared}"


def _line_of(store: Store, identity: str) -> dict[str, str | None]:
    """The run and those it comes from, nearest first, each with its parent; a parent may not be stored here."""
    found: dict[str, str | None] = {}
    current: str | None = identity
    while current is not None and current not in found:
        rows = store.sql("SELECT parent FROM trajectories WHERE id = ?", [current])["parent"].to_pylist()
        found[current] = rows[0] if rows else None
        current = found[current]
    return found


def _side(store: Store, identity: str, trajectory: Trajectory) -> Side:
    rows = store.sql(
        "SELECT outcome, stop, environment, model, agent FROM attempts WHERE trajectory_id = ?", [identity]
    ).to_pylist()
    known: dict[str, Any] = rows[0] if rows else dict.fromkeys(("outcome", "stop", "environment", "model", "agent"))
    task, attempt, fork = trajectory.task, trajectory.attempt, trajectory.fork
    return Side(
        id=identity,
        task=task.id,
        variant=task.variant,
        run=None if attempt is None else attempt.run,
        attempt=None if attempt is None else attempt.index,
        fork_of=None if fork is None else fork.parent,
        branch_point=None if fork is None else fork.branch_point,
        messages=len(trajectory.messages),
        **known,
    )


def _shown(placed: _Placed | None) -> Shown | None:
    if placed is None:
        return None
    message = placed.message
    return Shown(
        message=placed.index,
        role=message.role,
        text=text_of(message.content),
        reasoning=message.reasoning,
        calls=[f"{call.name} {call.arguments_text}" for call in message.tool_calls],
        error=None if message.error is None else message.error.message,
    )

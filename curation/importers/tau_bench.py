"""tau-bench v1: one JSON list of ``{task_id, trial, reward, info, traj}``.

The domain (airline, retail) stands nowhere in the file, and a task id is unique only inside one: no namespace is made
up, the user names it (``--namespace``, or a side file). ``info`` holds hidden answers (gold actions, outputs, the
user's script): they are counted for a stratum and looked for in the log, and never enter the record. Of ``info`` only
the user simulator's cost and the source are kept; other keys are not, because nobody knows whether they are answers.
"""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from curation.importers.aside import Aside
from curation.importers.face import Fact, Importer, Parsed, RefusedError, Slice
from curation.importers.heads import head_value
from curation.importers.json_list import read_list
from curation.importers.messages import MessageShape, read_messages
from schemas import canonical
from schemas.side_file import Index
from schemas.statements import Result, Stop
from schemas.trajectory import Attempt, Message, Task, ToolCall, Trajectory, text_of

STOP_RULE = "tau_bench.stop@1"
GOLD_WRITES_RULE = "tau_bench.gold_writes@1"

FILLS: Mapping[str, str] = {
    "task": "recorded",
    "tools": "side file",
    "budget": "side file",
    "start_state": "side file",
    "attempt": "recorded",
    "outcome": "recorded",
    "stop": f"rule {STOP_RULE}",
    "model": "unknown",
    "usage": "unknown",
    "reasoning": "recorded",
    "branch": "unknown",
}

_STOP_MARK = "###STOP###"
_TRANSFER = "transfer_to_human_agents"
_AIRLINE_WRITES = frozenset(
    (
        "book_reservation",
        "cancel_reservation",
        "update_reservation_flights",
        "update_reservation_baggages",
        "update_reservation_passengers",
        "send_certificate",
    )
)
_RETAIL_WRITES = frozenset(
    (
        "cancel_pending_order",
        "exchange_delivered_order_items",
        "modify_pending_order_address",
        "modify_pending_order_items",
        "modify_pending_order_payment",
        "modify_user_address",
        "return_delivered_order_items",
    )
)
_WRITES = _AIRLINE_WRITES | _RETAIL_WRITES
_READS = ("get_", "find_", "list_", "search_", "calculate", "think", _TRANSFER)
_MANY = 3


class _Action(msgspec.Struct):
    name: str
    kwargs: dict[str, Any] = {}


class _Task(msgspec.Struct):
    actions: list[_Action] | None = None


class _Info(msgspec.Struct):
    task: _Task | None = None
    source: str | None = None
    user_cost: float | int | None = None


class _Run(msgspec.Struct):
    task_id: int | str
    traj: list[MessageShape]
    trial: Index | None = None
    reward: float | None = None
    info: _Info | None = None


def sniff(head: bytes) -> str:
    """Whether the head is a list whose first element has a task id beside a run or its info."""
    value = head_value(head)
    first = value[0] if isinstance(value, list) and value else None
    fits = isinstance(first, dict) and "task_id" in first and not {"traj", "info"}.isdisjoint(first)
    return "a list of objects with task_id and traj" if fits else ""


def _build(record: Any, data: bytes, piece: Slice, replaced: int) -> Parsed:
    try:
        run = msgspec.convert(record, _Run)
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", str(error)) from None
    aside = Aside(replaced=replaced)
    messages = read_messages(record["traj"], run.traj, "$.traj", aside)
    info = run.info or _Info()
    gold = None if info.task is None else info.task.actions
    if gold and _ends_with_gold(messages, gold):
        aside.warnings.append("gold_suffix")
    extra = {"source": info.source, "user_cost": info.user_cost}
    logged = {name: value for name, value in extra.items() if value is not None}
    trajectory = Trajectory(
        messages,
        task=Task(id=str(run.task_id)),
        attempt=None if run.trial is None else Attempt(index=run.trial),
        extra=canonical.raw(logged) if logged else UNSET,
    )
    return Parsed(
        trajectory,
        data,
        piece.place,
        piece.offset,
        objects=tuple(aside.objects),
        facts=(*_outcome(run.reward), _stop(messages), *_gold_writes(gold), *aside.clocks(messages)),
        replaced=aside.replaced,
        warnings=aside.codes(),
    )


def _outcome(reward: float | None) -> tuple[Fact, ...]:
    if reward is None:
        return ()
    result: Result = "unknown"
    if 0 <= reward <= 1:
        result = "passed" if reward == 1 else "failed" if reward == 0 else "partial"
    return (Fact("outcome", result, score=reward),)


def _stop(messages: tuple[Message, ...]) -> Fact:
    """The end that the harness documents: the user's stop mark, else a transfer as the last call, else unknown."""
    said = next((text_of(message.content) for message in reversed(messages) if message.role == "user"), "")
    calls = _calls(messages)
    stop: Stop = "unknown"
    if _STOP_MARK in said:
        stop = "user_stop"
    elif calls and calls[-1].name == _TRANSFER:
        stop = "transfer"
    return Fact("stop", stop, "rule", STOP_RULE, reads=("request",))


def _gold_writes(gold: list[_Action] | None) -> tuple[Fact, ...]:
    """How many gold actions write, as ``0``, ``1``, ``2`` or ``3+``; nothing where one of them is of unknown kind."""
    if gold is None or not all(action.name in _WRITES or action.name.startswith(_READS) for action in gold):
        return ()
    writes = sum(action.name in _WRITES for action in gold)
    value = f"{_MANY}+" if writes >= _MANY else str(writes)
    return (Fact("strata.gold_writes", value, "rule", GOLD_WRITES_RULE, reads=("hidden_answer",)),)


def _ends_with_gold(messages: tuple[Message, ...], gold: list[_Action]) -> bool:
    """Whether the calls logged after the run's end close with the gold actions, as a grader leaves them behind.

    A successful run may itself end with the gold actions; only what follows the end cannot be the agent's.
    """
    end = next((index for index, message in enumerate(messages) if _ends(message)), len(messages))
    late = [(call.name, call.arguments) for call in _calls(messages[end + 1 :])]
    wanted = [(action.name, canonical.raw(action.kwargs)) for action in gold]
    return late[-len(wanted) :] == wanted


def _ends(message: Message) -> bool:
    if message.role == "user":
        return _STOP_MARK in text_of(message.content)
    return any(call.name == _TRANSFER for call in message.tool_calls)


def _calls(messages: tuple[Message, ...]) -> list[ToolCall]:
    return [call for message in messages for call in message.tool_calls]


IMPORTER = Importer("tau-bench", "1", sniff, read_list, _build)

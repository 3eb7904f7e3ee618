"""One call of a model as a log of calls holds it, and the attempt that calls which continue one another make."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from curation.importers.aside import Aside
from curation.importers.call_runs import Run
from curation.importers.call_tree import CallPath
from curation.importers.digest_trie import SIZE
from curation.importers.extra import kept, kept_known
from curation.importers.face import Fact, Parsed, RefusedError, Slice
from curation.importers.messages import MessageShape, read_messages
from curation.importers.response_items import HIDDEN
from curation.importers.token_counts import summed
from schemas.canonical import UnreadableError, encode, parse
from schemas.objects import Object, tools_object
from schemas.statements import Stop
from schemas.trajectory import Attempt, Conditions, Message, Task, Trajectory, Usage

_ROLES = {"developer": "system", "function": "tool"}
CUT = "the recorded stream ends before its end"
"""What is said of a stream that was cut, as no reason of its end is known."""

_STOPS: dict[str, Stop] = {
    "stop": "completed",
    "end_turn": "completed",
    "stop_sequence": "completed",
    "completed": "completed",
    "length": "output_length",
    "max_tokens": "output_length",
    "max_output_tokens": "output_length",
    "model_context_window_exceeded": "context_length",
    "cancelled": "cancelled",
}
_OVERLOADED = frozenset((408, 409, 425, 429))


class ModelCall(NamedTuple):
    """A request with its history, and the alternative answers to it, each of one message or several.

    Messages are of the OpenAI chat shape; ``HIDDEN`` marks one before which something is not logged. ``head`` is a
    first message that is set anew in each call, ``previous`` the call whose context this one goes on from.
    ``reasoned``: tokens went into reasoning that the answer does not show. ``status`` is that of HTTP, ``time`` is
    ISO text. ``finishes`` say why each of the answers ended; where there is none, the first says why the request did.
    ``conversation``: the provider keeps the history of its session. ``cut``: the answer is a recorded stream
    that ends before its end.
    """

    messages: list[dict[str, Any]]
    answers: list[list[dict[str, Any]]]
    head: dict[str, Any] | None = None
    id: str | None = None
    session: str | None = None
    previous: str | None = None
    model: str | None = None
    sampling: Mapping[str, Any] = {}
    seed: int | None = None
    tools: list[Any] | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    usage_details: Mapping[str, int] = {}
    cost: float | int | None = None
    finishes: Sequence[str | None] = ()
    error: str | None = None
    status: int | None = None
    time: str | None = None
    reasoned: bool = False
    conversation: bool = False
    cut: bool = False


class Who(NamedTuple):
    """What is known of a run beside its calls: the names of the attempt, facts about it, and an error that ended it."""

    run: str | None = None
    nth: int | None = None
    rule: str = ""
    task: Task = Task()
    agent: str | None = None
    facts: tuple[Fact, ...] = ()
    part: str | None = None
    error: str | None = None


def path_of(call: ModelCall) -> CallPath:
    """The call in digests."""
    return CallPath(
        [seen(message) for message in call.messages],
        [[seen(message) for message in answer] for answer in call.answers],
        None if call.head is None else seen(call.head),
        call.id,
        call.session,
        call.previous,
        call.cut,
        spoken_in(call.messages),
    )


def spoken_in(messages: Sequence[Mapping[str, Any]]) -> int:
    """How many messages there are up to the last that the model wrote."""
    last = (at for at in range(len(messages), 0, -1) if messages[at - 1].get("role") == "assistant")
    return next(last, 0)


def seen(message: Mapping[str, Any]) -> bytes:
    """The digest of what a message says, in whichever of its forms: an answer equals itself in a later history.

    Reasoning is left out: what comes back to the model of it is not what it wrote. So is all beside the texts and the
    calls, and how arguments were spaced.
    """
    role = message.get("role")
    content = message.get("content") or message.get("refusal") or ""
    if isinstance(content, list):
        content = [_text_in(part) for part in content]
        content = content[0] if len(content) == 1 and isinstance(content[0], str) else content
    calls = [(call.get("id") or "", *_called(call)) for call in calls_in(message)]
    if message.get("function_call") is not None:
        calls.append(("", *_function(message["function_call"])))
    said = [_ROLES.get(str(role), role), content, calls, message.get("tool_call_id") or ""]
    return blake2b(encode(said), digest_size=SIZE).digest()


def calls_in(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls that a message of the chat shape carries, as far as they are objects."""
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def read_run(run: Run, calls: Mapping[int, ModelCall], who: Who, data: bytes, piece: Slice, replaced: int) -> Parsed:
    """The attempt that a run is. ``calls`` are those of the run, by position; of those that a later call repeats,
    the messages are not looked at. Raises RefusedError.
    """
    aside = Aside(replaced=replaced)
    own = {at: calls[each] for at, each in zip(run.answered, run.calls, strict=True) if each in calls}
    whole = len(own) == len(run.calls)
    if not whole:
        aside.warnings.append("calls_left_out")
    chain = [calls[position] for position in (*run.before, *run.calls) if position in calls]
    if not chain:
        raise RefusedError("not_a_record", "no call of a model")
    entries = history_of(chain, run.choice)
    unlike = {_write_out(entries, at, call) for at, call in own.items()}
    unlike |= {at for at, call in own.items() if not _is_shown(entries, at, call)}
    hidden = {at: "reasoning" for at in unlike if at is not None and at < len(entries)}
    hidden |= {index: mark for index, entry in enumerate(entries) if (mark := entry.get(HIDDEN)) is not None}
    if run.gap:
        hidden[0] = "compaction"
    for at, call in own.items():
        if call.time is not None:
            aside.times[at] = call.time
        if call.reasoned and call.answers:
            hidden.setdefault(at, "reasoning")
    entries = [{key: value for key, value in entry.items() if key != HIDDEN} for entry in entries]
    messages = read_chat(entries, aside)
    messages = tuple(
        replace(message, hidden=hidden.get(index), copied=_is_copied(run, index, message))
        for index, message in enumerate(messages)
    )
    tools = _tools(own.values() or chain[-1:])
    heard = [call for call in chain if call.answers] or chain
    models = list(dict.fromkeys(call.model for call in heard if call.model is not None))
    if len(models) > 1:
        aside.warnings.append("models_differ")
    failed = [calls[position] for position in run.failed if position in calls]
    spent = [calls[position] for position in sorted({*run.calls, *run.failed}) if position in calls] if whole else []
    stop, stop_text = _stop(chain[-1], run.choice, messages) if who.error is None else ("unknown", who.error)
    trajectory = Trajectory(
        messages,
        task=who.task,
        attempt=None if who.run is None and who.nth is None else Attempt(who.run, who.nth),
        conditions=Conditions(
            tools=None if tools is None else tools.id,
            model=models[0] if len(models) == 1 else None,
            sampling=kept(_same(call.sampling for call in heard) or {}),
            seed=_same(call.seed for call in heard),
            agent=who.agent,
        ),
        stop_text=stop_text,
        usage=_usage(spent),
        extra=kept_known(
            {
                "failed_requests": len(failed) or None,
                "models": models if len(models) > 1 else None,
                "usage_details": summed(call.usage_details for call in spent),
            }
        ),
    )
    return Parsed(
        trajectory,
        data,
        piece.place,
        piece.offset,
        key=who.run if not who.nth else f"{who.run}#{who.nth}",
        objects=(*aside.objects, tools) if tools else tuple(aside.objects),
        facts=(Fact("stop", stop, "rule", who.rule), *who.facts, *aside.clocks(messages)),
        replaced=aside.replaced,
        warnings=aside.codes(),
        part=who.part,
    )


def read_chat(entries: list[dict[str, Any]], aside: Aside) -> tuple[Message, ...]:
    """Messages of the OpenAI chat shape, converted. Raises RefusedError with the path of what is of another."""
    try:
        shapes = msgspec.convert(entries, list[MessageShape])
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", f"messages: {error}") from None
    return read_messages(entries, shapes, "messages", aside)


def history_of(chain: Sequence[ModelCall], choice: int) -> list[dict[str, Any]]:
    """The messages of a run: those of its last call, and those of the calls whose context it goes on from."""
    last = chain[-1]
    entries = [] if last.head is None else [last.head]
    first = len(chain) - 1
    while first and chain[first].previous is not None:
        first -= 1
    for call in chain[first:-1]:
        entries += [*call.messages, *(call.answers[0] if call.answers else ())]
    return [*entries, *last.messages, *(last.answers[choice] if last.answers else ())]


def _write_out(entries: list[dict[str, Any]], at: int, call: ModelCall) -> int | None:
    """Put what a call answered in the place of what later histories repeat of it: its arguments as they were written,
    and what these histories leave out. Reasoning that never came back to the model is kept beside the message, and so
    is what came back in its place; the first message after that is returned.
    """
    told: list[bytes] = []
    for answer in call.answers:
        end = at + len(answer)
        told += map(seen, entries[at + len(told) : end])
        if told[: len(answer)] == [seen(message) for message in answer]:
            other = any(map(_is_replaced, entries[at:end], answer))
            entries[at:end] = map(_as_written, entries[at:end], answer)
            if call.cut and answer:
                entries[end - 1] = {**entries[end - 1], "truncated": True}
            return end if other else None
    return None


def _is_shown(entries: Sequence[Mapping[str, Any]], at: int, call: ModelCall) -> bool:
    """Whether the messages up to an answer hold the reasoning that the call itself was given, as far as it tells that:
    a request that has the whole history does.
    """
    first = 0 if call.head is None else 1
    if call.previous is not None or first + len(call.messages) != at:
        return True
    return all(
        message.get("role") != "assistant" or _reasoning_in(message) == _reasoning_in(entries[index])
        for index, message in enumerate(call.messages, first)
    )


def _reasoning_in(message: Mapping[str, Any]) -> Any:
    return message.get("reasoning_content") or message.get("reasoning") or None


def _is_replaced(entry: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """Whether the model was given back other reasoning than it wrote."""
    return _reasoning_in(entry) not in (None, _reasoning_in(answer))


def _as_written(entry: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    if entry is answer:
        return entry
    whole = dict(entry)
    calls = calls_in(answer)
    if calls and len(calls) == len(calls_in(entry)):
        whole["tool_calls"] = [{**echo, **call} for echo, call in zip(calls_in(entry), calls, strict=True)]
    if HIDDEN in answer:
        whole.setdefault(HIDDEN, answer[HIDDEN])
    if _is_replaced(entry, answer):
        for key in ("reasoning_content", "reasoning"):
            whole.pop(key, None)
            if key in answer:
                whole[key] = answer[key]
        whole["sent_reasoning"] = _reasoning_in(entry)
    elif _reasoning_in(entry) is None and _reasoning_in(answer) is not None:
        whole["unsent_reasoning"] = _reasoning_in(answer)
    return whole


def _is_copied(run: Run, index: int, message: Message) -> bool:
    """Whether a branch was given a decision as a part of its history: no call took it after that history."""
    return message.role == "assistant" and run.branch is not None and run.branch.message <= index < run.decided


def _stop(last: ModelCall, choice: int, messages: Sequence[Message]) -> tuple[Stop, str | None]:
    """How an answer of the last call ended: a request that failed says nothing of what the model would have done."""
    finish = last.finishes[choice] if choice < len(last.finishes) else None
    if last.cut and (last.answers or last.error == CUT):
        return "unknown", last.error
    if not last.answers:
        text = last.error if last.error is not None else None if last.status is None else f"HTTP {last.status}"
        if finish == "cancelled":
            return "cancelled", text or finish
        if last.error is not None and "context_length_exceeded" in last.error:
            return "context_length", text
        outside = last.status is None or last.status in _OVERLOADED or last.status >= 500
        return "provider_error" if outside and text is not None else "unknown", text
    stop = _STOPS.get(finish or "", "unknown")
    asks = bool(messages and messages[-1].tool_calls)
    return "unknown" if asks and stop == "completed" else stop, finish


def _tools(calls: Iterable[ModelCall]) -> Object | None:
    """The tool list, where all calls were offered the same."""
    lists = {encode(call.tools): call.tools for call in calls if call.answers or call.tools is not None}
    only = next(iter(lists.values())) if len(lists) == 1 else None
    return None if only is None else tools_object(only)


def _same(values: Iterable[Any]) -> Any:
    known = [value for value in values if value is not None]
    return known[0] if known and all(value == known[0] for value in known) else None


def _usage(calls: Sequence[ModelCall]) -> Usage | None:
    """What the calls took together; each is counted once, in the run whose own it is."""
    totals = [_total(getattr(call, name) for call in calls) for name in ("prompt_tokens", "completion_tokens", "cost")]
    return None if totals == [None, None, None] else Usage(*cast("list[Any]", totals))


def _total(values: Iterable[float | int | None]) -> float | int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _text_in(part: Any) -> Any:
    """The text of a part that is text, else the part."""
    return part.get("text") if isinstance(part, dict) and part.get("type") == "text" else part


def _called(call: Mapping[str, Any]) -> tuple[Any, Any]:
    custom = call.get("custom")
    if isinstance(custom, dict) and "function" not in call:
        return custom.get("name"), ["text", custom.get("input")]
    return _function(call.get("function"))


def _function(function: Any) -> tuple[Any, Any]:
    if not isinstance(function, dict):
        return "", function
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments, _ = parse(arguments.encode())
        except UnreadableError:
            return function.get("name"), ["text", arguments]
    return function.get("name"), arguments

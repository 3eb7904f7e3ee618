"""One line of a log of calls: a request to a model with its response, as OpenAI's and Anthropic's APIs shape them."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from curation.importers.blocks import read_system, read_turn
from curation.importers.envelopes import (
    ABSENT,
    Pair,
    are_messages,
    error_of,
    is_sent,
    open_pair,
    session_of,
    status_of,
    time_of,
)
from curation.importers.face import RefusedError
from curation.importers.model_calls import CUT, ModelCall
from curation.importers.response_items import read_items
from curation.importers.streams import read_stream
from curation.importers.token_counts import first_number, prompt_tokens, usage_details

SAMPLING = frozenset(
    (
        "temperature",
        "top_p",
        "top_k",
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "presence_penalty",
        "frequency_penalty",
        "reasoning_effort",
        "reasoning",
        "response_format",
        "text",
        "thinking",
        "tool_choice",
        "parallel_tool_calls",
        "stop",
        "stop_sequences",
    )
)
_FOREIGN = frozenset(("conversations", "traj", "trajectory", "history", "working_start"))  # marks of other formats
_FULL = frozenset(("request", "request_body", "requestBody", "proxy_server_request", "req", "body"))


def is_exchange(value: Any, *, cut: bool = False) -> bool:
    """Whether a value is a request with its response; of one that is ``cut`` the response may be missing."""
    if not isinstance(value, dict) or not _FOREIGN.isdisjoint(value) or any(key.startswith("gen_ai.") for key in value):
        return False
    pair = open_pair(value)
    if pair is None:
        return False
    asked = pair.request.get("messages", pair.request.get("input"))
    if pair.response is ABSENT:
        return cut and not _FULL.isdisjoint(value) and "model" in pair.request and are_messages(asked)
    return are_messages(asked) or ("messages" not in pair.request and isinstance(asked, str))


def read_exchange(record: Any) -> ModelCall:
    """The call of a line. Raises RefusedError for what is no call of a chat model."""
    line = _open(record)
    request, answer = line.pair.request, line.pair.response
    call = _tied(line)
    usage = _usage(answer, record)
    error = error_of(record, answer)
    if error is None and isinstance(answer, str) and answer and not call.answers:
        error = answer
    return call._replace(
        model=_text(answer, "model") or _text(request, "model") or _text(record, "model"),
        sampling={key: request[key] for key in sorted(SAMPLING & request.keys()) if request[key] is not None},
        seed=request["seed"] if type(request.get("seed")) is int else None,
        tools=_tools(request),
        prompt_tokens=prompt_tokens(usage),
        completion_tokens=first_number(usage, "completion_tokens", "output_tokens", "output", "completionTokens"),
        usage_details={} if usage is record else usage_details(usage),
        cost=_cost(usage, record),
        finishes=line.finishes,
        error=CUT if line.cut and error is None else error,
        status=status_of(line.pair),
        time=time_of(line.pair),
        reasoned=_reasoned(usage, call.answers),
    )


def read_ties(record: Any) -> ModelCall:
    """The call of a line, as far as it is tied to others: its messages, and the names that it has and refers to.

    Raises RefusedError for what is no call of a chat model.
    """
    return _tied(_open(record))


class _Line(NamedTuple):
    """A line, a recorded stream put together; ``linked``: its request holds only what is new."""

    pair: Pair
    answers: list[list[dict[str, Any]]]
    finishes: list[str | None]
    linked: bool
    cut: bool


def _open(record: Any) -> _Line:
    pair = open_pair(record) if isinstance(record, dict) else None
    if pair is None:
        raise RefusedError("not_a_record", "a line holds a request with messages (or input) and its response")
    linked = "messages" not in pair.request
    if linked and not isinstance(pair.request.get("input"), str | list):
        raise RefusedError("not_a_record", "the request has neither messages nor input: it asks no chat model")
    streamed = read_stream(pair.response)
    if streamed is not None:
        pair = pair._replace(response=streamed.response)
    answer = pair.response
    if isinstance(answer, dict) and answer.get("object") == "list" and "data" in answer:
        raise RefusedError("not_a_record", "the response is a list of embeddings: it is no call of a chat model")
    answers, finishes = ([], []) if isinstance(answer, str) and is_sent(pair) else _answers(answer)
    return _Line(pair, answers, finishes, linked, streamed is not None and streamed.cut)


def _tied(line: _Line) -> ModelCall:
    pair, answer = line.pair, line.pair.response
    request = pair.request
    return ModelCall(
        messages=read_items(request["input"]) if line.linked else _messages(request),
        answers=line.answers,
        head=_head(request) if line.linked else None,
        id=_text(answer, "id") or _text(pair.around[0], "response_id"),
        session=session_of([*pair.about, *([answer] if isinstance(answer, dict) else [])]),
        previous=_text(request, "previous_response_id") or _text(answer, "previous_response_id"),
        conversation=line.linked and any(place.get("conversation") for place in pair.about),
        cut=line.cut,
    )


def _answers(answer: Any) -> tuple[list[list[dict[str, Any]]], list[str | None]]:
    """The alternative answers of a response, and why each ended; of one without answers, why that is so."""
    if isinstance(answer, str):
        return [[{"role": "assistant", "content": answer}]] if answer else [], []
    match answer:
        case {"choices": [*listed]}:
            choices = [choice for choice in listed if isinstance(choice, dict)]
            spoken = [choice for choice in choices if isinstance(choice.get("message"), dict)]
            ended = [_text(choice, "finish_reason") for choice in spoken or choices]
            return [_assistant(choice["message"]) for choice in spoken], ended
        case {"output": [_, *_] as output, **rest}:
            reason = rest.get("incomplete_details")
            said = read_items(output)
            return [said] if said else [], [_text(reason, "reason") or _text(rest, "status")]
        case {"message": {"role": _} as message}:
            return [_assistant(message)], [_text(answer, "finish_reason")]
        case {"type": "message", "content": [*content], **rest}:
            return [read_turn({"role": "assistant", "content": content})], [_text(rest, "stop_reason")]
        case {"role": "assistant"}:
            return [_assistant(answer)], [_text(answer, "finish_reason") or _text(answer, "stop_reason")]
        case {"status": "cancelled" | "incomplete" as status}:
            return [], [status]
        case _:
            return [], []


def _assistant(message: dict[str, Any]) -> list[dict[str, Any]]:
    return read_turn({"role": "assistant", "content": message.get("content"), **message})


def _messages(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    messages = request["messages"]
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise RefusedError("not_a_record", "messages is no list of objects")
    return [*read_system(request.get("system")), *(turn for message in messages for turn in read_turn(message))]


def _head(request: Mapping[str, Any]) -> dict[str, Any] | None:
    text = request.get("instructions")
    return {"role": "system", "content": text} if isinstance(text, str) and text else None


def _tools(request: Mapping[str, Any]) -> list[Any] | None:
    tools, functions = request.get("tools"), request.get("functions")
    if isinstance(tools, list):
        return tools
    if isinstance(functions, list):
        return [{"type": "function", "function": function} for function in functions]
    return None


def _usage(answer: Any, record: Mapping[str, Any]) -> Mapping[str, Any]:
    found = [answer.get("usage")] if isinstance(answer, dict) else []
    found += [record.get("usage"), record.get("usageDetails")]
    return next((usage for usage in found if isinstance(usage, dict)), record)


def _cost(usage: Mapping[str, Any], record: Mapping[str, Any]) -> float | int | None:
    found = [usage.get("cost"), *(record.get(key) for key in ("response_cost", "cost", "spend", "totalCost"))]
    return next((cost for cost in found if type(cost) in (int, float)), None)


def _reasoned(usage: Mapping[str, Any], answers: list[list[dict[str, Any]]]) -> bool:
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    tokens = details.get("reasoning_tokens") if isinstance(details, dict) else None
    shown = any(message.get("reasoning_content") or message.get("reasoning") for each in answers for message in each)
    return type(tokens) is int and tokens > 0 and not shown


def _text(place: Any, key: str) -> str | None:
    found = place.get(key) if isinstance(place, dict) else None
    return found if isinstance(found, str) and found else None

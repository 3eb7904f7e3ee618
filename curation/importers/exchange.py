"""One line of a log of calls: a request to a model with its response, in the forms in which proxies write it."""

from collections.abc import Mapping
from typing import Any

from curation.clocks import logged_time
from curation.importers.face import RefusedError
from curation.importers.model_calls import ModelCall
from curation.importers.response_items import read_items
from schemas import canonical

PAIRS = (
    ("request", "response"),
    ("request_body", "response_body"),
    ("requestBody", "responseBody"),
    ("req", "res"),
    ("input", "output"),
)
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
        "tool_choice",
        "parallel_tool_calls",
        "stop",
    )
)
_SESSIONS = ("session_id", "sessionId", "conversation_id", "conversationId", "thread_id", "threadId", "session")
_METADATA = ("metadata", "properties", "meta")
_ERRORS = ("error", "error_str", "exception")
_STATUS = ("status_code", "statusCode", "http_status", "status")
_BODY = 3  # levels of ``body`` and of JSON text around a request


def is_exchange(value: Any) -> bool:
    """Whether a value, perhaps cut, is a request with its response."""
    if not isinstance(value, dict) or "conversations" in value or any(key.startswith("gen_ai.") for key in value):
        return False
    if "traj" in value or "trajectory" in value or "history" in value or "working_start" in value:
        return False
    request, response = _pair(value)
    if request is None:
        return False
    if isinstance(request.get("messages"), list):
        return response is not _ABSENT and _are_messages(request["messages"])
    return (
        "input" in request
        and (isinstance(request["input"], str) or _are_messages(request["input"]))
        and (response is not _ABSENT)
    )


def read_exchange(record: Any) -> ModelCall:
    """The call of a line. Raises RefusedError for what is no call of a chat model."""
    request, response = _pair(record) if isinstance(record, dict) else (None, _ABSENT)
    if request is None:
        raise RefusedError("not_a_record", "a line holds a request with messages (or input) and its response")
    answer = _body(response)
    places = (record, *(record[key] for key in _METADATA if isinstance(record.get(key), dict)))
    places += (request, *(request[key] for key in _METADATA if isinstance(request.get(key), dict)))
    if isinstance(answer, dict):
        places += (answer,)
    linked = "messages" not in request
    if linked and not isinstance(request.get("input"), str | list):
        raise RefusedError("not_a_record", "the request has neither messages nor input: it asks no chat model")
    if isinstance(answer, dict) and answer.get("object") == "list" and "data" in answer:
        raise RefusedError("not_a_record", "the response is a list of embeddings: it is no call of a chat model")
    answers, finish = _answers(answer)
    error = _first_error(record, answer)
    usage = _usage(answer, record)
    session = _session(places)
    return ModelCall(
        messages=read_items(request["input"]) if linked else _messages(request["messages"]),
        answers=answers,
        head=_head(request) if linked else None,
        id=_text(answer, "id") or _text(record, "response_id"),
        session=session,
        previous=_text(request, "previous_response_id") or _text(answer, "previous_response_id"),
        model=_text(answer, "model") or _text(request, "model") or _text(record, "model"),
        sampling={key: request[key] for key in sorted(SAMPLING & request.keys()) if request[key] is not None},
        seed=request["seed"] if isinstance(request.get("seed"), int) else None,
        tools=_tools(request),
        prompt_tokens=_number(usage, "prompt_tokens", "input_tokens", "input", "promptTokens"),
        completion_tokens=_number(usage, "completion_tokens", "output_tokens", "output", "completionTokens"),
        cost=_cost(usage, record),
        finish=finish,
        error=None if answers and error is None else error,
        status=_status(record, response, answer),
        time=logged_time(record) or (logged_time(answer) if isinstance(answer, dict) else None),
        reasoned=_reasoned(usage, answers),
        conversation=linked and any(place.get("conversation") for place in places),
    )


_ABSENT = object()


def _pair(record: Mapping[str, Any]) -> tuple[dict[str, Any] | None, Any]:
    """The body of the request, and the response as it stands."""
    if record.get("object") == "response" and "input" in record:
        return dict(record), record
    for asked, answered in PAIRS:
        if asked in record:
            request = _body(record[asked])
            if isinstance(request, list):
                request = {"messages": request} if _are_messages(request) else None
            elif isinstance(request, str) and asked == "input":
                request = None
            if isinstance(request, dict) and ("messages" in request or "input" in request):
                return request, record.get(answered, record.get("error", _ABSENT))
    if "messages" in record and isinstance(_body(record.get("response")), dict):
        answer = _body(record["response"])
        if {"choices", "output", "error", "content", "role"} & answer.keys():
            return dict(record), record["response"]
    return None, _ABSENT


def _body(value: Any) -> Any:
    """What is sent, out of an envelope with a ``body`` and of JSON text."""
    for _ in range(_BODY):
        if isinstance(value, str) and value[:1] in ("{", "["):
            try:
                value, _ = canonical.parse(value.encode())
            except canonical.UnreadableError:
                return value
        elif isinstance(value, dict) and isinstance(value.get("body"), dict | str) and "messages" not in value:
            value = value["body"]
        else:
            break
    return value


def _answers(answer: Any) -> tuple[list[list[dict[str, Any]]], str | None]:
    """The alternative answers of a response, and why the first ended."""
    body: Any = answer
    match body:
        case str() if answer:
            return [[{"role": "assistant", "content": body}]], None
        case {"choices": [*listed]}:
            choices = [choice for choice in listed if isinstance(choice, dict)]
            messages = [choice["message"] for choice in choices if isinstance(choice.get("message"), dict)]
            finish = choices[0].get("finish_reason") if choices else None
            return [[_assistant(message)] for message in messages], finish if isinstance(finish, str) else None
        case {"output": [_, *_] as output, **rest}:
            reason = rest.get("incomplete_details")
            finish = reason.get("reason") if isinstance(reason, dict) else rest.get("status")
            messages = read_items(output)
            return ([messages] if messages else []), finish if isinstance(finish, str) else None
        case {"message": {"role": _} as message, **rest}:
            finish = rest.get("finish_reason")
            return [[_assistant(message)]], finish if isinstance(finish, str) else None
        case {"role": "assistant"}:
            finish = body.get("finish_reason")
            return [[_assistant(body)]], finish if isinstance(finish, str) else None
        case {"status": str(status)} if status in ("cancelled", "incomplete"):
            return [], status
        case _:
            return [], None


def _assistant(message: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": message.get("content"), **message}


def _messages(messages: Any) -> list[dict[str, Any]]:
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise RefusedError("not_a_record", "messages is no list of objects")
    return messages


def _are_messages(value: Any) -> bool:
    """Whether a list holds messages or items of a conversation."""
    if not isinstance(value, list):
        return False
    return all(isinstance(entry, dict) and ("role" in entry or "type" in entry) for entry in value[:1])


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


def _first_error(record: Mapping[str, Any], answer: Any) -> str | None:
    found = [answer.get("error")] if isinstance(answer, dict) else []
    found += [record.get(key) for key in _ERRORS]
    error = next((each for each in found if each), None)
    return error if error is None or isinstance(error, str) else canonical.encode(error).decode()


def _status(record: Mapping[str, Any], response: Any, answer: Any) -> int | None:
    places = [place for place in (record, response, answer) if isinstance(place, dict)]
    codes = [place[key] for place in places for key in _STATUS if type(place.get(key)) is int]
    codes += [code for place in places if isinstance(place.get("error"), dict) for code in [place["error"].get("code")]]
    return next((code for code in codes if type(code) is int and 100 <= code < 600), None)


def _session(places: tuple[Mapping[str, Any], ...]) -> str | None:
    for place in places:
        for key in _SESSIONS:
            found = place.get(key)
            if isinstance(found, str | int) and not isinstance(found, bool) and found != "":
                return str(found)
        match place.get("conversation"):
            case str(found) | {"id": str(found)}:
                return found
    return None


def _usage(answer: Any, record: Mapping[str, Any]) -> Mapping[str, Any]:
    places = (answer, record) if isinstance(answer, dict) else (record,)
    return next((place["usage"] for place in places if isinstance(place.get("usage"), dict)), {})


def _cost(usage: Mapping[str, Any], record: Mapping[str, Any]) -> float | int | None:
    found = [usage.get("cost"), record.get("response_cost"), record.get("cost")]
    return next((cost for cost in found if type(cost) in (int, float)), None)


def _number(usage: Mapping[str, Any], *names: str) -> int | None:
    return next((usage[name] for name in names if type(usage.get(name)) is int), None)


def _reasoned(usage: Mapping[str, Any], answers: list[list[dict[str, Any]]]) -> bool:
    details = usage.get("completion_tokens_details") or usage.get("output_tokens_details")
    tokens = details.get("reasoning_tokens") if isinstance(details, dict) else None
    shown = any(message.get("reasoning_content") or message.get("reasoning") for each in answers for message in each)
    return type(tokens) is int and tokens > 0 and not shown


def _text(place: Any, key: str) -> str | None:
    found = place.get(key) if isinstance(place, dict) else None
    return found if isinstance(found, str) and found else None

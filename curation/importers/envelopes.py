"""Where the request and the response lie in a line of a log of calls, and what is said of them around.

Proxies and gateways differ in little but the names of two members and of what is wrapped around a body, so that both
are tables: a new one is a row.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from curation.clocks import iso_time, logged_time
from schemas import canonical

PAIRS = (
    ("request", "response"),
    ("request_body", "response_body"),
    ("requestBody", "responseBody"),
    ("raw_request", "raw_response"),
    ("proxy_server_request", "response"),
    ("req", "res"),
    ("body", "response"),
    ("input", "output"),
)
_WRAPPINGS = (  # the first that holds something is what was sent
    "body",
    "body_raw",
    "bodyRaw",
    "bodyText",
    "inputBodyJson",
    "outputBodyJson",
    "postData",
    "content",
    "text",
    "json",
    "streamingChunks",
    "sse_events",
    "ws_events",
    "chunks",
    "events",
)
_BODIES = frozenset(("messages", "input", "choices", "output", "role", "type"))  # no wrapping has these
_PARAMETERS = ("model_parameters", "modelParameters", "optional_params")
_ABOUT = frozenset(
    ("metadata", "properties", "meta", "requester_metadata", "request_properties", "headers", "request_headers")
)
_SESSIONS = (  # the first that a place has
    "session_id",
    "sessionId",
    "conversation_id",
    "conversationId",
    "thread_id",
    "threadId",
    "session",
    "litellm_session_id",
    "Helicone-Session-Id",
    "helicone-session-id",
    "langfuse_session_id",
    "x-session-id",
    "X-Session-Id",
    "x-claude-code-session-id",
    "X-Claude-Code-Session-Id",
)
_NAMING = frozenset((*_SESSIONS, "conversation", "user_id"))
_SESSION_OF_USER = re.compile(r"_session_([0-9A-Za-z-]{8,64})\Z")
_TIMES = ("startTime", "request_created_at", "startedDateTime", "logged_at")
_CLOCKED = frozenset(("timestamp", "created_at", "created", "time", "start_time", *_TIMES))
_ERRORS = ("error", "error_str", "exception", "errorMessage")
_STATUSES = ("status_code", "statusCode", "http_status", "response_status", "errorCode", "status")
_SENT = frozenset((*_STATUSES, "headers"))
_KINDS = {  # of errors that Anthropic's API names without their status
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}

ABSENT = object()


class Pair(NamedTuple):
    """The body of a request, and that of its response, ABSENT where the line holds none; ``around`` are the line and
    what is wrapped around both, ``about`` these and what they hold of metadata, the nearest to the line first.
    """

    request: dict[str, Any]
    response: Any
    around: tuple[Mapping[str, Any], ...]

    @property
    def about(self) -> Iterator[Mapping[str, Any]]:
        """Where more may be said of the call."""
        for place in self.around:
            yield place
            for inner in _metadata(place):
                yield inner
                yield from _metadata(inner)


def open_pair(record: Mapping[str, Any]) -> Pair | None:
    """The request and the response of a line; None where it holds no request to a chat model."""
    for asked, answered in _places(record):
        request = unwrap(record.get(asked)) if asked else dict(record)
        if isinstance(request, list):
            request = {"messages": request} if are_messages(request) else None
        if not isinstance(request, dict) or not ("messages" in request or "input" in request):
            continue
        told = [record[key] for key in _PARAMETERS if isinstance(record.get(key), dict)]
        for parameters in told if not asked or asked == "input" else ():
            request = {**parameters, **request}
        response = record.get(answered, record.get("error", ABSENT)) if answered else record
        around = (record, record.get(asked), request, response) if asked else (record, response)
        places = tuple(place for place in around if isinstance(place, dict))
        return Pair(request, ABSENT if response is ABSENT else unwrap(response), places)
    return None


def are_messages(value: Any) -> bool:
    """Whether a list holds messages or items of a conversation."""
    if not isinstance(value, list):
        return False
    return all(isinstance(entry, dict) and ("role" in entry or "type" in entry) for entry in value[:1])


def unwrap(value: Any) -> Any:
    """What was sent, out of what is wrapped around it and of JSON text, however often.

    Each text inside a text doubles the marks around all that it holds, so that a line has room for few.
    """
    while True:
        if isinstance(value, str) and value[:1] in ("{", "["):
            try:
                value, _ = canonical.parse(value.encode())
            except canonical.UnreadableError:
                return value
        elif isinstance(value, dict) and value.keys().isdisjoint(_BODIES):
            told = (value.get(key) for key in _WRAPPINGS)
            inner = next((each for each in told if each and isinstance(each, dict | str | list)), None)
            if inner is None:
                return value
            value = inner
        else:
            return value


def session_of(about: Iterable[Mapping[str, Any]]) -> str | None:
    """The session or conversation that a call is said to be a part of, by the object nearest to the line."""
    for place in about:
        if _NAMING.isdisjoint(place):
            continue
        for key in _SESSIONS:
            found = place.get(key)
            if isinstance(found, str | int) and not isinstance(found, bool) and found != "":
                return str(found)
        match place.get("conversation"):
            case str(found) | {"id": str(found)} if found:
                return found
        if isinstance(user := place.get("user_id"), str) and (found := _session_in(user)):
            return found
    return None


def time_of(pair: Pair) -> str | None:
    """When a call was made, as ISO text."""
    for place in pair.around:
        if not _CLOCKED.isdisjoint(place):
            told = logged_time(place) or next((time for key in _TIMES if (time := iso_time(place.get(key)))), None)
            if told is not None:
                return told
    return logged_time(pair.response) if isinstance(pair.response, dict) else None


def is_sent(pair: Pair) -> bool:
    """Whether a response stands in the log as it was sent over HTTP, so that text alone is no answer of a model."""
    return any(not _SENT.isdisjoint(place) for place in pair.around[1:]) or (status_of(pair) or 0) >= 400


def error_of(record: Mapping[str, Any], answer: Any) -> str | None:
    """What a line says went wrong, in its own words."""
    found = [answer.get("error")] if isinstance(answer, dict) else []
    found += [record.get(key) for key in _ERRORS]
    found += [record.get("statusMessage")] if record.get("level") == "ERROR" else []
    error = next((each for each in found if each), None)
    return error if error is None or isinstance(error, str) else canonical.encode(error).decode()


def status_of(pair: Pair) -> int | None:
    """The status of HTTP that a call came to, as far as the line says it or names the kind of its error."""
    answer = pair.response if isinstance(pair.response, dict) else {}
    places = [*pair.around, answer]
    codes = [place.get(key) for place in places for key in _STATUSES]
    for place in places:
        if isinstance(error := place.get("error"), dict):
            codes += [error.get("code"), error.get("status_code"), _KINDS.get(str(error.get("type")))]
        if isinstance(error := place.get("error_information"), dict):
            codes.append(error.get("error_code"))
    numbers = [int(code) if isinstance(code, str) and code.isdecimal() and len(code) == 3 else code for code in codes]
    return next((code for code in numbers if type(code) is int and 100 <= code < 600), None)


def _places(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The names under which a request and its response may stand; no name for a request that is the line itself."""
    if record.get("object") == "response" and "input" in record:
        yield "", ""
    yield from (pair for pair in PAIRS if pair[0] in record)
    if "messages" in record and _holds_answer(record):
        yield "", "" if record.get("object") == "chat.completion" else "response"


def _holds_answer(record: Mapping[str, Any]) -> bool:
    """Whether a line with messages holds an answer to them: it is one itself, or one stands beside them."""
    if record.get("object") == "chat.completion" and "choices" in record:
        return True
    answer = unwrap(record.get("response"))
    known = {"choices", "output", "error", "content", "role"}
    return "call_type" in record or (isinstance(answer, dict) and not known.isdisjoint(answer))


def _metadata(place: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    if _ABOUT.isdisjoint(place):
        return ()
    return [inner for key in sorted(_ABOUT & place.keys()) if isinstance(inner := place[key], dict)]


def _session_in(user: str) -> str | None:
    """The session that Claude Code names in the id of its user."""
    if found := _SESSION_OF_USER.search(user):
        return found[1]
    told = unwrap(user)
    return found if isinstance(told, dict) and isinstance(found := told.get("session_id"), str) else None

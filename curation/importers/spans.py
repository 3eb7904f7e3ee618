"""Spans as exporters write them: OTLP JSON, the SDKs' own JSON, or nothing but a span's attributes."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from curation.clocks import iso_time

_DIGITS = 20  # of an integer of 64 bits
_MOST_DIGITS = 8  # from which on a key is no place in a list
MAX_LEVELS = 40  # of what dotted keys say
_CONTAINERS = ("resourceSpans", "scopeSpans", "instrumentationLibrarySpans", "spans", "data", "batches")
_RECORDS = ("resourceLogs", "scopeLogs", "logRecords")
_MARKS = ("gen_ai.", "ai.", "openinference.", "llm.")


class Span(NamedTuple):
    """A span: ``attributes`` with dotted keys, ``events`` as (name, attributes), ``error`` where the log marks one.

    ``start`` orders spans; ``time`` is it as ISO text.
    """

    trace: str | None
    id: str | None
    name: str
    attributes: Mapping[str, Any]
    events: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    error: str | None = None
    start: float = 0.0
    time: str | None = None


def read_spans(value: Any) -> Iterator[Span]:
    """The spans of a file's value, wherever they are in it. Raises nothing."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending += reversed(item)
        elif isinstance(item, dict):
            if _is_span(item):
                yield _span(item)
            elif _is_event(item):
                yield _event(item)
            elif _is_bare(item):
                yield Span(_text(item, "trace_id"), _text(item, "span_id"), "", item)
            else:
                inner = [item[key] for key in (*_CONTAINERS, *_RECORDS) if isinstance(item.get(key), list)]
                inner = inner or [each for each in item.values() if isinstance(each, list)]
                pending += reversed(inner)


def nest(attributes: Mapping[str, Any], prefix: str) -> Any:
    """What the dotted keys under a prefix say, as objects, and as lists where all keys of an object are numbers."""
    if prefix in attributes:
        return _listed(attributes[prefix])
    start = f"{prefix}."
    if tree := _tree((key[len(start) :], value) for key, value in attributes.items() if key.startswith(start)):
        return _listed(tree)
    nested: Any = attributes
    for name in prefix.split("."):
        nested = nested.get(name) if isinstance(nested, Mapping) else None
    return _listed(nested) if nested else None


def numbered(attributes: Mapping[str, Any], prefix: str) -> dict[str, tuple[list[str], list[Any]]] | None:
    """The dotted keys under a prefix and a number, and their values, by number; None where it holds anything else."""
    start, found = f"{prefix}.", dict[str, tuple[list[str], list[Any]]]()
    for key, value in attributes.items():
        if key.startswith(start):
            number, _, name = key[len(start) :].partition(".")
            if (one := found.get(number)) is None:
                one = found[number] = ([], [])
            one[0].append(name)
            one[1].append(value)
    whole = prefix in attributes or any("" in names for names, _ in found.values())
    return found if found and not whole and all(map(_is_number, found)) else None


def nest_names(names: Iterable[str], values: Iterable[Any]) -> Any:
    """What dotted names say that stand for these values, as ``nest`` has it."""
    return _listed(_tree(zip(names, values, strict=True)))


def listed(value: Any) -> list[Any]:
    """A list, or an empty one in place of anything else."""
    return value if isinstance(value, list) else []


def _tree(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Dotted names as objects in objects. What is said below a plain value stands beside it under the dotted rest of
    its name, but where that value is one of a list: there both are in an object, the value under no name.
    """
    tree: dict[str, Any] = {}
    for name, value in pairs:
        *path, last = name.split(".", MAX_LEVELS)
        place: Any = tree
        for depth, step in enumerate(path):
            inner = place.get(step)
            if inner is None:
                inner = place[step] = {}
            elif not isinstance(inner, dict):
                if not _is_number(step):
                    place[".".join([*path[depth:], last])] = value
                    break
                inner = place[step] = {"": inner}
            place = inner
        else:
            _put(place, last, value)
    return tree


def _put(place: dict[str, Any], name: str, value: Any) -> None:
    """Put a value beside what was said below it before."""
    below = place.get(name)
    if value is None and below is not None:
        return
    if not isinstance(below, dict):
        place[name] = value
    elif isinstance(value, dict):
        place[name] = {**value, **below}
    elif _is_number(name):
        below[""] = value
    else:
        place[name] = value
        place.update((f"{name}.{key}", inner) for key, inner in below.items())


def _listed(tree: Any, depth: int = 0) -> Any:
    """Objects whose keys are all numbers as lists, in the order of the numbers; dotted keys inside as objects.

    Below the deepest level that is looked into, everything stays as it is.
    """
    if depth > MAX_LEVELS:
        return tree
    if isinstance(tree, list):
        return [_listed(each, depth + 1) for each in tree]
    if not isinstance(tree, dict):
        return tree
    if any("." in key for key in tree):
        tree = _tree(tree.items())
    if tree and all(map(_is_number, tree)):
        return [_listed(tree[key], depth + 1) for key in sorted(tree, key=int)]
    return {key: _listed(value, depth + 1) for key, value in tree.items()}


def _is_number(key: str) -> bool:
    return key.isdecimal() and len(key) < _MOST_DIGITS


def _is_span(item: Mapping[str, Any]) -> bool:
    if not isinstance(item.get("attributes"), dict | list):
        return False
    return bool({"spanContext", "spanId", "span_id", "context", "spanID"} & item.keys()) and "name" in item


def _is_event(item: Mapping[str, Any]) -> bool:
    """Whether an object is a log record of OTLP that is an event of generative AI."""
    return "body" in item and "attributes" in item and _event_name(item).startswith("gen_ai.")


def _is_bare(item: Mapping[str, Any]) -> bool:
    """Whether an object is a span's attributes and nothing else."""
    lists = (value[0] for value in item.values() if isinstance(value, list) and value)
    if any(isinstance(first, dict) and "attributes" in first for first in lists):
        return False
    return any(key.startswith(_MARKS) for key in item)


def _span(item: Mapping[str, Any]) -> Span:
    context: dict[str, Any] = next(
        (item[key] for key in ("spanContext", "context") if isinstance(item.get(key), dict)), {}
    )
    places = (item, context)
    start = next((item[key] for key in ("startTimeUnixNano", "startTime", "start_time") if key in item), None)
    seconds = _seconds(start)
    events = tuple(
        (str(event.get("name") or ""), _attributes(event.get("attributes")))
        for event in listed(item.get("events"))
        if isinstance(event, dict)
    )
    return Span(
        _first(places, "traceId", "trace_id", "traceID"),
        _first(places, "spanId", "span_id", "spanID"),
        str(item.get("name") or ""),
        _attributes(item["attributes"]),
        events,
        _error(item.get("status"), item.get("status_code"), item.get("status_message"), events),
        seconds,
        iso_time(start) or iso_time(seconds),
    )


def _event(item: Mapping[str, Any]) -> Span:
    """An event that stands in a file of its own, as a span of the same name that holds nothing but it."""
    attributes = _attributes(item.get("attributes"))
    body = item.get("body")
    said = _value(body) if isinstance(body, dict) else body
    told = {**attributes, **said} if isinstance(said, dict) else {**attributes, "content": said}
    seconds = _seconds(item.get("timeUnixNano") or item.get("observedTimeUnixNano"))
    places = (item,)
    return Span(
        _first(places, "traceId", "trace_id"),
        _first(places, "spanId", "span_id"),
        "",
        attributes,
        ((_event_name(item), told),),
        None,
        seconds,
        iso_time(seconds),
    )


def _event_name(item: Mapping[str, Any]) -> str:
    name = item.get("eventName") or item.get("event_name") or _attributes(item.get("attributes")).get("event.name")
    return name if isinstance(name, str) else ""


def _attributes(attributes: Any) -> dict[str, Any]:
    """Attributes by key; OTLP writes them as a list of keys with typed values."""
    if isinstance(attributes, dict):
        return attributes
    if not isinstance(attributes, list):
        return {}
    return {
        entry["key"]: _value(entry.get("value"))
        for entry in attributes
        if isinstance(entry, dict) and isinstance(entry.get("key"), str)
    }


def _value(value: Any) -> Any:
    match value:
        case {"intValue": str(digits)} if digits.removeprefix("-").isdecimal() and len(digits) <= _DIGITS:
            return int(digits)
        case {"intValue": number}:
            return number
        case {"arrayValue": {"values": [*values]}}:
            return [_value(each) for each in values]
        case {"kvlistValue": {"values": [*values]}}:
            return _attributes(values)
        case {"stringValue": inner} | {"boolValue": inner} | {"doubleValue": inner}:
            return inner
    return value


def _error(status: Any, code: Any, words: Any, events: tuple[tuple[str, Mapping[str, Any]], ...]) -> str | None:
    if isinstance(status, dict):
        code = status.get("code", status.get("status_code"))
        words = status.get("message", status.get("description"))
    if code not in (2, "ERROR", "STATUS_CODE_ERROR", "StatusCode.ERROR"):
        return None
    if isinstance(words, str) and words:
        return words
    raised = next((told.get("exception.message") for name, told in events if name == "exception"), None)
    return raised if isinstance(raised, str) else "error"


def _seconds(value: Any) -> float:
    """A time for putting spans in order: ISO text, [seconds, nanoseconds], or seconds to nanoseconds since 1970."""
    if isinstance(value, list) and len(value) == 2 and all(_is_moment(each) for each in value):
        return float(value[0]) + float(value[1]) / 1e9
    if isinstance(value, str) and value.isdecimal() and len(value) <= _DIGITS:
        value = int(value)
    if isinstance(value, str):
        if (text := iso_time(value)) is None:
            return 0.0
        time = datetime.fromisoformat(text)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    if _is_moment(value):
        number = float(value)
        return number / (1e9 if value > 1e17 else 1e6 if value > 1e14 else 1e3 if value > 1e11 else 1)
    return 0.0


def _is_moment(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) < 10**_DIGITS


def _first(places: tuple[Mapping[str, Any], ...], *keys: str) -> str | None:
    return next((found for place in places for key in keys if (found := _text(place, key)) is not None), None)


def _text(place: Mapping[str, Any], key: str) -> str | None:
    found = place.get(key)
    return found if isinstance(found, str) and found else None

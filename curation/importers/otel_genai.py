"""OpenTelemetry spans of generative AI, in JSON: lists or lines of spans, OTLP, events, or a span's attributes alone.

Every chat span repeats the history before it, so what it holds is read once, by prefix. Content is opt-in: a span
without it gives an attempt without it, or none. Spans of embeddings and agents are no calls of a chat model. The
conventions know neither task nor outcome nor a run's stop; a span with an error is a call that the provider failed.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from curation.importers.face import MAX_RECORD_BYTES, Importer, Item, Slice
from curation.importers.gathered import keep_bytes
from curation.importers.heads import head_value, head_values
from curation.importers.model_calls import ModelCall, seen
from curation.importers.span_calls import (
    is_openinference,
    is_outer,
    kind_of,
    names_of,
    read_call,
    read_tool,
    session_of,
)
from curation.importers.span_histories import Histories
from curation.importers.spans import Span, read_spans
from curation.importers.traces import Trace, gather_traces, group, read_traces

STOP_RULE = "otel-genai.stop@1"
FILLS = {
    "task": "side file",
    "tools": "recorded",
    "budget": "side file",
    "start_state": "side file",
    "attempt": "recorded",
    "outcome": "side file",
    "stop": f"rule {STOP_RULE}",
    "model": "recorded",
    "usage": "recorded",
    "reasoning": "recorded",
    "branch": "recorded",
}

_MARKS = ("gen_ai.", "ai.")
_FIRST = 50  # spans of a head that are looked at


def sniff(head: bytes) -> str:
    """Whether the first spans of a file follow the conventions of generative AI, and none those of OpenInference."""
    spans = spans_of_head(head)
    if any(map(is_openinference, spans)):
        return ""
    known = any(key.startswith(_MARKS) for span in spans for key in _keys(span))
    return "spans with gen_ai attributes" if known else ""


def spans_of_head(head: bytes) -> list[Span]:
    """The first spans that the head of a file holds."""
    found: list[Span] = []
    for span in chain(read_spans(head_value(head)), *(map(read_spans, head_values(head)))):
        found.append(span)
        if len(found) == _FIRST:
            break
    return found


def slices(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """A slice for all that belongs together by trace, conversation or response."""
    return gather_traces(path, limit, lambda value: [name for span in read_spans(value) for name in names_of(span)])


def traces_of(values: Sequence[Any]) -> Iterable[Trace]:
    """The traces that values of a file hold."""
    spans = [span for value in values for span in read_spans(value)]
    for members in group(spans, names_of):
        merged, repeated = _merged(members)
        yield _trace(sorted(merged, key=lambda span: span.start), repeated)


def _trace(spans: Sequence[Span], repeated: int) -> Trace:
    kinds = [kind_of(span) for span in spans]
    chats = [span for span, kind in zip(spans, kinds, strict=True) if kind == "chat"]
    if any(not is_outer(span) for span in chats):
        chats = [span for span in chats if not is_outer(span)]
    histories = Histories()
    calls = _responses(read_call(span, histories) for span in chats)
    told = [call for call in calls if call.messages or call.answers]
    sessions = [name for span in spans if (name := session_of(span))]
    names = sessions or [span.trace for span in chats or spans if span.trace]
    agents = [span.attributes.get("gen_ai.agent.name") for span in spans]
    return Trace(
        names[0] if names else None,
        told,
        [read_tool(span) for span, kind in zip(spans, kinds, strict=True) if kind == "tool"],
        kinds,
        next((agent for agent in agents if isinstance(agent, str)), None),
        repeated=repeated,
        silent=len(calls) - len(told),
    )


def _responses(calls: Iterable[ModelCall]) -> list[ModelCall]:
    """Calls, each response once, as several tracers may tell of one; what says something else is another."""
    found: list[ModelCall] = []
    known: dict[str, int] = {}
    for call in calls:
        at = None if call.id is None else known.get(call.id)
        if at is None or not _is_same(found[at], call):
            if call.id is not None:
                known[call.id] = len(found)
            found.append(call)
        elif len(call.messages) + len(call.answers) > len(found[at].messages) + len(found[at].answers):
            found[at] = call
    return found


def _is_same(one: ModelCall, other: ModelCall) -> bool:
    """Whether two calls of one response id can be one: what both hold of the question and the answer is the same."""
    said = ((call.messages[-1:], *call.answers) for call in (one, other))
    return all(
        list(map(seen, left)) == list(map(seen, right)) for left, right in zip(*said, strict=False) if left and right
    )


def _merged(spans: Iterable[Span]) -> tuple[list[Span], int]:
    """Spans, and how many stand there again. Events that stand apart from them are put into the span that they name;
    of spans with one id those that say something else are spans of their own.
    """
    merged: list[list[Span]] = []
    known: dict[Any, list[Span]] = {}
    told: dict[Any, Span] = {}
    repeated = 0
    for number, span in enumerate(sorted(spans, key=lambda span: span.start)):
        key = number if span.id is None else (span.trace, span.id)
        members = known.get(key)
        event = bool(span.events) and not span.name
        if members is not None and span in (members[-1], told.get(key)):
            repeated += 1
            continue
        if members is None or (not event and _contradicts(span, told.get(key, span))):
            members = known[key] = []
            merged.append(members)
            told.pop(key, None)
        members.append(span)
        if not event:
            told.setdefault(key, span)
    return [_one(members) for members in merged], repeated


def _contradicts(span: Span, other: Span) -> bool:
    """Whether two spans say different things under one name."""
    return any(other.attributes.get(key, value) != value for key, value in span.attributes.items())


def _one(members: Sequence[Span]) -> Span:
    """Spans of one id as one; what several of them say is as the first has it."""
    if len(members) == 1:
        return members[0]
    attributes: dict[str, Any] = {}
    for span in reversed(members):
        attributes |= span.attributes
    events = chain.from_iterable(span.events for span in members)
    named = next((span for span in members if span.name), members[-1])
    error = next((span.error for span in members if span.error is not None), None)
    return named._replace(attributes=attributes, events=tuple(events), error=error)


def _keys(span: Span) -> Iterator[str]:
    yield from span.attributes
    yield from (name for name, _ in span.events)


def _build(_: Any, data: bytes, piece: Slice, __: int) -> Iterator[Item]:
    return read_traces(piece, data, STOP_RULE, traces_of)


IMPORTER = Importer("otel-genai", "1", sniff, slices, _build, keep_bytes)

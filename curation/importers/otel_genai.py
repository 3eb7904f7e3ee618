"""OpenTelemetry spans of generative AI, in JSON: lists or lines of spans, OTLP, events, or a span's attributes alone.

Every chat span repeats the history before it, so what it holds is read once, by prefix. Content is opt-in: a span
without it gives an attempt without it, or none. Spans of embeddings and agents are no calls of a chat model. The
conventions know neither task nor outcome nor a run's stop; a span with an error is a call that the provider failed.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from curation.importers.face import MAX_RECORD_BYTES, Importer, Item, Slice
from curation.importers.gathered import keep_bytes
from curation.importers.heads import head_value, head_values
from curation.importers.model_calls import ModelCall
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
        yield _trace(sorted(_merged(members), key=lambda span: span.start))


def _trace(spans: Sequence[Span]) -> Trace:
    kinds = [kind_of(span) for span in spans]
    chats = [span for span, kind in zip(spans, kinds, strict=True) if kind == "chat"]
    if any(not is_outer(span) for span in chats):
        chats = [span for span in chats if not is_outer(span)]
    histories = Histories()
    calls: dict[str, ModelCall] = {}
    for number, span in enumerate(chats):
        call = read_call(span, histories)
        calls.setdefault(call.id or f"\0{number}", call)
    told = [call for call in calls.values() if call.messages or call.answers]
    sessions = [name for span in spans if (name := session_of(span))]
    names = sessions or [span.trace for span in chats or spans if span.trace]
    agents = [span.attributes.get("gen_ai.agent.name") for span in spans]
    return Trace(
        names[0] if names else None,
        told,
        [read_tool(span) for span, kind in zip(spans, kinds, strict=True) if kind == "tool"],
        kinds,
        next((agent for agent in agents if isinstance(agent, str)), None),
    )


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Spans, with the events that stand apart from them put into the span that they name; a span is told of once."""
    found: dict[Any, list[Span]] = {}
    for number, span in enumerate(sorted(spans, key=lambda span: span.start)):
        key = number if span.id is None else (span.trace, span.id)
        found.setdefault(key, []).append(span)
    return [_one(members) for members in found.values()]


def _one(members: Sequence[Span]) -> Span:
    first = members[0]
    others = [span for before, span in pairwise(members) if span not in (first, before)]
    if not others:
        return first
    attributes: dict[str, Any] = {}
    for span in reversed((first, *others)):
        attributes |= span.attributes
    events = chain.from_iterable(span.events for span in (first, *others))
    named = next((span for span in (first, *others) if span.name), others[-1])
    return named._replace(attributes=attributes, events=tuple(events))


def _keys(span: Span) -> Iterator[str]:
    yield from span.attributes
    yield from (name for name, _ in span.events)


def _build(_: Any, data: bytes, piece: Slice, __: int) -> Iterator[Item]:
    return read_traces(piece, data, STOP_RULE, traces_of)


IMPORTER = Importer("otel-genai", "1", sniff, slices, _build, keep_bytes)

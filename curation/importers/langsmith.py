"""LangSmith: run trees (an upload ``{"post": [...]}``, a list or lines of runs) and event streams of agent sessions.

Runs of type ``llm`` are calls of a model with the history they were given, runs of type ``tool`` say what a tool gave.
The example of a dataset that a run was made for is its task. Feedback is stored apart, so there is no outcome.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from curation.importers.face import MAX_RECORD_BYTES, Importer, Item, Slice
from curation.importers.gathered import Place, gather, keep_bytes, read_pieces
from curation.importers.heads import head_value, head_values
from curation.importers.langsmith_runs import is_run, merge, names_of, read_call, read_runs, read_tool, thread_of
from curation.importers.session_events import is_event, read_sessions
from curation.importers.span_histories import Histories
from curation.importers.span_messages import written
from curation.importers.traces import Trace, gather_traces, group, read_traces
from schemas.trajectory import Task

STOP_RULE = "langsmith.stop@1"
FILLS = {
    "task": "recorded",
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


def sniff(head: bytes) -> str:
    """Whether the head holds runs with their place in a trace, or lines that name a call of an agent session."""
    values = [head_value(head), *head_values(head)]
    if any(map(is_event, values)):
        return "lines of a call's name and an event of an agent session"
    for value in values:
        first = next(read_runs(value), None)
        if first is not None and is_run(first):
            return "runs with run_type, trace_id and dotted_order"
    return ""


def slices(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """A slice for all runs of a trace, or of a conversation; an event stream is one."""
    if not _is_stream(path):
        yield from gather_traces(
            path, limit, lambda value: [name for run in read_runs(value) for name in names_of(run)]
        )
        return
    pieces = [(piece, Place(piece.place, piece.offset, len(piece.data or b""))) for piece in read_pieces(path, limit)]
    yield from (piece for piece, _ in pieces if piece.data is None)
    if places := [place for piece, place in pieces if piece.data is not None]:
        yield gather(path, places, None, limit)


def _is_stream(path: Path) -> bool:
    with path.open("rb") as file:
        return any(map(is_event, head_values(file.read(1 << 16))))


def _traces(values: Sequence[Any]) -> Iterable[Trace]:
    if any(map(is_event, values)):
        return read_sessions(values)
    runs = [run for value in values for run in read_runs(value)]
    return [_trace(*merge(members)) for members in group(runs, names_of)]


def _trace(runs: Sequence[dict[str, Any]], repeated: int) -> Trace:
    root = runs[0]
    example = next(
        (run["reference_example_id"] for run in runs if isinstance(run.get("reference_example_id"), str)), None
    )
    trace = root.get("trace_id")
    histories = Histories()
    calls = [read_call(run, histories) for run in runs if run.get("run_type") == "llm"]
    error = root.get("error") if root.get("run_type") != "llm" else None
    return Trace(
        thread_of(root) or (trace if isinstance(trace, str) else None),
        [call for call in calls if call.messages or call.answers],
        [read_tool(run) for run in runs if run.get("run_type") == "tool"],
        [str(run.get("run_type")) for run in runs],
        error=written(error) if error else None,
        task=Task() if example is None else Task("langsmith", example),
        repeated=repeated,
        stray=sum(run.get("run_type") is None for run in runs),
    )


def _build(_: Any, data: bytes, piece: Slice, __: int) -> Iterator[Item]:
    return read_traces(piece, data, STOP_RULE, _traces)


IMPORTER = Importer("langsmith", "1", sniff, slices, _build, keep_bytes)

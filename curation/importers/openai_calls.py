"""Call-level logs: one line for each request to a model with its response, as proxies and gateways write them.

The history grows from line to line, so lines that continue one another are one run: within a session where the lines
name one, else by what they hold. A history that was edited or compacted is a branch of the run that it leaves.
Responses-style lines hold only what is new and are joined by ``previous_response_id``, or by their conversation. The
format knows no task and no outcome; a request that failed is a retry, or the way in which a run stopped, no failure.
"""

from array import array
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from curation.importers.call_tree import Branch, CallTree, Run
from curation.importers.exchange import is_exchange, read_exchange
from curation.importers.face import MAX_RECORD_BYTES, Importer, Item, Parsed, RefusedError, Rejected, Slice
from curation.importers.gathered import Place, gather, keep_bytes, read_pieces, take_apart
from curation.importers.heads import head_value, head_values
from curation.importers.model_calls import ModelCall, Who, path_of, read_run
from curation.importers.session_lines import branched_from
from schemas import canonical

STOP_RULE = "openai-calls.stop@1"
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


class _Index(NamedTuple):
    """What the first reading keeps of a file's calls: where each lies, and a few digests of what is its own."""

    tree: CallTree
    places: "array[int]"
    lengths: "array[int]"
    offsets: "array[int]"
    names: list[str | None]
    linked: bytearray

    def place(self, position: int) -> Place:
        return Place(self.places[position], self.offsets[position], self.lengths[position])


def sniff(head: bytes) -> str:
    """Whether one of the first records is a request to a model with its response."""
    first = head_value(head)
    values = first[:1] if isinstance(first, list) else [first, *head_values(head)]
    return "requests with messages or input, and their responses" if any(map(is_exchange, values)) else ""


def slices(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """A slice for every run: its lines, in order. Lines that are no calls come first, each by itself."""
    index = _Index(CallTree(), array("Q"), array("Q"), array("Q"), [], bytearray())
    known = set[bytes]()
    last: dict[str, str] = {}
    for piece in read_pieces(path, limit):
        if piece.data is None:
            yield piece
            continue
        try:
            call = read_exchange(canonical.parse(piece.data)[0])
        except (canonical.UnreadableError, RefusedError):
            place = Place(piece.place, piece.offset, len(piece.data))
            yield Slice(piece.data, piece.place, piece.offset, canonical.encode([[place], None]))
            continue
        digest = blake2b(piece.data, digest_size=16).digest()
        if digest in known or index.tree.knows(call.id):
            continue
        if call.id is None:
            known.add(digest)
        _add(index, call, piece, last)
    yield from _runs(path, index, limit)


def _add(index: _Index, call: ModelCall, piece: Slice, last: dict[str, str]) -> None:
    """Put a call into the index. In a conversation that the provider keeps, it goes on from the one before it."""
    session, name = call.session, call.id
    if call.conversation and session is not None and name is not None:
        call = call._replace(previous=call.previous or last.get(session))
        if call.answers:
            last[session] = name
    index.tree.add(path_of(call))
    index.places.append(piece.place)
    index.offsets.append(piece.offset)
    index.lengths.append(len(piece.data or b""))
    index.names.append(call.session or call.id)
    index.linked.append(call.previous is not None)


def _runs(path: Path, index: _Index, limit: int) -> Iterator[Slice]:
    runs = index.tree.runs()
    names = [_name(index, runs[run.root]) for run in runs]
    for run, name in zip(runs, names, strict=True):
        branch = None
        if run.branch is not None:
            parent = runs[run.branch.run]
            label = name or f"line {index.places[_first(runs[run.root])]}"
            branch = [f"{label}#{parent.number}" if parent.number else label, run.branch.message]
        last = (*run.before, *run.calls)[-1]
        chain = (*run.before, *run.calls)
        wanted = chain if index.linked[last] else run.calls or chain[-1:]
        wanted = tuple(sorted({*wanted, *run.failed}))
        piece = _piece(path, index, run, wanted, name, branch, limit)
        if piece.data is None and not index.linked[last]:
            piece = _piece(path, index, run, (last,), name, branch, limit)
        yield piece


def _piece(
    path: Path,
    index: _Index,
    run: Run,
    wanted: Sequence[int],
    name: str | None,
    branch: list[Any] | None,
    limit: int,
) -> Slice:
    linked = [bool(index.linked[position]) for position in wanted]
    about = {"run": run, "positions": wanted, "linked": linked, "name": name, "branch": branch}
    return gather(path, [index.place(position) for position in wanted], about, limit)


def _name(index: _Index, root: Run) -> str | None:
    return index.names[_first(root)]


def _first(run: Run) -> int:
    return (*run.before, *run.calls)[0]


def _build(_: Any, data: bytes, piece: Slice, __: int) -> Parsed | list[Item]:
    pieces, about = take_apart(piece)
    if about is None:
        (only,) = pieces
        if only.code:
            raise RefusedError(only.code, only.detail)
        read_exchange(only.value)
        raise RefusedError("not_a_record", "no call of a model")
    run = _run(about["run"])
    calls: dict[int, ModelCall] = {}
    last = (*run.before, *run.calls)[-1]
    for position, linked, line in zip(about["positions"], about["linked"], pieces, strict=True):
        call = read_exchange(line.value)
        if linked and call.previous is None:
            call = call._replace(previous=call.session)
        repeated = not linked and position != last and not any(about["linked"])
        calls[position] = call._replace(messages=[]) if repeated else call
    branch = about["branch"]
    who = Who(
        run=about["name"],
        nth=run.number or None,
        rule=STOP_RULE,
        facts=() if branch is None else (branched_from(*branch),),
        part=None if run.calls else f"answer {run.choice}",
    )
    try:
        return read_run(run, calls, who, data, piece, sum(line.replaced for line in pieces))
    except RefusedError as error:
        return [Rejected(error.code, error.detail, data, piece.place, piece.offset, who.part)]


def _run(fields: list[Any]) -> Run:
    made = Run(*fields)
    branch = None if made.branch is None else Branch(*made.branch)
    tuples = (tuple(made.calls), tuple(made.before), tuple(made.failed), tuple(made.answered))
    return Run(*tuples, made.choice, made.root, made.number, branch, made.gap)


IMPORTER = Importer("openai-calls", "1", sniff, slices, _build, keep_bytes)

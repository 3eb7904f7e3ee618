"""Call-level logs: one line for each request to a model with its response, as proxies and gateways write them.

The history grows from line to line, so lines that continue one another are one run: within a session where the lines
name one, else by what they hold. A history that was edited or compacted is a branch of the run that it leaves.
Responses-style lines hold only what is new and are joined by ``previous_response_id``, or by their conversation. Bodies
of OpenAI's and Anthropic's APIs are read, whole or as the streams that they were recorded as. The
format knows no task and no outcome; a request that failed is a retry, or the way in which a run stopped, no failure.
"""

from array import array
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from curation.importers.branches import branched_from
from curation.importers.call_runs import Branch, Run
from curation.importers.call_tree import CallPath, CallTree
from curation.importers.digest_trie import Names
from curation.importers.exchange import is_exchange, read_exchange, read_ties
from curation.importers.face import MAX_RECORD_BYTES, Importer, Item, Parsed, RefusedError, Rejected, Slice
from curation.importers.gathered import Place, gather, keep_bytes, read_pieces, take_apart
from curation.importers.heads import head_value, head_values
from curation.importers.model_calls import ModelCall, Who, path_of, read_run
from schemas import canonical

STOP_RULE = "model-calls.stop@1"
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
    said: "array[int]"
    linked: bytearray
    repeated: set[int]

    def place(self, position: int) -> Place:
        return Place(self.places[position], self.offsets[position], self.lengths[position])


def sniff(head: bytes) -> str:
    """Whether one of the first records is a request to a model with its response."""
    first = head_value(head)
    values = first[:1] if isinstance(first, list) else head_values(head)
    found = is_exchange(first, cut=b"\n" not in head) or any(map(is_exchange, values))
    return "requests with messages or input, and their responses" if found else ""


def slices(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """A slice for every run: its lines, in order. Lines that are no calls come first, each by itself."""
    index = _Index(CallTree(), array("I"), array("Q"), array("Q"), array("I"), bytearray(), set())
    nameless = Names()  # lines without an id of their call, by what they hold
    last: dict[str, str] = {}
    for piece in read_pieces(path, limit):
        if piece.data is None:
            yield piece
            continue
        try:
            call = read_ties(canonical.parse(piece.data)[0])
        except (canonical.UnreadableError, RefusedError):
            place = Place(piece.place, piece.offset, len(piece.data))
            yield Slice(piece.data, piece.place, piece.offset, canonical.encode([[place], None]))
            continue
        ties = path_of(call)
        said = blake2b(piece.data if call.id is None else canonical.encode(ties), digest_size=16).digest()
        known = nameless.find(said.hex()) if call.id is None else index.tree.find(call.id)
        if known is not None and index.said[known] == _number(said):
            index.repeated.add(known)
            continue
        if call.id is None:
            nameless.add(said.hex(), len(index.places))
        index.said.append(_number(said))
        _add(index, call, ties, piece, last)
    yield from _slices(path, index, limit)


def _number(digest: bytes) -> int:
    """Enough of a digest to tell the calls of one id apart."""
    return int.from_bytes(digest[:4])


def _add(index: _Index, call: ModelCall, ties: CallPath, piece: Slice, last: dict[str, str]) -> None:
    """Put a call into the index. In a conversation that the provider keeps, it goes on from the one before it."""
    session, name = call.session, call.id
    if call.conversation and session is not None and name is not None:
        ties = ties._replace(previous=call.previous or last.get(session))
        if call.answers:
            last[session] = name
    index.tree.add(ties)
    index.places.append(piece.place)
    index.offsets.append(piece.offset)
    index.lengths.append(len(piece.data or b""))
    index.linked.append(ties.previous is not None)


def _slices(path: Path, index: _Index, limit: int) -> Iterator[Slice]:
    runs = index.tree.runs()
    names: dict[int, str | None] = {}
    for run in runs:
        branch: list[Any] | None = None
        first = runs.first(run.root)
        if run.branch is not None:
            if run.root not in names:
                names[run.root] = _name(path, index, first)
            root = names[run.root]
            label = root or f"line {index.places[first]}"
            branch = [root, label, run.branch.message, runs.number(run.branch.run) or None]
        last = (run.calls or run.before)[-1]
        linked = bool(index.linked[last])
        wanted = (*run.before, *run.calls) if linked else run.calls or (last,)
        lean = run if linked else run._replace(before=run.before[-1:])
        piece = _piece(path, index, lean, tuple(sorted({*wanted, *run.failed})), branch, limit)
        if piece.data is None and not linked:
            branch = branch or [_name(path, index, first), None]
            piece = _piece(path, index, lean, (last,), branch, limit)
        yield piece


def _piece(path: Path, index: _Index, run: Run, wanted: Sequence[int], branch: list[Any] | None, limit: int) -> Slice:
    """The lines of a run; ``branch``: the name of its root where they do not hold it, and where the run leaves."""
    linked = [bool(index.linked[position]) for position in wanted]
    repeated = not index.repeated.isdisjoint(wanted)
    about = {"run": run, "positions": wanted, "linked": linked, "branch": branch, "repeated": repeated}
    return gather(path, [index.place(position) for position in wanted], about, limit)


def _name(path: Path, index: _Index, position: int) -> str | None:
    """The name of a run by the call that it begins with, read again where its line lies."""
    place = index.place(position)
    with path.open("rb") as file:
        file.seek(place.offset)
        return _named(read_ties(canonical.parse(file.read(place.length))[0]))


def _named(call: ModelCall) -> str | None:
    return call.session or call.id


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
    linked = any(about["linked"])
    for position, goes_on, line in zip(about["positions"], about["linked"], pieces, strict=True):
        call = read_exchange(line.value, history=linked or position == last)
        calls[position] = call._replace(previous=call.session) if goes_on and call.previous is None else call
    root, *branch = about["branch"] or [_named(calls[(*run.before, *run.calls)[0]]), None]
    who = Who(
        run=root,
        nth=run.number or None,
        rule=STOP_RULE,
        facts=() if branch[0] is None else (branched_from(*branch),),
        part=None if run.calls else f"answer {run.choice}",
    )
    try:
        made = read_run(run, calls, who, data, piece, sum(line.replaced for line in pieces))
        return made._replace(warnings=(*made.warnings, "repeated_lines")) if about["repeated"] else made
    except RefusedError as error:
        return [Rejected(error.code, error.detail, data, piece.place, piece.offset, who.part)]


def _run(fields: list[Any]) -> Run:
    made = Run(*fields)
    branch = None if made.branch is None else Branch(*made.branch)
    tuples = (tuple(made.calls), tuple(made.before), tuple(made.failed), tuple(made.answered))
    return Run(*tuples, made.choice, made.root, made.number, branch, made.gap)


IMPORTER = Importer("model-calls", "1", sniff, slices, _build, keep_bytes)

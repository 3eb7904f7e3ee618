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
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from curation.importers.branches import branched_from
from curation.importers.call_runs import Branch, Run
from curation.importers.call_tree import CallPath, CallTree
from curation.importers.digest_trie import SIZE, Names
from curation.importers.exchange import is_exchange, read_exchange, read_ties
from curation.importers.face import MAX_RECORD_BYTES, Importer, Item, RefusedError, Rejected, Slice
from curation.importers.gathered import Place, gather, keep_bytes, read_pieces, take_apart
from curation.importers.heads import head_value, head_values
from curation.importers.model_calls import ModelCall, Who, path_of, read_run
from schemas import canonical

_READ_AGAIN = 32  # times that a log is read, at most, for what its runs share
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
    """What the first reading keeps of a file's calls: where each lies, and a few digests of what is its own.

    ``again`` are the lines that repeat a call, by its position; ``shared`` are the ids of more than one call.
    """

    tree: CallTree
    places: "array[int]"
    lengths: "array[int]"
    offsets: "array[int]"
    said: "array[int]"
    linked: bytearray
    again: dict[int, "array[int]"]
    shared: set[str]

    def place(self, position: int) -> Place:
        return Place(self.places[position], self.offsets[position], self.lengths[position])


class _Ids:
    """The ids that calls have, and what each stands for: an id of several calls stands for the last one in a session.

    A call whose id another has is known in the file by a name of its own.
    """

    def __init__(self, path: Path, index: _Index) -> None:
        self._path, self._index = path, index
        self._latest: dict[tuple[str, str], str] = {}
        self._last: dict[str, str] = {}

    def tie(self, call: ModelCall) -> tuple[str | None, str | None]:
        """The name of a call in this file, and that of the call it goes on from: in a conversation that the provider
        keeps, the one before it.
        """
        session, name, previous = call.session, call.id, call.previous
        if previous in self._index.shared:
            previous = self._latest.get((session or "", previous), f"{previous}\0")  # what no call is called
        kept = call.conversation and session is not None and name is not None
        if kept and previous is None:
            previous = self._last.get(session or "")
        if name is not None:
            name = self._name(name, session)
        if kept and call.answers:
            self._last[session or ""] = name or ""
        return name, previous

    def _name(self, name: str, session: str | None) -> str:
        position = len(self._index.places)
        first = self._index.tree.find(name)
        if first is None:
            return name
        if name not in self._index.shared:
            self._index.shared.add(name)
            if (other := _read(self._path, self._index, first).session) is not None:
                self._latest[other, name] = name
        own = f"{name}\0{position}"
        if session is not None:
            self._latest[session, name] = own
        return own


class _Wanted(NamedTuple):
    """A run with the calls that it is read from; ``branch``: the name of its root where they do not hold it, and where
    the run leaves. ``first`` is the call that its root begins with. ``linked``: its last call holds only what is new.
    """

    run: Run
    positions: tuple[int, ...]
    branch: list[Any] | None
    first: int
    linked: bool
    left_out: bool


def sniff(head: bytes) -> str:
    """Whether one of the first records is a request to a model with its response."""
    first = head_value(head)
    values = first[:1] if isinstance(first, list) else head_values(head)
    found = is_exchange(first, cut=b"\n" not in head) or any(map(is_exchange, values))
    return "requests with messages or input, and their responses" if found else ""


def slices(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """A slice for every run: its lines, in order. Lines that are no calls come first, each by itself."""
    index = _Index(CallTree(), array("I"), array("Q"), array("Q"), array("I"), bytearray(), {}, set())
    ids, told = _Ids(path, index), Names()  # beside the first of each id, what was said
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
        said = blake2b(piece.data, digest_size=SIZE).digest() if call.id is None else _said(ties)
        first = None if call.id is None else index.tree.find(call.id)
        known = told.find(said.hex())
        if first is not None and index.said[first] == _number(said):
            known = first if _said(path_of(_read(path, index, first))) == said else known
        if known is not None:
            index.again.setdefault(known, array("Q")).extend((piece.place, piece.offset, len(piece.data)))
            continue
        if call.id is None or first is not None:
            told.add(said.hex(), len(index.places))
        index.said.append(_number(said))
        name, previous = ids.tie(call)
        if (name, previous) != (ties.id, ties.previous):
            ties = ties._replace(id=name, previous=previous)
        index.tree.add(ties)
        index.places.append(piece.place)
        index.offsets.append(piece.offset)
        index.lengths.append(len(piece.data))
        index.linked.append(previous is not None)
    del ids, told
    yield from _slices(path, index, limit)


def _number(digest: bytes) -> int:
    """Enough of a digest to tell most calls of one id apart."""
    return int.from_bytes(digest[:4])


def _said(ties: CallPath) -> bytes:
    """The digest of what makes a call the same as another of its id: who asked, what, and what came."""
    answers = [b"".join(answer).hex() for answer in ties.answers]
    named = [ties.id, ties.session, ties.previous, ties.head and ties.head.hex(), answers, ties.cut]
    return blake2b(canonical.encode(named) + b"".join(ties.request), digest_size=SIZE).digest()


def _slices(path: Path, index: _Index, limit: int) -> Iterator[Slice]:
    """The answers to one call that nothing goes on from are read from one slice, every other run from its own."""
    for (several, _), group in groupby(_wanted(path, index), lambda each: (not each.run.calls, each.positions)):
        found = list(group)
        for lot in (found,) if several else ([each] for each in found):
            piece = _piece(path, index, lot, lot[0].positions, limit)
            if piece.data is None and not lot[0].linked:
                last = (*lot[0].run.before, *lot[0].run.calls)[-1]
                named = [each._replace(branch=each.branch or [_name(path, index, each.first), None]) for each in lot]
                piece = _piece(path, index, named, (last,), limit)
            yield piece


def _wanted(path: Path, index: _Index) -> Iterator[_Wanted]:
    runs = index.tree.runs()
    names: dict[int, str | None] = {}
    lines, size = _READ_AGAIN * len(index.places), _READ_AGAIN * sum(index.lengths)
    for number in range(len(runs)):
        run, left_out = runs.alone(number), runs.goes_on(number)
        linked = bool(index.linked[(*run.before, *run.calls)[-1]])
        if left_out and runs.height(number) <= lines:
            whole = runs[number]
            again = sum(index.lengths[position] for position in whole.before)
            if again <= size:
                lines, size, run, left_out = lines - len(whole.before), size - again, whole, False
        first, branch = runs.first(run.root), None
        if (run.branch is not None or index.shared) and run.root not in names:
            names[run.root] = _name(path, index, first)
        if run.branch is not None:
            root = names[run.root]
            label = root or f"line {index.places[first]}"
            branch = [root, label, runs.leaf(number), runs.number(run.branch.run) or None]
        elif index.shared:
            branch = [names[run.root], None]
        wanted = (*run.before, *run.calls) if linked else run.calls or run.before[-1:]
        yield _Wanted(run, tuple(sorted({*wanted, *run.failed})), branch, first, linked, left_out)


def _piece(path: Path, index: _Index, lot: Sequence[_Wanted], positions: Sequence[int], limit: int) -> Slice:
    """The lines of runs that have the same; of lines that repeat them, as many as hold as much as these."""
    again = array("Q")
    for position in {*lot[0].run.calls, *lot[0].run.failed} & index.again.keys():
        again += index.again[position]
    size = sum(index.lengths[position] for position in positions)
    repeats = sorted(zip(again[::3], again[1::3], strict=True))[: max(sum(again[2::3]) // size, 1)]
    about = {
        "runs": [(each.run, each.branch, each.left_out) for each in lot],
        "positions": positions,
        "linked": [bool(index.linked[position]) for position in positions],
        "again": repeats,
    }
    return gather(path, [index.place(position) for position in positions], about, limit)


def _read(path: Path, index: _Index, position: int) -> ModelCall:
    """A call, read again where its line lies."""
    place = index.place(position)
    with path.open("rb") as file:
        file.seek(place.offset)
        return read_ties(canonical.parse(file.read(place.length))[0])


def _name(path: Path, index: _Index, position: int) -> str | None:
    """The name of a run by the call that it begins with; an id that others have too is none."""
    call = _read(path, index, position)
    return _named(call) if call.session is not None or call.id not in index.shared else None


def _named(call: ModelCall) -> str | None:
    return call.session or call.id


def _build(_: Any, data: bytes, piece: Slice, __: int) -> Iterator[Item]:
    pieces, about = take_apart(piece)
    if about is None:
        (only,) = pieces
        if only.code:
            raise RefusedError(only.code, only.detail)
        read_exchange(only.value)
        raise RefusedError("not_a_record", "no call of a model")
    calls: dict[int, ModelCall] = {}
    for position, goes_on, line in zip(about["positions"], about["linked"], pieces, strict=True):
        call = read_exchange(line.value)
        calls[position] = call._replace(previous=call.session) if goes_on and call.previous is None else call
    replaced = sum(line.replaced for line in pieces)
    for fields, named, left_out in about["runs"]:
        run = _run(fields)
        root, *branch = named or [_named(calls[(*run.before, *run.calls)[0]]), None]
        who = Who(
            run=root,
            nth=None if root is None else run.number or None,
            rule=STOP_RULE,
            facts=() if branch[0] is None else (branched_from(*branch),),
            part=None if run.calls else f"answer {run.choice}",
        )
        try:
            made = read_run(run, calls, who, data, piece, replaced)
        except RefusedError as error:
            yield Rejected(error.code, error.detail, data, piece.place, piece.offset, who.part)
            continue
        warnings = list(made.warnings)
        if about["again"]:
            warnings.append("repeated_lines")
        if left_out:
            warnings.append("history_left_out")
        made = made._replace(warnings=tuple(warnings))
        yield made
        for place, offset in about["again"]:
            yield made._replace(place=place, offset=offset, part=f"again {place}")


def _run(fields: list[Any]) -> Run:
    made = Run(*fields)
    branch = None if made.branch is None else Branch(*made.branch)
    tuples = (tuple(made.calls), tuple(made.before), tuple(made.failed), tuple(made.answered))
    return Run(*tuples, made.choice, made.root, made.number, branch, made.gap)


IMPORTER = Importer("model-calls", "1", sniff, slices, _build, keep_bytes)

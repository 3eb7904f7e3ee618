"""Traces: spans of one trace, or of one conversation, that lie apart in a file, as the attempts that they make.

What ties spans together are names that they share: of the trace, of the conversation, of a response that two of them
tell of. A history that every span repeats is read once, by prefix; runs that share none are attempts of their own.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from curation.importers.branches import branched_from
from curation.importers.call_runs import Run
from curation.importers.call_tree import CallPath, CallTree
from curation.importers.face import Item, Parsed, RefusedError, Slice
from curation.importers.gathered import Piece, Place, gather, read_pieces, take_apart
from curation.importers.model_calls import ModelCall, Who, calls_in, path_of, read_run, seen, spoken_in
from schemas import canonical
from schemas.trajectory import Task

Thing = TypeVar("Thing")


class ToolRun(NamedTuple):
    """What a span says of one execution of a tool: ``output`` is what it gave, ``error`` the mark of a failure."""

    id: str | None
    name: str | None
    output: str | None
    error: str | None = None


class Trace(NamedTuple):
    """What spans that belong together hold: calls of a model and executions of tools, each in their order.

    ``name`` is that of the conversation, else of the trace. ``kinds`` says what spans there are. ``error`` is that of
    the whole, which its last call does not know of. ``repeated`` counts what stands there again, ``stray``
    what tells of nothing that is in the log, ``silent`` the calls of which neither question nor answer is kept.
    """

    name: str | None
    calls: Sequence[ModelCall]
    tools: Sequence[ToolRun]
    kinds: Sequence[str] = ()
    agent: str | None = None
    error: str | None = None
    task: Task = Task()
    repeated: int = 0
    stray: int = 0
    silent: int = 0


class Ties:
    """Which things belong together, by the names that they share."""

    def __init__(self) -> None:
        self._leaders: dict[str, str] = {}

    def tie(self, names: Iterable[str]) -> str:
        """The things of all these names belong together; one name for them, until they are tied to others."""
        leaders = dict.fromkeys(self.leader(name) for name in names)
        first, *others = leaders
        for other in others:
            self._leaders[other] = first
        return first

    def leader(self, name: str) -> str:
        """The one name of all that a name is tied to."""
        found = name
        while (above := self._leaders.setdefault(found, found)) != found:
            found = above
        while self._leaders[name] != found:
            self._leaders[name], name = found, self._leaders[name]
        return found


def group(things: Iterable[Thing], names_of: Callable[[Thing], Sequence[str]]) -> list[list[Thing]]:
    """Things in groups that share names, in the order of the first of each; one without a name stands alone."""
    ties, named = Ties(), []
    for number, thing in enumerate(things):
        names = names_of(thing) or (f"\0{number}",)
        ties.tie(names)
        named.append((names[0], thing))
    groups: dict[str, list[Thing]] = defaultdict(list)
    for name, thing in named:
        groups[ties.leader(name)].append(thing)
    return list(groups.values())


def gather_traces(path: Path, limit: int, names_of: Callable[[Any], Sequence[str]]) -> Iterator[Slice]:
    """A slice for the pieces of a file that share names; pieces that cannot be read stand alone."""
    ties = Ties()
    named: list[tuple[str, Place]] = []
    for piece in read_pieces(path, limit):
        if piece.data is None:
            yield piece
            continue
        place = Place(piece.place, piece.offset, len(piece.data))
        try:
            names = names_of(canonical.parse(piece.data)[0])
        except canonical.UnreadableError:
            names = ()
        names = names or (f"\0{piece.place}",)
        ties.tie(names)
        named.append((names[0], place))
    groups: dict[str, list[Place]] = defaultdict(list)
    for name, place in named:
        groups[ties.leader(name)].append(place)
    for places in groups.values():
        yield gather(path, places, None, limit)


def read_traces(
    piece: Slice, data: bytes, rule: str, traces_of: Callable[[Sequence[Any]], Iterable[Trace]]
) -> Iterator[Item]:
    """The attempts of a gathered slice; ``traces_of`` reads its values. Raises nothing that is not an item."""
    pieces, _ = take_apart(piece)
    yield from (each.reject() for each in pieces if each.code)
    whole = [each for each in pieces if not each.code]
    replaced = sum(each.replaced for each in whole)
    told = Counter[str]()
    for number, trace in enumerate(traces_of([each.value for each in whole])):
        part = trace.name or f"trace {number}"
        told[part] += 1
        part = part if told[part] == 1 else f"{part} ({told[part]})"
        if not trace.calls:
            kinds = ", ".join(sorted(set(trace.kinds))) or "none"
            yield (
                _first(whole, piece)
                .reject("not_a_record", f"{part}: no call of a chat model (spans: {kinds})")
                ._replace(part=part)
            )
            continue
        if trace.stray:
            words = f"{part}: {trace.stray} updates of runs that are not in the log, or that share their place in it"
            yield _first(whole, piece).reject("not_a_record", words)._replace(part=f"{part} updates")
        for run, made in enumerate(_runs(trace, part, rule, data, piece, replaced)):
            match made:
                case Parsed():
                    warnings = list(made.warnings)
                    if trace.repeated:
                        warnings.append("repeated_lines")
                    if trace.silent:
                        warnings.append("content_not_captured")
                    yield made._replace(warnings=tuple(warnings))
                case RefusedError():
                    yield (
                        _first(whole, piece).reject(made.code, f"{part}: {made.detail}")._replace(part=f"{part}#{run}")
                    )


def _first(pieces: Sequence[Piece], piece: Slice) -> Piece:
    """What a refusal of a whole trace is about: the bytes that hold it, from the first on."""
    return pieces[0]._replace(data=piece.data or b"")


def _runs(
    trace: Trace, label: str, rule: str, data: bytes, piece: Slice, replaced: int
) -> Iterator[Parsed | RefusedError]:
    tree, digests = CallTree(), dict[int, bytes]()
    for call in trace.calls:
        tree.add(_path(call, digests))
    runs, tools = tree.runs(), _Tools(trace.tools)
    for number, run in enumerate(runs):
        branch = None
        if run.branch is not None:
            branch = branched_from(trace.name or label, run.branch.message, run.branch.run or None)
        who = Who(
            run=trace.name,
            nth=number or None,
            rule=rule,
            agent=trace.agent,
            facts=() if branch is None else (branch,),
            task=trace.task,
            error=trace.error,
            part=f"{label}#{number}" if number else label,
        )
        calls = tools.tell(run, {each: trace.calls[each] for each in (*run.before, *run.calls, *run.failed)})
        try:
            yield read_run(run, calls, who, data, piece, replaced)
        except RefusedError as error:
            yield error


def _path(call: ModelCall, digests: dict[int, bytes]) -> CallPath:
    """The call in digests; ``digests`` are those of messages that calls share, by their identity."""
    request = []
    for message in call.messages:
        if (digest := digests.get(id(message))) is None:
            digest = digests[id(message)] = seen(message)
        request.append(digest)
    return path_of(call._replace(messages=[]))._replace(request=request, spoken=spoken_in(call.messages))


class _Tools:
    """The executions of a trace's tools by the ids of their calls, which alone tell them from one another."""

    def __init__(self, tools: Sequence[ToolRun]) -> None:
        self._named: dict[str, list[ToolRun]] = defaultdict(list)
        for tool in tools:
            if tool.id is not None:
                self._named[tool.id].append(tool)

    def tell(self, run: Run, calls: dict[int, ModelCall]) -> dict[int, ModelCall]:
        """What they add to a run: marks of errors, and the answers of its last calls, which no later call repeats."""
        position = (*run.before, *run.calls)[-1]
        last = calls[position]
        answers = list(last.answers)
        if answers:
            answers[run.choice] = [*answers[run.choice], *self._answers(answers[run.choice])]
        return calls | {position: last._replace(messages=list(self._marked(last.messages)), answers=answers)}

    def _marked(self, messages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Messages, the answers of tools that failed with the error; of one id, each with that of its execution."""
        told = Counter[str]()
        for message in messages:
            identity = str(message.get("tool_call_id"))
            tools = self._named.get(identity) if message.get("role") == "tool" else None
            error = None
            if tools:
                error = tools[min(told[identity], len(tools) - 1)].error
                told[identity] += 1
            yield message if error is None else {**message, "error": error}

    def _answers(self, answer: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
        told = Counter[str]()
        named = (call.get("id") for message in answer for call in calls_in(message))
        for identity in (name for name in named if isinstance(name, str)):
            tools = self._named.get(identity, ())
            if told[identity] < len(tools):
                tool = tools[told[identity]]
                told[identity] += 1
                yield {"role": "tool", "tool_call_id": identity, "content": tool.output, "error": tool.error}

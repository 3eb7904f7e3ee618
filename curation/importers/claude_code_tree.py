"""The tree of a Claude Code session: which lines are one step of a run, and which step comes before it.

Every line names the line before it. One turn of the model stands on several lines with one message id, and the answers
to its calls hang on the lines of their calls; both are one step here, so that the tree forks only where the session
does. Lines that are no messages (progress, notices) are passed through. Where no line of a session names another, its
messages are in the order of the lines; a line whose named predecessor is missing begins a fragment, and is never put
behind another by its place in the file.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import msgspec

from curation.importers.session_lines import SessionLine

_MESSAGES = frozenset(("user", "assistant", "attachment"))
_BOUNDARIES = frozenset(("compact_boundary", "microcompact_boundary"))
_SYNTHETIC = "<synthetic>"  # the model's name on messages that the harness wrote
_SHOWN = 10


class _Message(msgspec.Struct):
    content: str | list[dict[str, Any] | str]
    id: str | None = None


class _Shape(msgspec.Struct, rename="camel"):
    """What every line of a message has to be."""

    message: _Message
    uuid: str | None = None
    parent_uuid: str | None = None
    session_id: str | None = None
    request_id: str | None = None


class Refused(NamedTuple):
    """A line that is no part of the tree, with a quarantine code, or as it could not be read."""

    line: SessionLine
    code: str = ""
    detail: str = ""


@dataclass(slots=True, eq=False)
class Node:
    """A line of the session with a name, and the name of the line before it.

    ``lost``: its predecessor is not in the file. ``flat``: it names none, and stands behind the line before; then
    ``gap`` says that a line between them could not be read.
    """

    line: SessionLine
    uuid: str
    parent: str | None
    lost: bool = False
    flat: bool = False
    gap: bool = False

    @property
    def value(self) -> dict[str, Any]:
        """The line as parsed."""
        return self.line.value  # type: ignore[no-any-return]  # only objects become nodes

    @property
    def sidechain(self) -> bool:
        """Whether it belongs to a subagent."""
        return self.value.get("isSidechain") is True

    @property
    def group(self) -> tuple[Any, ...]:
        """Whose line it is: the session's own, or that of one of its subagents."""
        return (name_of(self.value, "sessionId"), self.sidechain, name_of(self.value, "agentId"))


@dataclass(slots=True, eq=False)
class Step:
    """One turn of the model, the answers to one turn, or another message; ``asked`` is the turn that it answers.

    ``ids`` are the calls that it makes or answers. ``gap``: history before it is not in the log. ``failed`` is the
    text of a provider's error that stands behind it.
    """

    kind: Literal["turn", "answers", "other"]
    before: "Step | None"
    gap: bool
    asked: "Step | None" = None
    nodes: list[Node] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    children: "list[Step]" = field(default_factory=list)
    batches: "list[Step]" = field(default_factory=list)
    answered: dict[str, int] = field(default_factory=dict)
    failed: str | None = None

    @property
    def leaf(self) -> Node:
        """Its last line in the file."""
        return max(self.nodes, key=lambda node: node.line.number)

    @property
    def size(self) -> int:
        """The bytes of its lines."""
        return sum(len(node.line.data) for node in self.nodes)

    def path(self) -> "list[Step]":
        """The steps from the root to this one."""
        found, step = list[Step](), self
        while True:
            found.append(step)
            if step.before is None:
                return found[::-1]
            step = step.before


class Tree(NamedTuple):
    """The steps of a session, each after the one before it, and the lines that are no part of it.

    ``repeated`` counts lines that say again what a line of the same name said.
    """

    steps: list[Step]
    refused: list[Refused]
    repeated: int

    def heirs(self) -> dict[Step, Step]:
        """For every step the leaf of the run that it belongs to first: down the oldest child of each."""
        found: dict[Step, Step] = {}
        for step in reversed(self.steps):
            found[step] = found[step.children[0]] if step.children else step
        return found

    def roots(self) -> dict[Step, Step]:
        """For every step the first of its path."""
        found: dict[Step, Step] = {}
        for step in self.steps:
            found[step] = step if step.before is None else found[step.before]
        return found

    def weights(self) -> dict[Step, int]:
        """For every step the bytes of all lines on its path."""
        found: dict[Step, int] = {}
        for step in self.steps:
            found[step] = step.size + (0 if step.before is None else found[step.before])
        return found


def name_of(value: dict[str, Any], key: str) -> str | None:
    """A name that a line gives, where it is text."""
    found = value.get(key)
    return found if isinstance(found, str) and found else None


def blocks_of(node: Node, kind: str) -> Iterator[dict[str, Any]]:
    """The blocks of a kind in the content of a message."""
    content = node.value["message"]["content"] if "message" in node.value else ()
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and block.get("type") == kind:
            yield block


def read_tree(lines: Iterable[SessionLine]) -> Tree:
    """The tree of a session's lines."""
    nodes: dict[str, Node] = {}
    refused: list[Refused] = []
    repeated = 0
    for line in lines:
        node = _read_node(line)
        if isinstance(node, Refused):
            refused.append(node)
        elif node is not None:
            first = nodes.setdefault(node.uuid, node)
            if first is node:
                continue
            if _says_the_same(first, node):
                repeated += 1
            else:
                words = f"line {first.line.number} has the same uuid {node.uuid!r} and says something else"
                refused.append(Refused(line, "repeated_id", words))
    _put_in_order(nodes.values(), sorted(one.line.number for one in refused))
    refused += _open_cycles(nodes)
    return Tree(_make_steps(nodes), sorted(refused, key=lambda one: one.line.number), repeated)


def _read_node(line: SessionLine) -> Node | Refused | None:
    """A line as a node, or why it is none; None for what is said beside the conversation."""
    value = line.value
    if line.code:
        return Refused(line)
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return Refused(line, "not_a_record", "a line of a session is an object with a type")
    uuid = name_of(value, "uuid")
    if value["type"] in ("user", "assistant"):
        try:
            msgspec.convert(value, _Shape)
        except msgspec.ValidationError as error:
            return Refused(line, "not_a_record", str(error))
    elif uuid is None:
        return None
    parent = name_of(value, "parentUuid") or name_of(value, "logicalParentUuid")
    return Node(line, uuid or f"line {line.number}", parent)


def _says_the_same(one: Node, other: Node) -> bool:
    keys = ("type", "parentUuid", "message", "attachment")
    return [one.value.get(key) for key in keys] == [other.value.get(key) for key in keys]


def _put_in_order(nodes: Iterable[Node], refused: Sequence[int]) -> None:
    """Where no line of a group names another, though the model speaks in it, the order of the lines is all there is."""
    groups: dict[tuple[Any, ...], list[Node]] = defaultdict(list)
    for node in nodes:
        if node.value["type"] in _MESSAGES:
            groups[node.group].append(node)
    for group in groups.values():
        spoken = any(node.value["type"] == "assistant" for node in group)
        if len(group) < 2 or not spoken or any(node.parent is not None for node in group):
            continue
        for before, node in pairwise(group):
            passed = bisect_left(refused, node.line.number) - bisect_left(refused, before.line.number)
            node.parent, node.flat, node.gap = before.uuid, True, passed > 0


def _open_cycles(nodes: dict[str, Node]) -> Iterator[Refused]:
    """Take out, of every cycle, the line that closes it: the last one in the file."""
    visited: dict[str, int] = {}
    for walk, start in enumerate(tuple(nodes)):
        path, at = list[str](), start
        while at in nodes and at not in visited:
            visited[at] = walk
            path.append(at)
            at = nodes[at].parent or ""
        if visited.get(at) != walk:
            continue
        cycle = path[path.index(at) :]
        last = max(cycle, key=lambda uuid: nodes[uuid].line.number)
        turn = cycle.index(last)
        names = [*cycle[turn:], *cycle[:turn], last]
        shown = " -> ".join(names if len(names) <= _SHOWN else (*names[: _SHOWN - 1], "...", last))
        yield Refused(nodes.pop(last).line, "parent_cycle", f"its predecessors lead back to it: {shown}")


def _parents_first(nodes: dict[str, Node]) -> Iterator[Node]:
    """The nodes in the order of the file, none before its parent."""
    done: set[str] = set()
    for node in nodes.values():
        waiting, at = list[Node](), node
        while at.uuid not in done:
            waiting.append(at)
            done.add(at.uuid)
            parent = nodes.get(at.parent or "")
            if parent is None:
                break
            at = parent
        yield from reversed(waiting)


def _make_steps(nodes: dict[str, Node]) -> list[Step]:
    steps: list[Step] = []
    hangs: dict[str, tuple[Step | None, bool]] = {}  # a node to the step behind which what follows it stands
    turns: dict[tuple[int, str], Step] = {}
    for node in _parents_first(nodes):
        kind, before, gap = node.value["type"], None, node.gap
        if node.parent is not None:
            node.lost = node.parent not in nodes
            if node.lost:
                gap = True
            elif nodes[node.parent].sidechain == node.sidechain:
                before, hidden = hangs[node.parent]
                gap = gap or hidden
        if node.value.get("isCompactSummary") is True or (
            kind == "system" and name_of(node.value, "subtype") in _BOUNDARIES
        ):
            gap = True
        if before is not None and node.value.get("isApiErrorMessage") is True:
            before.failed = _text(node)
        if kind not in _MESSAGES or _by_harness(node):
            hangs[node.uuid] = (before, gap)
            continue
        known = _joined(node, before, turns)
        step = known or _opened(node, before, turns, gap=gap or (kind == "assistant" and before is None))
        if known is None:
            steps.append(step)
            if before is not None:
                before.children.append(step)
        step.nodes.append(node)
        hangs[node.uuid] = (step, False)
    return steps


def _by_harness(node: Node) -> bool:
    """Whether a line that looks like the model's is the harness's own, mostly because the provider failed."""
    if node.value["type"] != "assistant":
        return False
    return node.value.get("isApiErrorMessage") is True or node.value["message"].get("model") == _SYNTHETIC


def _text(node: Node) -> str:
    content = node.value["message"]["content"]
    texts = [content] if isinstance(content, str) else [block.get("text") for block in blocks_of(node, "text")]
    return "\n".join(text for text in texts if isinstance(text, str))


def _turn_key(node: Node) -> str | None:
    return name_of(node.value["message"], "id") or name_of(node.value, "requestId")


def _ids(node: Node, kind: str, key: str) -> list[str]:
    return [found for block in blocks_of(node, kind) if (found := name_of(block, key)) is not None]


def _asked(step: Step | None) -> Step | None:
    """The turn that a step is, or that it answers."""
    return step if step is None or step.kind == "turn" else step.asked


def _joined(node: Node, before: Step | None, turns: dict[tuple[int, str], Step]) -> Step | None:
    """The step that a line is a further part of, told that it is; None where it begins one."""
    turn = _asked(before)
    if node.value["type"] == "assistant":
        key = _turn_key(node)
        if key is None:
            return None
        same = turn if turn is not None and _turn_key(turn.nodes[0]) == key else turns.get((id(before), key))
        if same is not None:
            same.ids.update(_ids(node, "tool_use", "id"))
        return same
    ids = _answers(node, turn)
    if before is None or turn is None or not ids:
        return None
    if before.kind == "answers":
        batch = before if before.ids.isdisjoint(ids) else None
    else:
        number = max(turn.answered.get(one, 0) for one in ids)
        turn.answered.update(dict.fromkeys(ids, number + 1))
        batch = turn.batches[number] if number < len(turn.batches) else None
        batch = batch if batch is not None and batch.ids.isdisjoint(ids) else None
    if batch is not None:
        batch.ids.update(ids)
    return batch


def _opened(node: Node, before: Step | None, turns: dict[tuple[int, str], Step], *, gap: bool) -> Step:
    if node.value["type"] == "assistant":
        step = Step("turn", before, gap, ids=set(_ids(node, "tool_use", "id")))
        if (key := _turn_key(node)) is not None:
            turns[id(before), key] = step
        return step
    turn = _asked(before)
    ids = _answers(node, turn)
    if turn is None or not ids:
        return Step("other", before, gap)
    step = Step("answers", before, gap, turn, ids=set(ids))
    if before is turn:
        turn.batches.append(step)
    return step


def _answers(node: Node, turn: Step | None) -> list[str]:
    """The calls of a turn that a line answers; none where it answers others too."""
    ids = _ids(node, "tool_result", "tool_use_id") if node.value["type"] == "user" else []
    return ids if turn is not None and turn.ids.issuperset(ids) else []

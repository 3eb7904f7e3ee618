"""Claude Code: one session a file, ``{type, uuid, parentUuid, sessionId, message, ...}`` a line.

A session is a tree (curation.importers.claude_code_tree), and every path from a root to a leaf is an attempt, named by
its session, and by its leaf too where there are several. A retry or a rewind says which run it left, and where. What a
subagent did is a run of its own. The log holds neither system prompt nor tools, task, budget or outcome. Where history
was compacted, what stands before stays in the record, and the message after it says that the model saw something else.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import UNSET

from curation.clocks import logged_time
from curation.importers.aside import Aside
from curation.importers.branches import branched_from
from curation.importers.calls import CallShape, FunctionShape, read_call
from curation.importers.claude_code_tree import Node, Step, Tree, blocks_of, name_of, read_tree
from curation.importers.conversation import Conversation, Said, kept
from curation.importers.face import Fact, Importer, Item, Parsed, RefusedError, Rejected, Slice
from curation.importers.heads import head_values
from curation.importers.session_lines import SessionLine, parse_session, read_session
from schemas import canonical
from schemas.objects import make_object
from schemas.statements import Stop
from schemas.trajectory import (
    Attempt,
    Conditions,
    Message,
    MessageError,
    ToolCall,
    Trajectory,
    Usage,
    call_uid,
)

STOP_RULE = "claude_code.stop@1"
MAX_COPIES = 32  # how often the runs of a session may hold its lines, all together, unless these are few
MAX_COPIED_BYTES = 16 * 1024 * 1024

FILLS: Mapping[str, str] = {
    "task": "side file",
    "tools": "side file",
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

_PROMPT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_STOPS: dict[str, Stop] = {
    "end_turn": "completed",
    "stop_sequence": "completed",
    "max_tokens": "output_length",
    "model_context_window_exceeded": "context_length",
}
_INTERRUPTIONS = ("[Request interrupted by user]", "[Request interrupted by user for tool use]")


def sniff(head: bytes) -> str:
    """Whether one of the first lines names its session and its parent, or is the summary of a leaf."""
    return "lines with sessionId and parentUuid" if any(map(_is_line, head_values(head))) else ""


def _is_line(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    return value.keys() >= {"parentUuid", "sessionId"} or (value["type"] == "summary" and "leafUuid" in value)


def _build(lines: list[SessionLine], data: bytes, piece: Slice, replaced: int) -> Iterator[Item]:
    tree = read_tree(lines)
    for refused in tree.refused:
        yield refused.line.reject(piece, refused.code, refused.detail)
    leaves = sorted((step for step in tree.steps if not step.children), key=lambda step: step.leaf.line.number)
    names, heirs, weights = _names(leaves, tree.roots()), tree.heirs(), tree.weights()
    room = max(MAX_COPIED_BYTES, MAX_COPIES * len(data))
    for leaf in leaves:
        room -= weights[leaf]
        try:
            if room < 0:
                words = f"all runs of a session may hold {MAX_COPIED_BYTES} bytes, or its lines {MAX_COPIES} times"
                raise RefusedError("too_large", words)
            path = leaf.path()
            run = _Run(path, replaced)
            facts = (*run.facts(), *_branch(path, run, heirs, names))
        except RefusedError as error:
            line = leaf.leaf.line
            yield Rejected(error.code, error.detail, line.data, line.number, piece.offset + line.offset, _part(leaf))
            continue
        _warn(tree, path, run.aside)
        yield Parsed(
            run.trajectory(names[leaf]),
            data,
            leaf.leaf.line.number,
            piece.offset,
            key=names[leaf],
            objects=tuple(run.aside.objects),
            facts=facts,
            replaced=replaced,
            warnings=run.aside.codes(),
            part=_part(leaf),
        )


def _part(leaf: Step) -> str:
    return leaf.leaf.uuid


def _names(leaves: list[Step], roots: dict[Step, Step]) -> dict[Step, str]:
    """The run of every leaf: its session and perhaps its subagent, and the leaf where these do not say which.

    A fragment is never called by its session alone, which names the run that begins with the session.
    """
    counts = Counter(leaf.leaf.group for leaf in leaves)
    names = {}
    for leaf in leaves:
        session, sidechain, agent = group = leaf.leaf.group
        whole = session is not None and not roots[leaf].nodes[0].lost
        alone = counts[group] == 1 and (agent is not None or not sidechain) and whole
        known = (session, agent if sidechain else None, None if alone else leaf.leaf.uuid)
        names[leaf] = "/".join(name for name in known if name is not None)
    return names


def _branch(path: list[Step], run: "_Run", heirs: dict[Step, Step], names: dict[Step, str]) -> tuple[Fact, ...]:
    """The run that this one left last, and the first message that is not that run's."""
    for at in range(len(path) - 2, -1, -1):
        if path[at].children[0] is not path[at + 1]:
            return (branched_from(names[heirs[path[at]]], run.counts[at]),)
    return ()


def _warn(tree: Tree, path: list[Step], aside: Aside) -> None:
    nodes = [node for step in path for node in step.nodes]
    if any(node.lost for node in nodes):
        aside.warnings.append("dangling_parent")
    if any(node.flat for node in nodes):
        aside.warnings.append("parents_unknown")
    if tree.repeated:
        aside.warnings.append("repeated_lines")


class _Run:
    """The messages of one path; ``counts`` are how many there are after each of its steps."""

    def __init__(self, path: list[Step], replaced: int) -> None:
        self.path = path
        self.aside = Aside(replaced=replaced)
        self.counts: list[int] = []
        self._talk = Conversation(self.aside)
        self._made: dict[str, tuple[str, str]] = {}  # the id of a call to its name and arguments
        self._replayed: set[str] = set()
        self._turns: list[Step] = []
        self._compacted = False
        for step in path:
            if step.gap:
                self._talk.hide()
                self._compacted = bool(self.messages)
            if step.kind == "turn":
                self._add_turn(step)
            else:
                for node in step.nodes:
                    self._add_answers(node, alone=len(step.nodes) == 1)
                for node in step.nodes:
                    self._add_words(node)
            self.counts.append(len(self.messages))

    @property
    def messages(self) -> list[Message]:
        """All messages of the run."""
        return self._talk.messages

    def trajectory(self, name: str) -> Trajectory:
        """The record of the run."""
        turns = [node for step in self._turns for node in step.nodes]
        models = dict.fromkeys(model for node in turns if (model := name_of(node.value["message"], "model")))
        if len(models) > 1:
            self.aside.warnings.append("models_differ")
        first, root = self.path[0].nodes[0].value, self.path[0].nodes[0]
        version = name_of(first, "version")
        extra = {
            "cwd": name_of(first, "cwd"),
            "git_branch": name_of(first, "gitBranch"),
            "models": list(models) if len(models) > 1 else None,
            "spawned_by": root.parent if root.sidechain and not root.lost else None,
        }
        return Trajectory(
            tuple(self.messages),
            attempt=Attempt(name),
            conditions=Conditions(
                model=next(iter(models)) if len(models) == 1 else None,
                agent="claude-code" if version is None else f"claude-code@{version}",
            ),
            stop_text=self.path[-1].failed,
            usage=self._usage(),
            extra=kept({key: value for key, value in extra.items() if value is not None}),
        )

    def facts(self) -> tuple[Fact, ...]:
        """How it stopped, and whether a subagent ran it."""
        sidechain = "yes" if self.path[-1].leaf.sidechain else "no"
        return (
            Fact("stop", self._stop(), "rule", STOP_RULE),
            Fact("strata.sidechain", sidechain),
            *self.aside.clocks(self.messages),
        )

    def _stop(self) -> Stop:
        """The harness's word that the provider failed or the user broke in, or the provider's why the model ended."""
        step = self.path[-1]
        if step.failed is not None:
            return "provider_error"
        last_line = step.nodes[-1]
        if _is_interruption(last_line) or name_of(last_line.value, "interruptedMessageId") is not None:
            return "user_stop"
        said = [name_of(node.value["message"], "stop_reason") for node in step.nodes] if step.kind == "turn" else []
        last = next((reason for reason in reversed(said) if reason), None)
        stop = _STOPS.get(last or "", "unknown")
        return "unknown" if step.ids and stop == "completed" else stop

    def _usage(self) -> Usage | None:
        used = [usage for step in self._turns if (usage := _usage_of(step)) is not None]
        costs = [cost for step in self._turns if (cost := _last(step, "costUSD")) is not None]
        cost = sum(costs) if costs else None
        if not used and cost is None:
            return None
        prompt = [tokens for usage in used for key in _PROMPT_TOKENS if (tokens := _count(usage.get(key))) is not None]
        completion = [tokens for usage in used if (tokens := _count(usage.get("output_tokens"))) is not None]
        return Usage(sum(prompt) if prompt else None, sum(completion) if completion else None, cost)

    def _add_turn(self, step: Step) -> None:
        index, extra = len(self.messages), dict[str, Any]()
        said, made = Said(extra, self.aside), _Calls(index, self.aside)
        for node in step.nodes:
            for block in _content(node):
                match block:
                    case {"type": "tool_use", "name": str()}:
                        made.add(block)
                    case {"type": "thinking", "thinking": str(thought)}:
                        said.think(thought, _rest(block, ("type", "thinking")))
                    case {"type": "redacted_thinking"}:
                        said.hidden = True
                    case _:
                        said.say(block)
            if made.calls and index not in self.aside.times and (time := logged_time(node.value)) is not None:
                self.aside.times[index] = time
        if self._is_replay(made):
            self.aside.times.pop(index, None)
            return
        self._turns.append(step)
        self._made.update(made.written)
        if made.notes:
            extra["tool_calls"] = made.notes
        extra |= _about(step)
        self._talk.say(said, tuple(made.calls), extra)

    def _is_replay(self, made: "_Calls") -> bool:
        """Whether a turn after a compaction only says again what calls were made before it."""
        if not self._compacted or not made.calls or any(call.id not in self._made for call in made.calls):
            return False
        if any(self._made[name] != call for name, call in made.written.items()):
            return False
        self._replayed.update(made.written)
        self.aside.warnings.append("replayed_calls")
        return True

    def _add_answers(self, node: Node, *, alone: bool) -> None:
        blocks = list(blocks_of(node, "tool_result"))
        for block in blocks:
            call_id = block.get("tool_use_id")
            call_id = call_id if isinstance(call_id, str) else None
            if call_id in self._replayed:
                self._replayed.discard(call_id)
                continue
            extra = {"uuid": node.uuid}
            said = Said(extra, self.aside)
            content = block.get("content")
            for piece in content if isinstance(content, list) else [content]:
                said.say(piece)
            if alone and len(blocks) == 1:
                self._keep_result(node, content, extra)
            error = MessageError() if block.get("is_error") is True else None
            self._talk.answer(call_id, said, error, extra)

    def _keep_result(self, node: Node, content: Any, extra: dict[str, Any]) -> None:
        """What the tool gave the harness, by reference: the model was shown the content."""
        result = node.value.get("toolUseResult")
        if result is not None and result != content:
            blob = make_object("blob", canonical.encode(result))
            self.aside.objects.append(blob)
            extra["tool_use_result"] = blob.id

    def _add_words(self, node: Node) -> None:
        """What a line holds beside answers: words of the user, or what the harness put there."""
        extra: dict[str, Any] = {"uuid": node.uuid}
        said = Said(extra, self.aside)
        if node.value["type"] == "attachment":
            said.say({"type": "attachment", "attachment": node.value.get("attachment")})
        else:
            content = _content(node)
            for block in content:
                if not (isinstance(block, dict) and block.get("type") == "tool_result"):
                    said.say(block)
            if content and not said.parts:
                return
        marked = any(node.value.get(key) is True for key in ("isMeta", "isCompactSummary"))
        marked = marked or _is_interruption(node) or node.value["type"] == "attachment"
        actor = "harness" if marked else None
        self._talk.add(Message("user", said.content(), actor=actor, extra=kept(extra)))


class _Calls:
    """The calls of one turn, each once; ``written`` is what stands under an id, ``notes`` what the log adds."""

    def __init__(self, message: int, aside: Aside) -> None:
        self.calls: list[ToolCall] = []
        self.written: dict[str, tuple[str, str]] = {}
        self.notes: dict[str, dict[str, Any]] = {}
        self._message, self._aside = message, aside
        self._places: dict[str, int] = {}

    def add(self, block: dict[str, Any]) -> None:
        """A ``tool_use``. Raises RefusedError where another of the turn has its id and says something else."""
        call_id = name_of(block, "id") if block.get("id") != "" else ""
        shape = CallShape(FunctionShape(block["name"], block.get("input", UNSET)), call_id, "function")
        entry = {"function": {}, **_rest(block, ("type", "name", "input"))}
        call, note = read_call(entry, shape, call_uid(self._message, len(self.calls)), self._aside)
        what = (call.name, call.arguments_text)
        if call_id and self.written.setdefault(call_id, what) != what:
            raise RefusedError("repeated_id", f"two calls of one turn have the id {call_id!r}")
        known = self._places.setdefault(call_id, len(self.calls)) if call_id else len(self.calls)
        if known == len(self.calls):
            self.calls.append(call)
        if note:
            self.notes.setdefault(str(known), {}).update(note)


def _content(node: Node) -> list[Any]:
    content = node.value["message"]["content"]
    return [content] if isinstance(content, str) else content


def _is_interruption(node: Node) -> bool:
    """Whether a line is the mark that the harness writes where a user breaks in: what a person types is no block."""
    match node.value["type"], node.value.get("message"):
        case "user", {"content": [{"type": "text", "text": str(words)}]}:
            return words in _INTERRUPTIONS
    return False


def _rest(block: dict[str, Any], known: Iterable[str]) -> dict[str, Any]:
    return {key: value for key, value in block.items() if key not in known}


def _about(step: Step) -> dict[str, Any]:
    """What the log says of a turn beside its content; of the usage it gives on every line of it, the last."""
    messages = [node.value["message"] for node in step.nodes]
    known = {
        "uuid": step.nodes[0].uuid,
        "model": name_of(messages[0], "model"),
        "stop_reason": next((reason for each in reversed(messages) if (reason := name_of(each, "stop_reason"))), None),
        "usage": _usage_of(step),
    }
    return {key: value for key, value in known.items() if value is not None}


def _usage_of(step: Step) -> dict[str, Any] | None:
    found = (node.value["message"].get("usage") for node in reversed(step.nodes))
    return next((usage for usage in found if isinstance(usage, dict)), None)


def _last(step: Step, key: str) -> float | int | None:
    found = (node.value.get(key) for node in reversed(step.nodes))
    return next((value for value in found if isinstance(value, int | float) and not isinstance(value, bool)), None)


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


IMPORTER = Importer("claude-code", "1", sniff, read_session, _build, parse_session)

"""``codex exec --json``: one stream a file, ``thread.started``, ``item.completed``, ``turn.completed`` a line.

The stream tells people what happened and is no log of what the model saw and wrote. The request, the instructions and
the tools are not in it, reasoning is a summary, a call is known by what was executed and a change of files without its
text. So the history of every run is incomplete from its first message on, and no row is built from it; commands, their
outputs, tokens and the end of each turn are as recorded. A stream without the end of its turn has an unknown stop.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from curation.importers.aside import Aside
from curation.importers.conversation import Conversation, Said, Turn
from curation.importers.extra import kept_known
from curation.importers.face import Fact, Importer, Item, Parsed, Slice
from curation.importers.heads import head_values
from curation.importers.session_lines import SessionLine, parse_session, read_session
from curation.importers.token_counts import summed, usage_details
from schemas import canonical
from schemas.statements import Stop
from schemas.trajectory import Attempt, Conditions, Message, MessageError, ToolCall, Trajectory, Usage

STOP_RULE = "codex_exec.stop@1"

FILLS: Mapping[str, str] = {
    "task": "side file",
    "tools": "side file",
    "budget": "side file",
    "start_state": "side file",
    "attempt": "recorded",
    "outcome": "side file",
    "stop": f"rule {STOP_RULE}",
    "model": "unknown",
    "usage": "recorded",
    "reasoning": "recorded",
    "branch": "unknown",
}

_ITEMS = frozenset(("item.started", "item.updated", "item.completed"))
_GIVEN = frozenset(("command", "changes", "server", "tool", "arguments", "query", "action", "items", "prompt"))
_TOLD = frozenset(("id", "type", "status", "aggregated_output", "exit_code", "result", "error", "agents_states"))
_FAILED = frozenset(("failed", "declined"))


def sniff(head: bytes) -> str:
    """Whether one of the first lines is an event of the stream."""
    return "events of codex exec (thread, turn, item)" if any(map(_is_event, head_values(head))) else ""


def _is_event(value: Any) -> bool:
    match value:
        case {"type": "thread.started", "thread_id": _} | {"type": "turn.started" | "turn.completed" | "turn.failed"}:
            return True
        case {"type": "item.started" | "item.updated" | "item.completed", "item": dict()}:
            return True
    return False


@dataclass(slots=True)
class _Thread:
    """The lines of one thread, from its start to the next."""

    id: str | None
    lines: list[SessionLine] = field(default_factory=list)
    unread: bool = False


def _build(lines: list[SessionLine], data: bytes, piece: Slice, replaced: int) -> Iterator[Item]:
    threads: list[_Thread] = []
    for line in lines:
        problem = (line.code, line.detail) if line.code else _problem_of(line.value)
        if problem is not None:
            yield line.reject(piece, *problem)
            for thread in threads[-1:]:
                thread.unread = True
            continue
        if line.value["type"] == "thread.started" or not threads:
            name = line.value.get("thread_id")
            threads.append(_Thread(name if isinstance(name, str) else None))
        threads[-1].lines.append(line)
    seen: set[str] = set()
    for thread in threads:
        end = thread.lines[-1].number
        name = f"line {end}" if thread.id is None else thread.id
        name = f"{name}/line {end}" if name in seen else name
        seen.add(name)
        yield _attempt(thread, name, data, piece, replaced)


def _problem_of(value: Any) -> tuple[str, str] | None:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return "not_a_record", "a line of the stream is an object with a type"
    item = value.get("item")
    if value["type"] in _ITEMS:
        if not isinstance(item, dict) or not isinstance(item.get("type"), str):
            return "not_a_record", "$.item: an object with a type is needed"
        if item["type"] in ("agent_message", "reasoning", "plan") and not isinstance(item.get("text"), str):
            return "not_a_record", "$.item.text: text is needed"
    return None


def _attempt(thread: _Thread, name: str, data: bytes, piece: Slice, replaced: int) -> Parsed:
    aside = Aside(replaced=replaced)
    aside.warnings.append("lossy_stream")
    stream = _Stream(aside)
    for line in thread.lines:
        stream.read(line.value)
    stream.close()
    if thread.unread:
        aside.warnings.append("unread_lines")
    trajectory = Trajectory(
        tuple(stream.messages),
        attempt=Attempt(name),
        conditions=Conditions(agent="codex"),
        stop_text=stream.stop_text,
        usage=stream.usage(),
        extra=kept_known({"errors": stream.errors or None, "usage_details": stream.usage_details()}),
    )
    return Parsed(
        trajectory,
        data,
        thread.lines[-1].number,
        piece.offset,
        key=name,
        objects=tuple(aside.objects),
        facts=(Fact("stop", stream.stop, "rule", STOP_RULE),),
        replaced=replaced,
        warnings=aside.codes(),
        part=name,
    )


class _Stream:
    """The events of one thread, made into messages."""

    def __init__(self, aside: Aside) -> None:
        self.stop: Stop = "unknown"
        self.stop_text: str | None = None
        self.errors: list[str] = []
        self._aside = aside
        self._talk = Conversation(aside)
        self._talk.hide()
        self._usage: list[dict[str, Any]] = []
        self._begun: set[str] = set()
        self._turn = Turn(self._talk)

    @property
    def messages(self) -> list[Message]:
        """All messages that are closed."""
        return self._talk.messages

    def usage(self) -> Usage | None:
        """The tokens of all turns; those read from a cache are among those of the prompt."""
        if not self._usage:
            return None
        return Usage(*(_total(self._usage, key) for key in ("input_tokens", "output_tokens")))

    def usage_details(self) -> dict[str, int] | None:
        """What the turns count beside their totals."""
        return summed(map(usage_details, self._usage))

    def read(self, event: dict[str, Any]) -> None:
        """The next event. What it does not know, it passes over."""
        match event:
            case {"type": "turn.started"}:
                self.close()
                self._talk.hide()  # the request is not in the stream
                self.stop, self.stop_text = "unknown", None
            case {"type": "turn.completed"}:
                self.close()
                self.stop = "completed"
                if isinstance(event.get("usage"), dict):
                    self._usage.append(event["usage"])
            case {"type": "turn.failed", "error": {"message": str(words)}} | {"type": "error", "message": str(words)}:
                self.stop, self.stop_text = "unknown", words
            case {"type": "item.started" | "item.updated" | "item.completed" as kind, "item": dict(item)}:
                self._read_item(item, ended=kind == "item.completed")

    def close(self) -> None:
        """End the model's turn: what follows is another one's."""
        self._turn.close()

    def _read_item(self, item: dict[str, Any], *, ended: bool) -> None:
        match item:
            case {"type": "agent_message" | "plan", "text": str(text)}:
                if ended:
                    self._turn.said.say(text)
            case {"type": "reasoning", "text": str(text)}:
                if ended:
                    self._turn.said.hidden = True
                    self._turn.said.think(text, {})
            case {"type": "error"}:
                if ended and isinstance(item.get("message"), str):
                    self.errors.append(item["message"])
            case _:
                self._work(item, ended=ended)

    def _work(self, item: dict[str, Any], *, ended: bool) -> None:
        """What the agent did: a call when it begins, its answer when it ends."""
        name = item.get("id")
        call_id = name if isinstance(name, str) else None
        if call_id is None or call_id not in self._begun:
            self._call(item, call_id)
        if ended:
            self.close()
            self._answer(item, call_id)

    def _call(self, item: dict[str, Any], call_id: str | None) -> None:
        given = {key: value for key, value in item.items() if key in _GIVEN or key not in _TOLD}
        written = canonical.raw(given.get("arguments") if isinstance(given.get("arguments"), dict) else given)
        tools = [part for key in ("server", "tool") if isinstance(part := item.get(key), str)]
        named = ".".join(tools) if tools else item["type"]
        call = ToolCall(self._turn.uid, named, bytes(written).decode(), call_id, written)
        self._turn.call(call, {"arguments_form": "rebuilt", "type": item["type"]})
        if call_id is not None:
            self._begun.add(call_id)

    def _answer(self, item: dict[str, Any], call_id: str | None) -> None:
        """What is told of the end of it; status ``failed`` and ``declined`` are the harness's own word."""
        extra = {key: item[key] for key in ("status", "exit_code") if item.get(key) is not None}
        said = Said(extra, self._aside)
        result = item.get("result")
        parts = result.get("content") if isinstance(result, dict) else result
        for part in parts if isinstance(parts, list) else [parts]:
            said.say(part)
        said.say(item.get("aggregated_output"))
        status = item["status"] if isinstance(item.get("status"), str) else None
        fault = item.get("error")
        words = fault.get("message") if isinstance(fault, dict) else fault
        error = None
        if words is not None or status in _FAILED:
            error = MessageError(words if isinstance(words, str) else "", status)
        self._talk.answer(call_id, said, error, extra)


def _total(usages: list[dict[str, Any]], key: str) -> int | None:
    found = [value for usage in usages if type(value := usage.get(key)) is int]
    return sum(found) if found else None


IMPORTER = Importer("codex-exec", "1", sniff, read_session, _build, parse_session)

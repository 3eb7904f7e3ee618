"""Codex rollouts: one session a file, ``{timestamp, type, payload}`` a line.

The conversation is in the ``response_item`` lines; ``event_msg`` lines say the same again for people, and of them only
what stands nowhere else is read: tokens, how a turn ended, and that turns were taken back. Turns that were taken back
are a run of their own, and the run that went on without them says where it left them. After a compaction the model saw
other messages than the log holds before it. The log holds neither tools, task, budget nor outcome.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from curation.clocks import iso_time
from curation.importers.aside import Aside
from curation.importers.branches import branched_from
from curation.importers.codex_items import ItemReader, is_user, problem_of
from curation.importers.conversation import kept
from curation.importers.face import Fact, Importer, Item, Parsed, Slice
from curation.importers.heads import head_values
from curation.importers.session_lines import SessionLine, parse_session, read_session
from curation.importers.token_counts import usage_details
from schemas import canonical
from schemas.statements import Stop
from schemas.trajectory import Attempt, Conditions, Message, Trajectory, Usage

STOP_RULE = "codex.stop@1"
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

_LINES = frozenset(("session_meta", "turn_context", "response_item", "event_msg", "compacted"))
_FIRST_FORM = frozenset(("id", "timestamp", "instructions"))  # the first line of a rollout without types
_SESSION = ("cwd", "originator", "source", "git", "forked_from_id")
_TURN = ("approval_policy", "sandbox_policy")
_PROVIDER = frozenset(
    (
        "usage_limit_exceeded",
        "server_overloaded",
        "http_connection_failed",
        "response_stream_connection_failed",
        "response_stream_disconnected",
        "response_too_many_failed_attempts",
        "internal_server_error",
        "unauthorized",
    )
)


def sniff(head: bytes) -> str:
    """Whether one of the first lines is of a rollout, or the first line is what rollouts once began with."""
    values = head_values(head)
    if any(isinstance(value, dict) and _text(value, "type") in _LINES and "payload" in value for value in values):
        return "lines with type and payload of a Codex rollout"
    return "a session's first line with id, timestamp and instructions" if values[:1] and _is_first(values[0]) else ""


def _is_first(value: Any) -> bool:
    return isinstance(value, dict) and value.keys() >= _FIRST_FORM and value.keys() <= _FIRST_FORM | {"git"}


class _Entry(NamedTuple):
    """An item of the conversation; without one the context of a turn, a gap in what is logged, or that a turn ended.

    ``unread``: there is a gap because lines could not be read. ``size`` counts the bytes of all lines up to it.
    """

    line: SessionLine
    item: dict[str, Any] | None = None
    time: str | None = None
    context: dict[str, Any] | None = None
    gap: bool = False
    unread: bool = False
    size: int = 0


@dataclass(slots=True)
class _Path:
    """One run: its entries, and how it ended. It shares the first ``shared`` of them with the run ``parent``."""

    entries: list[_Entry] = field(default_factory=list)
    parent: int | None = None
    shared: int = 0
    stop: Stop = "unknown"
    stop_text: str | None = None
    usage: dict[str, Any] | None = None

    @property
    def end(self) -> int:
        """The number of the line where it ends."""
        return self.entries[-1].line.number if self.entries else 1


class _Session:
    """A rollout, line by line."""

    def __init__(self, size: int) -> None:
        self.meta: dict[str, Any] | None = None
        self.refused: list[tuple[SessionLine, str, str]] = []
        self.paths: list[_Path] = []
        self._now = _Path()
        self._turns: list[int] = []  # the entries that turns of the user begin with
        self._last_item = -1
        self._told: set[bytes] = set()
        self._room = max(MAX_COPIED_BYTES, MAX_COPIES * size)
        self._missing = False

    def read(self, lines: list[SessionLine]) -> None:
        """All lines, in order."""
        for line in lines:
            value = line.value
            if line.code:
                self._refuse(line, line.code, line.detail)
            elif not isinstance(value, dict):
                self._refuse(line, "not_a_record", "a line of a rollout is an object")
            elif "payload" in value and isinstance(value.get("type"), str):
                self._read_line(line, value["type"], value["payload"])
            elif _is_first(value) and self.meta is None:
                self.meta = value
            elif isinstance(value.get("type"), str):
                self._read_item(line, value)
            elif "record_type" not in value:
                self._refuse(line, "not_a_record", "a line of a rollout has type and payload")
        self._keep()

    def _refuse(self, line: SessionLine, code: str, detail: str) -> None:
        self.refused.append((line, code, detail))
        self._missing = True

    def _read_line(self, line: SessionLine, kind: str, payload: Any) -> None:
        if kind not in _LINES:
            return
        if not isinstance(payload, dict):
            self._refuse(line, "not_a_record", "$.payload: an object is needed")
        elif kind == "session_meta":
            if self.meta is None:
                self.meta = payload
                if payload.get("history_base") is not None:
                    self._add(_Entry(line, gap=True))  # what it was forked with stands in the other session's file
        elif kind == "turn_context":
            self._add(_Entry(line, context=payload))
        elif kind == "response_item":
            self._read_item(line, payload)
        elif kind == "compacted":
            self._compact(line, payload)
        else:
            self._hear(line, payload)

    def _read_item(self, line: SessionLine, item: Any) -> None:
        problem = problem_of(item)
        if problem is not None:
            self._refuse(line, *problem)
            return
        if self._missing:
            self._add(_Entry(line, gap=True, unread=True))
            self._missing = False
        if is_user(item):
            self._told.add(canonical.encode(item))
        self._add(_Entry(line, item, iso_time(line.value.get("timestamp"))))

    def _add(self, entry: _Entry) -> None:
        if entry.item is not None:
            self._last_item = len(self._now.entries)
            self._now.stop, self._now.stop_text = "unknown", None
        before = self._now.entries[-1] if self._now.entries else None
        fresh = 0 if before is not None and before.line is entry.line else len(entry.line.data)
        self._now.entries.append(entry._replace(size=fresh + (0 if before is None else before.size)))

    def _compact(self, line: SessionLine, payload: dict[str, Any]) -> None:
        """What the model saw from here on: the messages that were put in place of the history, as far as they are new.

        Calls among them were read where they were made. A summary that the model wrote answers a request that is not in
        the log.
        """
        summary = payload.get("message")
        at = self._last_item
        if isinstance(summary, str) and at >= 0 and _is_summary(self._now.entries[at].item or {}, summary):
            while at > 0 and (self._now.entries[at - 1].item or {}).get("type") == "reasoning":
                at -= 1
            size = self._now.entries[at - 1].size if at else 0
            self._now.entries.insert(at, _Entry(line, gap=True, size=size))
        self._add(_Entry(line, gap=True))
        history = payload.get("replacement_history")
        replaced = history if isinstance(history, list) else []
        if not replaced and isinstance(payload.get("message"), str) and payload["message"]:
            replaced = [{"type": "message", "role": "user", "content": payload["message"]}]
        for item in replaced:
            if problem_of(item) is None and is_user(item) and (written := canonical.encode(item)) not in self._told:
                self._told.add(written)
                self._add(_Entry(line, item))

    def _hear(self, line: SessionLine, event: dict[str, Any]) -> None:
        match event:
            case {"type": "user_message"} | {"type": "item_completed", "item": {"type": "UserMessage"}}:
                entries = self._now.entries
                told = self._last_item >= 0 and is_user(entries[self._last_item].item or {})
                begin = self._last_item if told else len(entries)
                if self._turns[-1:] != [begin]:
                    self._turns.append(begin)
            case {"type": "token_count", "info": {"total_token_usage": dict(usage)}}:
                self._now.usage = usage
                self._add(_Entry(line))
            case {"type": "task_complete" | "turn_complete", "error": dict(error)}:
                self._fail(error)
            case {"type": "task_complete" | "turn_complete"}:
                self._stop("completed")
            case {"type": "turn_aborted", "reason": "interrupted"}:
                self._stop("user_stop")
            case {"type": "error"}:
                self._fail(event)
            case {"type": "thread_rolled_back", "num_turns": int(count)} if count > 0:
                self._take_back(count)

    def _stop(self, cause: Stop) -> None:
        """How the last turn ended, unless an error has ended it."""
        if self._now.stop == "unknown" and self._now.stop_text is None:
            self._now.stop = cause

    def _fail(self, event: dict[str, Any]) -> None:
        message, info = event.get("message"), event.get("codex_error_info")
        kind = next(iter(info), None) if isinstance(info, dict) else info
        self._now.stop_text = message if isinstance(message, str) else None
        if kind == "context_window_exceeded":
            self._now.stop = "context_length"
        elif isinstance(kind, str) and kind in _PROVIDER:
            self._now.stop = "provider_error"

    def _take_back(self, count: int) -> None:
        """The last turns are no longer a part of the history: what follows stands behind what was before them."""
        before = self._now
        known = count <= len(self._turns)
        cut = self._turns[-count] if known else 0
        del self._turns[-count:]
        if self._keep():
            self._now = _Path(before.entries[:cut], len(self.paths) - 1, cut, usage=before.usage)
        else:
            del before.entries[cut:]
            self._now = _Path(before.entries, before.parent, min(cut, before.shared), usage=before.usage)
        self._last_item = -1
        self._missing = self._missing or not known

    def _keep(self) -> bool:
        """Put the present run with the others, unless it says nothing of its own or there is no room for it."""
        path = self._now
        if path.parent is not None and not any(entry.item for entry in path.entries[path.shared :]):
            return False
        self._room -= path.entries[-1].size if path.entries else 0
        if self._room < 0:
            words = f"all runs of a session may hold {MAX_COPIED_BYTES} bytes, or its lines {MAX_COPIES} times"
            self.refused.append((path.entries[-1].line, "too_large", words))
            return False
        self.paths.append(path)
        return True


def _is_summary(item: dict[str, Any], summary: str) -> bool:
    """Whether an item is the model's text that the harness put in place of the history, after words of its own."""
    content = item.get("content")
    texts = [part.get("text") for part in content if isinstance(part, dict)] if isinstance(content, list) else [content]
    text = "".join(text for text in texts if isinstance(text, str)).strip()
    return item.get("role") == "assistant" and bool(text) and summary.rstrip().endswith(text)


def _build(lines: list[SessionLine], data: bytes, piece: Slice, replaced: int) -> Iterator[Item]:
    session = _Session(len(data))
    session.read(lines)
    for line, code, detail in session.refused:
        yield line.reject(piece, code, detail)
    if session.meta is None and not any(path.entries for path in session.paths):
        return
    names = list(_names(session))
    for number, path in enumerate(session.paths):
        yield _attempt(session, path, names, number, data, piece, replaced)


def _names(session: _Session) -> Iterator[str]:
    """The run of every path: its session, and the line where it ends if there are several."""
    name = _text(session.meta, "id")
    for path in session.paths:
        end = f"line {path.end}" if name is None or len(session.paths) > 1 else None
        yield "/".join(part for part in (name, end) if part is not None)


def _attempt(
    session: _Session, path: _Path, names: list[str], number: int, data: bytes, piece: Slice, replaced: int
) -> Parsed:
    aside = Aside(replaced=replaced)
    messages, shared = _messages(session, path, aside)
    contexts = [entry.context for entry in path.entries if entry.context is not None]
    models = dict.fromkeys(model for context in contexts if (model := _text(context, "model")) is not None)
    efforts = dict.fromkeys(effort for context in contexts if (effort := _text(context, "effort")) is not None)
    version = _text(session.meta, "cli_version")
    extra = {
        **{key: (session.meta or {}).get(key) for key in _SESSION},
        **{key: contexts[0].get(key) for key in _TURN if contexts},
        "models": list(models) if len(models) > 1 else None,
        "usage_details": usage_details(path.usage or {}),
    }
    facts = [Fact("stop", path.stop, "rule", STOP_RULE), *aside.clocks(messages)]
    origin = _text(session.meta, "forked_from_id")
    if path.parent is not None:
        facts.append(branched_from(names[path.parent], shared))
    elif origin is not None:
        facts.append(branched_from(origin))
    if len(models) > 1:
        aside.warnings.append("models_differ")
    if any(entry.unread for entry in path.entries):
        aside.warnings.append("unread_lines")
    trajectory = Trajectory(
        messages,
        attempt=Attempt(names[number]),
        conditions=Conditions(
            model=next(iter(models)) if len(models) == 1 else None,
            sampling=kept({"reasoning_effort": next(iter(efforts))} if len(efforts) == 1 else {}),
            agent="codex" if version is None else f"codex@{version}",
        ),
        stop_text=path.stop_text,
        usage=_usage(path.usage),
        extra=kept({key: value for key, value in extra.items() if value not in (None, {})}),
    )
    return Parsed(
        trajectory,
        data,
        path.end,
        piece.offset,
        key=names[number],
        objects=tuple(aside.objects),
        facts=tuple(facts),
        replaced=replaced,
        warnings=aside.codes(),
        part=f"line {path.end}",
    )


def _messages(session: _Session, path: _Path, aside: Aside) -> tuple[tuple[Message, ...], int]:
    """The messages of a run, and how many of them it shares with its parent."""
    reader = ItemReader(aside)
    instructions = (session.meta or {}).get("base_instructions")
    if isinstance(instructions, dict) and isinstance(instructions.get("text"), str):
        reader.instruct(instructions["text"])
    shared = 0
    for at, entry in enumerate(path.entries):
        if at == path.shared:
            shared = len(reader.messages)
        if entry.item is not None:
            reader.add(entry.item, entry.time)
        elif entry.gap:
            reader.hide()
        elif entry.context is None:
            reader.close()
    return tuple(reader.messages), shared


def _usage(total: dict[str, Any] | None) -> Usage | None:
    """The tokens that the session had used in all; those read from a cache are among those of the prompt."""
    if total is None:
        return None
    found = [value if type(value := total.get(key)) is int else None for key in ("input_tokens", "output_tokens")]
    return Usage(*found)


def _text(value: Mapping[str, Any] | None, key: str) -> str | None:
    found = (value or {}).get(key)
    return found if isinstance(found, str) and found else None


IMPORTER = Importer("codex", "1", sniff, read_session, _build, parse_session)

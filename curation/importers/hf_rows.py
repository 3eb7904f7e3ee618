"""Rows of data sets of agent runs: an instance, its messages, and what came of it; as JSON Lines, a JSON list, Parquet
or Arrow files, such as a folder that ``datasets`` saved or a Hub repository holds.

Columns have many names: ``messages`` or ``trajectory`` (of which JSON text counts too), ``resolved`` or ``target``,
``run_id`` or ``traj_id``. A verdict that is null is none. Logs of the check and reference patches are hidden answers
and are left out of the record.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from curation.importers import agentdojo, arrow_rows, mini_swe_agent
from curation.importers.aside import Aside
from curation.importers.extra import kept
from curation.importers.face import MAX_RECORD_BYTES, Fact, Importer, Parsed, RefusedError, Slice
from curation.importers.gathered import keep_bytes, read_pieces
from curation.importers.heads import head_value, head_values
from curation.importers.model_calls import read_chat
from curation.importers.row_messages import PLAIN, Profile, has_calls_in_text, read_rows, without_nulls
from curation.importers.span_messages import loaded
from schemas import canonical
from schemas.objects import Object, tools_object
from schemas.statements import Result, Stop
from schemas.trajectory import Attempt, Conditions, Json, Task, Trajectory

STOP_RULE = "hf-rows.exit_status@1"
BUDGET_RULE = "hf-rows.maxiter_in_run_id@1"
FILLS: Mapping[str, str] = {
    "task": "recorded",
    "tools": "recorded",
    "budget": f"rule {BUDGET_RULE}",
    "start_state": "side file",
    "attempt": "recorded",
    "outcome": "recorded",
    "stop": f"rule {STOP_RULE}",
    "model": "recorded",
    "usage": "unknown",
    "reasoning": "recorded",
    "branch": "unknown",
}

COLUMNS = ("messages", "trajectory", "conversations", "conversation")
_RUNS = ("run_id", "traj_id", "trajectory_id", "id")
_VERDICTS = ("resolved", "target")
_MODELS = ("model_name", "model")
_MARKS = frozenset(("instance_id", "run_id", "traj_id", "resolved", "target", "exit_status", "generated_patch"))
_KEPT = ("generated_patch", "model_patch", "source", "domain")
_STEPS = re.compile(r"(?<![a-z])maxiter_(\d{1,6})(?!\d)")
_STOPS: dict[str, Stop] = {
    "exit_cost": "max_steps",
    "exit_context": "context_length",
    "exit_format": "parse_error",
    "exit_api": "provider_error",
    "exit_environment_error": "tool_error",
    "exit_command_timeout": "timeout",
    "exit_total_execution_time": "timeout",
    "early_exit": "cancelled",
    "submitted": "completed",
}


def sniff(head: bytes) -> str:
    """Whether the head is a Parquet or Arrow file, or rows with messages and what tells runs of data sets apart."""
    if kind := arrow_rows.kind_of(head):
        return kind
    return "rows with messages and the columns of a data set of runs" if any(map(_is_row, first_rows(head))) else ""


def first_rows(head: bytes) -> list[Any]:
    """The first values of a head, be it of lines or of a list."""
    first = head_value(head)
    return first[:1] if isinstance(first, list) else [first, *head_values(head)]


def slices(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """The rows of a file."""
    with path.open("rb") as file:
        kind = arrow_rows.kind_of(file.read(8))
    return (arrow_rows.read_rows if kind else read_pieces)(path, limit)


def read_row(data: bytes, piece: Slice, profile: Profile) -> Parsed:
    """The attempt of a row. Raises RefusedError and UnreadableError."""
    if piece.context.startswith(arrow_rows.BROKEN):
        words = piece.context.removeprefix(arrow_rows.BROKEN).decode()
        raise RefusedError("not_a_record", f"the file cannot be read from here on: {words}")
    row, replaced = canonical.parse(data)
    if not isinstance(row, dict):
        raise RefusedError("not_a_record", "a row is an object")
    column, entries = _entries(row)
    aside = Aside(replaced=replaced)
    chat = read_rows(entries, column, profile)
    system = row.get("system")
    if isinstance(system, str) and system:
        chat.insert(0, {"role": "system", "content": system})
    if piece.context == arrow_rows.ARROW:
        _clean_arguments(chat, aside)
    if has_calls_in_text(chat):
        aside.warnings.append("calls_in_text")
    messages = read_chat(chat, aside)
    tools = _tools(row)
    run = _first(row, _RUNS)
    return Parsed(
        Trajectory(
            messages,
            task=Task(id=_first(row, ("instance_id",))),
            attempt=None if run is None else Attempt(run),
            conditions=Conditions(tools=None if tools is None else tools.id, model=_first(row, _MODELS)),
            stop_text=row["exit_status"] if isinstance(row.get("exit_status"), str) else None,
            extra=_kept(row),
        ),
        data,
        piece.place,
        piece.offset,
        key=run or _first(row, ("instance_id",)),
        objects=(*aside.objects, tools) if tools else tuple(aside.objects),
        facts=(*_outcome(row), *_stop(row), *_budget(run)),
        replaced=aside.replaced,
        warnings=aside.codes(),
    )


def _entries(row: Mapping[str, Any]) -> tuple[str, list[Any]]:
    for column in COLUMNS:
        entries = loaded(row.get(column))
        if isinstance(entries, list):
            return column, entries
    raise RefusedError("not_a_record", f"no column of messages; known: {', '.join(COLUMNS)}")


def _clean_arguments(chat: list[dict[str, Any]], aside: Aside) -> None:
    """Take the nulls out of arguments that are objects: in such a file they are keys of other calls."""
    for message in chat:
        for call in message.get("tool_calls") or ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict) and isinstance(function.get("arguments"), dict):
                cleaned = without_nulls(function["arguments"])
                if cleaned != function["arguments"]:
                    function["arguments"] = cleaned
                    aside.warnings.append("nulls_left_out")


def _tools(row: Mapping[str, Any]) -> Object | None:
    """The tool list, without the keys of other tools that a columnar store filled into each schema."""
    tools = loaded(row.get("tools"))
    if not isinstance(tools, list):
        return None
    return tools_object([without_nulls(loaded(tool)) for tool in tools])


def _outcome(row: Mapping[str, Any]) -> tuple[Fact, ...]:
    verdict = next((row[name] for name in _VERDICTS if row.get(name) is not None), None)
    reward = row.get("reward")
    if isinstance(verdict, bool) or verdict in (0, 1):
        return (Fact("outcome", "passed" if verdict else "failed"),)
    if isinstance(reward, int | float) and not isinstance(reward, bool):
        result: Result = "passed" if reward >= 1 else "partial" if reward > 0 else "failed"
        return (Fact("outcome", result, score=reward),)
    return ()


def _stop(row: Mapping[str, Any]) -> tuple[Fact, ...]:
    status = row.get("exit_status")
    if not isinstance(status, str):
        return ()
    words = status.replace("(", " ").replace(")", " ").split()
    causes = [cause for word, cause in _STOPS.items() if word in words]
    return (Fact("stop", causes[0] if causes else "unknown", "rule", STOP_RULE),)


def _budget(run: str | None) -> tuple[Fact, ...]:
    found = _STEPS.search(run) if run is not None else None
    return () if found is None else (Fact("budget.steps", int(found[1]), "rule", BUDGET_RULE),)


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    found = next((row[name] for name in names if isinstance(row.get(name), str | int) and row[name] != ""), None)
    return None if found is None or isinstance(found, bool) else str(found)


def _kept(row: Mapping[str, Any]) -> Json:
    known = {name: row[name] for name in _KEPT if row.get(name) is not None}
    return kept(known)


def _is_row(value: Any) -> bool:
    if not isinstance(value, dict) or _MARKS.isdisjoint(value):
        return False
    if agentdojo.is_run(value) or mini_swe_agent.is_run(value):
        return False
    entries = next((value[name] for name in COLUMNS[:2] if isinstance(value.get(name), list)), None)
    if isinstance(value.get("messages"), str):
        entries = head_value(value["messages"].encode())
    first = entries[0] if isinstance(entries, list) and entries else None
    return isinstance(first, dict) and "role" in first and "action" not in first


def _build(_: Any, data: bytes, piece: Slice, __: int) -> Parsed:
    return read_row(data, piece, PLAIN)


IMPORTER = Importer("hf-rows", "1", sniff, slices, _build, keep_bytes)

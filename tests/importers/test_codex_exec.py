import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.importers import codex_exec
from curation.importers.face import Item, Parsed
from schemas.trajectory import Answers, MessageError, Usage
from tests.importers.reading import calls, write
from tests.importers.session import facts, only, refused, runs, shown
from tests.ingest.logs import import_file, new_store

FOLDER = "codex/.agent/research/codex/codex-samples"
STARTED = {"type": "thread.started", "thread_id": "t1"}
TURN = {"type": "turn.started"}
DONE = {"type": "turn.completed", "usage": {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 5}}


def event(when: str, kind: str, name: str = "item_0", **more: Any) -> dict[str, Any]:
    return {"type": f"item.{when}", "item": {"id": name, "type": kind, **more}}


def read(folder: Path, *lines: Any) -> list[Item]:
    return list(codex_exec.IMPORTER.read(write(folder / "stream.jsonl", lines)))


@pytest.fixture(scope="module")
def streams(logs: Path) -> dict[Path, Parsed]:
    return {path: only(list(codex_exec.IMPORTER.read(path))) for path in sorted((logs / FOLDER).glob("*.jsonl"))}


def test_the_real_streams(streams: dict[Path, Parsed]) -> None:
    assert len(streams) == 6
    for path, parsed in streams.items():
        events = [json.loads(line) for line in path.read_text().splitlines()]
        items = [one["item"] for one in events if one["type"] == "item.completed"]
        record = parsed.trajectory
        assert parsed.key == events[0]["thread_id"]
        work = [one["id"] for one in items if one["type"] in ("command_execution", "file_change")]
        assert [call.id for call in calls(record)] == work
        answers = [message.answers and message.answers.by for message in record.messages if message.role == "tool"]
        assert answers == ["id"] * len(work)
        assert [message.content for message in record.messages if message.role == "assistant" and message.content] == [
            one["text"] for one in items if one["type"] == "agent_message"
        ]
        spent = [one["usage"] for one in events if one["type"] == "turn.completed"]
        assert record.usage == (Usage(spent[0]["input_tokens"], spent[0]["output_tokens"]) if spent else None)
        assert facts(parsed) == {"stop": "completed" if spent else "unknown"}


def test_no_decision_of_a_stream_has_a_complete_history(streams: dict[Path, Parsed]) -> None:
    for parsed in streams.values():
        assert parsed.warnings == ("lossy_stream",)
        assert all(message.hidden == "compaction" for message in parsed.trajectory.messages[:1])


def test_the_real_streams_come_back_from_the_store(streams: dict[Path, Parsed], tmp_path: Path) -> None:
    store = new_store(tmp_path)
    for path in streams:
        result = import_file(store, path)
        assert (result.read, result.accepted) == (1, 1)
    raws = store.sql("SELECT raw FROM sightings ORDER BY name")["raw"].to_pylist()
    assert [store.object(raw) for raw in raws] == [path.read_bytes() for path in streams]


def test_a_stream_that_is_cut_has_a_call_without_an_answer_and_an_unknown_stop(tmp_path: Path) -> None:
    command = event("started", "command_execution", command="ls", aggregated_output="", status="in_progress")
    parsed = only(read(tmp_path, STARTED, TURN, command))
    assert [call.arguments_text for call in calls(parsed.trajectory)] == ['{"command":"ls"}']
    assert [message.role for message in parsed.trajectory.messages] == ["assistant"]
    assert facts(parsed)["stop"] == "unknown"


def test_commands_that_run_at_once_are_one_message_with_its_answers(tmp_path: Path) -> None:
    first, second = {"command": "ls"}, {"command": "pwd"}
    parsed = only(
        read(
            tmp_path,
            STARTED,
            TURN,
            event("started", "command_execution", "i1", **first),
            event("started", "command_execution", "i2", **second),
            event("completed", "command_execution", "i2", **second, aggregated_output="/w", status="completed"),
            event(
                "completed", "command_execution", "i1", **first, aggregated_output="no", status="failed", exit_code=1
            ),
            DONE,
        )
    )
    made, later, failed = parsed.trajectory.messages
    assert [call.id for call in made.tool_calls] == ["i1", "i2"]
    assert [later.answers, failed.answers] == [Answers("0.1", "id"), Answers("0.0", "id")]
    assert [later.error, failed.error] == [None, MessageError(kind="failed")]
    assert msgspec.json.decode(failed.extra) == {"exit_code": 1, "status": "failed"}  # type: ignore[arg-type]


def test_tools_of_servers_changes_plans_and_notices(tmp_path: Path) -> None:
    served = {"server": "inv", "tool": "get_stock", "arguments": {"sku": "A18"}}
    parsed = only(
        read(
            tmp_path,
            STARTED,
            TURN,
            event("started", "todo_list", "i1", items=[{"text": "count", "completed": False}]),
            event("updated", "todo_list", "i1", items=[{"text": "count", "completed": True}]),
            event("completed", "mcp_tool_call", "i2", **served, error={"message": "unknown_sku"}, status="failed"),
            event("completed", "mcp_tool_call", "i3", **served, result={"content": [{"type": "text", "text": "2"}]}),
            event("completed", "error", "i4", message="slow network"),
            event("completed", "agent_message", "i5", text="Two."),
            DONE,
        )
    )
    record = parsed.trajectory
    assert shown(record.messages) == [["i1", "i2"], None, ["i3"], "2", "Two."]
    assert record.messages[1].error == MessageError("unknown_sku", "failed")
    assert [call.name for call in calls(record)] == ["todo_list", "inv.get_stock", "inv.get_stock"]
    assert calls(record)[1].arguments == msgspec.Raw(b'{"sku":"A18"}')
    expected = {"errors": ["slow network"], "usage_details": {"cached_input_tokens": 4}}
    assert msgspec.json.decode(record.extra) == expected  # type: ignore[arg-type]


def test_a_turn_that_failed_is_no_failure_of_the_task(tmp_path: Path) -> None:
    failed = {"type": "turn.failed", "error": {"message": "usage limit"}}
    parsed = only(read(tmp_path, STARTED, TURN, failed))
    assert (facts(parsed), parsed.trajectory.stop_text) == ({"stop": "unknown"}, "usage limit")


def test_every_turn_begins_with_a_request_that_is_not_told(tmp_path: Path) -> None:
    words = event("completed", "agent_message", text="ok")
    parsed = only(read(tmp_path, STARTED, TURN, words, DONE, TURN, words, DONE))
    assert [message.hidden for message in parsed.trajectory.messages] == ["compaction", "compaction"]
    assert parsed.trajectory.usage == Usage(20, 10)
    assert msgspec.json.decode(parsed.trajectory.extra) == {"usage_details": {"cached_input_tokens": 8}}  # type: ignore[arg-type]


def test_several_threads_of_one_file_are_several_runs(tmp_path: Path) -> None:
    other = {**STARTED, "thread_id": "t2"}
    found = runs(read(tmp_path, STARTED, TURN, DONE, other, TURN, STARTED, TURN))
    assert {key: facts(one)["stop"] for key, one in found.items()} == {
        "t1": "completed",
        "t2": "unknown",
        "t1/line 7": "unknown",
    }


def test_lines_that_are_no_events_are_quarantined(tmp_path: Path) -> None:
    items = read(tmp_path, STARTED, b"Reading prompt from stdin...", {"type": "item.completed"}, b"{", TURN)
    assert refused(items) == [("not_json", 2), ("not_a_record", 3), ("truncated", 4)]
    (parsed,) = (one for one in items if isinstance(one, Parsed))
    assert parsed.warnings == ("lossy_stream", "unread_lines")

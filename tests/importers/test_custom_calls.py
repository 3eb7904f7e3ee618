"""What a custom tool takes is text by design: it is kept as it was written, and nothing says that it is malformed."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from curation.diagnosis.format import unparsed
from curation.exporters import openai_chat
from curation.exporters.known import Known
from curation.importers import call_logs
from schemas.digests import action_digest
from schemas.trajectory import ToolCall, Trajectory
from tests.importers.reading import accepted, answer, ask, call, calls, chat, read_chat, refuse_chat, write

TEXTS = ["*** Begin\n+é \u2028", '{"sku": "A17"', '{"sku": "A17"}', '"x"', ""]


def custom(text: Any, call_id: str = "c1") -> dict[str, Any]:
    return {"id": call_id, "type": "custom", "custom": {"name": "patch", "input": text}}


def item(text: Any, call_id: str = "c1") -> dict[str, Any]:
    return {"type": "custom_tool_call", "call_id": call_id, "name": "patch", "input": text}


def items_line(*made: dict[str, Any]) -> dict[str, Any]:
    given = [{"role": "user", "content": "Mend it."}]
    return {
        "request": {"model": "m", "input": given},
        "response": {"id": "r1", "object": "response", "output": [*made]},
    }


def items_read(folder: Path, *made: dict[str, Any]) -> Trajectory:
    (read,) = call_logs.IMPORTER.read(write(folder / "calls.jsonl", [items_line(*made)]))
    return accepted(read).trajectory


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_is_kept_and_said_to_be_text(tmp_path: Path, text: str) -> None:
    as_chat = read_chat(tmp_path, chat(ask(custom(text)), answer("done"))).trajectory
    as_items = items_read(tmp_path, item(text))
    for record in (as_chat, as_items):
        message = record.messages[1]
        assert message.tool_calls == (ToolCall("1.0", "patch", text, "c1"),)
        assert json.loads(bytes(message.extra)) == {"tool_calls": {"0": {"arguments_form": "text"}}}  # type: ignore[arg-type]
        assert not unparsed(message, message.tool_calls[0])
    assert as_chat.messages[2].answers is not None
    assert action_digest(as_chat.messages[1]) == action_digest(as_items.messages[1])


def test_text_that_could_be_an_object_is_another_action_than_the_object(tmp_path: Path) -> None:
    function = read_chat(tmp_path, chat(ask(call('{"sku": "A17"}', name="patch")))).trajectory
    assert action_digest(function.messages[1]) != action_digest(
        items_read(tmp_path, item('{"sku": "A17"}')).messages[1]
    )


def test_functions_beside_it_are_read_as_ever(tmp_path: Path) -> None:
    record = read_chat(
        tmp_path, chat(ask(custom("x", "c1"), call("{", call_id="c2"), call("{}", call_id="c3")))
    ).trajectory
    assert [(made.arguments is UNSET, made.parse_error) for made in calls(record)] == [
        (True, None),
        (True, "truncated"),
        (False, None),
    ]


@pytest.mark.parametrize("made", [{"id": "c1", "type": "custom"}, custom(None), custom({"a": 1}), {"custom": {}}])
def test_a_call_of_nothing_is_refused(tmp_path: Path, made: dict[str, Any]) -> None:
    refused = refuse_chat(tmp_path, chat(ask(made)))
    assert refused.code == "not_a_record"
    assert "tool_calls[" in refused.detail


@pytest.mark.parametrize("text", TEXTS)
def test_an_exported_chat_holds_the_same_call(tmp_path: Path, text: str) -> None:
    logged = chat(ask(custom(text), call('{"sku": "A17"}', call_id="c2")), answer("done"))
    record = read_chat(tmp_path, logged).trajectory
    written = json.loads(json.dumps(openai_chat.write(Known("x", record))))
    assert written["messages"][1]["tool_calls"] == logged["messages"][1]["tool_calls"]
    assert read_chat(tmp_path, written).trajectory.messages == record.messages


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        ("local_shell_call", "action"),
        ("shell_call", "action"),
        ("apply_patch_call", "operation"),
        ("computer_call", "action"),
    ],
)
def test_tools_that_the_client_runs_take_objects_and_are_answered(tmp_path: Path, kind: str, key: str) -> None:
    made = {"type": kind, "call_id": "c1", key: {"type": "exec", "command": ["ls"]}}
    given = [{"role": "user", "content": "?"}, made, {"type": f"{kind}_output", "call_id": "c1", "output": "a"}]
    line = {
        "request": {"model": "m", "input": given},
        "response": {"id": "r1", "object": "response", "output": [item("x")]},
    }
    (read,) = call_logs.IMPORTER.read(write(tmp_path / "calls.jsonl", [line]))
    record = accepted(read).trajectory
    assert "".join(message.role[0] for message in record.messages) == "uata"
    (first, _) = calls(record)
    assert json.loads(first.arguments_text) == made[key]
    assert record.messages[2].answers is not None
    assert [message.hidden for message in record.messages] == [None] * 4

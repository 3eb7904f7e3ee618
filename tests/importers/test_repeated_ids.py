"""What one id stands for twice in a log: read once and counted where it is the same, never lost where it is not."""

from pathlib import Path
from typing import Any

import pytest

from curation.importers import call_logs, formats, openhands
from curation.importers.face import Item, Rejected
from tests.importers import test_openhands
from tests.importers.reading import accepted, write
from tests.importers.test_call_logs import run_lines
from tests.importers.test_langsmith import DONE, USER, lines, llm
from tests.importers.test_spans import ASK, TRACE, call, chat, done, got, span, tool
from tests.ingest.logs import import_file, new_store


def read(folder: Path, data: bytes) -> list[Item]:
    path = folder / "log"
    path.write_bytes(data)
    return list(formats.detect(path)[0].read(path))


def roles(item: Item) -> str:
    return "".join(message.role[0] for message in accepted(item).trajectory.messages)


def test_runs_whose_places_are_the_same_are_all_kept(tmp_path: Path) -> None:
    asked = [{"role": "user", "content": f"task {number}"} for number in range(5)]
    told = [llm(number, [said], DONE, dotted_order="x") for number, said in enumerate(asked)]
    late: dict[str, Any] = {"trace_id": "t1", "dotted_order": "x", "outputs": {"choices": [{"message": DONE}]}}
    items = [accepted(item) for item in read(tmp_path, lines(told))]
    assert [item.trajectory.messages[0].content for item in items] == [said["content"] for said in asked]
    assert not any(item.warnings for item in items)
    refused, *others = read(tmp_path, lines([late, *told]))
    assert isinstance(refused, Rejected)
    assert refused.detail.startswith("t1: 1 updates of runs that are not in the log, or that share their place")
    assert [accepted(item).trajectory for item in others] == [item.trajectory for item in items]


def test_what_one_run_id_says_twice_is_read_once_and_what_it_says_anew_is_a_run(tmp_path: Path) -> None:
    first, other = llm(1, [USER], DONE), llm(1, [USER | {"content": "Other?"}], DONE)
    kept, again = read(tmp_path, lines([first, first, other]))
    assert [accepted(each).trajectory.messages[0].content for each in (kept, again)] == [USER["content"], "Other?"]
    assert accepted(kept).warnings == ("repeated_lines",)
    result = import_file(new_store(tmp_path), tmp_path / "log")
    assert (result.accepted, result.quarantined) == (2, 0)


@pytest.mark.parametrize("same", ["span", "response", "both"])
def test_what_one_id_says_anew_is_a_call_of_its_own(tmp_path: Path, same: str) -> None:
    names = {"gen_ai.response.id": "r"} if same != "span" else {}
    asked = [{"role": "user", "parts": [{"type": "text", "content": f"task {number}"}]} for number in range(3)]
    told = [chat(1 if same != "response" else number, [said], done(), **names) for number, said in enumerate(asked)]
    items = [accepted(item) for item in read(tmp_path, lines(told))]
    assert [item.trajectory.messages[1].content for item in items] == ["task 0", "task 1", "task 2"]
    assert not any(item.warnings for item in items)


def test_a_span_that_stands_there_again_is_read_once_and_counted(tmp_path: Path) -> None:
    (item,) = read(tmp_path, lines([*TRACE, *TRACE]))
    assert roles(accepted(item)) == "suatata"
    assert accepted(item).warnings == ("repeated_lines",)


def test_of_two_tracers_of_one_response_the_fuller_holds(tmp_path: Path) -> None:
    bare = {key: value for key, value in TRACE[0]["attributes"].items() if "messages" not in key}
    (item,) = read(tmp_path, lines([span(9, "chat m", bare, startTime=[1_600_000_000, 0]), *TRACE]))
    assert roles(accepted(item)) == "suatata"


def test_executions_of_one_id_each_have_their_own_error(tmp_path: Path) -> None:
    twice = [call("c1", "A18"), got("c1", "no"), call("c1", "A17"), got("c1", "2")]
    tools = [tool(2, "c1", "no", status={"code": 2, "message": "no"}), tool(3, "c1", "2")]
    (item,) = read(tmp_path, lines([*tools, chat(4, [ASK, *twice], done())]))
    answers = [message for message in accepted(item).trajectory.messages if message.role == "tool"]
    assert [message.error is not None for message in answers] == [True, False]


def test_calls_of_one_id_that_say_different_things_are_all_read(tmp_path: Path) -> None:
    made = [run_lines("A", number)[0] for number in range(3)]
    for number, line in enumerate(made):
        line["response"]["id"] = "same"
        line["request"]["messages"] = [{"role": "user", "content": f"task {number}"}]
    items = [accepted(item) for item in call_logs.IMPORTER.read(write(tmp_path / "calls.jsonl", made))]
    assert {item.trajectory.messages[0].content for item in items} == {"task 0", "task 1", "task 2"}
    result = import_file(new_store(tmp_path), write(tmp_path / "calls.jsonl", made))
    assert (result.accepted, result.reasons) == (3, {})


def test_events_of_one_id_are_all_read_and_counted(tmp_path: Path) -> None:
    texts = ["One.", "Two.", "Three."]
    answers = [test_openhands.response(text=text) for text in texts]
    history = [test_openhands.act(1, "message", said, content=text) for said, text in zip(answers, texts, strict=True)]
    path = write(tmp_path / "log", [test_openhands.run(test_openhands.ask(), *history)])
    (item,) = (accepted(each) for each in openhands.IMPORTER.read(path))
    assert [message.content for message in item.trajectory.messages if message.role == "assistant"] == texts
    assert item.warnings == ("repeated_event_id",)

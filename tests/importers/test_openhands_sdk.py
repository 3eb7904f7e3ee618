"""Events of the OpenHands SDK, as its conversations hold them and its evaluations write them."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from curation.importers import formats, openhands
from curation.importers.face import Parsed
from schemas.digests import decisions_of
from schemas.trajectory import Answers, Budget, MessageError, Usage
from tests.importers.reading import accepted, calls


def text(words: str) -> dict[str, Any]:
    return {"cache_prompt": False, "type": "text", "text": words}


def event(kind: str, source: str = "agent", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "source": source, "timestamp": "2026-01-02T03:04:05", **more}


def said(role: str, words: str, **more: Any) -> dict[str, Any]:
    source = "user" if role == "user" else "agent"
    return event("MessageEvent", source, llm_message={"role": role, "content": [text(words)]}, **more)


def act(call_id: str, arguments: str, response: str = "r1", name: str = "terminal", **more: Any) -> dict[str, Any]:
    call = {"id": call_id, "name": name, "arguments": arguments, "origin": "completion"}
    about = {"thought": [], "action": {"kind": "Action"}, "tool_name": name, "tool_call_id": call_id}
    return event("ActionEvent", **{**about, "tool_call": call, "llm_response_id": response, **more})


def seen(call_id: str, words: str, *, error: bool = False) -> dict[str, Any]:
    observation = {"content": [text(words)], "is_error": error, "kind": "TerminalObservation"}
    return event("ObservationEvent", "environment", tool_call_id=call_id, observation=observation)


PROMPT = event("SystemPromptEvent", system_prompt=text("You count stock."), tools=[], dynamic_context=text("Today."))
ASKED = said("user", "How many A17?")


def chained(*events: dict[str, Any]) -> list[dict[str, Any]]:
    """Events as they follow one another."""
    return [
        one
        | {"id": f"e{at}", "parent_id": f"e{at - 1}" if at else None}
        | {k: one[k] for k in ("parent_id",) if k in one}
        for at, one in enumerate(events)
    ]


def read(folder: Path, *events: dict[str, Any]) -> Parsed:
    path = folder / "events.json"
    path.write_text(json.dumps(chained(*events), indent=1))
    assert formats.detect(path)[0] is openhands.IMPORTER
    (item,) = openhands.IMPORTER.read(path)
    return accepted(item)


def test_the_actions_of_one_response_are_one_turn_with_their_answers(tmp_path: Path) -> None:
    first = act("c1", '{ "command": "ls" }', thought=[text("Look.")], reasoning_content="Two places.")
    events = (PROMPT, ASKED, first, act("c2", '{"command":"pwd"}'), seen("c2", "/w"), seen("c1", "no", error=True))
    end = (act("c3", '{"message":"Two."}', "r2", "finish"), seen("c3", "Two."))
    parsed = read(tmp_path, *events, *end)
    messages = parsed.trajectory.messages
    assert [message.role for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
        "tool",
    ]
    assert [part.text for part in messages[0].content or () if not isinstance(part, str)] == [
        "You count stock.",
        "Today.",
    ]
    assert (messages[2].content, messages[2].reasoning) == ("Look.", "Two places.")
    assert [call.arguments_text for call in calls(parsed.trajectory)[:2]] == [
        '{ "command": "ls" }',
        '{"command":"pwd"}',
    ]
    assert [message.answers for message in messages[3:5]] == [Answers("2.1", "id"), Answers("2.0", "id")]
    assert [message.error for message in messages[3:5]] == [None, MessageError(origin="tool")]
    assert {fact.field: fact.value for fact in parsed.facts}["stop"] == "completed"
    assert not any(message.hidden for message in messages)


def test_what_the_harness_put_in_place_of_a_call_that_does_not_parse_is_no_call_of_it(tmp_path: Path) -> None:
    note = json.dumps({"_openhands_malformed_tool_call": True, "error": "unparseable JSON"})
    complaint = event("AgentErrorEvent", tool_call_id="c1", error="unparseable JSON")
    parsed = read(tmp_path, PROMPT, ASKED, act("c1", note, action=None), complaint)
    (made,) = calls(parsed.trajectory)
    assert (made.arguments, made.parse_error, made.arguments_text) == (UNSET, "not_json", note)
    assert parsed.trajectory.messages[-1].error == MessageError(origin="harness")


@pytest.mark.parametrize(
    "gap", [event("Condensation", "environment", forgotten_event_ids=["e1"]), said("user", "Again.", parent_id="e0")]
)
def test_what_was_condensed_or_does_not_follow_leaves_the_history_incomplete(
    tmp_path: Path, gap: dict[str, Any]
) -> None:
    parsed = read(tmp_path, PROMPT, ASKED, said("assistant", "Two."), gap, said("assistant", "None."))
    assert [decision.partial for decision in decisions_of(parsed.trajectory)] == [False, True]


def test_lines_of_an_evaluation_name_task_model_budget_and_usage(tmp_path: Path) -> None:
    line = {
        "instance_id": "repo__1",
        "test_result": {"git_patch": "diff"},
        "instruction": "Fix it.",
        "metadata": {"llm": {"model": "vendor/m", "temperature": 0.0}, "dataset": "bench", "max_iterations": 9},
        "history": chained(PROMPT, ASKED, said("assistant", "Two.", llm_response_id="r1")),
        "metrics": {"accumulated_cost": 0.5, "accumulated_token_usage": {"prompt_tokens": 7, "completion_tokens": 3}},
        "error": None,
    }
    path = tmp_path / "output.jsonl"
    path.write_text(json.dumps(line) + "\n")
    assert formats.detect(path)[0] is openhands.IMPORTER
    (item,) = openhands.IMPORTER.read(path)
    trajectory = accepted(item).trajectory
    assert (trajectory.task.namespace, trajectory.task.id) == ("bench", "repo__1")
    assert (trajectory.conditions.model, trajectory.conditions.budget) == ("vendor/m", Budget(steps=9))
    assert trajectory.usage == Usage(7, 3, 0.5)
    assert [message.role for message in trajectory.messages] == ["system", "user", "assistant"]


def test_values_of_other_shapes_are_read_or_refused(tmp_path: Path) -> None:
    odd: list[Any] = [None, 7, "x", [], [None], {}, {"type": "text"}, {"content": 3}]
    for event_of in (PROMPT, ASKED, act("c1", "{}"), seen("c1", "2"), event("AgentErrorEvent", error="e")):
        for key in event_of.keys() - {"kind", "source"}:
            for value in odd:
                path = tmp_path / "events.json"
                path.write_text(json.dumps([PROMPT, ASKED, event_of | {key: value}]))
                assert len(list(openhands.IMPORTER.read(path))) == 1

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.importers import openai_chat
from curation.importers.face import Fact
from schemas.canonical import digest, encode
from schemas.digests import decisions_of
from schemas.reasons import QUARANTINE
from schemas.trajectory import Attempt, MessageError, Part, Task, Usage, decode, trajectory_id
from tests.eight import TOOLS, UNKNOWN, records
from tests.importers.reading import accepted, answer, ask, call, calls, chat, read_chat, read_chats, refuse_chat, write


def test_the_eight_are_read_as_they_stand(eight: Path) -> None:
    items = [accepted(item) for item in openai_chat.IMPORTER.read(eight)]
    data = eight.read_bytes()
    assert [item.key for item in items] == [record["id"] for record in records()]
    assert [item.trajectory.stop_text for item in items] == [record["error"] for record in records()]
    assert [item.facts for item in items] == [
        (Fact("outcome", "passed" if record["outcome"]["success"] else "failed"),) for record in records()
    ]
    assert [len(item.trajectory.messages) for item in items] == [len(record["messages"]) for record in records()]
    assert {item.trajectory.conditions.tools for item in items} == {digest(encode(TOOLS))}
    for item in items:
        assert data[item.offset :].startswith(item.raw)
        assert json.loads(item.raw) == records()[item.place - 1]
        assert item.warnings == ()
        assert decode(encode(item.trajectory)) == item.trajectory


def test_the_eight_are_the_shared_ones(shared_eight: Path, eight: Path) -> None:
    assert eight.read_bytes() == shared_eight.read_bytes()


def test_the_outcome_and_what_stopped_the_run_stay_out_of_the_messages(eight: Path) -> None:
    first = accepted(next(openai_chat.IMPORTER.read(eight)))
    assert UNKNOWN in [message.content for message in first.trajectory.messages]
    assert "bad_args" not in encode(first.trajectory.messages).decode()
    assert b"outcome" not in encode(first.trajectory)


def test_the_same_line_is_the_same_record_wherever_it_stands(tmp_path: Path) -> None:
    record = chat(ask(call("{}")), answer("2"), id="r1")
    first = read_chat(tmp_path, record)
    (_, second) = openai_chat.IMPORTER.read(write(tmp_path / "other name.log", [chat(), record]))
    assert trajectory_id(first.trajectory) == trajectory_id(accepted(second).trajectory)
    assert first.raw == accepted(second).raw


def test_key_order_and_white_space_do_not_matter_but_one_and_one_point_zero_do(tmp_path: Path) -> None:
    objects = [{"qty": 1, "sku": "A17"}, {"sku": "A17", "qty": 1}, {"sku": "A17", "qty": 1.0}]
    found = [trajectory_id(read_chat(tmp_path, chat(ask(call(one)), answer("2"))).trajectory) for one in objects]
    assert found[0] == found[1]
    assert found[2] != found[0]


def test_a_repeated_message_is_kept_each_time(tmp_path: Path) -> None:
    yes = {"role": "user", "content": "yes"}
    parsed = read_chat(tmp_path, chat({"role": "assistant", "content": "Sure?"}, yes, yes, yes))
    assert [message.content for message in parsed.trajectory.messages].count("yes") == 3


@pytest.mark.parametrize("more", [{}, {"outcome": None}, {"score": None}, {"outcome": {"success": None}}])
def test_a_missing_outcome_is_never_a_failure(tmp_path: Path, more: dict[str, Any]) -> None:
    assert read_chat(tmp_path, chat(**more)).facts == ()


@pytest.mark.parametrize(
    ("more", "fact"),
    [
        ({"outcome": True}, Fact("outcome", "passed")),
        ({"outcome": False, "score": 0.25}, Fact("outcome", "failed", score=0.25)),
        ({"outcome": "partial"}, Fact("outcome", "partial")),
        ({"outcome": {"success": True, "score": 1}}, Fact("outcome", "passed", score=1)),
        ({"score": 0.5}, Fact("outcome", "unknown", score=0.5)),
        ({"strata": {"difficulty": "easy"}}, Fact("strata.difficulty", "easy")),
        ({"split": "test"}, Fact("split", "test")),
        ({"group": "template-1"}, Fact("group", "template-1")),
        ({"environment": "inventory@1"}, Fact("environment", "inventory@1")),
        ({"stop": "max_steps"}, Fact("stop", "max_steps")),
        ({"budget": {"steps": 8}}, Fact("budget.steps", 8)),
    ],
)
def test_side_file_keys_inline_are_facts_that_the_log_states(tmp_path: Path, more: dict[str, Any], fact: Fact) -> None:
    parsed = read_chat(tmp_path, chat(**more))
    assert parsed.facts == (fact,)
    assert parsed.trajectory == read_chat(tmp_path, chat()).trajectory


def test_inline_keys_say_which_attempt_it_is(tmp_path: Path) -> None:
    keys = {"namespace": "shop", "task": 7, "variant": "hard", "parameters": {"stock": [1.0]}, "attempt": 2}
    parsed = read_chat(tmp_path, chat(id="r1", **keys))
    assert parsed.trajectory.task == Task("shop", "7", "hard", msgspec.Raw(b'{"stock":[1.0]}'))
    assert parsed.trajectory.attempt == Attempt("r1", 2)
    renamed = read_chat(tmp_path, chat(id="r1", run="night"))
    assert (renamed.trajectory.attempt, renamed.key) == (Attempt("night"), "r1")


@pytest.mark.parametrize("name", ["../../x", "CON", "a" * 300, "a/b", "\x00", "=1+1"])
def test_a_name_is_kept_as_it_is_and_never_used_as_a_path(tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.parent.rglob("*"))
    assert read_chat(tmp_path, chat(id=name)).key == name
    assert sorted(tmp_path.parent.rglob("*")) == sorted([*before, tmp_path / "chats.jsonl"])


def test_what_the_log_records_of_the_circumstances_is_recorded(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    parsed = read_chat(
        tmp_path, chat(model="m-1", seed=3, temperature=0.0, top_p=1, usage=usage, note={"a": [1, None]})
    )
    conditions = parsed.trajectory.conditions
    assert (conditions.model, conditions.seed) == ("m-1", 3)
    assert conditions.sampling == msgspec.Raw(b'{"temperature":0.0,"top_p":1}')
    assert parsed.trajectory.usage == Usage(10, 2)
    assert parsed.trajectory.extra == msgspec.Raw(b'{"note":{"a":[1,null]}}')


@pytest.mark.parametrize("more", [{"created_at": "2026-01-01"}, {"duration": 3.5}, {"reward": 1.0}, {"refusal": None}])
def test_clocks_outcomes_and_nulls_make_no_other_record(tmp_path: Path, more: dict[str, Any]) -> None:
    said = {"role": "assistant", "content": "2"}
    plain = read_chat(tmp_path, chat(said)).trajectory
    assert read_chat(tmp_path, chat(said, **more)).trajectory == plain
    if "reward" not in more:
        assert read_chat(tmp_path, chat(said | more)).trajectory == plain


def test_an_error_object_is_kept_as_text(tmp_path: Path) -> None:
    assert read_chat(tmp_path, chat(error={"b": 1, "a": "x"})).trajectory.stop_text == '{"a":"x","b":1}'


def test_a_developer_is_the_system(tmp_path: Path) -> None:
    developer, system = (
        read_chat(
            tmp_path, {"messages": [{"role": role, "content": "Be brief."}, {"role": "assistant", "content": "2"}]}
        )
        for role in ("developer", "system")
    )
    assert developer.trajectory.messages[0].role == "system"
    assert developer.trajectory.messages[0].extra == msgspec.Raw(b'{"role":"developer"}')
    assert decisions_of(developer.trajectory) == decisions_of(system.trajectory)


def test_parts_that_are_no_text_are_blobs(tmp_path: Path) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    content = [{"type": "text", "text": "Look", "cache": True}, image, "and say"]
    parsed = read_chat(tmp_path, {"messages": [{"role": "user", "content": content}]})
    (blob,) = parsed.objects
    (message,) = parsed.trajectory.messages
    assert (blob.kind, blob.id, blob.bytes) == ("blob", digest(encode(image)), encode(image))
    assert message.content == (Part("text", "Look"), Part("image_url", sha256=blob.id), Part("text", "and say"))
    assert message.extra == msgspec.Raw(b'{"content":{"0":{"cache":true}}}')


def test_reasoning_is_kept_apart_from_what_was_said(tmp_path: Path) -> None:
    for key in ("reasoning", "reasoning_content"):
        parsed = read_chat(tmp_path, chat({"role": "assistant", "content": "2", key: "They want a count."}))
        assert (parsed.trajectory.messages[1].reasoning, parsed.trajectory.messages[1].content) == (
            "They want a count.",
            "2",
        )


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({}, None),
        ({"is_error": False}, None),
        ({"error": None}, None),
        ({"is_error": True}, MessageError()),
        ({"error": "timed out"}, MessageError("timed out")),
        ({"error": {"message": "timed out", "type": "timeout"}}, MessageError("timed out", "timeout")),
        ({"error": {"code": 429}}, MessageError('{"code":429}')),
    ],
)
def test_an_error_is_what_the_log_marks_as_one_whatever_the_words(
    tmp_path: Path, more: dict[str, Any], error: MessageError | None
) -> None:
    parsed = read_chat(tmp_path, chat(ask(call("{}")), answer("Error: unknown_sku", **more)))
    assert parsed.trajectory.messages[2].error == error


def test_tools_may_be_json_text_of_a_list(tmp_path: Path) -> None:
    as_list, as_text = (read_chat(tmp_path, chat(tools=tools)) for tools in (TOOLS, json.dumps(TOOLS)))
    assert as_list.trajectory == as_text.trajectory
    assert [one.bytes for one in as_text.objects] == [encode(TOOLS)]


def test_a_run_that_ended_before_its_first_message_is_an_attempt(tmp_path: Path) -> None:
    parsed = read_chat(tmp_path, {"id": "r1", "messages": [], "error": "no capacity"})
    assert (parsed.trajectory.messages, parsed.trajectory.stop_text) == ((), "no capacity")


@pytest.mark.parametrize(
    ("record", "code", "path"),
    [
        ([], "not_a_record", "array"),
        ({}, "not_a_record", "messages"),
        ({"messages": {}}, "not_a_record", "$.messages"),
        ({"messages": ["hello"]}, "not_a_record", "$.messages[0]"),
        (chat({"content": "x"}), "not_a_record", "role"),
        (chat({"role": "narrator", "content": "x"}), "unknown_role", "$.messages[1].role is 'narrator'"),
        (chat({"role": 7, "content": "x"}), "not_a_record", "role"),
        (chat({"role": "user"}), "not_a_record", "$.messages[1]"),
        (chat({"role": "tool", "tool_call_id": "c1"}), "not_a_record", "$.messages[1]"),
        (chat({"role": "assistant"}), "not_a_record", "$.messages[1]"),
        (chat({"role": "user", "content": 7}), "not_a_record", "content"),
        (chat({"role": "assistant", "tool_calls": {}}), "not_a_record", "tool_calls"),
        (chat(ask({"id": "c1"})), "not_a_record", "function"),
        (chat(ask({"function": {"arguments": "{}"}})), "not_a_record", "name"),
        (chat(tools={}), "not_a_record", "$.tools"),
        (chat(tools="[{"), "not_a_record", "$.tools"),
        (chat(tools="{}"), "not_a_record", "$.tools"),
        (chat(id=[1]), "not_a_record", "$.id"),
        (chat(outcome="won"), "bad_side_keys", "$.outcome"),
        (chat(outcome={"status": "ok"}), "bad_side_keys", "success"),
        (chat(attempt="first"), "bad_side_keys", "$.attempt"),
        (chat(strata=["easy"]), "bad_side_keys", "$.strata"),
        (chat(stop="tired"), "bad_side_keys", "$.stop"),
    ],
)
def test_a_malformed_record_is_refused_with_a_code_and_the_path(
    tmp_path: Path, record: Any, code: str, path: str
) -> None:
    refused = refuse_chat(tmp_path, record)
    assert (refused.code, refused.place, refused.offset) == (code, 1, 0)
    assert path in refused.detail
    assert code in QUARANTINE


def test_every_line_is_one_item_in_order(tmp_path: Path) -> None:
    items = read_chats(tmp_path, chat(id="a"), b"{", b"", chat(id="b"), b'{"a":2}TRAILER')
    assert [(type(item).__name__, item.place) for item in items] == [
        ("Parsed", 1),
        ("Rejected", 2),
        ("Parsed", 4),
        ("Rejected", 5),
    ]


def test_a_tool_answer_keeps_what_its_call_does_not_say(tmp_path: Path) -> None:
    parsed = read_chat(tmp_path, chat(ask(call("{}")), answer("2", name="get_stock", weight=0)))
    assert parsed.trajectory.messages[2].extra == msgspec.Raw(b'{"weight":0}')
    assert calls(parsed.trajectory)[0].id == "c1"


def test_a_refusal_and_structured_reasoning_are_part_of_what_was_shown(tmp_path: Path) -> None:
    seen = set()
    for said in (
        {"content": None},
        {"content": None, "refusal": "I cannot."},
        {"content": "Well.", "refusal": "I cannot."},
        {"content": None, "reasoning": ["a", {"b": 1}]},
        {"content": None, "reasoning": ["a", {"b": 2}]},
        {"content": None, "reasoning": ["a"], "reasoning_content": "r"},
    ):
        first = {"role": "assistant", **said}
        then = ({"role": "user", "content": "Why?"}, {"role": "assistant", "content": "x"})
        parsed = read_chat(tmp_path, chat(first, *then))
        seen.add(decisions_of(parsed.trajectory)[-1].context)
    assert len(seen) == 6


@pytest.mark.parametrize("more", [{"attempt": 2**63}, {"attempt": -1}, {"score": 10**400}])
def test_a_number_that_no_column_holds_is_refused(more: dict[str, Any], tmp_path: Path) -> None:
    assert refuse_chat(tmp_path, chat(**more)).code == "bad_side_keys"

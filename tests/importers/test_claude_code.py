import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.importers import claude_code
from curation.importers.face import Parsed, Rejected
from schemas.canonical import encode
from schemas.digests import decisions_of
from schemas.objects import Object
from schemas.trajectory import Answers, Attempt, Usage
from tests.importers.reading import calls
from tests.importers.session import facts, line, model, note, only, read, refused, result, runs, shown, text, use, user
from tests.ingest.logs import import_file, new_store

FOLDER = "claude-code/test/test_data"


def extra(value: Any) -> Any:
    return msgspec.json.decode(value.extra)


def raw_lines(path: Path) -> list[Any]:
    return [json.loads(one) for one in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("name", "keys", "made", "codes"),
    [
        ("representative_messages.jsonl", ["test_session"], 2, {}),
        ("session_b.jsonl", ["session_b"], 0, {}),
        ("todowrite_examples.jsonl", ["todowrite_session"], 3, {}),
        ("edge_cases.jsonl", ["todowrite_session/assistant_004", "edge_cases"], 3, {"not_a_record": 6}),
    ],
)
def test_the_real_sessions(logs: Path, name: str, keys: list[str], made: int, codes: dict[str, int]) -> None:
    path = logs / FOLDER / name
    items = list(claude_code.IMPORTER.read(path))
    parsed = [item for item in items if isinstance(item, Parsed)]
    assert [item.key for item in parsed] == keys
    assert Counter(item.code for item in items if isinstance(item, Rejected)) == codes
    assert sum(len(calls(item.trajectory)) for item in parsed) == made
    said = [one["message"] for one in raw_lines(path) if isinstance(one, dict) and one.get("type") == "assistant"]
    spent = [item.trajectory.usage for item in parsed]
    assert sum(usage.prompt_tokens or 0 for usage in spent if usage) == sum(
        one["usage"]["input_tokens"] for one in said
    )
    assert sum(usage.completion_tokens or 0 for usage in spent if usage) == sum(
        one["usage"]["output_tokens"] for one in said
    )
    for item in parsed:
        assert all(message.answers for message in item.trajectory.messages if message.role == "tool")


def test_the_lines_of_the_real_sessions_that_are_refused_are_the_broken_ones(logs: Path) -> None:
    path = logs / FOLDER / "edge_cases.jsonl"
    data = path.read_bytes()
    found = {item.place: item for item in claude_code.IMPORTER.read(path) if isinstance(item, Rejected)}
    assert sorted(found) == [10, 11, 13, 14, 15, 16]
    assert [found[place].raw for place in (13, 14, 15, 16)] == [b'"massive error"', b'{"silly": "this"}', b"42", b"[1]"]
    assert "content" in found[10].detail
    for item in found.values():
        assert data[item.offset :].startswith(item.raw)


def test_the_bytes_of_a_session_come_back_from_the_store_and_a_second_import_changes_nothing(
    logs: Path, tmp_path: Path
) -> None:
    store = new_store(tmp_path)
    for path in sorted((logs / FOLDER).glob("*.jsonl")):
        first = import_file(store, path)
        again = import_file(store, path)
        assert first.accepted + first.quarantined == first.read
        assert (again.accepted, again.duplicates, again.quarantined) == (0, first.accepted, first.quarantined)
        raws = store.sql("SELECT DISTINCT raw FROM sightings WHERE name = ?", [path.as_posix()])["raw"].to_pylist()
        assert [store.object(raw) for raw in raws] == [path.read_bytes()]


def test_a_parent_that_was_never_written_begins_a_fragment_with_an_incomplete_history(tmp_path: Path) -> None:
    found = runs(
        read(
            tmp_path,
            user("u1", None),
            model("a1", "u1", text("two")),
            user("u2", "ghost", "and B17?"),
            model("a2", "u2", text("none")),
        )
    )
    assert {key: shown(item.trajectory.messages) for key, item in found.items()} == {
        "s1/a1": ["How many A17 are left?", "two"],
        "s1/a2": ["and B17?", "none"],
    }
    whole, fragment = found.values()
    assert (whole.warnings, fragment.warnings) == ((), ("dangling_parent",))
    assert [message.hidden for message in fragment.trajectory.messages] == ["compaction", None]
    assert all(decision.partial for decision in decisions_of(fragment.trajectory))
    assert not any(decision.partial for decision in decisions_of(whole.trajectory))


@pytest.mark.parametrize("parents", [("u1", "a1", "a2"), ("u1", "u1", "u1"), (None, None, None)])
def test_a_turn_on_several_lines_is_one_message_with_the_last_usage(
    tmp_path: Path, parents: tuple[str | None, ...]
) -> None:
    thought = {"type": "thinking", "thinking": "A17, then", "signature": "c2ln"}
    blocks = (text("Let me see."), thought, use("c1", sku="A17"))
    turn = [
        model(f"a{at}", parent, block, turn="m1", usage={"input_tokens": 10, "output_tokens": spent})
        for at, (parent, block, spent) in enumerate(zip(parents, blocks, (1, 1, 37), strict=True), 1)
    ]
    item = only(read(tmp_path, user("u1", None), *turn))
    request, said = item.trajectory.messages
    assert (said.content, said.reasoning) == ("Let me see.", "A17, then")
    assert [call.arguments_text for call in said.tool_calls] == ['{"sku":"A17"}']
    assert item.trajectory.usage == Usage(10, 37)
    assert len(decisions_of(item.trajectory)) == 1
    assert request.hidden is None
    assert extra(said)["thinking"] == {"0": {"signature": "c2ln"}}
    assert item.part == "a3"


def test_torn_lines_are_quarantined_and_the_rest_is_read(tmp_path: Path) -> None:
    lines: list[Any] = [
        user("u1", None),
        b'{"type":"assistant","uuid":"a1","parentUuid":"u1","out',
        model("a1", "u1", text("two")),
        b'{"a":2}TRAILER',
    ]
    items = read(tmp_path, *lines)
    assert refused(items) == [("truncated", 2), ("trailing_text", 4)]
    data = (tmp_path / "session.jsonl").read_bytes()
    assert all(data[item.offset :].startswith(item.raw) for item in items)
    (item,) = (one for one in items if isinstance(one, Parsed))
    assert (item.key, shown(item.trajectory.messages)) == ("s1", ["How many A17 are left?", "two"])


def test_where_no_line_names_another_a_line_that_cannot_be_read_leaves_a_gap(tmp_path: Path) -> None:
    flat = [user("u1", None), model("a1", None, text("two")), b"{", user("u2", None, "and B17?")]
    items = read(tmp_path, *flat)
    item = next(one for one in items if isinstance(one, Parsed))
    assert item.warnings == ("parents_unknown",)
    assert [message.hidden for message in item.trajectory.messages] == [None, None, "compaction"]


def test_a_cycle_is_refused_with_its_path_and_the_rest_is_read(tmp_path: Path) -> None:
    items = read(
        tmp_path, user("a", "b", "first"), model("b", "a", text("second")), user("a", None, "third"), user("c", "c")
    )
    assert refused(items) == [("parent_cycle", 2), ("repeated_id", 3), ("parent_cycle", 4)]
    details = [item.detail for item in items if isinstance(item, Rejected)]
    assert details[0].endswith("b -> a -> b")
    assert details[2].endswith("c -> c")
    (item,) = (one for one in items if isinstance(one, Parsed))
    assert item.key == "s1/a"
    assert item.trajectory.messages[0].hidden == "compaction"


def test_a_chain_of_thousands_and_lines_in_the_wrong_order_are_read(tmp_path: Path) -> None:
    chain = [user(f"n{at}", f"n{at - 1}" if at else None, str(at)) for at in range(5001)]
    item = only(read(tmp_path, *reversed(chain)))
    assert shown(item.trajectory.messages) == [str(at) for at in range(5001)]


@pytest.mark.parametrize("late", ["r1", "r2"])
def test_parallel_calls_and_their_answers_are_one_run_wherever_they_hang(tmp_path: Path, late: str) -> None:
    item = only(
        read(
            tmp_path,
            user("u1", None),
            model("a1", "u1", use("c1", sku="A17"), turn="m1"),
            model("a2", "a1", use("c2", sku="B17"), turn="m1"),
            note("p1", "a1", "progress"),
            result("r2", "a2", "c2", "none"),
            result("r1", "a1", "c1", "two"),
            model("a3", late, text("two and none")),
        )
    )
    messages = item.trajectory.messages
    assert shown(messages) == ["How many A17 are left?", ["c1", "c2"], "none", "two", "two and none"]
    assert [message.answers for message in messages[2:4]] == [Answers("1.1", "id"), Answers("1.0", "id")]
    assert item.warnings == ()
    assert "branched_from" not in facts(item)


def test_a_turn_goes_on_after_the_first_of_its_answers(tmp_path: Path) -> None:
    item = only(
        read(
            tmp_path,
            user("u1", None),
            model("a1", "u1", use("c1"), turn="m1"),
            result("r1", "a1", "c1", "two"),
            model("a2", "r1", use("c2"), turn="m1"),
            result("r2", "a2", "c2", "none"),
            model("a3", "r2", text("done"), stop_reason="end_turn"),
        )
    )
    assert shown(item.trajectory.messages) == ["How many A17 are left?", ["c1", "c2"], "two", "none", "done"]
    assert facts(item)["stop"] == "completed"


@pytest.mark.parametrize(
    ("reason", "stop"), [("max_tokens", "output_length"), ("model_context_window_exceeded", "context_length")]
)
def test_an_answer_that_is_cut_says_at_which_limit(tmp_path: Path, reason: str, stop: str) -> None:
    item = only(read(tmp_path, user("u1", None), model("a1", "u1", text("There a"), stop_reason=reason)))
    assert facts(item)["stop"] == stop


MARK = "[Request interrupted by user]"


@pytest.mark.parametrize(
    ("mark", "stop", "actor"),
    [
        (user("u2", "a1", [text(MARK)]), "user_stop", "harness"),
        (user("u2", "a1", [text("[Request interrupted by user for tool use]")]), "user_stop", "harness"),
        (user("u2", "a1", "Wait.", interruptedMessageId="m-a1"), "user_stop", None),
        (user("u2", "a1", MARK), "unknown", None),
        (user("u2", "a1", [text(f"Why does it say {MARK}?")]), "unknown", None),
        (user("u2", "a1", [text(MARK), text("Go on.")]), "unknown", None),
    ],
)
def test_a_user_who_breaks_in_is_known_by_the_mark_of_the_harness(
    tmp_path: Path, mark: Any, stop: str, actor: str | None
) -> None:
    asked = [user("u1", None), model("a1", "u1", text("There"))]
    item = only(read(tmp_path, *asked, mark))
    assert (facts(item)["stop"], item.trajectory.messages[-1].actor) == (stop, actor)
    later = only(read(tmp_path, *asked, mark, model("a2", "u2", text("Two."), stop_reason="end_turn")))
    assert facts(later)["stop"] == "completed"


def test_retries_and_rewinds_are_runs_that_say_what_they_left_and_where(tmp_path: Path) -> None:
    found = runs(
        read(
            tmp_path,
            user("u1", None),
            model("a1", "u1", use("c1", sku="A18")),
            result("r1", "a1", "c1", "unknown_sku"),
            result("r2", "a1", "c1", "timeout"),
            model("a2", "u1", text("two")),
            user("u2", "a2", "and B17?"),
            user("u3", "a2", "and C17?"),
        )
    )
    assert {key: shown(item.trajectory.messages)[1:] for key, item in found.items()} == {
        "s1/r1": [["c1"], "unknown_sku"],
        "s1/r2": [["c1"], "timeout"],
        "s1/u2": ["two", "and B17?"],
        "s1/u3": ["two", "and C17?"],
    }
    left = {key: facts(item).get("branched_from") for key, item in found.items()}
    assert left == {
        "s1/r1": None,
        "s1/r2": '{"message":2,"run":"s1/r1"}',
        "s1/u2": '{"message":1,"run":"s1/r1"}',
        "s1/u3": '{"message":2,"run":"s1/u2"}',
    }
    assert [item.part for item in found.values()] == ["r1", "r2", "u2", "u3"]
    assert [item.trajectory.attempt for item in found.values()] == [Attempt(str(key)) for key in found]


def test_what_a_subagent_did_is_a_run_of_its_own(tmp_path: Path) -> None:
    side = {"isSidechain": True, "agentId": "x7"}
    found = runs(
        read(
            tmp_path,
            user("u1", None),
            model("a1", "u1", use("c1", "Task", prompt="count")),
            user("s1u", None, "count", **side),
            {**model("s1a", "s1u", text("two")), **side},
            user("s2u", "a1", "count again", isSidechain=True),
            result("r1", "a1", "c1", "two"),
        )
    )
    assert {key: facts(item)["strata.sidechain"] for key, item in found.items()} == {
        "s1": "no",
        "s1/x7": "yes",
        "s1/s2u": "yes",
    }
    assert shown(found["s1"].trajectory.messages) == ["How many A17 are left?", ["c1"], "two"]
    assert shown(found["s1/x7"].trajectory.messages) == ["count", "two"]
    assert extra(found["s1/s2u"].trajectory)["spawned_by"] == "a1"
    assert not any(item.warnings for item in found.values())


def test_after_a_compaction_history_is_hidden_and_replayed_calls_are_read_once(tmp_path: Path) -> None:
    boundary = note("b1", None, subtype="compact_boundary", logicalParentUuid="r1")
    item = only(
        read(
            tmp_path,
            user("u1", None),
            model("a1", "u1", use("c1", sku="A17"), usage={"input_tokens": 5, "output_tokens": 2}),
            result("r1", "a1", "c1", "two"),
            boundary,
            user("u2", "b1", "So far: two are left.", isCompactSummary=True),
            model("a2", "u2", use("c1", sku="A17"), usage={"input_tokens": 5, "output_tokens": 2}),
            result("r2", "a2", "c1", "two"),
            model("a3", "r2", use("c2", sku="B17")),
            result("r3", "a3", "c2", "none"),
        )
    )
    messages = item.trajectory.messages
    assert shown(messages) == [
        "How many A17 are left?",
        ["c1"],
        "two",
        "So far: two are left.",
        ["c2"],
        "none",
    ]
    assert [message.hidden for message in messages] == [None, None, None, "compaction", None, None]
    assert messages[3].actor == "harness"
    assert item.trajectory.usage == Usage(5, 2)
    assert item.warnings == ("replayed_calls",)
    assert [decision.partial for decision in decisions_of(item.trajectory)] == [False, True]


def test_a_compaction_whose_history_is_in_another_file_begins_hidden(tmp_path: Path) -> None:
    boundary = note("b1", None, subtype="compact_boundary", logicalParentUuid="elsewhere")
    item = only(read(tmp_path, boundary, user("u1", "b1", "So far: two."), model("a1", "u1", text("ok"))))
    assert [message.hidden for message in item.trajectory.messages] == ["compaction", None]


def test_a_call_with_another_content_after_a_compaction_is_no_replay(tmp_path: Path) -> None:
    item = only(
        read(
            tmp_path,
            user("u1", None),
            model("a1", "u1", use("c1", sku="A17")),
            result("r1", "a1", "c1"),
            note("b1", "r1", subtype="microcompact_boundary"),
            model("a2", "b1", use("c1", sku="B17")),
            result("r2", "a2", "c1"),
        )
    )
    assert item.warnings == ("repeated_call_id",)
    assert [message.answers for message in item.trajectory.messages if message.role == "tool"] == [
        Answers("1.0", "id"),
        Answers("3.0", "position"),
    ]


def test_a_call_echoed_in_its_turn_is_one_call_and_a_conflict_is_refused(tmp_path: Path) -> None:
    first, echo = model("a1", "u1", use("c1", sku="A17"), turn="m1"), use("c1", sku="A17") | {"ui": {"shown": True}}
    item = only(read(tmp_path, user("u1", None), first, model("a2", "a1", echo, turn="m1")))
    assert [call.id for call in calls(item.trajectory)] == ["c1"]
    assert extra(item.trajectory.messages[1])["tool_calls"]["0"]["ui"] == {"shown": True}
    items = read(tmp_path, user("u1", None), first, model("a2", "a1", use("c1", sku="A18"), turn="m1"))
    assert refused(items) == [("repeated_id", 3)]


def test_repeated_lines_are_read_once_and_words_said_twice_are_kept(tmp_path: Path) -> None:
    yes = user("u2", "a1", "yes")
    item = only(
        read(
            tmp_path,
            user("u1", None),
            model("a1", "u1", text("Sure?")),
            yes,
            yes,
            model("a2", "u2", text("Sure?")),
            user("u3", "a2", "yes"),
        )
    )
    assert shown(item.trajectory.messages)[1:] == ["Sure?", "yes", "Sure?", "yes"]
    assert item.warnings == ("repeated_lines",)


@pytest.mark.parametrize(
    "block", [{"type": "redacted_thinking", "data": "x"}, {"type": "thinking", "thinking": "", "signature": "x"}]
)
def test_reasoning_that_is_not_shown_is_hidden(tmp_path: Path, block: dict[str, Any]) -> None:
    item = only(read(tmp_path, user("u1", None), model("a1", "u1", block, text("two"))))
    said = item.trajectory.messages[1]
    assert (said.content, said.reasoning, said.hidden) == ("two", None, "reasoning")


def test_images_and_what_a_tool_gave_the_harness_are_kept_by_reference(tmp_path: Path) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
    given = {"stdout": "2", "stderr": "", "interrupted": False}
    item = only(
        read(
            tmp_path,
            user("u1", None, [text("see"), image]),
            model("a1", "u1", use("c1")),
            result("r1", "a1", "c1", [text("2"), image], toolUseResult=given),
            note("t1", "r1", "attachment", attachment={"type": "todo_reminder", "content": []}),
        )
    )
    held = {one.id: one.bytes for one in item.objects if isinstance(one, Object)}
    request, _, answer, reminder = item.trajectory.messages
    parts = [*request.content, *answer.content]  # type: ignore[misc]  # both are tuples of parts
    assert [part.type for part in parts] == ["text", "image", "text", "image"]
    assert {held[part.sha256] for part in parts if part.sha256} == {encode(image)}
    assert json.loads(held[extra(answer)["tool_use_result"]]) == given
    assert reminder.actor == "harness"
    assert b"iVBORw0KGgo" not in encode(item.trajectory)


def test_errors_orphans_and_words_of_the_harness(tmp_path: Path) -> None:
    item = only(
        read(
            tmp_path,
            user("u1", None, "Caveat", isMeta=True),
            model("a1", "u1", use("c1")),
            user(
                "r1",
                "a1",
                [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "no such sku", "is_error": True},
                    text("Stop it."),
                ],
            ),
            result("r2", "r1", "ghost", "late"),
        )
    )
    caveat, _, answer, words, orphan = item.trajectory.messages
    assert (caveat.actor, words.actor) == ("harness", None)
    assert answer.error is not None
    assert words.content == "Stop it."
    assert (orphan.answers, extra(orphan)["tool_call_id"]) == (None, "ghost")
    assert item.warnings == ("orphan_answer",)


def test_a_providers_error_is_a_stop_and_no_message(tmp_path: Path) -> None:
    failure = {**model("e1", "u1", text("API Error: 529"), model="<synthetic>"), "isApiErrorMessage": True}
    item = only(read(tmp_path, user("u1", None), failure))
    assert (item.trajectory.stop_text, facts(item)["stop"]) == ("API Error: 529", "provider_error")
    assert "outcome" not in facts(item)
    assert decisions_of(item.trajectory) == ()
    went_on = only(read(tmp_path, user("u1", None), failure, user("u2", "e1", "again")))
    assert (went_on.trajectory.stop_text, facts(went_on)["stop"]) == (None, "unknown")


def test_conditions_are_what_the_lines_say_of_themselves(tmp_path: Path) -> None:
    first = user("u1", None, cwd="/w", gitBranch="main", timestamp="2025-06-14T10:00:00Z")
    call = {**model("a1", "u1", use("c1"), model="m-1"), "timestamp": "2025-06-14T10:00:05Z"}
    record = only(read(tmp_path, first, call)).trajectory
    assert (record.conditions.model, record.conditions.agent) == ("m-1", "claude-code@2.0.1")
    assert extra(record) == {"cwd": "/w", "git_branch": "main"}
    two = only(read(tmp_path, first, call, model("a2", "a1", text("x"), model="m-2")))
    assert two.trajectory.conditions.model is None
    assert extra(two.trajectory)["models"] == ["m-1", "m-2"]
    assert facts(two)["clocks"] == '{"1":"2025-06-14T10:00:05+00:00"}'


def test_a_session_that_forks_at_every_line_is_bounded(tmp_path: Path) -> None:
    filler = "x" * 4000
    comb: list[Any] = [user("n0", None, filler)]
    for at in range(1, 200):
        comb += [user(f"n{at}", f"n{at - 1}", filler), user(f"leaf{at}", f"n{at}", "end")]
    items = read(tmp_path, *comb)
    assert len(items) == 199  # leaves: the last of the chain goes on to the last leaf
    codes = Counter(item.code for item in items if isinstance(item, Rejected))
    assert codes["too_large"] > 0
    size = sum(len(encode(item.trajectory)) for item in items if isinstance(item, Parsed))
    room = max(claude_code.MAX_COPIED_BYTES, claude_code.MAX_COPIES * (tmp_path / "session.jsonl").stat().st_size)
    assert size <= room


def test_a_session_without_messages_is_refused(tmp_path: Path) -> None:
    items = read(tmp_path, {"type": "summary", "summary": "x", "leafUuid": "y"})
    assert refused(items) == [("not_a_record", 1)]


def test_lines_without_names_are_in_the_order_of_the_file(tmp_path: Path) -> None:
    bare = [line("user", "", None, "hi"), line("assistant", "", None, "ho")]
    for one in bare:
        del one["uuid"], one["parentUuid"]
    item = only(read(tmp_path, *bare))
    assert (shown(item.trajectory.messages), item.part) == (["hi", "ho"], "line 2")

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from curation.importers import codex
from curation.importers.face import Item, Parsed, Rejected
from schemas.canonical import encode
from schemas.digests import decisions_of
from schemas.trajectory import Answers, Attempt, MessageError, Usage
from tests.importers.reading import calls, write
from tests.importers.session import facts, only, refused, runs, shown
from tests.ingest.logs import import_file, new_store

TIME = "2025-10-29T00:59:38.317Z"


def entry(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": TIME, "type": kind, "payload": payload}


def meta(**more: Any) -> dict[str, Any]:
    return entry("session_meta", id="t1", cli_version="0.46.0", cwd="/w", **more)


def item(kind: str, **more: Any) -> dict[str, Any]:
    return entry("response_item", type=kind, **more)


def event(kind: str, **more: Any) -> dict[str, Any]:
    return entry("event_msg", type=kind, **more)


def said(role: str, *texts: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": one} for one in texts])


def asked(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a user asks: the item, and the same for people."""
    return said("user", text), event("user_message", message=text)


def call(call_id: str | None, arguments: str = '{"sku":"A17"}') -> dict[str, Any]:
    return item("function_call", name="get_stock", arguments=arguments, call_id=call_id)


def output(call_id: str | None, value: Any = "2") -> dict[str, Any]:
    return item("function_call_output", call_id=call_id, output=value)


def tokens(prompt: int, completion: int) -> dict[str, Any]:
    return event("token_count", info={"total_token_usage": {"input_tokens": prompt, "output_tokens": completion}})


def read(folder: Path, *lines: Any) -> list[Item]:
    return list(codex.IMPORTER.read(write(folder / "rollout.jsonl", lines)))


def test_a_rollout_is_a_run_whose_messages_are_read_once(tmp_path: Path) -> None:
    context = entry("turn_context", model="gpt-5", effort="high", approval_policy="never", cwd="/w")
    lines = [
        meta(originator="codex_exec", base_instructions={"text": "You count."}),
        said("developer", "Be brief."),
        *asked("How many A17 and B17?"),
        context,
        event("agent_reasoning", text="**Counting**"),
        item("reasoning", summary=[{"type": "summary_text", "text": "**Counting**"}], encrypted_content="gA"),
        call("c1"),
        call("c2", '{"sku":"B17"}'),
        tokens(10, 5),
        output("c2", "0"),
        output("c1", "2"),
        said("assistant", "Two and none."),
        event("agent_message", message="Two and none."),
        tokens(30, 9),
        event("task_complete", last_agent_message="Two and none."),
    ]
    parsed = only(read(tmp_path, *lines))
    record = parsed.trajectory
    assert [(message.role, message.hidden) for message in record.messages] == [
        ("system", None),
        ("system", None),
        ("user", None),
        ("assistant", "reasoning"),
        ("tool", None),
        ("tool", None),
        ("assistant", None),
    ]
    assert shown(record.messages)[2:] == ["How many A17 and B17?", ["c1", "c2"], "0", "2", "Two and none."]
    assert [message.answers for message in record.messages[4:6]] == [Answers("3.1", "id"), Answers("3.0", "id")]
    assert [one.arguments_text for one in calls(record)] == ['{"sku":"A17"}', '{"sku":"B17"}']
    assert record.messages[3].reasoning == "**Counting**"
    assert (record.attempt, parsed.key, record.usage) == (Attempt("t1"), "t1", Usage(30, 9))
    assert (record.conditions.model, record.conditions.agent) == ("gpt-5", "codex@0.46.0")
    assert record.conditions.sampling == msgspec.Raw(b'{"reasoning_effort":"high"}')
    assert (facts(parsed)["stop"], parsed.warnings) == ("completed", ())
    assert facts(parsed)["clocks"] == '{"3":"2025-10-29T00:59:38.317000+00:00"}'
    assert "outcome" not in facts(parsed)


def test_two_answers_of_the_model_between_which_tokens_are_counted_are_two_turns(tmp_path: Path) -> None:
    first, second = said("assistant", "One moment."), said("assistant", "Two.")
    assert shown(only(read(tmp_path, meta(), first, second)).trajectory.messages) != ["One moment.", "Two."]
    record = only(read(tmp_path, meta(), first, tokens(1, 1), second)).trajectory
    assert shown(record.messages) == ["One moment.", "Two."]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [('{"sku": "A17"', "truncated"), ('"{\\"sku\\":\\"A17\\"}"', "double_encoded"), ("[]", "not_an_object")],
)
def test_arguments_are_kept_as_written(tmp_path: Path, arguments: str, error: str) -> None:
    (made,) = calls(only(read(tmp_path, meta(), call("c1", arguments))).trajectory)
    assert (made.arguments_text, made.arguments, made.parse_error) == (arguments, UNSET, error)


def test_custom_and_built_in_tools_are_calls_too(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** End Patch"
    action = {"type": "exec", "command": ["ls"]}
    record = only(
        read(
            tmp_path,
            meta(),
            item("custom_tool_call", name="apply_patch", input=patch, call_id="c1", status="completed"),
            item("custom_tool_call_output", call_id="c1", output="Done"),
            item("local_shell_call", call_id="c2", status="completed", action=action),
            item("local_shell_call_output", call_id="c2", output={"content": "denied", "success": False}),
            item("web_search_call", id="w1", status="completed", action={"type": "search", "query": "A17"}),
        )
    ).trajectory
    first, second, third = calls(record)
    assert (first.name, first.arguments_text, first.arguments, first.parse_error) == ("apply_patch", patch, UNSET, None)
    assert (second.name, second.arguments) == ("local_shell", msgspec.Raw(encode(action)))
    assert (third.name, third.id) == ("web_search", "w1")
    answers = [message for message in record.messages if message.role == "tool"]
    assert [(message.content, message.error) for message in answers] == [("Done", None), ("denied", MessageError())]
    assert [message.answers and message.answers.uid for message in answers] == ["0.0", "2.0"]


def test_reasoning_in_full_is_not_hidden(tmp_path: Path) -> None:
    thought = item("reasoning", summary=[], content=[{"type": "reasoning_text", "text": "A17, then"}])
    (message,) = only(read(tmp_path, meta(), thought, said("assistant", "ok"))).trajectory.messages
    assert (message.reasoning, message.hidden) == ("A17, then", None)


def test_images_are_kept_by_reference(tmp_path: Path) -> None:
    image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    parsed = only(read(tmp_path, meta(), call("c1"), output("c1", [{"type": "input_text", "text": "see"}, image])))
    content = parsed.trajectory.messages[1].content
    assert isinstance(content, tuple)
    assert [part.type for part in content] == ["text", "input_image"]
    assert {one.id: one.bytes for one in parsed.objects}[content[1].sha256 or ""] == encode(image)
    assert b"iVBORw0KGgo" not in encode(parsed.trajectory)


def test_ids_that_are_repeated_absent_or_unknown_lose_no_answer(tmp_path: Path) -> None:
    parsed = only(
        read(tmp_path, meta(), call("c1"), output("c1", "a"), call("c1"), output("c1", "b"), call(None), output(None))
    )
    answers = [message.answers for message in parsed.trajectory.messages if message.role == "tool"]
    assert answers == [Answers("0.0", "id"), Answers("2.0", "position"), Answers("4.0", "position")]
    assert parsed.warnings == ("repeated_call_id",)
    orphan = only(read(tmp_path, meta(), output("ghost")))
    assert orphan.warnings == ("orphan_answer",)


def test_counts_within_the_totals_are_kept_beside_them(tmp_path: Path) -> None:
    total = {"input_tokens": 30, "cached_input_tokens": 20, "output_tokens": 9, "total_tokens": 39}
    counted = event("token_count", info={"total_token_usage": total})
    record = only(read(tmp_path, meta(), *asked("How many?"), said("assistant", "2"), counted))
    assert record.trajectory.usage == Usage(30, 9)
    assert msgspec.json.decode(record.trajectory.extra)["usage_details"] == {"cached_input_tokens": 20}  # type: ignore[arg-type]


def test_turns_that_were_taken_back_are_a_run_and_the_run_without_them_says_so(tmp_path: Path) -> None:
    lines = [
        meta(),
        *asked("How many A17?"),
        said("assistant", "Two."),
        event("task_complete"),
        *asked("And B17?"),
        said("assistant", "None."),
        event("task_complete"),
        event("thread_rolled_back", num_turns=1),
        *asked("And C17?"),
        event("turn_aborted", reason="interrupted"),
    ]
    found = runs(read(tmp_path, *lines))
    assert {key: shown(one.trajectory.messages) for key, one in found.items()} == {
        "t1/line 8": ["How many A17?", "Two.", "And B17?", "None."],
        "t1/line 11": ["How many A17?", "Two.", "And C17?"],
    }
    assert [facts(one).get("branched_from") for one in found.values()] == [None, '{"message":2,"run":"t1/line 8"}']
    assert [facts(one)["stop"] for one in found.values()] == ["completed", "user_stop"]
    assert [one.part for one in found.values()] == ["line 8", "line 11"]


def test_turns_that_are_taken_back_last_make_no_run_of_their_own(tmp_path: Path) -> None:
    rolled = event("thread_rolled_back", num_turns=1)
    lines = [meta(), *asked("a"), said("assistant", "b"), rolled, rolled, *asked("c"), rolled]
    found = runs(read(tmp_path, *lines))
    assert [shown(one.trajectory.messages) for one in found.values()] == [["a", "b"], ["c"]]


def test_more_turns_taken_back_than_are_known_leave_a_gap(tmp_path: Path) -> None:
    lines = [meta(), *asked("a"), event("thread_rolled_back", num_turns=7), *asked("b")]
    _, after = runs(read(tmp_path, *lines)).values()
    assert [message.hidden for message in after.trajectory.messages] == ["compaction"]


@pytest.mark.parametrize("form", ["message", "history"])
def test_after_a_compaction_history_is_hidden_and_nothing_is_read_twice(tmp_path: Path, form: str) -> None:
    request = said("user", "How many A17?")
    summary = said("user", "So far: two.")["payload"]
    made = item("function_call", name="get_stock", arguments="{}", call_id="c1")
    history = [request["payload"], made["payload"], summary]
    payload = {"message": "So far: two."} if form == "message" else {"message": "", "replacement_history": history}
    lines = [meta(), request, made, output("c1"), entry("compacted", **payload), call("c2")]
    record = only(read(tmp_path, *lines)).trajectory
    assert shown(record.messages) == ["How many A17?", ["c1"], "2", "So far: two.", ["c2"]]
    assert [message.hidden for message in record.messages] == [None, None, None, "compaction", None]
    assert [decision.partial for decision in decisions_of(record)] == [False, True]


def test_items_that_only_the_provider_can_read_hide_history(tmp_path: Path) -> None:
    for kind, hidden in (("compaction", "compaction"), ("ghost_snapshot", None)):
        record = only(read(tmp_path, meta(), said("user", "a"), item(kind, x="gA"), said("assistant", "b"))).trajectory
        assert record.messages[1].hidden == hidden


@pytest.mark.parametrize(
    ("info", "stop"),
    [
        ("context_window_exceeded", "context_length"),
        ("usage_limit_exceeded", "provider_error"),
        ({"http_connection_failed": {"http_status_code": 503}}, "provider_error"),
        ("bad_request", "unknown"),
        (None, "unknown"),
    ],
)
def test_an_error_ends_a_run_for_a_cause_that_the_log_names_and_is_no_failure(
    tmp_path: Path, info: Any, stop: str
) -> None:
    failed = event("error", message="stream error", codex_error_info=info)
    parsed = only(read(tmp_path, meta(), *asked("a"), failed, event("task_complete")))
    assert (facts(parsed)["stop"], parsed.trajectory.stop_text) == (stop, "stream error")
    assert "outcome" not in facts(parsed)
    went_on = only(read(tmp_path, meta(), *asked("a"), failed, *asked("b")))
    assert (facts(went_on)["stop"], went_on.trajectory.stop_text) == ("unknown", None)


def test_a_turn_that_is_complete_with_an_error_was_ended_by_it(tmp_path: Path) -> None:
    error = {"message": "429", "codex_error_info": {"response_too_many_failed_attempts": {"http_status_code": 429}}}
    parsed = only(read(tmp_path, meta(), *asked("a"), event("task_complete", last_agent_message=None, error=error)))
    assert (facts(parsed)["stop"], parsed.trajectory.stop_text) == ("provider_error", "429")
    assert "outcome" not in facts(parsed)


def test_what_a_user_says_begins_a_turn_however_it_is_told(tmp_path: Path) -> None:
    def item_completed(text: str) -> dict[str, Any]:
        return event("item_completed", item={"type": "UserMessage", "content": [{"type": "text", "text": text}]})

    told = [(said("user", text), item_completed(text)) for text in "ab"]
    both = [(*asked(text), item_completed(text)) for text in "ab"]
    for turns in (told, both):
        lines = [line for turn in turns for line in turn]
        found = runs(read(tmp_path, meta(), *lines, event("thread_rolled_back", num_turns=1), *asked("c")))
        assert [shown(one.trajectory.messages) for one in found.values()] == [["a", "b"], ["a", "c"]]


def test_the_history_of_a_fork_that_is_kept_in_another_file_is_hidden(tmp_path: Path) -> None:
    base = {"thread_id": "t0", "end_ordinal_exclusive": 50}
    parsed = only(read(tmp_path, meta(forked_from_id="t0", history_base=base), *asked("a"), said("assistant", "b")))
    assert facts(parsed)["branched_from"] == '{"run":"t0"}'
    assert [decision.partial for decision in decisions_of(parsed.trajectory)] == [True]


def test_a_summary_that_the_model_writes_answers_a_request_that_is_not_logged(tmp_path: Path) -> None:
    thought = item("reasoning", content=[{"type": "text", "text": "sum up"}], summary=[])
    compacted = entry("compacted", message="The summary so far:\nTwo are left.")
    lines = [meta(), *asked("a"), said("assistant", "b"), tokens(1, 1), thought, said("assistant", "Two are left.")]
    record = only(read(tmp_path, *lines, tokens(2, 2), compacted, *asked("c"), said("assistant", "d"))).trajectory
    assert shown(record.messages) == ["a", "b", "Two are left.", "The summary so far:\nTwo are left.", "c", "d"]
    assert [message.hidden for message in record.messages[:4]] == [None, None, "compaction", "compaction"]


def test_lines_that_cannot_be_read_are_quarantined_and_leave_a_gap(tmp_path: Path) -> None:
    lines: list[Any] = [
        meta(),
        said("user", "a"),
        b'{"timestamp":"x","type":"response_item","payl',
        b"42",
        item("message", role="critic", content="no"),
        item("function_call", arguments="{}"),
        entry("response_item"),
        said("assistant", "b"),
        b"{",
    ]
    items = read(tmp_path, *lines)
    assert refused(items) == [
        ("truncated", 3),
        ("not_a_record", 4),
        ("unknown_role", 5),
        ("not_a_record", 6),
        ("not_a_record", 7),
        ("truncated", 9),
    ]
    data = (tmp_path / "rollout.jsonl").read_bytes()
    assert all(data[one.offset :].startswith(one.raw) for one in items)
    (parsed,) = (one for one in items if isinstance(one, Parsed))
    assert parsed.warnings == ("unread_lines",)
    assert [message.hidden for message in parsed.trajectory.messages] == [None, "compaction"]


def test_the_first_form_of_rollouts_without_types_is_read(tmp_path: Path) -> None:
    first = {"id": "t0", "timestamp": TIME, "instructions": None}
    lines = [first, {"record_type": "state"}, said("user", "a")["payload"], said("assistant", "b")["payload"]]
    path = write(tmp_path / "old.jsonl", lines)
    assert codex.sniff(path.read_bytes())
    parsed = only(list(codex.IMPORTER.read(path)))
    assert (parsed.key, shown(parsed.trajectory.messages)) == ("t0", ["a", "b"])


def test_a_session_forked_from_another_says_from_which(tmp_path: Path) -> None:
    parsed = only(read(tmp_path, meta(forked_from_id="t0"), entry("session_meta", id="t0"), *asked("a")))
    assert (parsed.key, facts(parsed)["branched_from"]) == ("t1", '{"run":"t0"}')


def test_two_models_are_no_condition(tmp_path: Path) -> None:
    turns = [entry("turn_context", model=name) for name in ("m1", "m2")]
    record = only(read(tmp_path, meta(), turns[0], *asked("a"), turns[1], *asked("b"))).trajectory
    assert record.conditions.model is None
    assert msgspec.json.decode(record.extra)["models"] == ["m1", "m2"]  # type: ignore[arg-type]  # there is one


def test_many_turns_taken_back_are_bounded(tmp_path: Path) -> None:
    lines: list[Any] = [meta(), *asked("x" * 500_000)]
    for number in range(80):
        lines += [*asked(str(number)), event("thread_rolled_back", num_turns=1)]
    items = read(tmp_path, *lines)
    codes = Counter(one.code for one in items if isinstance(one, Rejected))
    assert codes["too_large"] > 0
    assert codes["too_large"] + sum(isinstance(one, Parsed) for one in items) == 80
    size = sum(len(encode(one.trajectory)) for one in items if isinstance(one, Parsed))
    assert size <= max(codex.MAX_COPIED_BYTES, codex.MAX_COPIES * (tmp_path / "rollout.jsonl").stat().st_size)


def test_a_rollout_is_imported_once(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    path = write(tmp_path / "rollout.jsonl", [meta(), *asked("a"), call("c1"), b"{", output("c1")])
    first, again = import_file(store, path), import_file(store, path)
    assert (first.accepted, first.quarantined) == (1, 1)
    assert (again.accepted, again.duplicates, again.quarantined) == (0, 1, 1)
    (raw,) = store.sql("SELECT DISTINCT raw FROM sightings")["raw"].to_pylist()
    assert store.object(raw) == path.read_bytes()

import json
import zipfile
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from curation.importers import inspect_messages
from curation.importers.face import Fact, Item, Parsed, Rejected
from curation.importers.inspect_eval import IMPORTER, NO_ANSWER_RULE, NUMBER_RULE, STOP_RULE, UNKNOWN_RULE
from curation.ingest import IngestOptions, find_sources, ingest
from schemas.canonical import encode, raw
from schemas.objects import read_tools
from schemas.reasons import QUARANTINE
from schemas.trajectory import Answers, Attempt, Budget, Part, trajectory_id
from tests.importers.reading import accepted, calls
from tests.importers.zips import write_zip, write_zstd
from tests.ingest.logs import new_store

SPEC: dict[str, Any] = {
    "task": "stock",
    "task_id": "T1",
    "eval_id": "E1",
    "run_id": "R1",
    "task_args": {"target": "hidden"},
    "model": "openai/small",
    "config": {"epochs": 2, "message_limit": 30, "token_limit": 1000, "retry_on_error": 2},
    "revision": {"type": "git", "commit": "abc1234"},
}
CALL: dict[str, Any] = {"id": "c1", "function": "get_stock", "arguments": {"sku": "A17"}, "type": "function"}
MESSAGES: list[dict[str, Any]] = [
    {"id": "m0", "role": "user", "content": "How many A17 are left?", "source": "input"},
    {"id": "m1", "role": "assistant", "content": "", "tool_calls": [CALL]},
    {"id": "m2", "role": "tool", "tool_call_id": "c1", "function": "get_stock", "content": "2"},
    {"id": "m3", "role": "assistant", "content": "Two."},
]


def sample(**more: Any) -> dict[str, Any]:
    """One finished sample with a single scorer."""
    return {
        "id": "s1",
        "epoch": 1,
        "input": "How many A17 are left?",
        "target": "hidden",
        "messages": MESSAGES,
        "output": {"choices": [{"message": MESSAGES[-1], "stop_reason": "stop"}]},
        "scores": {"match": {"value": "C", "answer": "Two.", "explanation": "hidden"}},
        "uuid": "U1",
    } | more


def asked(answer: str | None, shown: list[Any], **more: Any) -> dict[str, Any]:
    """The event of a call of the model that was shown these messages and answered with the message of this id."""
    message = {"role": "assistant", "content": ""} | ({} if answer is None else {"id": answer})
    output = {"choices": [{"message": message, "stop_reason": "stop"}]}
    return {
        "event": "model",
        "model": "openai/small",
        "input": shown,
        "tools": [],
        "output": output,
        "config": {},
    } | more


def write_log(folder: Path, *samples: Any, **header: Any) -> Path:
    path = folder / "log.json"
    log = {"version": 2, "status": "success", "eval": SPEC, "plan": {"steps": [{"solver": "generate"}]}} | header
    path.write_text(json.dumps(log | {"samples": list(samples)}))
    return path


def read(folder: Path, *samples: Any, **header: Any) -> list[Item]:
    return list(IMPORTER.read(write_log(folder, *samples, **header)))


def read_one(folder: Path, one: Any, **header: Any) -> Parsed:
    (item,) = read(folder, one, **header)
    return accepted(item)


def facts(parsed: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in parsed.facts}


def outcome(parsed: Parsed) -> tuple[Any, ...]:
    found = [(fact.value, fact.score, fact.rule) for fact in parsed.facts if fact.field == "outcome"]
    return found[0] if found else ()


def logged(path: Path) -> list[dict[str, Any]]:
    """The samples of a real log, as a plain reader sees them."""
    if path.suffix == ".json":
        return list(json.loads(path.read_text()).get("samples") or ())
    with zipfile.ZipFile(path) as archive:
        return [json.loads(archive.read(name)) for name in archive.namelist() if name.startswith("samples/")]


@pytest.fixture(scope="module")
def real(logs: Path) -> dict[Path, list[Item]]:
    files = [path for path in sorted((logs / "inspect_ai").rglob("*")) if path.suffix in (".json", ".eval")]
    known = [path for path in files if IMPORTER.sniff(path.read_bytes()[: 1 << 18])]
    assert {path.parent.name for path in files if path not in known} == {"test_skeleton"}  # events of no evaluation
    return {path: list(IMPORTER.read(path)) for path in known}


def test_every_sample_of_the_real_logs_is_an_attempt_with_all_its_messages(real: dict[Path, list[Item]]) -> None:
    assert len(real) == 21
    for path, items in real.items():
        samples = logged(path)
        if not samples:
            (refused,) = items
            assert isinstance(refused, Rejected)
            assert (refused.code, path.name) == ("not_a_record", "2025-05-12T20-28-13-04-00_no-samples.json")
            continue
        for item, one in zip(items, samples, strict=True):
            parsed = accepted(item)
            assert json.loads(parsed.raw) == one
            assert (parsed.trajectory.task.id, parsed.trajectory.attempt.index) == (str(one["id"]), one["epoch"])  # type: ignore[union-attr]
            assert [message.role for message in parsed.trajectory.messages] == [
                message["role"] for message in one["messages"]
            ]
            made = [call for message in one["messages"] for call in message.get("tool_calls") or ()]
            assert [call.name for call in calls(parsed.trajectory)] == [call["function"] for call in made]
            assert [json.loads(call.arguments_text) for call in calls(parsed.trajectory)] == [
                call["arguments"] for call in made
            ]
            assert {message.hidden for message in parsed.trajectory.messages} == {None}
            texts = [text for text in (one["target"] if isinstance(one["target"], list) else [one["target"]]) if text]
            assert not any(f'"{text}"'.encode() in encode(parsed.trajectory) for text in texts if len(text) > 3)


def test_outcomes_and_usage_of_the_real_logs_are_what_the_logs_count(real: dict[Path, list[Item]]) -> None:
    for path, items in real.items():
        attempts = [accepted(item) for item in items if isinstance(item, Parsed)]
        if path.suffix == ".json":
            header = json.loads(path.read_text())
        else:
            with zipfile.ZipFile(path) as archive:
                header = json.loads(archive.read("header.json"))
        scores = (header.get("results") or {}).get("scores") or []
        if len(scores) == 1 and len(attempts) > 1:
            right = sum(facts(parsed).get("outcome") == "passed" for parsed in attempts)
            assert right / len(attempts) == pytest.approx(scores[0]["metrics"]["accuracy"]["value"], abs=1e-9)
        for parsed in attempts:
            one = json.loads(parsed.raw)
            used = (one.get("model_usage") or {}).get(header["eval"]["model"])
            graded = "model_graded_fact" in (one.get("scores") or {})  # the grader is the same model
            if used and not graded:
                usage = parsed.trajectory.usage
                assert usage is not None
                assert (usage.prompt_tokens, usage.completion_tokens) == (used["input_tokens"], used["output_tokens"])


def test_one_evaluation_in_both_forms_gives_the_same_records(real: dict[Path, list[Item]]) -> None:
    ids = {
        path.name: [trajectory_id(accepted(item).trajectory) for item in items]
        for path, items in real.items()
        if path.stem == "log_formats"
    }
    assert ids["log_formats.eval"] == ids["log_formats.json"]


def test_pictures_are_blobs_and_references_are_resolved(real: dict[Path, list[Item]]) -> None:
    for name in ("log_images.json", "log_images_tc.json"):
        (item,) = next(items for path, items in real.items() if path.name == name)
        parsed = accepted(item)
        content = parsed.trajectory.messages[1].content
        blob = json.loads(parsed.objects[0].bytes)
        assert content == (Part("text", "What is this a picture of?"), Part("image", sha256=parsed.objects[0].id))
        assert blob["image"].startswith("data:image/png;base64,")
        assert b"base64" not in encode(parsed.trajectory)


def test_tools_come_from_the_calls_of_the_model(real: dict[Path, list[Item]]) -> None:
    (item,) = next(items for path, items in real.items() if path.name == "log_message_deduplication.eval")
    parsed = accepted(item)
    (tools,) = (held for held in parsed.objects if held.id == parsed.trajectory.conditions.tools)
    assert [tool.name for tool in read_tools(tools.bytes)] == ["bash", "python"]
    assert read_tools(tools.bytes)[1].description.startswith("Use the python function to execute Python code.")
    assert b"42.7" not in encode(parsed.trajectory)


def test_tool_errors_of_all_kinds_are_errors_of_the_log(real: dict[Path, list[Item]]) -> None:
    (item,) = next(items for path, items in real.items() if path.name == "log_tool_call_error.json")
    parsed = accepted(item)
    kinds = [message.error.kind for message in parsed.trajectory.messages if message.error]
    assert kinds == [message["error"]["type"] for message in json.loads(parsed.raw)["messages"]]
    assert parsed.warnings == ("orphan_answer",)
    assert Counter(message.error.origin for message in parsed.trajectory.messages if message.error) == {
        "tool": 6,
        "harness": 3,
        "model": 2,
    }


def test_the_real_logs_import_into_a_store_and_their_bytes_come_back(logs: Path, tmp_path: Path) -> None:
    store = new_store(tmp_path)
    sources = find_sources([logs / "inspect_ai"], "auto")
    first = ingest(store, sources, IngestOptions())
    assert {name: (count.files, count.quarantined) for name, count in first.formats.items()} == {"inspect": (21, 1)}
    assert first.accepted + first.duplicates + first.quarantined == first.read
    assert first.duplicates == 3  # two copies of a file, one evaluation in both forms
    again = ingest(store, sources, IngestOptions())
    assert (again.accepted, again.quarantined) == (0, first.quarantined)
    rows = store.sql("SELECT raw, any_value(name) AS name FROM sightings WHERE code IS NULL GROUP BY raw").to_pylist()
    for row in rows:
        assert json.loads(store.object(row["raw"])) in logged(Path(row["name"]))


def test_a_sample_becomes_an_attempt_of_its_task(tmp_path: Path) -> None:
    parsed = read_one(tmp_path, sample(setup="echo hidden", epoch=2))
    trajectory = parsed.trajectory
    task = trajectory.task
    assert (task.namespace, task.id, trajectory.attempt, parsed.key) == ("inspect:stock", "s1", Attempt("U1", 2), "U1")
    assert task.variant is not None
    assert task.variant.startswith("args:")
    assert trajectory.conditions.model == "openai/small"
    assert trajectory.conditions.environment == "inspect:stock@abc1234"
    assert trajectory.conditions.budget == Budget(steps=30, tokens=1000, retries=2)
    assert trajectory.conditions.agent == "generate"
    assert b"hidden" not in encode(trajectory)
    assert not any("hidden" in str(fact.value) for fact in parsed.facts)
    assert trajectory.messages[2].answers == Answers("1.0", "id")
    assert parsed.facts == (
        Fact("outcome", "passed"),
        Fact("stop", "completed", "rule", STOP_RULE),
        Fact("strata.suite", "stock"),
    )


def test_a_start_state_and_arguments_are_told_apart_without_being_told(tmp_path: Path) -> None:
    def task(one: dict[str, Any], args: dict[str, Any]) -> Any:
        return read_one(tmp_path, one, eval=SPEC | {"task_args": args}).trajectory.task

    plain = task(sample(), {})
    assert (plain.variant, plain.parameters) == (None, UNSET)
    starts = {bytes(task(sample(setup=setup), {}).parameters) for setup in ("a", "b")}
    assert len(starts) == 2
    assert len({task(sample(), {"target": answer}).variant for answer in ("a", "b")}) == 2


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({"m": {"value": "C"}}, ("passed", None, "")),
        ({"m": {"value": "I"}}, ("failed", None, "")),
        ({"m": {"value": "P"}}, ("partial", None, "")),
        ({"m": {"value": "N"}}, ("failed", None, NO_ANSWER_RULE)),
        ({"m": {"value": "N", "reason": "grader_failed"}}, ("unknown", None, UNKNOWN_RULE)),
        ({"m": {"value": True}}, ("passed", None, "")),
        ({"m": {"value": 1}}, ("passed", 1, NUMBER_RULE)),
        ({"m": {"value": 0.0}}, ("failed", 0.0, NUMBER_RULE)),
        ({"m": {"value": 0.25}}, ("partial", 0.25, NUMBER_RULE)),
        ({"m": {"value": 7}}, ("unknown", 7, NUMBER_RULE)),
        ({"m": {"value": 10**400}}, ("unknown", None, NUMBER_RULE)),
        ({"m": {"value": "great"}}, ("unknown", None, UNKNOWN_RULE)),
        ({"m": {"value": {"a": 1, "b": 0}}}, ("unknown", None, UNKNOWN_RULE)),
        ({"m": {"value": [1, 0]}}, ("unknown", None, UNKNOWN_RULE)),
        ({"m": {"value": "C"}, "n": {"value": "C"}}, ("passed", None, "")),
        ({"m": {"value": "C"}, "n": {"value": 1.0}}, ("passed", None, NUMBER_RULE)),
        ({"m": {"value": "C"}, "n": {"value": "I"}}, ("unknown", None, UNKNOWN_RULE)),
        ({}, ()),
    ],
)
def test_what_scorers_say_is_the_outcome_where_they_agree(
    tmp_path: Path, scores: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    assert outcome(read_one(tmp_path, sample(scores=scores))) == expected


def test_several_scorers_keep_their_own_values_as_strata(tmp_path: Path) -> None:
    parsed = read_one(tmp_path, sample(scores={"m": {"value": "C"}, "n": {"value": 0.5}}))
    assert {name: value for name, value in facts(parsed).items() if name.startswith("strata.score")} == {
        "strata.score.m": "C",
        "strata.score.n": 0.5,
    }


FAILED = asked("m3", [], error="429")


@pytest.mark.parametrize(
    ("more", "status", "stop", "result", "words"),
    [
        ({"error": {"message": "boom"}}, "error", "unknown", "unknown", "boom"),
        ({"error": {"message": "429"}, "events": [FAILED]}, "error", "provider_error", "unknown", "429"),
        (
            {"limit": {"type": "message", "limit": 30.0}},
            "success",
            "max_steps",
            "passed",
            '{"limit":30.0,"type":"message"}',
        ),
        ({"limit": {"type": "time", "limit": 5}}, "success", "timeout", "passed", '{"limit":5,"type":"time"}'),
        ({"limit": {"type": "context", "limit": 5}}, "success", "context_length", "passed", None),
        ({"limit": {"type": "operator", "limit": 1}}, "success", "cancelled", "passed", None),
        ({"limit": {"type": "token", "limit": 1}}, "success", "unknown", "passed", None),
        ({"scores": None, "output": {}}, "cancelled", "cancelled", "unknown", None),
        ({"scores": None, "output": {}}, "started", "unknown", "unknown", None),
        ({}, "cancelled", "completed", "passed", None),
        ({"invalidation": {"author": "me"}}, "success", "completed", "unknown", None),
        ({"output": {"choices": [{"stop_reason": "model_length"}]}}, "success", "context_length", "passed", None),
        ({"output": {"choices": [{"stop_reason": "max_tokens"}]}}, "success", "output_length", "passed", None),
    ],
)
def test_stop_and_outcome_are_independent_and_a_broken_run_has_no_outcome(
    tmp_path: Path, more: dict[str, Any], status: str, stop: str, result: str, words: str | None
) -> None:
    parsed = read_one(tmp_path, sample(**more), status=status)
    assert (facts(parsed)["stop"], outcome(parsed)[0]) == (stop, result)
    if words is not None:
        assert parsed.trajectory.stop_text == words


def test_retries_after_errors_are_counted(tmp_path: Path) -> None:
    parsed = read_one(tmp_path, sample(error_retries=[{"message": "a"}, {"message": "b"}]))
    assert facts(parsed)["strata.error_retries"] == 2


def test_arguments_are_taken_as_the_model_wrote_them(tmp_path: Path) -> None:
    def response(text: str) -> dict[str, Any]:
        made = {"id": "c1", "function": {"name": "get_stock", "arguments": text}}
        return {"response": {"choices": [{"message": {"tool_calls": [made]}}]}}

    def call(text: str, **logged_call: Any) -> Any:
        asking = MESSAGES[1] | {"tool_calls": [CALL | logged_call]}
        events = [asked("m1", MESSAGES[:1], call=response(text))]
        parsed = read_one(tmp_path, sample(messages=[MESSAGES[0], asking, *MESSAGES[2:]], events=events))
        return calls(parsed.trajectory)[0], parsed.trajectory.messages[1].extra

    written, extra = call('{ "sku" : "A17" }')
    assert (written.arguments_text, bytes(written.arguments), extra) == ('{ "sku" : "A17" }', b'{"sku":"A17"}', UNSET)
    broken, extra = call('{"sku": "A17"', arguments={}, parse_error="no end")
    assert (broken.arguments_text, broken.arguments, broken.parse_error) == ('{"sku": "A17"', UNSET, "truncated")
    assert json.loads(bytes(extra))["tool_calls"]["0"]["arguments_used"] == {}
    mended, extra = call("A17")
    assert (mended.arguments_text, mended.arguments) == ("A17", UNSET)
    assert json.loads(bytes(extra))["tool_calls"]["0"]["arguments_used"] == {"sku": "A17"}


def test_a_call_that_did_not_parse_has_no_arguments_though_the_log_holds_an_empty_object(tmp_path: Path) -> None:
    asking = MESSAGES[1] | {"tool_calls": [CALL | {"arguments": {}, "parse_error": "no end"}]}
    parsed = read_one(tmp_path, sample(messages=[MESSAGES[0], asking, *MESSAGES[2:]]))
    (call,) = calls(parsed.trajectory)
    assert (call.arguments_text, call.arguments, call.parse_error) == ("{}", UNSET, "no end")


def test_a_call_that_the_agent_took_out_of_the_message_is_what_the_model_decided(tmp_path: Path) -> None:
    submit = {"id": "c2", "function": "submit", "arguments": {"answer": "2"}, "type": "function"}
    event = asked("m3", MESSAGES[:3])
    event["output"]["choices"][0]["message"] |= {"content": "Done.", "tool_calls": [submit]}
    cleaned = MESSAGES[3] | {"content": "Done.\n\n2", "tool_calls": []}
    parsed = read_one(tmp_path, sample(messages=[*MESSAGES[:3], cleaned], events=[event]))
    last = parsed.trajectory.messages[-1]
    assert (last.content, [call.name for call in last.tool_calls]) == ("Done.", ["submit"])
    assert last.extra == raw({"content_shown": "Done.\n\n2", "tool_calls": {"0": {"arguments_form": "object"}}})


def test_references_resolve_in_both_dialects_and_one_that_leads_nowhere_is_no_text(tmp_path: Path) -> None:
    texts = {"a": "two are left", "b": "attachment://a"}
    for protocol in ("attachment", "tc"):
        messages = [MESSAGES[0] | {"content": f"{protocol}://{name}"} for name in ("a", "b", "gone")]
        parsed = read_one(tmp_path, sample(messages=messages, attachments=texts))
        old = read_one(tmp_path, sample(messages=messages, transcript={"events": [], "content": texts}))
        first, second, third = parsed.trajectory.messages
        assert first.content == "two are left"
        assert isinstance(second.content, tuple)  # what it stands for is itself no reference to be followed
        assert third.content == (Part("missing", sha256=parsed.objects[-1].id),)
        assert old.trajectory == parsed.trajectory


def test_references_cannot_make_a_sample_explode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect_messages, "MAX_EXPANDED", 10_000)
    messages = [MESSAGES[0] | {"content": "attachment://a"}] * 20
    (refused,) = read(tmp_path, sample(messages=messages, attachments={"a": "x" * 1000}))
    assert isinstance(refused, Rejected)
    assert (refused.code, "10000" in refused.detail) == ("too_large", True)


@pytest.mark.parametrize("pooled", [True, False])
def test_a_decision_that_was_not_shown_an_earlier_answer_has_a_hidden_history(tmp_path: Path, pooled: bool) -> None:
    def shown(*numbers: int) -> dict[str, Any]:
        spans = {"input_refs": [[number, number + 1] for number in numbers]}
        return asked("m3", [] if pooled else [MESSAGES[number] for number in numbers], **(spans if pooled else {}))

    def hidden(*numbers: int) -> Any:
        parsed = read_one(tmp_path, sample(events=[shown(*numbers)], message_pool=MESSAGES))
        return parsed.trajectory.messages[3].hidden

    assert hidden(0, 1, 2) is None
    assert hidden(0, 2) == "compaction"
    assert hidden(1, 2) is None  # which request it was given is in its own words


def test_reasoning_is_kept_and_what_there_is_no_text_of_is_hidden(tmp_path: Path) -> None:
    def said(*parts: dict[str, Any], **event: Any) -> Any:
        message = MESSAGES[3] | {"content": [*parts, {"type": "text", "text": "Two."}]}
        output = {"choices": [{"message": message}], "usage": event}
        events = [{"event": "model", "input": [], "tools": [], "config": {}, "output": output}]
        return read_one(tmp_path, sample(messages=[MESSAGES[0], message], events=events)).trajectory.messages[1]

    plain, redacted = (
        said({"type": "reasoning", "reasoning": "Count."}),
        said({"type": "reasoning", "reasoning": "x=", "redacted": True}),
    )
    assert (plain.content, plain.reasoning, plain.hidden) == ("Two.", "Count.", None)
    assert (redacted.content, redacted.reasoning, redacted.hidden) == ("Two.", None, "reasoning")
    summed = said({"type": "reasoning", "reasoning": "", "summary": "In short."})
    assert (summed.reasoning, summed.hidden) == ("In short.", "reasoning")
    assert said(reasoning_tokens=12).hidden == "reasoning"


def test_calls_of_a_scorer_are_none_of_the_attempt(tmp_path: Path) -> None:
    usage = {"usage": {"input_tokens": 5, "output_tokens": 1, "input_tokens_cache_read": 3}}
    own, grading = (asked(None, [], tools=[{"name": name, "parameters": {}}]) for name in ("own", "grader"))
    own["output"] |= usage
    grading["output"] |= usage
    begin, end = ({"event": "step", "action": action, "type": "scorer"} for action in ("begin", "end"))
    messages = [{key: value for key, value in message.items() if key != "id"} for message in MESSAGES]
    spans = [{"event": "span_begin", "id": "S", "type": "scorer"}, {"event": "span_begin", "id": "T", "parent_id": "S"}]
    for events in ([own, begin, grading, end], [own, *spans, grading | {"span_id": "T"}]):
        parsed = read_one(tmp_path, sample(messages=messages, events=events))
        assert parsed.trajectory.usage is not None
        assert parsed.trajectory.usage.prompt_tokens == 5
        details = json.loads(bytes(parsed.trajectory.extra))["usage_details"]  # type: ignore[arg-type]
        assert details == {"input_tokens_cache_read": 3}
        (tools,) = parsed.objects
        assert [tool.name for tool in read_tools(tools.bytes)] == ["own"]


def test_a_tool_list_that_changes_on_the_way_is_unknown(tmp_path: Path) -> None:
    tools = [{"name": "a", "parameters": {}}]
    parsed = read_one(tmp_path, sample(events=[asked("m1", [], tools=tools), asked("m3", [])]))
    assert (parsed.trajectory.conditions.tools, parsed.objects) == (None, ())


def test_cut_answers_and_times_come_from_the_events_of_tools(tmp_path: Path) -> None:
    event = {"event": "tool", "id": "c1", "timestamp": "2025-01-02T03:04:05+00:00", "truncated": [100, 10]}
    parsed = read_one(tmp_path, sample(events=[event]))
    assert facts(parsed)["clocks"] == '{"1":"2025-01-02T03:04:05+00:00"}'
    assert parsed.trajectory.messages[2].extra == raw({"truncated": True})


def members(*samples: dict[str, Any], header: bool = True) -> dict[str, bytes]:
    start = json.dumps({"version": 2, "eval": SPEC, "plan": {}}).encode()
    done = json.dumps({"version": 2, "status": "success", "eval": SPEC, "results": {}}).encode()
    made = {f"samples/{one['id']}_epoch_{one['epoch']}.json": json.dumps(one).encode() for one in samples}
    return {"_journal/start.json": start, **made, "summaries.json": b"[]"} | ({"header.json": done} if header else {})


@pytest.mark.parametrize("write", [write_zip, write_zstd])
def test_archives_hold_a_sample_in_each_member(tmp_path: Path, write: Any) -> None:
    both = sample(), sample(epoch=2, uuid="U2")
    path = write(tmp_path / "log.eval", members(*both))
    assert IMPORTER.sniff(path.read_bytes()[: 1 << 18])
    first, second = (accepted(item) for item in IMPORTER.read(path))
    assert (first.trajectory.attempt, second.trajectory.attempt) == (Attempt("U1", 1), Attempt("U2", 2))
    assert json.loads(second.raw) == both[1]
    assert (first.place, second.place) == (1, 2)


def test_an_archive_that_is_still_written_has_its_journal_alone(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "log.eval", members(sample(), sample(id="s2", scores=None, output={}), header=False))
    first, second = (accepted(item) for item in IMPORTER.read(path))
    assert outcome(first)[0] == "passed"
    assert (facts(second)["stop"], outcome(second)[0]) == ("unknown", "unknown")


def test_of_two_members_of_one_name_the_last_holds_and_the_other_is_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "log.eval", members(sample(uuid="old"), sample(id="s2")))
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("samples/s1_epoch_1.json", json.dumps(sample(uuid="new")))
    old, other, new = IMPORTER.read(path)
    assert isinstance(old, Rejected)
    assert (old.code, old.detail) == (
        "repeated_id",
        "'samples/s1_epoch_1.json' stands in the archive again, and the last one holds",
    )
    assert [accepted(item).trajectory.attempt for item in (other, new)] == [Attempt("U1", 1), Attempt("new", 1)]


def test_of_two_headers_the_last_holds_and_the_other_is_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "log.eval", members(sample()))
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("header.json", archive.read("header.json"))
    kept, repeated = IMPORTER.read(path)
    assert accepted(kept).trajectory.messages
    assert isinstance(repeated, Rejected)
    assert (repeated.code, repeated.detail.partition(" ")[0]) == ("repeated_id", "'header.json'")


def test_what_is_wrong_with_one_member_leaves_the_others(tmp_path: Path) -> None:
    held = members(sample()) | {
        "samples/../../x_epoch_1.json": b"{}",
        "samples/s9_epoch_1/sample.json": b"{}",
        "samples/s3_epoch_1.json": b'{"id": 1, "epoch": 1, "scores": {"m": {"value": NaN}}}',
        "samples/s4_epoch_1.json": b'{"id": 1',
    }
    path = write_zip(tmp_path / "log.eval", held)
    first, *others = IMPORTER.read(path)
    assert accepted(first).trajectory.task.id == "s1"
    codes = [item.code for item in others if isinstance(item, Rejected)]
    assert codes == ["unsafe_archive", "not_a_record", "not_json", "truncated"]
    assert [item.place for item in others] == [2, 3, 4, 5]
    (tmp_path / "cut.eval").write_bytes(path.read_bytes()[:-30])
    (cut,) = IMPORTER.read(tmp_path / "cut.eval")
    assert isinstance(cut, Rejected)
    assert cut.code == "unsafe_archive"


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ('{"eval": {"task": "t"}, "samples": [{"id": 1, "epoch": 1}, {"id": 2', ["truncated", "truncated"]),
        ('{"eval": {"task": "t"}, "samples": [{"id": 1, "epoch": -1}]} {}', ["not_a_record", "trailing_text"]),
        ('{"eval": {"task": "t"}, "samples": []} x', ["not_json"]),
        ('{"eval": {"task": "t"}, "samples": null}', ["not_a_record"]),
        ('{"eval": {"task": "t"}, "eval": {"task": "u"}, "samples": [{}]}', ["duplicate_key"]),
        ('{"eval": {"task": 7}, "samples": [{}]}', ["not_a_record"]),
        ('{"samples": [{}, {}]}', ["not_a_record", "not_a_record"]),
        ("[1, 2]", ["not_a_record"]),
    ],
)
def test_a_log_that_is_none_is_refused_piece_by_piece(tmp_path: Path, text: str, codes: list[str]) -> None:
    path = tmp_path / "log.json"
    path.write_text(text)
    found = [item.code for item in IMPORTER.read(path) if isinstance(item, Rejected)]
    assert found == codes


def test_a_sample_over_the_limit_is_refused_unheld_and_the_others_are_read(tmp_path: Path) -> None:
    path = write_log(tmp_path, sample(), sample(id="s2", input="x" * 9000), sample(id="s3"))
    first, second, third = IMPORTER.read(path, 4000)
    assert isinstance(second, Rejected)
    assert (second.code, second.raw, second.place) == ("too_large", b"", 2)
    assert (accepted(first).trajectory.task.id, accepted(third).trajectory.task.id) == ("s1", "s3")


WRONG: st.SearchStrategy[Any] = st.sampled_from(
    [None, 0, -1, True, "x", "attachment://a", [], [[]], {}, {"id": {}}, [{"id": [], "role": 3}]]
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] * bool(path) + [place for key, one in inner for place in places(one, (*path, key))]


RICH = sample(
    events=[
        {"event": "span_begin", "id": "S", "type": "solver", "parent_id": None},
        asked(
            "m1", MESSAGES[:1], input_refs=[[0, 1]], call={"response": {"choices": [{"message": {"tool_calls": []}}]}}
        ),
        {"event": "tool", "id": "c1", "timestamp": "2025-01-02T03:04:05+00:00"},
        {"event": "step", "action": "begin", "type": "scorer"},
    ],
    message_pool=MESSAGES,
    attachments={"a": "text"},
    limit={"type": "time", "limit": 1},
    model_usage={"openai/small": {"input_tokens": 1}},
)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(places=st.lists(st.sampled_from(places(RICH)), min_size=1, max_size=3), value=WRONG)
def test_whatever_a_sample_holds_it_is_read_or_refused(tmp_path: Path, places: list[Any], value: Any) -> None:
    mutated = json.loads(json.dumps(RICH))
    for *above, last in places:
        inside = mutated
        try:
            for key in above:
                inside = inside[key]
            inside[last] = deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue
    (item,) = read(tmp_path, mutated)
    assert isinstance(item, Parsed) or item.code in QUARANTINE

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from curation.clocks import CLOCKS, read_clocks
from curation.importers import atif, formats
from curation.importers.atif import MAX_SEGMENTS, VERSIONS
from curation.importers.face import Fact, Item, Parsed, Rejected
from schemas.digests import decisions_of
from schemas.trajectory import Answers, Attempt, Json, MessageError, Part, Usage
from tests.importers.atif_runs import FULL, PICTURE, TOOL, act, call, document, result, say
from tests.importers.reading import accepted, calls


def items(folder: Path, record: Any, name: str = "trajectory.json") -> list[Item]:
    path = folder / name
    path.write_text(json.dumps(record))
    return list(atif.IMPORTER.read(path))


def read(folder: Path, record: Any) -> Parsed:
    (item,) = items(folder, record)
    return accepted(item)


def refuse(folder: Path, record: Any) -> Rejected:
    (item,) = items(folder, record)
    assert isinstance(item, Rejected)
    return item


def facts(parsed: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in parsed.facts}


def value(raw: Json) -> Any:
    assert isinstance(raw, msgspec.Raw)
    return json.loads(bytes(raw))


def test_everything_that_a_document_says_has_its_place(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(FULL, indent=2))
    assert formats.detect(path) == (atif.IMPORTER, "an object of ATIF-v1.8")
    root, sub = (accepted(item) for item in atif.IMPORTER.read(path))
    system, user, asked, second, first, note, disk, last = root.trajectory.messages
    blobs = {blob.id: blob.bytes for blob in root.objects}
    assert isinstance(user.content, tuple)
    assert json.loads(blobs[user.content[1].sha256 or ""]) == PICTURE
    assert user.content[0] == Part("text", "How many A17 are left?")
    assert (asked.content, asked.reasoning, system.role, note.role) == ("I look.", "Two places.", "system", "system")
    assert [second.answers, first.answers, disk.answers] == [Answers("2.1", "id"), Answers("2.0", "id"), None]
    assert (second.content, first.content, last.content) == ("2", None, "Two.")
    assert value(asked.extra)["metrics"]["extra"] == {"reasoning_tokens": 3}
    assert value(first.extra) == {"subagent_trajectory_ref": [{"trajectory_id": "sub"}]}
    assert root.trajectory.usage == Usage(5, 7, 0.25)
    assert root.trajectory.attempt == Attempt("doc-1")
    conditions = root.trajectory.conditions
    assert (conditions.agent, conditions.model) == ("small-agent@1.2", "vendor/m")
    assert json.loads(blobs[conditions.tools or ""]) == [TOOL]
    assert read_clocks(facts(root)[CLOCKS]).at(4) == "2025-10-16T14:30:00+00:00"
    assert not {"outcome", "stop"} & facts(root).keys()
    assert (sub.part, sub.trajectory.attempt) == ("subagent sub", Attempt("doc-1/sub"))
    assert [facts(one).get("strata.sidechain") for one in (root, sub)] == [None, "yes"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_read(tmp_path: Path, version: str) -> None:
    parsed = read(tmp_path, document(act(call("A17"), results=[result("2")]), version=version.removeprefix("ATIF-v")))
    assert len(calls(parsed.trajectory)) == 1


def test_ids_that_come_again_answer_in_their_own_step(tmp_path: Path) -> None:
    steps = [act(call(sku), results=[result(sku)]) for sku in ("A17", "A18")]
    parsed = read(tmp_path, document(*steps))
    assert [message.answers for message in parsed.trajectory.messages[1::2]] == [
        Answers("0.0", "id"),
        Answers("2.0", "id"),
    ]
    same = read(tmp_path, document(act(call("A17"), call("A18"), results=[result("1"), result("2")])))
    linked = [message.answers for message in same.trajectory.messages[1:]]
    assert linked == [Answers("0.0", "position"), Answers("0.1", "position")]
    assert same.warnings == ("repeated_call_id",)


def test_results_without_a_name_answer_in_order_only_where_there_is_one_for_each_call(tmp_path: Path) -> None:
    made = [call("A17"), call("A18", "c2")]
    parsed = read(tmp_path, document(act(*made, results=[result("1", None), result("2", None)])))
    assert [message.answers for message in parsed.trajectory.messages[1:]] == [
        Answers("0.0", "position"),
        Answers("0.1", "position"),
    ]
    parsed = read(tmp_path, document(act(*made, results=[result("event", None)])))
    assert parsed.trajectory.messages[1].answers is None
    assert parsed.warnings == ("orphan_answer",)


def test_copied_context_holds_no_decision(tmp_path: Path) -> None:
    steps = [act(call("A17"), results=[result("2")], is_copied_context=True), say("agent", "Two.")]
    parsed = read(tmp_path, document(*steps))
    assert [message.copied for message in parsed.trajectory.messages] == [True, True, False]
    assert [decision.message for decision in decisions_of(parsed.trajectory)] == [2]


def test_a_step_without_a_call_of_the_model_is_no_decision(tmp_path: Path) -> None:
    steps = [act(call("A17"), results=[result("2")], llm_call_count=0), say("agent", "Two.", llm_call_count=1)]
    parsed = read(tmp_path, document(*steps))
    assert [decision.message for decision in decisions_of(parsed.trajectory)] == [2]


@pytest.mark.parametrize("mark", ["is_error", "tool_result_is_error"])
def test_a_result_that_its_writer_marks_as_an_error_is_one(tmp_path: Path, mark: str) -> None:
    results = [result("no such sku", extra={mark: True}), result("2", "c2", extra={mark: False})]
    parsed = read(tmp_path, document(act(call("A18"), call("A17", "c2"), results=results)))
    assert [message.error for message in parsed.trajectory.messages[1:]] == [MessageError(), None]


def test_a_trajectory_goes_on_in_other_files_and_is_one_attempt(tmp_path: Path) -> None:
    first = document(say("user", "Count."), act(call("A17"), results=[result("2")]), continued_trajectory_ref="b.json")
    copied = act(call("A17"), results=[result("2")], is_copied_context=True)
    second = document(copied, say("user", "Go on."), say("agent", "Two."), continued_trajectory_ref="c.json")
    third = document(act(call("A18", "c9"), results=[result("0", "c9")]), final_metrics={"total_steps": 1})
    for name, record in (("b.json", second), ("c.json", third)):
        (tmp_path / name).write_text(json.dumps(record))
    parsed = read(tmp_path, first)
    messages = parsed.trajectory.messages
    assert [message.role for message in messages] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
        "assistant",
        "tool",
    ]
    assert [index for index, message in enumerate(messages) if message.hidden] == [3, 5]
    assert messages[6].answers == Answers("5.0", "id")
    kept = [item.bytes for item in parsed.objects if item.kind == "raw"]
    assert kept == [(tmp_path / name).read_bytes() for name in ("b.json", "c.json")]
    assert [path.name for path in atif.claims(tmp_path / "trajectory.json")] == ["b.json", "c.json"]


@pytest.mark.parametrize(
    "name", ["../out.json", "/etc/hostname", "a/../../out.json", "link.json", "none.json", "", "x" * 300]
)
def test_a_continuation_leads_nowhere_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "out.json").write_text(json.dumps(document(say("agent", "outside"))))
    (inside / "link.json").symlink_to(tmp_path / "out.json")
    parsed = read(inside, document(say("agent", "Two."), continued_trajectory_ref=name))
    assert [message.content for message in parsed.trajectory.messages] == ["Two."]
    assert parsed.warnings == ("continuation_missing",)
    assert value(parsed.trajectory.extra)["continued_trajectory_ref"] == name


def test_a_continuation_that_leads_back_ends(tmp_path: Path) -> None:
    for number in range(MAX_SEGMENTS + 5):
        record = document(say("agent", str(number)), continued_trajectory_ref=f"{number + 1}.json")
        (tmp_path / f"{number}.json").write_text(json.dumps(record))
    assert len(list(atif.claims(tmp_path / "0.json"))) == MAX_SEGMENTS
    (long,) = map(accepted, atif.IMPORTER.read(tmp_path / "0.json"))
    assert (len(long.trajectory.messages), long.warnings) == (MAX_SEGMENTS + 1, ("continuation_missing",))
    (whole,) = map(accepted, atif.IMPORTER.read(tmp_path / f"{MAX_SEGMENTS}.json"))
    assert whole.warnings == ("continuation_missing",), "the last file names one that is not there"
    (tmp_path / f"{MAX_SEGMENTS + 5}.json").write_text(json.dumps(document(say("agent", "end"))))
    (ended,) = map(accepted, atif.IMPORTER.read(tmp_path / f"{MAX_SEGMENTS}.json"))
    assert (len(ended.trajectory.messages), ended.warnings) == (6, ())
    loop = document(say("agent", "x"), continued_trajectory_ref="trajectory.json")
    assert len(read(tmp_path, loop).trajectory.messages) == 1


def test_files_that_are_too_large_together_are_skipped(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(json.dumps(document(say("agent", "x" * 500))))
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document(say("agent", "x"), continued_trajectory_ref="b.json")))
    (item,) = atif.IMPORTER.read(path, 900)
    assert isinstance(item, Rejected)
    assert item.code == "too_large"


BLOCKS: list[tuple[Any, str]] = [
    ({"fields": {"attempt": {"run": 3}}}, "not_a_record"),
    ({"fields": {"task": {"planet": "x"}}}, "not_a_record"),
    ({"facts": [{"value": 1}]}, "not_a_record"),
    ([], "not_a_record"),
]


@pytest.mark.parametrize(("block", "code"), BLOCKS)
def test_a_block_of_another_shape_is_refused(tmp_path: Path, block: Any, code: str) -> None:
    assert refuse(tmp_path, document(say("agent", "x"), extra={"curation": block})).code == code


def test_a_block_cannot_speak_for_others_or_name_what_is_not_there(tmp_path: Path) -> None:
    said = [
        {"field": "outcome", "value": "passed", "by": "human"},
        {"field": "stop", "value": "timeout", "by": "environment"},
    ]
    checks = [{"trajectory": "x", "layer": "execution", "result": "passed"}]
    block = {"facts": said, "verifications": checks, "fields": {"fork": {"parent": "x"}, "messages": []}}
    parsed = read(tmp_path, document(say("agent", "x"), extra={"curation": block}))
    assert parsed.facts[:2] == (
        Fact("outcome", "passed", "log", "claims human@"),
        Fact("stop", "timeout", "log", "claims environment@"),
    )
    assert set(parsed.warnings) == {"claimed_authors", "claims_not_read"}
    assert (parsed.trajectory.fork, len(parsed.trajectory.messages)) == (None, 1)
    answers = {"curation": {"answers": {"uid": "7.0", "by": "id"}}}
    wrong = document(act(call("A17"), results=[result("2", None, extra=answers)]))
    assert "names no call" in refuse(tmp_path, wrong).detail


@pytest.mark.parametrize(
    ("record", "code", "words"),
    [
        ([], "not_a_record", "array"),
        (document(say("narrator", "x")), "unknown_role", "$.steps[0].source"),
        (document(say("agent", "x"), version="2.0"), "not_a_record", "ATIF-v1.0 to ATIF-v1.8"),
        (document(act({**call("A17"), "arguments": "text"})), "not_a_record", "$.steps[0].tool_calls[0].arguments"),
        (document(say("agent", 3)), "not_a_record", "$.steps[0].message"),
        (document(say("agent", "x"), subagent_trajectories=[3]), "not_a_record", "$.subagent_trajectories[0]"),
    ],
)
def test_another_shape_is_refused_with_its_place(tmp_path: Path, record: Any, code: str, words: str) -> None:
    refused = refuse(tmp_path, record)
    assert refused.code == code
    assert words in refused.detail


def test_a_subagent_of_another_shape_is_refused_alone(tmp_path: Path) -> None:
    root, sub = items(tmp_path, document(say("agent", "x"), subagent_trajectories=[{"steps": 3}]))
    assert accepted(root).trajectory.extra is not UNSET
    assert isinstance(sub, Rejected)
    assert sub.part == "after 1"

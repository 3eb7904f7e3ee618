"""``curate export``: what was written is read again as the same records."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from curation.errors import UsageError
from curation.importers import atif, formats
from curation.importers.face import Parsed
from curation.jobs.exporting import export_trajectories
from curation.store import Store
from schemas.digests import decisions_of
from schemas.statements import Annotation, Verification
from schemas.trajectory import Author, trajectory_id
from tests.cli.test_store_verbs import curate, refused, result
from tests.eight import lines
from tests.importers.atif_runs import FULL, act, call, document, say
from tests.importers.atif_runs import result as told
from tests.importers.reading import accepted, answer, ask, chat
from tests.importers.reading import call as chat_call
from tests.importers.session import model, use, user
from tests.importers.session import result as answered
from tests.importers.session import text as session_text
from tests.ingest.logs import attempts, import_file, new_store, records, write


def trajectories(store: Store) -> list[str]:
    return [row["trajectory_id"] for row in attempts(store)]


def exported(store: Store, folder: Path, name: str, identities: list[str] | None = None) -> list[Path]:
    done = export_trajectories(store, identities or trajectories(store), name, folder)
    return [Path(path) for path in done.files]


def read_back(path: Path) -> Parsed:
    (item, *_) = atif.IMPORTER.read(path)
    return accepted(item)


def normal(value: dict[str, Any]) -> dict[str, Any]:
    """What ATIF -> store -> ATIF keeps of a document: all but the version, which becomes the newest, our own block, and
    keys that say nothing (null, an observation without results, context that is not copied).
    """
    return {**_plain(value), "schema_version": atif.VERSIONS[-1]}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _plain(item) for key, item in value.items() if key != "curation"}
    silent = {"observation": {"results": []}, "is_copied_context": False, "extra": {}, "tool_calls": []}
    return {
        key: item for key, item in found.items() if item is not None and not (key in silent and item == silent[key])
    }


DOCUMENTS = {
    "full": FULL,
    "bare": document(say("agent", "Two.")),
    "copied": document(act(call("A17"), results=[told("2")], is_copied_context=True), say("agent", "2"), version="1.5"),
    "dispatched": document(
        act(call("A17"), results=[told("no", extra={"is_error": True})], llm_call_count=0), say("agent", "No.")
    ),
    "silent": document(act(results=[], is_copied_context=False), say("user", ""), extra={}, notes=None),
    "named": {
        **document(say("user", [{"type": "text", "text": "x"}]), trajectory_id="doc"),
        "session_id": None,
        "agent": {"name": "a@b", "version": "c@d", "extra": {"k": [1, 1.0, None]}},
        "final_metrics": {"total_steps": 1},
        "continued_trajectory_ref": "later.json",
    },
    "repeated": document(
        act(call("A17"), call("A18"), results=[told("1"), told("2"), told("event", None, extra={"k": 1})]),
        act(call("A17"), results=[told([{"type": "text", "text": "2"}])], timestamp="2025-10-16T14:30:00+00:00"),
    ),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_atif_comes_back_as_it_was_but_for_what_says_nothing(tmp_path: Path, name: str) -> None:
    path = tmp_path / "given.json"
    path.write_text(json.dumps(DOCUMENTS[name]))
    store = new_store(tmp_path)
    import_file(store, path)
    (found,) = [
        json.loads(file.read_bytes())
        for file in exported(store, tmp_path / "out", "atif")
        if json.loads(file.read_bytes())["steps"][0]["message"] == DOCUMENTS[name]["steps"][0]["message"]
    ]
    assert normal(found) == normal(DOCUMENTS[name])


HARD = [
    chat(
        ask(chat_call('{"sku": "A17"', call_id=None), chat_call('"{\\"sku\\":\\"A17\\"}"', call_id="")),
        answer("one", None),
        answer("nobody asked", "c9"),
        {
            "role": "user",
            "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "u"}}],
        },
        ask(chat_call({"sku": "A17"}, call_id="c1"), chat_call('{"sku":"A18"}', call_id="c1"), reasoning_content="Hm."),
        answer("late", "c1", error={"message": "broken", "type": "e"}),
        {"role": "assistant", "content": None, "refusal": "No."},
        {"role": "developer", "content": "Stop.", "name": "boss", "metrics": "no number", "llm_call_count": 0},
        answer("", "c1"),
        id="run-1",
        task="t",
        attempt=3,
        outcome="partial",
        score=0.5,
        strata={"difficulty": "hard"},
        stop="max_steps",
        budget={"steps": 9},
        error={"code": 429},
        temperature=0.5,
        seed=2**63 + 1,
        model="m",
        usage={"prompt_tokens": 3, "cost": 0.1},
        custom={"notes": 3, "final_metrics": "x"},
        tools=[{"type": "function", "function": {"name": "get_stock"}}, "no object"],
    ),
    chat({"role": "tool", "tool_call_id": "x", "content": "first of all"}, id="run-2"),
    chat(id="run-3", session_id=5, agent="x", notes=["n"]),
]


@pytest.fixture
def hard(tmp_path: Path) -> Store:
    """Runs with much that ATIF has no place for, and the eight."""
    store = new_store(tmp_path)
    import_file(store, write(tmp_path / "hard.jsonl", HARD))
    (tmp_path / "eight.jsonl").write_bytes(lines())
    import_file(store, tmp_path / "eight.jsonl")
    return store


@pytest.mark.parametrize("name", ["atif", "openai-chat"])
def test_records_are_the_same_after_a_way_through_another_format(tmp_path: Path, hard: Store, name: str) -> None:
    other = new_store(tmp_path, "other")
    for path in exported(hard, tmp_path / "out", name):
        assert formats.detect(path)[0].name == name
    assert not import_file(other, tmp_path / "out").quarantined
    kept, found = (
        {
            (row["task"], row["run"], row["attempt"], row["outcome"], row["score"], row["stop"])
            for row in attempts(store)
        }
        for store in (hard, other)
    )
    assert found == kept
    if name == "atif":
        assert records(other) == records(hard)


def test_a_call_that_does_not_parse_is_empty_with_its_text_beside(tmp_path: Path, hard: Store) -> None:
    (identity,) = hard.sql("SELECT trajectory_id FROM attempts WHERE run = 'run-1'")["trajectory_id"].to_pylist()
    (path,) = exported(hard, tmp_path / "out", "atif", [identity])
    written = json.loads(path.read_bytes())
    first, second = written["steps"][1]["tool_calls"]
    assert (first["arguments"], first["extra"]["curation"]["arguments_text"]) == ({}, '{"sku": "A17"')
    assert first["extra"]["curation"]["parse_error"] == "truncated"
    assert (second["tool_call_id"], second["arguments"]) == ("", {})
    block = written["extra"]["curation"]
    assert block["record"] == identity
    assert block["fields"]["task"] == {"id": "t"}
    assert {"field": "outcome", "value": "partial", "by": "log", "score": 0.5} in block["facts"]
    assert trajectory_id(read_back(path).trajectory) == identity


def test_chats_come_back_byte_for_byte_in_arguments_and_content(tmp_path: Path, hard: Store) -> None:
    (path,) = exported(hard, tmp_path / "out", "openai-chat")
    written = {line["id"]: line for line in map(json.loads, path.read_bytes().splitlines())}
    given = {line["id"]: line for line in [*HARD, *map(json.loads, lines().splitlines())]}
    assert written.keys() == given.keys()
    for name, chat_given in given.items():
        for before, after in zip(chat_given["messages"], written[name]["messages"], strict=True):
            assert after["content"] == before["content"]
            assert after["role"] == before["role"]
            told_before, told_after = before.get("tool_calls", []), after.get("tool_calls", [])
            for one, other in zip(told_before, told_after, strict=True):
                assert other["function"]["arguments"] == one["function"]["arguments"]
                assert other["id"] == one["id"]
        assert written[name].get("tools") == chat_given.get("tools")


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store that holds forks."""
    folder = tmp_path_factory.mktemp("repaired")
    (folder / "eight.jsonl").write_bytes(lines())
    curate(folder, "init")
    result(folder, "import", "eight.jsonl")
    result(folder, "replay", "--environment", "inventory", code=1)
    result(folder, "diagnose")
    result(folder, "repair", "--environment", "inventory")
    return folder


def test_the_shared_history_of_a_fork_is_copied_context(repaired: Path, tmp_path: Path) -> None:
    store = Store.open(str(repaired / ".curation"))
    rows = store.sql(
        "SELECT id, parent, branch_point FROM trajectories WHERE parent IS NOT NULL ORDER BY id"
    ).to_pylist()
    assert rows
    result(repaired, "export", "atif", *(row["id"] for row in rows), "--out", str(tmp_path / "out"))
    for row in rows:
        path = tmp_path / "out" / f"{row['id']}.json"
        fork, again = store.trajectory(row["id"]), read_back(path)
        assert [message.copied for message in again.trajectory.messages] == [
            index < row["branch_point"] for index in range(len(fork.messages))
        ]
        block = json.loads(path.read_bytes())["extra"]["curation"]
        assert block["lineage"]["parent"] == row["parent"]
        assert any(check["layer"] == "execution" for check in block["verifications"])
        said = {fact.field: fact.value for fact in again.facts}
        assert msgspec.json.decode(str(said["branched_from"]))["message"] == row["branch_point"]
        assert again.trajectory.fork is None


@pytest.fixture(scope="module")
def told_by_others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store in which persons, environments, rules and a side file say something."""
    folder = tmp_path_factory.mktemp("told")
    (folder / "eight.jsonl").write_bytes(lines())
    side = [
        {"key": "misread", "outcome": "failure", "split": "train", "strata": {"level": "=1"}, "allocation": "planned"}
    ]
    write(folder / "side.jsonl", side)
    curate(folder, "init")
    result(folder, "import", "eight.jsonl")
    result(folder, "annotate", "side.jsonl", "--outcome", "outcome", "--verifier", "judge@x@2")
    result(folder, "replay", "--environment", "inventory", code=1)
    result(folder, "diagnose")
    store = Store.open(str(folder / ".curation"))
    (record,) = (row["trajectory_id"] for row in attempts(store) if row["run"] == "misread")
    with store.batch() as batch:
        batch.add_statement(Annotation(record, "stop", "completed", Author("human", "Ada")))
        batch.add_statement(Annotation(record, "group", "shelf", Author("rule", "shop.group", "1")))
        batch.add_statement(Verification(record, "task", "passed", Author("environment", "inventory@1", "c0de")))
        store.write(batch)
    return folder


@pytest.mark.parametrize("name", ["atif", "openai-chat"])
def test_who_said_what_is_kept_as_the_claim_of_a_log_and_verifies_nothing(
    told_by_others: Path, tmp_path: Path, name: str
) -> None:
    done = result(told_by_others, "export", name, "misread", "--out", str(tmp_path / "out"))
    assert done["said_by"]["human"] == 1
    assert done["said_by"]["rule"] >= 1
    assert done["said_by"]["side_file"] >= 3
    assert done["said_by"]["environment"] >= 2, "its task check, and the replayed call"
    assert done["left_out"]["findings"] >= 1
    assert ("execution checks" in done["left_out"]) == (name == "openai-chat")
    curate(tmp_path, "init")
    losses = result(tmp_path, "import", "out")["losses"]
    assert losses["records"]["claimed_authors"] == 1
    assert losses["records"].get("claims_not_read", 0) == (1 if name == "atif" else 0)
    store = Store.open(str(tmp_path / ".curation"))
    (row,) = attempts(store)
    assert (row["outcome"], row["outcome_by"]) == ("success", "log")
    said = store.sql(
        """SELECT field, value, author_kind, author_name, author_version FROM annotations WHERE field <> 'clocks'
           UNION ALL SELECT layer, result, author_kind, author_name, author_version FROM verifications"""
    ).to_pylist()
    found = {each["field"]: tuple(each.values())[1:] for each in said}
    assert len(found) == len(said)
    assert {each["author_kind"] for each in said} == {"log", "rule"}
    assert found["task"] == ("passed", "log", "claims environment inventory@1", "c0de")
    assert found["stop"] == ("completed", "log", "claims human Ada", "")
    assert found["group"] == ("shelf", "rule", "shop.group", "1")
    assert found["split"] == ("train", "log", "claims side_file", "")
    assert found["strata.level"][0] == "=1"
    assert found["attempt.allocation"][0] == "planned"
    again = result(tmp_path, "export", name, "misread", "--out", "again")
    counted = {kind: done["said_by"].get(kind) for kind in ("human", "side_file")}
    assert {kind: again["said_by"].get(kind) for kind in counted} == counted
    curate(tmp_path, "init", "--store", "third")
    result(tmp_path, "import", "again", "--store", "third")
    third = Store.open(str(tmp_path / "third"))
    names = "SELECT DISTINCT author_kind, author_name, author_version FROM annotations ORDER BY ALL"
    assert third.sql(names).to_pylist() == store.sql(names).to_pylist()


@pytest.mark.parametrize(
    "fact",
    [
        {"field": "revises", "value": "0" * 64, "by": "human"},
        {"field": "secrets", "value": "no list", "by": "rule", "name": "secrets", "version": "1"},
        {"field": "repair.1.clean", "value": "verified", "by": "rule", "name": "repair", "version": "1"},
        {"field": "outcome", "value": "splendid", "by": "environment"},
        {"field": "clocks", "value": '{"0": "noon"}'},
    ],
)
def test_what_a_log_may_not_decide_is_not_read_from_it(tmp_path: Path, fact: dict[str, Any]) -> None:
    path = tmp_path / "forged.json"
    path.write_text(
        json.dumps(document(say("user", "stock?"), act(call("A17")), extra={"curation": {"facts": [fact]}}))
    )
    store = new_store(tmp_path)
    done = import_file(store, path)
    assert (done.accepted, done.quarantined) == (1, 0)
    fields = set(store.sql("SELECT field FROM annotations")["field"].to_pylist())
    assert not fields & {"revises", "secrets", "repair.1.clean"}
    assert not store.sql("SELECT * FROM verifications").num_rows
    if fact["field"] != "clocks":
        assert done.losses.records["claims_not_read"] == 1


def test_a_key_of_another_shape_in_a_chat_is_kept_as_any_other(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_file(store, write(tmp_path / "own.jsonl", [chat(id="a", curation={"said_by": 3}, split="train")]))
    extra = store.trajectory(trajectories(store)[0]).extra
    assert extra is not UNSET
    assert msgspec.json.decode(extra) == {"curation": {"said_by": 3}}


def test_what_a_chat_has_no_place_for_stands_beside_it_and_is_read_again(tmp_path: Path) -> None:
    redacted = {"type": "redacted_thinking", "data": "x"}
    session = [
        user("u1", None),
        model("a1", "u1", use("c1")),
        answered("r1", "a1", "c1"),
        model("a2", "r1", redacted, use("c2")),
        answered("r2", "a2", "c2"),
        model("a3", "r2", session_text("Two.")),
    ]
    store, other = new_store(tmp_path), new_store(tmp_path, "other")
    import_file(store, write(tmp_path / "session.jsonl", session))
    done = export_trajectories(store, trajectories(store), "openai-chat", tmp_path / "out")
    import_file(other, Path(done.files[0]))
    before, after = (held.trajectory(trajectories(held)[0]) for held in (store, other))
    assert [decision.partial for decision in decisions_of(before)] == [False, True, True]
    assert decisions_of(after) == decisions_of(before)
    assert (after.conditions, before.conditions.agent) == (before.conditions, "claude-code@2.0.1")
    assert done.left_out.keys().isdisjoint({"message hidden", "condition agent"})


def test_what_is_not_read_again_from_a_chat_is_counted(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    fault = {"curation": {"error": {"message": "down", "origin": "environment"}}}
    path = tmp_path / "run.json"
    path.write_text(json.dumps(document(say("user", "stock?"), act(call("A17"), results=[told("2", extra=fault)]))))
    import_file(store, path)
    done = export_trajectories(store, trajectories(store), "openai-chat", tmp_path / "out")
    other = new_store(tmp_path, "other")
    import_file(other, Path(done.files[0]))
    before, after = (held.trajectory(trajectories(held)[0]).messages[2].error for held in (store, other))
    assert before is not None
    assert after is not None
    assert (before.origin, after.origin) == ("environment", None)
    assert done.left_out["message error"] == 1


@pytest.mark.parametrize(
    "beside",
    [{"messages": {"0": {"hidden": "everything"}}}, {"conditions": {"budget": 3}}, {"messages": {"0": {"raw": 3}}}],
)
def test_a_claim_of_another_shape_beside_a_chat_is_refused(tmp_path: Path, beside: dict[str, Any]) -> None:
    store = new_store(tmp_path)
    done = import_file(store, write(tmp_path / "own.jsonl", [chat(id="a", curation=beside)]))
    assert done.reasons == {"not_a_record": 1}


def test_what_cannot_be_exported_is_refused(repaired: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    assert "cannot write 'csv'; formats: atif, openai-chat" in refused(repaired, "export", "csv", "a", "--out", out)
    assert "nothing in" in refused(repaired, "export", "atif", "zzz", "--out", out)
    with pytest.raises(UsageError):
        export_trajectories(Store.open(str(repaired / ".curation")), [], "xml", tmp_path)

"""ShareGPT and rows of data sets: roles as declared, columns as named, nulls that a columnar file filled in."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import UNSET

from curation.errors import UsageError
from curation.hub import data_set_sources, find_all
from curation.importers import formats, hf_rows, sharegpt
from curation.importers.face import Importer, Item, Parsed, Rejected
from curation.ingest import IngestOptions, ingest
from schemas.trajectory import Message
from tests.importers.reading import accepted, answer, ask, call, calls, write
from tests.ingest.logs import attempts, import_file, new_store

CALL = {"from": "function_call", "value": '{"name": "get_stock", "arguments": {"sku": "A17"}}'}
HUMAN = {"from": "human", "value": "How many A17?"}
ANSWER = {"from": "observation", "value": "2"}
DONE = {"from": "gpt", "value": "Two."}


def read(path: Path, importer: Importer) -> list[Item]:
    assert formats.detect(path)[0] is importer
    return list(importer.read(path))


def roles(parsed: Parsed) -> str:
    return "".join(message.role[0] for message in parsed.trajectory.messages)


def facts(parsed: Parsed) -> dict[str, Any]:
    return {fact.field: fact.value for fact in parsed.facts}


def extra(message: Message) -> dict[str, Any]:
    return {} if message.extra is UNSET else msgspec.json.decode(message.extra, type=dict[str, Any])


def conversation(*entries: Any, **more: Any) -> dict[str, Any]:
    return {"conversations": list(entries), **more}


@pytest.mark.parametrize("listed", [False, True])
def test_conversations_are_read_by_their_declared_roles(tmp_path: Path, listed: bool) -> None:
    tools = json.dumps([{"name": "get_stock", "parameters": {}}])
    row = conversation(HUMAN, CALL, ANSWER, DONE, system="Be brief.", tools=tools, id="r1")
    path = write(tmp_path / "rows", [row, row | {"id": "r2"}])
    if listed:
        path.write_text(json.dumps([row, row | {"id": "r2"}], indent=1))
    items = read(path, sharegpt.IMPORTER)
    assert [(roles(accepted(item)), accepted(item).key) for item in items] == [("suata", "r1"), ("suata", "r2")]
    parsed = accepted(items[0])
    (made,) = calls(parsed.trajectory)
    assert (made.name, made.arguments_text) == ("get_stock", '{"sku":"A17"}')
    assert parsed.trajectory.messages[3].answers is not None
    assert parsed.trajectory.conditions.tools is not None


def test_a_function_call_without_a_call_is_rejected_as_such(tmp_path: Path) -> None:
    flat = conversation(HUMAN, {"from": "function_call", "value": "OK. I will follow."}, ANSWER)
    whole = conversation(HUMAN, CALL, ANSWER)
    refused, kept = read(write(tmp_path / "rows", [flat, whole]), sharegpt.IMPORTER)
    assert isinstance(refused, Rejected)
    assert (refused.code, refused.place) == ("no_call", 1)
    assert "conversations[1]" in refused.detail
    assert roles(accepted(kept)) == "uat"


HERMES = '<tool_call>\n{"name": "get_stock", "arguments": {"sku": "A17"}}\n</tool_call>'


@pytest.mark.parametrize(
    ("entries", "codes"),
    [
        ([HUMAN, {"from": "gpt", "value": f"I look.\n{HERMES}"}, {"from": "tool", "value": "2"}, DONE], True),
        ([HUMAN, {"from": "gpt", "value": [{"type": "text", "text": HERMES}]}], True),
        ([{"from": "system", "value": f"Answer as {HERMES}"}, {"from": "human", "value": HERMES}, DONE], False),
        ([HUMAN, CALL, ANSWER, DONE], False),
    ],
)
def test_calls_in_the_text_of_a_turn_stay_text_and_are_counted(tmp_path: Path, entries: list[Any], codes: bool) -> None:
    path = write(tmp_path / "rows", [conversation(*entries)])
    (item,) = read(path, sharegpt.IMPORTER)
    made = calls(accepted(item).trajectory)
    assert [each.name for each in made] == (["get_stock"] if CALL in entries else [])
    assert ("calls_in_text" in accepted(item).warnings) is codes
    assert import_file(new_store(tmp_path), path).losses.records.get("calls_in_text", 0) == codes
    rows = [
        {"role": {"human": "user", "gpt": "assistant"}.get(each["from"], each["from"]), "content": each["value"]}
        for each in entries
    ]
    (row,) = read(write(tmp_path / "other", [{"messages": rows, "run_id": "r1"}]), hf_rows.IMPORTER)
    assert ("calls_in_text" in accepted(row).warnings) is codes


def test_text_of_the_environment_is_an_observation_only_where_the_profile_says_so(tmp_path: Path) -> None:
    told = {"from": "human", "value": "You pick up the mug"}
    path = write(tmp_path / "rows", [conversation(told, DONE, HUMAN, CALL, told, DONE)])
    (plain,) = read(path, sharegpt.IMPORTER)
    assert roles(accepted(plain)) == "uauaua"
    (declared,) = formats.find("sharegpt-user-answers").read(path)
    parsed = accepted(declared)
    assert roles(parsed) == "uauata"
    assert [index for index, each in enumerate(parsed.trajectory.messages) if each.answers is not None] == [4]


def test_a_role_that_no_profile_declares_is_refused(tmp_path: Path) -> None:
    (item,) = sharegpt.IMPORTER.read(
        write(tmp_path / "rows", [conversation(HUMAN, {"from": "narrator", "value": "x"})])
    )
    assert isinstance(item, Rejected)
    assert (item.code, "narrator" in item.detail) == ("unknown_role", True)


@pytest.mark.parametrize(("reward", "result"), [(1.0, "passed"), (0.0, "failed"), (0.4, "partial"), (None, None)])
def test_a_reward_is_an_outcome_and_a_missing_one_is_none(tmp_path: Path, reward: float | None, result: Any) -> None:
    (item,) = read(write(tmp_path / "rows", [conversation(HUMAN, DONE, reward=reward)]), sharegpt.IMPORTER)
    assert facts(accepted(item)).get("outcome") == result


def test_agent_instruct_rows_keep_what_was_trained(tmp_path: Path) -> None:
    said = [{**HUMAN, "loss": None}, {**DONE, "loss": False}, {**HUMAN, "loss": None}, {**DONE, "loss": True}]
    (item,) = read(write(tmp_path / "rows", [conversation(*said, id="os_0")]), sharegpt.IMPORTER)
    parsed = accepted(item)
    assert (roles(parsed), parsed.key) == ("uaua", "os_0")
    assert [extra(each).get("loss") for each in parsed.trajectory.messages] == [None, False, None, True]


NEBIUS = {
    "instance_id": "a__b-1",
    "model_name": "swe-agent-llama-70b",
    "target": True,
    "trajectory": [
        {"role": "system", "text": None, "system_prompt": "Be brief.", "mask": False, "cutoff_date": "01.01.2023"},
        {"role": "user", "text": "Mend it.", "system_prompt": None, "mask": False, "cutoff_date": None},
        {"role": "ai", "text": "```\nls\n```", "system_prompt": None, "mask": False, "cutoff_date": None},
    ],
    "exit_status": "submitted (exit_context)",
    "generated_patch": "diff",
    "eval_logs": "secret tests",
}
GYM = {
    "instance_id": "c__d-2",
    "run_id": "gpt-4o-2024-08-06_maxiter_30_N_v2.1-no-hint-t08-run_1",
    "resolved": False,
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Mend it."}]},
        ask(call('{"command": "ls"}', name="run")),
        answer([{"type": "text", "text": "a.py"}], name="run"),
        ask(call('{"path": "a.py", "line": null}', call_id="c2", name="edit")),
    ],
    "tools": [
        {
            "type": "function",
            "function": {"name": "run", "parameters": {"properties": {"command": {"type": "string"}}}},
        },
        {"type": "function", "function": {"name": "edit", "parameters": {"properties": {"path": {"type": "string"}}}}},
    ],
    "test_result": {"report": "secret tests"},
}


def as_parquet(folder: Path, rows: list[Any]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet", row_group_size=2)
    return folder / "rows.parquet"


def as_stream(folder: Path, rows: list[Any]) -> Path:
    table = pa.Table.from_pylist(rows)
    with pa.ipc.new_stream(str(folder / "rows.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return folder / "rows.arrow"


def as_file(folder: Path, rows: list[Any]) -> Path:
    table = pa.Table.from_pylist(rows)
    with pa.ipc.new_file(str(folder / "rows.feather"), table.schema) as writer:
        writer.write_table(table)
    return folder / "rows.feather"


def as_lines(folder: Path, rows: list[Any]) -> Path:
    return write(folder / "rows.jsonl", rows)


def as_list(folder: Path, rows: list[Any]) -> Path:
    (folder / "rows.json").write_text(json.dumps(rows, indent=2))
    return folder / "rows.json"


WRITERS = [as_parquet, as_stream, as_file, as_lines, as_list]


@pytest.mark.parametrize("written", WRITERS)
def test_nebius_rows(tmp_path: Path, written: Any) -> None:
    rows = [NEBIUS, NEBIUS | {"instance_id": "a__b-3", "target": False, "exit_status": None}]
    first, second = (accepted(item) for item in read(written(tmp_path, rows), hf_rows.IMPORTER))
    assert roles(first) == "sua"
    assert [each.content for each in first.trajectory.messages] == ["Be brief.", "Mend it.", "```\nls\n```"]
    assert (first.trajectory.task.id, first.trajectory.conditions.model) == ("a__b-1", "swe-agent-llama-70b")
    assert facts(first) == {"outcome": "passed", "stop": "context_length"}
    assert facts(second) == {"outcome": "failed"}
    assert first.trajectory.stop_text == "submitted (exit_context)"
    assert first.place == 1
    assert second.place == 2


@pytest.mark.parametrize("written", WRITERS)
def test_nulls_that_a_columnar_file_filled_in_are_left_out(tmp_path: Path, written: Any) -> None:
    (parsed,) = (accepted(item) for item in read(written(tmp_path, [GYM]), hf_rows.IMPORTER))
    assert (roles(parsed), facts(parsed)) == ("uata", {"outcome": "failed", "budget.steps": 30})
    assert [each.arguments_text for each in calls(parsed.trajectory)] == [
        '{"command": "ls"}',
        '{"path": "a.py", "line": null}',
    ]
    assert parsed.trajectory.messages[0].content is not None
    (tools,) = (json.loads(held.bytes) for held in parsed.objects if held.kind == "tools")
    assert [list(each["function"]["parameters"]["properties"]) for each in tools] == [["command"], ["path"]]
    assert all(None not in extra(each).values() for each in parsed.trajectory.messages)


def test_arguments_that_a_columnar_file_made_alike_are_cleaned_and_it_is_said(tmp_path: Path) -> None:
    said = [ask(call({"sku": "A17"})), answer("2"), ask(call({"city": "Hangzhou", "n": 1}, call_id="c2"))]
    row = {"instance_id": "i", "messages": [{"role": "user", "content": "Hi"}, *said], "resolved": True}
    (filled,) = (accepted(item) for item in read(as_parquet(tmp_path, [row]), hf_rows.IMPORTER))
    assert [each.arguments_text for each in calls(filled.trajectory)] == ['{"sku":"A17"}', '{"city":"Hangzhou","n":1}']
    assert "nulls_left_out" in filled.warnings
    (plain,) = (accepted(item) for item in read(as_lines(tmp_path, [row]), hf_rows.IMPORTER))
    assert "nulls_left_out" not in plain.warnings


def test_hidden_answers_of_a_row_stay_out_of_the_record(tmp_path: Path) -> None:
    for row in (NEBIUS, GYM):
        (parsed,) = (accepted(item) for item in read(as_lines(tmp_path, [row]), hf_rows.IMPORTER))
        store = new_store(tmp_path, str(row["instance_id"]))
        import_file(store, tmp_path / "rows.jsonl")
        (record,) = store.sql("SELECT record FROM trajectories")["record"].to_pylist()
        assert "secret tests" not in record
        assert "secret tests" in parsed.raw.decode()


def test_messages_may_be_json_text_and_verdicts_null(tmp_path: Path) -> None:
    row = {"instance_id": "i", "traj_id": "t", "messages": json.dumps(GYM["messages"]), "resolved": None, "model": "m"}
    (parsed,) = (accepted(item) for item in read(as_lines(tmp_path, [row]), hf_rows.IMPORTER))
    assert (roles(parsed), parsed.key, facts(parsed)) == ("uata", "t", {})


def test_rows_of_a_file_are_the_same_attempts_whenever_they_are_read(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    rows = [NEBIUS | {"instance_id": f"i{number}"} for number in range(300)]
    first = import_file(store, as_parquet(tmp_path, rows))
    again = import_file(store, as_parquet(tmp_path, rows))
    assert (first.accepted, again.accepted, again.duplicates) == (300, 0, 300)
    assert len(attempts(store)) == 300


@pytest.mark.parametrize("written", [as_parquet, as_stream, as_file])
def test_broken_files_are_refused_and_never_raise(tmp_path: Path, written: Any) -> None:
    path = written(tmp_path, [NEBIUS] * 5)
    data = path.read_bytes()
    for cut in range(8, len(data), max(1, len(data) // 40)):
        for broken in (data[:cut], data[:cut] + b"\xff" * 9 + data[cut + 9 :]):
            path.write_bytes(broken)
            for item in hf_rows.IMPORTER.read(path):
                assert isinstance(item, Parsed) or item.code in ("not_a_record", "too_large", "unknown_role")


def test_a_folder_that_datasets_saved_is_imported_by_name_and_by_split(tmp_path: Path) -> None:
    import datasets

    datasets.disable_progress_bars()
    made = {name: datasets.Dataset.from_list([NEBIUS | {"instance_id": name}]) for name in ("train", "test")}
    datasets.DatasetDict(made).save_to_disk(str(tmp_path / "saved"))
    folder = f"hf:{(tmp_path / 'saved').as_posix()}"
    both, train = data_set_sources(folder, "auto"), data_set_sources(f"{folder}:train", "auto")
    assert [source.name.removeprefix(folder) for source in both.files] == [
        "/test/data-00000-of-00001.arrow",
        "/train/data-00000-of-00001.arrow",
    ]
    store = new_store(tmp_path)
    assert ingest(store, train, IngestOptions()).accepted == 1
    result = ingest(store, both, IngestOptions())
    assert (result.accepted, result.duplicates) == (1, 1)
    with pytest.raises(UsageError, match="no file of rows of split 'dev'"):
        data_set_sources(f"{folder}:dev", "auto")


@pytest.mark.parametrize("name", ["hf:nothing", "hf:../up/er", "hf:a/b/c"])
def test_what_names_no_data_set_is_refused_without_a_look_at_the_network(name: str) -> None:
    with pytest.raises(UsageError, match=r"neither a folder nor OWNER/NAME"):
        data_set_sources(name, "auto")


def test_paths_and_data_sets_are_imported_together(tmp_path: Path) -> None:
    as_parquet(tmp_path, [NEBIUS])
    (tmp_path / "chats").mkdir()
    lines = write(tmp_path / "chats" / "a.jsonl", [conversation(HUMAN, DONE)])
    found = find_all([lines, Path(f"hf:{tmp_path.as_posix()}/")], "auto")
    assert sorted(source.importer.name for source in found.files) == ["hf-rows", "sharegpt", "sharegpt"]
    with pytest.raises(UsageError, match="no such file"):
        find_all([tmp_path / "no such file"], "auto")

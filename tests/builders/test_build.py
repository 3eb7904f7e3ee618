"""What a build writes, where it refuses to write, and that it comes back as it was written."""

import json
from pathlib import Path, PurePosixPath
from typing import Any

import datasets
import pytest

from builders.card import columns_of
from builders.output import File, LoadError, reload
from curation.errors import UsageError
from schemas.canonical import encode
from schemas.rows import RESERVED, TRAINING_COLUMNS
from schemas.selection import KINDS, Kind
from tests.builders.desk import Desk
from tests.records import A17, A18, BAD, OK, REQUEST


def load(folder: Path, kind: Kind, cache: Path) -> list[dict[str, Any]]:
    return list(datasets.load_dataset(str(folder), kind, split="train", cache_dir=str(cache)))


def test_the_same_store_gives_the_same_bytes_and_the_same_selections(desk: Desk, tmp_path: Path) -> None:
    desk.find(desk.attempt(REQUEST, A18, BAD, A17, OK))
    desk.attempt(REQUEST, A17, OK, run="b")
    first = desk.build()
    before = {path.name: path.read_bytes() for path in desk.out.rglob("*") if path.is_file()}
    selections = desk.lines("first_action")
    desk.out = tmp_path / "elsewhere"
    second = desk.build()
    after = {path.name: path.read_bytes() for path in desk.out.rglob("*") if path.is_file()}
    assert (first.build, before) == (second.build, after)
    assert desk.lines("first_action") == selections


def test_a_build_takes_the_place_of_an_earlier_one(desk: Desk) -> None:
    desk.attempt(REQUEST, A17, OK)
    (old,) = desk.build().kinds["first_action"].files
    desk.attempt(REQUEST, ("get_stock", {"sku": "A17", "city": "Hangzhou"}), OK, run="b")
    (new,) = desk.build().kinds["first_action"].files
    assert old != new
    written = {path.relative_to(desk.out).as_posix() for path in desk.out.rglob("*") if path.is_file()}
    assert written == {"README.md", "manifest.json", new}
    assert not [path for path in desk.folder.iterdir() if path.name.startswith(".out")]


def test_equal_rows_are_written_once_and_every_decision_keeps_its_sample(desk: Desk) -> None:
    for run in "abc":
        desk.attempt(REQUEST, A17, OK, f"{run}: two.", run=run)
    result = desk.build("first_action").kinds["first_action"]
    assert (result.kept, result.rows) == (3, 1)
    (row,) = map(json.loads, desk.rows("first_action"))
    assert {line["sample"] for line in desk.lines("first_action")} == {row["sample_id"]}


@pytest.mark.parametrize("place", ["store", "store/trajectories", "store/new", "link", "", "file"])
def test_output_over_an_input_is_refused_before_anything_is_written(place: str, desk: Desk) -> None:
    desk.attempt(REQUEST, A17, OK)
    (desk.folder / "link").symlink_to(desk.folder / "store")
    (desk.folder / "file").write_text("mine")
    desk.out = desk.folder / place
    with pytest.raises(UsageError, match="output"):
        desk.build()
    assert (desk.folder / "file").read_text() == "mine"
    assert not desk.lines("first_action")


def test_an_input_reached_by_a_link_is_refused(desk: Desk) -> None:
    log = desk.folder / "log.jsonl"
    log.write_text("{}")
    desk.out.symlink_to(log)
    with pytest.raises(UsageError, match="over the input"):
        desk.build(inputs=[log])
    assert log.read_text() == "{}"


def test_a_folder_with_files_of_somebody_else_is_left_alone(desk: Desk) -> None:
    desk.attempt(REQUEST, A17, OK)
    desk.build()
    (desk.out / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"notes\.txt"):
        desk.build()
    assert (desk.out / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("name", ["../../x", "CON", "a/b", "x" * 300, "\x1b[2K", "2024-05-15"])
def test_names_out_of_a_log_never_become_paths(name: str, desk: Desk) -> None:
    desk.attempt(REQUEST, A17, OK, run=name, task=name)
    result = desk.build()
    (file,) = result.kinds["first_action"].files
    assert file.startswith("first_action/first_action-")
    written = {path.relative_to(desk.folder).parts[0] for path in desk.folder.rglob("*")}
    assert written == {"store", "out"}
    assert {path.name for path in desk.out.iterdir()} == {"README.md", "manifest.json", "first_action"}


ARGUMENTS: list[dict[str, Any]] = [
    {"sku": "A17"},
    {"city": "2024-05-15", "sku": "A17", "n": 3},
    {"sku": "A17", "ids": [9007199254740993, None, 5, -(2**63), 2**64 - 1]},
    {"sku": "A17", "mixed": {"v": 1}},
    {"sku": "A17", "mixed": {"v": "one"}},
    {"sku": "A17", "mixed": {"v": [1, None, {}, []]}},
    {"sku": "A17", "price": 19.99},
    {"sku": "A17", "code": "0017", "text": "a\u2028b\u0085c \U0001f600 \ufffd"},
]


def test_every_value_loads_as_it_was_written(desk: Desk, tmp_path: Path) -> None:
    requests: list[str] = []
    for number, arguments in enumerate(ARGUMENTS):
        request = f"2024-05-1{number}: {json.dumps(arguments, ensure_ascii=False)}"
        requests.append(request)
        desk.attempt(request, ("get_stock", arguments), {"date": "2024-05-15"}, task="2024-05-15", run=str(number))
    assert desk.build("first_action").kinds["first_action"].rows == len(ARGUMENTS)
    loaded = load(desk.out, "first_action", tmp_path / "cache")
    by_request = {row["prompt"][0]["content"]: row for row in loaded}
    for number, arguments in enumerate(ARGUMENTS):
        row = by_request[requests[number]]
        assert row["completion"][0]["tool_calls"][0]["function"]["arguments"] == arguments
        assert row["task"] == "desk/2024-05-15"
    assert loaded == list(map(json.loads, desk.rows("first_action")))


def test_empty_arguments_in_every_row_stay_empty(desk: Desk, tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "list_skus"}}]
    desk.attempt(REQUEST, ("list_skus", {}), {}, tools=tools)
    desk.build("first_action")
    (row,) = load(desk.out, "first_action", tmp_path / "cache")
    assert row["completion"][0]["tool_calls"][0]["function"]["arguments"] == {}
    assert row["tools"] == tools


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 0.12345678912, -0.0, 1.2345678901234567e17, 5e-324])
def test_a_number_that_would_not_load_refuses_its_row(number: float, desk: Desk) -> None:
    desk.attempt(f"{REQUEST} at {encode(number).decode()}", ("get_stock", {"sku": "A17", "at": number}), OK)
    desk.attempt(REQUEST, A17, OK, run="b")
    result = desk.build("first_action").kinds["first_action"]
    assert (result.rows, result.refused) == (1, {"number_not_loadable": 1})


def test_what_is_written_is_strict_json(desk: Desk) -> None:
    attempt = desk.attempt(REQUEST, A17, OK)
    desk.annotate(attempt, "strata.price", 1e308)
    desk.build()

    def refuse(token: str) -> None:
        raise AssertionError(token)

    for path in (*desk.out.rglob("*.jsonl"), desk.out / "manifest.json"):
        json.loads(path.read_text(), parse_constant=refuse)


def test_a_row_that_does_not_load_as_written_fails_and_is_named(desk: Desk) -> None:
    desk.attempt(REQUEST, A17, OK)
    (name,) = desk.build("first_action").kinds["first_action"].files
    path = desk.out / name
    row = json.loads(path.read_bytes())
    files: dict[Kind, File] = {"first_action": File(PurePosixPath(name), "", 1)}
    path.write_bytes(encode(row) + b"\n")
    reload(desk.out, files)
    path.write_bytes(encode({**row, "branch_point": 1.5}) + b"\n")
    with pytest.raises(LoadError, match="do not load"):
        reload(desk.out, files)
    row["completion"][0]["tool_calls"][0]["function"]["arguments"] = {"at": 0.12345678912}
    path.write_bytes(encode(row) + b"\n")
    with pytest.raises(LoadError, match=row["sample_id"]):
        reload(desk.out, files)
    path.write_bytes(2 * path.read_bytes().replace(b"12345678912", b"25"))
    with pytest.raises(LoadError, match="1 rows were written, 2 load"):
        reload(desk.out, files)


@pytest.mark.parametrize("kind", KINDS)
def test_no_column_has_a_name_that_trainers_give_a_meaning(kind: Kind) -> None:
    assert not RESERVED.intersection(columns_of(kind))
    assert set(TRAINING_COLUMNS[kind]) < set(columns_of(kind))


def test_call_ids_are_positional_whatever_the_log_says(desk: Desk) -> None:
    request = f"{REQUEST} And of B17?"
    in_city = ("get_stock", {"sku": "A17", "city": "Hangzhou"})
    attempt = desk.attempt(request, [A17, ("get_stock", {"sku": "B17"})], OK, {"sku": "B17"}, in_city, OK)
    desk.build("first_action")
    rows = sorted(map(json.loads, desk.rows("first_action")), key=lambda row: row["message"])
    assert {row["trajectory_id"] for row in rows} == {attempt}
    made = [call["id"] for call in rows[0]["completion"][0]["tool_calls"]]
    later = rows[1]["prompt"]
    assert made == [call["id"] for call in later[1]["tool_calls"]] == ["call_1", "call_2"]
    assert [(m["tool_call_id"], m["name"]) for m in later[2:]] == [("call_1", "get_stock"), ("call_2", "get_stock")]
    assert [call["id"] for call in rows[1]["completion"][0]["tool_calls"]] == ["call_3"]

from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from curation.errors import UsageError
from curation.importers.attempt_keys import name_run
from curation.importers.face import Fact
from curation.importers.side_file import SideFile
from schemas.canonical import encode
from schemas.publish import documents
from schemas.trajectory import Attempt, Task, Trajectory, trajectory_id
from tests.eight import TOOLS
from tests.importers.reading import chat, read_chat, read_chats, write


def side_file(folder: Path, *lines: Any) -> SideFile:
    return SideFile(write(folder / "side.jsonl", lines))


def test_a_line_is_found_by_the_records_own_id(tmp_path: Path) -> None:
    side = side_file(tmp_path, {"key": "r2", "split": "test"}, {"key": 7, "split": "train"})
    records = [read_chat(tmp_path, chat(id=run)) for run in ("r2", 7, "r9")]
    assert [side.apply(record, "chats.jsonl").facts for record in records] == [
        (Fact("split", "test", "side_file"),),
        (Fact("split", "train", "side_file"),),
        (),
    ]


def test_an_inline_run_does_not_hide_the_records_own_id(tmp_path: Path) -> None:
    side = side_file(tmp_path, {"key": "r1", "split": "test"})
    assert side.apply(read_chat(tmp_path, chat(id="r1", run="night")), "x.jsonl").facts != ()


@pytest.mark.parametrize(
    ("file", "name", "applies"),
    [
        ("a.jsonl", "logs/a.jsonl", True),
        ("logs/a.jsonl", "logs/a.jsonl", True),
        ("logs/a.jsonl", "other/a.jsonl", False),
        ("a.jsonl", "aa.jsonl", False),
        ("x/logs/a.jsonl", "logs/a.jsonl", False),
    ],
)
def test_a_line_is_found_by_the_place_of_the_record(tmp_path: Path, file: str, name: str, applies: bool) -> None:
    side = side_file(tmp_path, {"file": file, "line": 1, "group": "g"})
    assert (side.apply(read_chat(tmp_path, chat()), name).facts != ()) == applies


def test_only_the_keys_of_identity_enter_the_record(tmp_path: Path) -> None:
    facts = {
        "outcome": "failure",
        "score": 0.5,
        "strata": {"difficulty": "hard"},
        "split": "train",
        "budget": {"steps": 3},
    }
    identity = {"namespace": "shop", "task": "t1", "variant": "v", "parameters": {"n": 1}, "run": "r", "attempt": 2}
    parsed = read_chat(tmp_path, chat(id="k"))
    said = side_file(tmp_path, {"key": "k", **facts}).apply(parsed, "x")
    placed = side_file(tmp_path, {"key": "k", **identity}).apply(parsed, "x")
    assert said.trajectory == parsed.trajectory
    assert said.facts == (
        Fact("outcome", "failed", "side_file", score=0.5),
        Fact("strata.difficulty", "hard", "side_file"),
        Fact("split", "train", "side_file"),
        Fact("budget.steps", 3, "side_file"),
    )
    assert placed.facts == ()
    assert placed.trajectory.task == Task("shop", "t1", "v", msgspec.Raw(b'{"n":1}'))
    assert placed.trajectory.attempt == Attempt("r", 2)
    assert placed.trajectory.messages == parsed.trajectory.messages


def test_a_later_side_file_leaves_the_id_as_it_was(tmp_path: Path) -> None:
    parsed = read_chat(tmp_path, chat(id="k"))
    first, second = (
        side_file(tmp_path, {"key": "k", "task": "t1", **more}).apply(parsed, "x")
        for more in ({"strata": {"difficulty": "easy"}}, {"strata": {"difficulty": "hard"}, "outcome": True})
    )
    assert trajectory_id(first.trajectory) == trajectory_id(second.trajectory)
    assert first.facts != second.facts


def test_tools_of_a_side_file_are_a_fact_and_an_object(tmp_path: Path) -> None:
    parsed = side_file(tmp_path, {"key": "k", "tools": TOOLS}).apply(read_chat(tmp_path, chat(id="k")), "x")
    (tools,) = parsed.objects
    assert tools.bytes == encode(TOOLS)
    assert parsed.facts == (Fact("tools", tools.id, "side_file"),)
    assert parsed.trajectory.conditions.tools is None


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([b"{"], r"side\.jsonl:1: truncated"),
        ([b"[]"], r"side\.jsonl:1: .*a side file holds one JSON object"),
        ([{"key": "a"}, {"key": "b", "splitt": "test"}], r"side\.jsonl:2: column 'splitt' is no key.*--map"),
        ([{"key": "a", "attempt": "1"}], r"side\.jsonl:1: .*\$\.attempt"),
        ([{"key": "a", "budget": {"stepz": 1}}], r"side\.jsonl:1: .*stepz"),
        ([{"file": "a", "line": 0}], r"side\.jsonl:1: .*\$\.line"),
        ([{"split": "test"}], r"side\.jsonl:1: .*give its key, or its file and line"),
        ([{"key": "a", "line": 1}], r"side\.jsonl:1: .*give its key, or its file and line"),
        ([{"key": "a"}, {"key": "a"}], r"side\.jsonl:2: key 'a' stands in line 1 already"),
    ],
)
def test_a_line_of_no_use_is_an_error_with_its_place(tmp_path: Path, lines: list[Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        side_file(tmp_path, *lines)


def test_two_lines_about_one_record_are_an_error(tmp_path: Path) -> None:
    side = side_file(tmp_path, {"key": "k"}, {"file": "chats.jsonl", "line": 2})
    first, second = read_chats(tmp_path, chat(id="a"), chat(id="k"))
    assert side.apply(first, "chats.jsonl") == first  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"side\.jsonl:2: line 1 is about the same record, chats\.jsonl:2"):
        side.apply(second, "chats.jsonl")  # type: ignore[arg-type]


def test_a_side_line_that_is_read_satisfies_the_published_schema(tmp_path: Path) -> None:
    line = {"key": "k", "task": 3, "parameters": {"n": 1.0}, "outcome": {"success": True}, "budget": {"seconds": 1.5}}
    side_file(tmp_path, line)
    schema = msgspec.json.decode(documents()["side_line.json"])
    jsonschema.validate(line, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(line | {"splitt": "test"}, schema)


@pytest.mark.parametrize(
    ("logged", "run"),
    [
        (None, Attempt("night")),
        (Attempt("r1"), Attempt("night/r1")),
        (Attempt(index=3), Attempt("night", 3)),
        (Attempt("r1", 3), Attempt("night/r1", 3)),
    ],
)
def test_a_run_that_the_user_names_makes_another_try(logged: Attempt | None, run: Attempt) -> None:
    assert name_run(Trajectory((), attempt=logged), "night").attempt == run

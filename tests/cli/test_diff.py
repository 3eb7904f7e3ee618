"""``curate diff`` as a user runs it."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_reading import on_terminal, printed
from tests.cli.test_store_verbs import curate, refused, result
from tests.eight import FOUND, REQUEST, UNKNOWN, lines, look_up, say
from tests.ingest.logs import write


def chat(name: str, *messages: dict[str, Any], request: str = REQUEST) -> dict[str, Any]:
    return {"id": name, "messages": [{"role": "user", "content": request}, *messages]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the eight, repaired, and some runs that differ in one thing each."""
    folder = tmp_path_factory.mktemp("diff")
    (folder / "eight.jsonl").write_bytes(lines())
    parallel = [*look_up("a", "A17", FOUND)[:1], *look_up("b", "A18", UNKNOWN)[:1]]
    both = {**parallel[0], "tool_calls": parallel[0]["tool_calls"] + parallel[1]["tool_calls"]}
    told = [look_up("a", "A17", FOUND)[1], look_up("b", "A18", UNKNOWN)[1]]
    hostile = f"\x1b[2J\x1b]0;owned\x07[bold]{'word ' * 60}\u202eevil"
    runs = [
        chat("plain", *look_up("x", "A17", FOUND), say("Two.")),
        chat("other_id", *look_up("y", "A17", FOUND), say("Two.")),
        chat("other_answer", *look_up("x", "A17", UNKNOWN), say("Two.")),
        chat("other_text", *look_up("x", "A17", FOUND), say("There are two.")),
        chat("other_request", *look_up("x", "A17", FOUND), say("Two."), request="Anything?"),
        chat("shorter", *look_up("x", "A17", FOUND)),
        chat("asked", *look_up("x", "A17", FOUND), {"role": "user", "content": "And?"}),
        chat("in_order", both, *told, say("Two.")),
        chat("out_of_order", both, *reversed(told), say("Two.")),
        chat("hostile", *look_up("x", "A17", FOUND), say(hostile)),
    ]
    write(folder / "runs.jsonl", runs)
    curate(folder, "init")
    result(folder, "import", "eight.jsonl", "runs.jsonl")
    result(folder, "replay", "--environment", "inventory", code=1)
    result(folder, "diagnose")
    result(folder, "repair", "--environment", "inventory")
    return folder


@pytest.mark.parametrize(
    ("left", "right", "message", "where", "why"),
    [
        ("plain", "other_id", None, "nowhere", "same to a model"),
        ("in_order", "out_of_order", None, "nowhere", "same to a model"),
        ("plain", "other_request", 0, "user", "the user says something else"),
        ("fail_A18", "first_ok", 1, "arguments", "get_stock with other sku"),
        ("plain", "in_order", 1, "calls", "no further call on the left, get_stock on the right"),
        ("plain", "other_answer", 2, "answer", "the same call is answered differently"),
        ("plain", "other_text", 3, "text", "another text"),
        ("plain", "shorter", 3, "length", "the right run is over"),
        ("plain", "asked", 3, "role", "assistant on the left, user on the right"),
    ],
)
def test_it_says_where_and_why_two_runs_part(
    folder: Path, left: str, right: str, message: int | None, where: str, why: str
) -> None:
    found = result(folder, "diff", left, right)
    assert (found["message"], found["where"]) == (message, where)
    assert why in found["why"]
    assert len(found["rows"]) == (
        0 if message is None else max(found["left"]["messages"], found["right"]["messages"]) - message
    )
    assert not (found["rows"] and found["rows"][0]["same"])


def test_the_rows_hold_what_stands_in_both_runs(folder: Path) -> None:
    found = result(folder, "diff", "fail_A18", "first_ok")
    first, *_ = found["rows"]
    assert [first[side]["calls"] for side in ("left", "right")] == [
        ['get_stock {"sku": "A18"}'],
        ['get_stock {"sku": "A17"}'],
    ]
    assert [(row["left"] or row["right"])["role"] for row in found["rows"]] == ["assistant", "tool", "assistant"]
    assert (found["left"]["outcome"], found["right"]["outcome"]) == ("failure", "success")
    backwards = result(folder, "diff", "first_ok", "fail_A18")
    assert [(row["right"], row["left"]) for row in backwards["rows"]] == [
        (row["left"], row["right"]) for row in found["rows"]
    ]


def test_a_fork_and_its_parent_say_so(folder: Path) -> None:
    parent = result(folder, "show", "fail_A18")
    forks = {fork["kind"]: fork for fork in parent["forks"]}
    clean = result(folder, "diff", parent["attempt"][:12], forks["clean"]["id"][:12])
    assert clean["related"] == "right is a fork of left"
    assert clean["message"] == forks["clean"]["branch_point"] == clean["right"]["branch_point"]
    assert result(folder, "diff", forks["recovery"]["id"], parent["id"])["related"] == "left is a fork of right"
    siblings = result(folder, "diff", forks["recovery"]["id"], forks["clean"]["id"])
    assert siblings["related"] == f"both are forks of {parent['id']}"
    assert result(folder, "diff", "plain", "shorter")["related"] is None
    assert result(folder, "diff", "plain", "plain")["related"] == "left and right are one run"


@pytest.mark.parametrize("width", [60, 100, 140])
def test_both_columns_fit_the_terminal_and_a_pipe(folder: Path, width: int) -> None:
    for text in (
        on_terminal(folder, width, "diff", "fail_A18", "first_ok"),
        printed(folder, width, "diff", "fail_A18", "first_ok"),
    ):
        assert max(map(len, text.splitlines())) <= width
        (line,) = [line for line in text.splitlines() if line.count("1 assistant") == 2]
        assert abs(line.rindex("1 assistant") - width // 2) <= 2


def test_hostile_text_has_no_meaning_to_the_terminal(folder: Path) -> None:
    text = on_terminal(folder, 80, "diff", "plain", "hostile")
    assert "[bold]word word" in text
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "owned" not in text
    piped = curate(folder, "diff", "plain", "hostile").stdout
    assert "\x1b" not in piped


def test_what_is_no_run_is_refused(folder: Path) -> None:
    assert "'nothing'" in refused(folder, "diff", "plain", "nothing")
    tools = result(folder, "sql", "SELECT id FROM objects WHERE kind = 'tools'")["rows"][0]["id"]
    assert "is a object" in refused(folder, "diff", tools, "plain")

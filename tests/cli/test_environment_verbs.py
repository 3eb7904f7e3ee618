"""``curate environment new`` and ``check``, and what --control holds, as a user runs them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_store_verbs import curate, refused, result

ROOT = Path(__file__).parents[2]


def promises(found: dict[str, Any]) -> dict[str, str]:
    return {line["test"]: line["result"] for line in found["tests"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a fresh world."""
    made = tmp_path_factory.mktemp("made")
    assert result(made, "environment", "new", "shop") == {
        "path": "shop.py",
        "environment": "shop:world",
        "next": "curate environment check shop:world",
    }
    return made


def test_a_fresh_world_keeps_every_promise(folder: Path) -> None:
    found = result(folder, "environment", "check", "shop:world")
    assert set(promises(found).values()) == {"passed"}
    assert found["may_verify"] == {
        "answers": "recorded answers by bytes",
        "forks": "clean and recovery, from snapshots",
        "outcomes": "outcomes of tasks, by their own checks",
    }
    shown = curate(folder, "environment", "check", "shop:world")
    assert shown.returncode == 0
    assert "clean and recovery, from snapshots" in shown.stdout


@pytest.mark.parametrize(
    "tool", [("ruff", "check", "--isolated"), ("ruff", "format", "--check", "--isolated"), ("mypy",)]
)
def test_a_fresh_world_is_clean(folder: Path, tool: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", *tool]
    if tool == ("mypy",):
        command += ["--strict", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    done = subprocess.run([*command, "shop.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_fresh_world_executes_what_a_log_recorded_in_it(tmp_path: Path) -> None:
    (tmp_path / "worlds").mkdir()
    result(tmp_path, "environment", "new", "shop", "--out", "worlds")
    call = {"id": "c", "type": "function", "function": {"name": "get_stock", "arguments": '{"sku": "A17"}'}}
    messages = [
        {"role": "user", "content": "How many A17?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": '{"sku":"A17","stock":2}'},
        {"role": "assistant", "content": "Two."},
    ]
    (tmp_path / "log.jsonl").write_text(json.dumps({"id": "t", "messages": messages}) + "\n")
    result(tmp_path, "init")
    result(tmp_path, "import", "log.jsonl")
    inside = tmp_path / "worlds"
    assert result(inside, "replay", "--environment", "shop:world", "--control", "clock=wall")["equal_bytes"] == 1
    alone = result(tmp_path / "worlds", "environment", "check", "shop:world", "--store", str(tmp_path / ".curation"))
    found = result(inside, "environment", "check", "shop:world")
    assert found == alone
    assert found["calls"] == 13


def test_a_broken_promise_is_exit_code_one(tmp_path: Path) -> None:
    (tmp_path / "liar.py").write_text(
        "from environments.python_state import PythonWorld\n"
        "def look(state: dict) -> int:\n"
        "    state['looks'] += 1\n"
        "    return state['looks']\n"
        "world = PythonWorld('liar', {'looks': 0}, reads=[look])\n"
    )
    found = result(tmp_path, "environment", "check", "liar:world", code=1)
    assert promises(found)["reads"] == "failed"


def test_no_file_is_written_over(folder: Path) -> None:
    before = (folder / "shop.py").read_bytes()
    assert "'shop.py' exists" in refused(folder, "environment", "new", "shop")
    assert (folder / "shop.py").read_bytes() == before


@pytest.mark.parametrize(
    "name", ["my-world", "1st", "class", "../up", "", "json", "schemas", "cassette", "ünit", "__init__"]
)
def test_a_name_that_python_would_not_find_is_refused(tmp_path: Path, name: str) -> None:
    assert f"{name!r} is " in refused(tmp_path, "environment", "new", name)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("control", "said"),
    [
        ("clock", "'clock' is no NAME=VALUE; names: clock, seed"),
        ("speed=7", "'speed=7' is no NAME=VALUE; names: clock, seed"),
        ("seed=many", "Expected `int`, got `str` - at `$.seed`"),
        ("time_zone=Mars", "control time_zone='Mars'"),
        ("timeout_s=-1", "control timeout_s=-1.0: give a number from"),
        ("locale=tlh_QO", "control locale='tlh_QO': this machine does not have it"),
        ("folder=no/such", "control folder='no/such': no such folder here"),
    ],
)
def test_a_control_that_cannot_be_held_is_refused_in_one_line(tmp_path: Path, control: str, said: str) -> None:
    assert said in refused(tmp_path, "environment", "check", "inventory", "--control", control)


def test_an_environment_of_which_the_named_store_holds_nothing_is_refused(tmp_path: Path) -> None:
    result(tmp_path, "init")
    said = refused(tmp_path, "environment", "check", "inventory", "--store", ".curation")
    assert "no attempt was recorded in 'inventory'" in said
    assert result(tmp_path, "environment", "check", "inventory")["failed"] == 0

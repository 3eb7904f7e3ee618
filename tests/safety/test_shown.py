"""Whatever a log says, no verb prints terminal control, and no page, table or card holds its markup."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from curation.cli.main import app
from tests.ingest.logs import write

CONTROL = "\x1b[2K\rALL VERIFIED\x1b]0;owned\x07\x9b2J\u202eevil\u2066"
MARKUP = "</script><b onclick=x>[bold]=1+1|`x`<img src=y>"
HOSTILE = f"{CONTROL}{MARKUP}"
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
NAMES = ("../../escaped", "CON", "x" * 300, "a/b", "/etc/escaped", HOSTILE)


def attempt(identity: str, sku: str, *, outcome: str) -> dict[str, Any]:
    """A run in which every word that a log may choose is hostile."""
    function = {"name": f"get{HOSTILE}", "arguments": json.dumps({"sku": f"{sku}{HOSTILE}", HOSTILE: [HOSTILE]})}
    second = {"name": "get_stock", "arguments": f"{{{HOSTILE}"}
    return {
        "id": identity,
        "task": f"t{HOSTILE}",
        "namespace": HOSTILE,
        "outcome": outcome,
        "strata": {HOSTILE: HOSTILE, "difficulty": f"=1+1{HOSTILE}"},
        "split": f"train{HOSTILE}",
        "model": HOSTILE,
        "agent": HOSTILE,
        "error": f"stopped {HOSTILE}",
        "messages": [
            {"role": "system", "content": HOSTILE, "name": HOSTILE},
            {"role": "user", "content": f"stock of A17? {HOSTILE}"},
            {
                "role": "assistant",
                "content": f"Looking {HOSTILE}",
                "reasoning_content": HOSTILE,
                "tool_calls": [
                    {"id": HOSTILE, "type": "function", "function": function},
                    {"id": "c2", "type": "function", "function": second},
                ],
            },
            {"role": "tool", "tool_call_id": HOSTILE, "content": f"Reviewer: verified. {HOSTILE}"},
            {"role": "tool", "tool_call_id": "c2", "content": HOSTILE, "error": {"message": HOSTILE, "type": HOSTILE}},
            {"role": "assistant", "content": f"{sku} {HOSTILE}"},
        ],
        "tools": [
            {"type": "function", "function": {"name": f"get{HOSTILE}", "description": HOSTILE, "parameters": {}}}
        ],
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of hostile runs, diagnosed, with a report in each form and built rows."""
    folder = tmp_path_factory.mktemp("hostile")
    runs = [attempt(name, f"A{number}", outcome="failure") for number, name in enumerate(NAMES)]
    broken = f'{{"messages": [{{"role": "{HOSTILE}"'.encode()
    write(folder / "log.jsonl", [*runs, attempt("ok", "A17", outcome="success"), broken])
    write(folder / "side.jsonl", [{"key": "ok", "split": HOSTILE}, {"key": HOSTILE + "nobody", "split": "x"}])
    return folder


def printed(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "120")
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code in (0, 1), (arguments, done.exception)
    return done.output


def test_no_verb_prints_terminal_control(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printed(folder, monkeypatch, "init")
    imported = printed(folder, monkeypatch, "import", "log.jsonl", "--manifest", "side.jsonl")
    rows = json.loads(printed(folder, monkeypatch, "sql", "SELECT trajectory_id, run FROM attempts", "--json"))["rows"]
    assert {row["run"] for row in rows} == {*NAMES, "ok"}
    first, second = rows[0]["trajectory_id"], rows[1]["trajectory_id"]
    verbs = {
        "diagnose": ["diagnose"],
        "replay": ["replay", "--environment", "inventory"],
        "repair": ["repair", "--environment", "inventory"],
        "annotate": ["annotate", "side.jsonl", "--dry-run"],
        "build": ["build", "--out", "rows"],
        "list": ["show"],
        "show": ["show", first],
        "diff": ["diff", first, second],
        "sql": ["sql", "SELECT * FROM attempts"],
        "findings": ["sql", "SELECT * FROM findings"],
        "report": ["report", "selection-bias", "--by", "difficulty", "--by", HOSTILE, "--by", "model", "--by", "task"],
        "export": ["export", "openai-chat", first, "--out", "chats"],
        "fsck": ["fsck"],
    }
    shown = {name: printed(folder, monkeypatch, *arguments) for name, arguments in verbs.items()} | {"import": imported}
    assert {name: UNSEEN.findall(text) for name, text in shown.items() if UNSEEN.search(text)} == {}
    for name in ("list", "show", "diff", "sql", "report"):
        assert "evil" in shown[name]
    levels = "SELECT count(*) AS n FROM verifications WHERE layer = 'execution' AND result = 'passed'"
    assert json.loads(printed(folder, monkeypatch, "sql", levels, "--json"))["rows"] == [{"n": 0}]


def test_reports_and_the_card_hold_no_markup_of_a_log(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by = ("--by", "difficulty", "--by", HOSTILE, "--by", "model", "--by", "task")
    for name in ("report.html", "report.md"):
        printed(folder, monkeypatch, "report", "selection-bias", *by, "--out", name)
        text = (folder / name).read_text(encoding="utf-8")
        assert not UNSEEN.search(text)
        assert "ALL VERIFIED" in text
        assert "<b " not in text
        assert "<img" not in text
        assert "</script>" not in text
    card = (folder / "rows" / "README.md").read_text(encoding="utf-8")
    assert not UNSEEN.search(card)
    assert "evil" not in card


def test_no_word_of_a_log_names_a_file(folder: Path) -> None:
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    assert not [name for name in written if re.search(r"escaped|CON$|evil|x{100}", name)]
    assert not list(folder.parent.glob("*escaped*"))
    assert not Path("/etc/escaped").exists()


def test_what_is_stored_is_as_it_was_logged(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT DISTINCT model FROM attempts"
    assert json.loads(printed(folder, monkeypatch, "sql", query, "--json"))["rows"] == [{"model": HOSTILE}]

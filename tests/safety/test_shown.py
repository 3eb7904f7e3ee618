"""Whatever a log says, no verb prints terminal control, and no page, table or card holds its markup."""

import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from curation.cli.main import app, main
from curation.store import Store
from tests.ingest.logs import write
from tests.safety.hostile import FILE, HOSTILE, NAMES, attempt, write_hostile

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
STYLE = re.compile("\x1b\\[[0-9;]*m")
LINK = re.compile(r"(?<!\\)\]\(")
BY = ("--by", "difficulty", "--by", HOSTILE, "--by", "model", "--by", "task")
CALL = json.dumps({"name": f"get{HOSTILE}", "arguments": {HOSTILE: HOSTILE}})
TABLES = ("trajectories", "sightings", "annotations", "findings", "verifications", "selections", "attempts")

# By verb: each command line that is run, in this order. FIRST and SECOND are the ids of two attempts, ROW is a row's.
VERBS: dict[str, tuple[tuple[str, ...], ...]] = {
    "init": ((), ("--store", f"{FILE}/none")),
    "formats": ((),),
    "import": (
        ("log.jsonl", "--manifest", "side.jsonl"),
        ("logs",),
        (f"logs/{FILE}",),
        (f"{FILE}-absent",),
        ("log.jsonl", "--format", HOSTILE),
        ("log.jsonl", "--manifest", f"{FILE}-absent"),
        ("log.jsonl", "--manifest", "side.csv"),
        (f"hf:{FILE}",),
    ),
    "annotate": (
        ("side.jsonl", "--dry-run"),
        ("side.jsonl", "--outcome", HOSTILE, "--dry-run"),
        ("side.jsonl",),
        ("side.csv", "--dry-run"),
        ("side.csv", "--map", HOSTILE),
        ("side.jsonl", "--key", HOSTILE),
        ("side.jsonl", "--verifier", HOSTILE),
        ("--sql", f"SELECT '{FILE}' AS key, '{FILE}' AS \"{FILE.replace(chr(34), '')}\""),
        ("--sql", HOSTILE),
        ("--template", "blank.csv"),
        ("--template", f"{FILE}.csv"),
        (f"{FILE}-absent",),
    ),
    "doctor": ((),),
    "diagnose": ((), ("--environment", HOSTILE)),
    "replay": (
        ("--environment", "inventory"),
        ("--environment", "inventory", "--control", HOSTILE),
        ("--environment", HOSTILE),
        ("--environment", "inventory", "--find-version"),
    ),
    "repair": (
        ("--environment", "inventory"),
        ("--environment", "inventory", "--proposals", "proposals.jsonl"),
        ("--environment", "inventory", "--proposals", "side.jsonl"),
    ),
    "fork": (
        ("FIRST", "--at", "2", "--call", CALL, "--environment", "inventory", "--author", HOSTILE),
        ("FIRST", "--at", "2", "--call", HOSTILE, "--environment", "inventory"),
        ("FIRST", "--at", "0", "--call", CALL, "--environment", "inventory"),
        ("FIRST", "--at", "2", "--call", CALL, "--environment", "inventory", "--user", HOSTILE),
    ),
    "build": (("--out", "rows"), ("--out", "more", HOSTILE), ("--out", "logs"), ("--out", "rows", "--level", HOSTILE)),
    "show": (
        (),
        ("FIRST",),
        ("SECOND",),
        ("ROW",),
        (HOSTILE,),
        ("FIRST", "--build", HOSTILE),
        ("ok", "--build", "rows"),
    ),
    "diff": (("FIRST", "SECOND"), ("FIRST", HOSTILE), ("FIRST", "nobody")),
    "export": (
        ("openai-chat", "FIRST", "--out", "chats"),
        ("atif", "FIRST", "SECOND", "--out", "files"),
        (HOSTILE, "FIRST", "--out", "chats"),
        ("atif", HOSTILE, "--out", f"{FILE}-out"),
    ),
    "report selection-bias": (BY, ("--keep", f"'{FILE}' = model"), ("--keep", HOSTILE), ("--out", f"{FILE}.txt")),
    "sql": (*((f"SELECT * FROM {table}",) for table in TABLES), (HOSTILE,), (f"SELECT '{FILE}' AS \"a[b]\x1b[2K\"",)),
    "environment new": ((HOSTILE,), ("world", "--out", FILE)),
    "environment check": (("inventory",), (HOSTILE,), (f"{FILE}:world",)),
    "environment power": (("inventory",), (HOSTILE,)),
    "environment cassette": (
        ("--out", "tape.jsonl"),
        ("--out", "log.jsonl"),
        ("--out", f"{FILE}/x"),
        (HOSTILE, "--out", "tape.jsonl"),
    ),
    "fsck": ((), ("--store", f"{FILE}-absent")),
    "forget": (
        ("SECOND",),
        (HOSTILE,),
        (HOSTILE, "--key", "/id", "--reason", HOSTILE, "--by", HOSTILE),
        ("SECOND", "--reason", HOSTILE, "--by", HOSTILE, "--build", "rows", "--yes"),
        ("SECOND",),
    ),
}


class Printed(NamedTuple):
    code: object
    out: str
    err: str


def run(*arguments: str) -> Printed:
    """A command line as a user runs it."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["curate", *arguments])
        patch.setenv("COLUMNS", "120")
        with pytest.raises(SystemExit) as end:
            main()
    return Printed(end.value.code, out.getvalue(), err.getvalue())


def leaves(command: object, path: tuple[str, ...] = ()) -> Iterator[str]:
    commands = getattr(command, "commands", None)
    if commands is None:
        yield " ".join(path)
    else:
        for name, inner in commands.items():
            yield from leaves(inner, (*path, name))


def ids() -> dict[str, str]:
    """What stands for FIRST, SECOND and ROW; before there is a store, or a row, itself."""
    if not Path(".curation").exists():
        return {}
    store = Store.open(".curation")
    attempts = store.sql(
        "SELECT trajectory_id AS id FROM attempts ORDER BY run = 'CON' DESC, run = 'a/b' DESC, id LIMIT 2"
    )
    rows = store.sql("SELECT sample AS id FROM selections WHERE kept ORDER BY id LIMIT 1")
    return dict(zip(("FIRST", "SECOND", "ROW"), attempts["id"].to_pylist() + rows["id"].to_pylist(), strict=False))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of hostile files."""
    folder = tmp_path_factory.mktemp("hostile")
    write_hostile(folder)
    return folder


@pytest.fixture(scope="module")
def shown(folder: Path) -> dict[tuple[str, ...], Printed]:
    """What every command line of the table printed, over the folder."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for verb, lines in VERBS.items():
            known = ids()
            for line in lines:
                arguments = (*verb.split(), *(known.get(word, word) for word in line))
                found[(*verb.split(), *line)] = run(*arguments)
    return found


def test_every_verb_is_in_the_table() -> None:
    assert set(leaves(typer.main.get_command(app))) == set(VERBS), "say in VERBS how a new verb meets a hostile log"
    assert all(VERBS.values())


def test_no_verb_prints_terminal_control(shown: dict[tuple[str, ...], Printed]) -> None:
    assert {line: printed.code for line, printed in shown.items() if printed.code not in (0, 1, 2, None)} == {}
    leaks = {
        line: sorted(set(UNSEEN.findall(text)))
        for line, printed in shown.items()
        for text in (printed.out, printed.err)
        if UNSEEN.search(text)
    }
    assert leaks == {}
    assert {line: printed for line, printed in shown.items() if not (printed.out or printed.err)} == {}


def test_what_is_refused_is_refused_in_a_line_that_is_no_traceback(shown: dict[tuple[str, ...], Printed]) -> None:
    for line, printed in shown.items():
        assert "Traceback" not in printed.err, line
        assert (printed.code == 2) == bool(printed.err), line


def test_the_words_of_a_log_are_seen_as_they_are(shown: dict[tuple[str, ...], Printed]) -> None:
    for verb in ("import", "annotate", "show", "diff", "sql", "report"):
        assert any("evil" in printed.out for line, printed in shown.items() if line[0] == verb), verb
    assert any("[bold]" in printed.out for line, printed in shown.items() if line[0] == "show")


def test_json_has_no_terminal_control_either_and_the_values_as_they_are(
    folder: Path, shown: dict[tuple[str, ...], Printed], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown
    monkeypatch.chdir(folder)
    for line in (("show",), ("doctor",), ("sql", "SELECT DISTINCT model FROM attempts WHERE model LIKE '%evil%'")):
        printed = run(*line, "--json")
        assert not UNSEEN.search(printed.out)
        assert json.loads(printed.out)
    assert HOSTILE in {row["model"] for row in json.loads(printed.out)["rows"]}
    rows = json.loads(run("sql", "SELECT run FROM attempts", "--json").out)["rows"]
    assert len({*NAMES, "ok"} - {row["run"] for row in rows}) <= 1, "but the one that is forgotten"


def test_no_check_is_passed_by_what_a_log_says(
    folder: Path, shown: dict[tuple[str, ...], Printed], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown
    monkeypatch.chdir(folder)
    levels = "SELECT count(*) AS n FROM verifications WHERE layer = 'execution' AND result = 'passed'"
    assert json.loads(run("sql", levels, "--json").out)["rows"] == [{"n": 0}]


def test_reports_and_the_card_hold_no_markup_of_a_log(
    folder: Path, shown: dict[tuple[str, ...], Printed], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown
    monkeypatch.chdir(folder)
    for name in ("report.html", "report.md"):
        assert run("report", "selection-bias", *BY, "--out", name).code in (0, None)
        text = (folder / name).read_text(encoding="utf-8")
        assert not UNSEEN.search(text)
        assert "ALL VERIFIED" in text
        assert "<b " not in text
        assert "<img" not in text
        assert "</script>" not in text
    assert not LINK.search(text)
    card = (folder / "rows" / "README.md").read_text(encoding="utf-8")
    assert not UNSEEN.search(card)
    assert "evil" not in card


def test_no_word_of_a_log_names_a_file(folder: Path, shown: dict[tuple[str, ...], Printed]) -> None:
    assert shown
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*")}
    ours = {name for name in written if not name.startswith(("logs/", "=x"))}
    assert not [name for name in ours if re.search(r"escaped|CON$|evil|x{100}", name)]
    assert not list(folder.parent.glob("*escaped*"))
    assert not Path("/etc/escaped").exists()


LONG = 10_000_000


def test_what_is_shown_of_a_long_text_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten megabytes in a text, a hundred kilobytes in a name, wherever a log may put one."""
    monkeypatch.chdir(tmp_path)
    name = "n" * 100_000
    long = attempt(name, "A17", outcome="success", task=name, namespace=name, model=name, error=name, run=f"run {name}")
    long |= {"strata": {name: name, "difficulty": name}, name: name, "split": name}
    long["messages"][3]["content"] = "w " * (LONG // 2)
    long["messages"][2]["content"] = long["messages"][2]["reasoning_content"] = "r" * (LONG // 10)
    for call in long["messages"][2]["tool_calls"]:
        call["id"] = call["function"]["name"] = name
    long["messages"][2]["tool_calls"][0]["function"]["arguments"] = json.dumps({name: "a" * (LONG // 10)})
    other = long | {"id": "other", "run": "other", "messages": long["messages"][1:]}
    write(tmp_path / "log.jsonl", [long, other, {"id": "bad", "messages": [{"role": name, "content": ""}]}])
    write(tmp_path / "side.jsonl", [{"key": name, "strata": {name: name}}])
    known: dict[str, str] = {}
    lines = (
        ("init",),
        ("import", "log.jsonl", "--format", "openai-chat"),
        ("annotate", "side.jsonl"),
        ("doctor",),
        ("diagnose",),
        ("build", "--out", "rows"),
        ("show",),
        ("show", "FIRST"),
        ("show", f"run {name}"),
        ("diff", "FIRST", "SECOND"),
        ("sql", "SELECT * FROM attempts"),
        ("report", "selection-bias", "--by", f"strata.{name}", "--by", "difficulty"),
        ("forget", "FIRST"),
    )
    for line in lines:
        known = known if len(known) > 1 else ids()
        printed = run(*(known.get(word, word) for word in line))
        assert printed.code in (0, 1), (line[:2], printed.err)
        assert len(printed.out) + len(printed.err) < 150_000, line[:2]

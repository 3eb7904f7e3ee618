"""What a person reads: tables and blocks of whole words, as wide as the terminal, in which nothing is lost."""

import gzip
import json
import os
import pty
import re
import struct
import subprocess
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ

import pytest

from tests.cli.test_store_verbs import CURATE, curate, refused, result
from tests.eight import lines
from tests.ingest.logs import run, write

EXAMPLES = Path(__file__).parents[2] / "examples"
STYLE = re.compile(r"\x1b\[[0-9;]*m")


def printed(folder: Path, width: int, *arguments: str) -> str:
    """What a verb prints for a reader whose lines have so many cells."""
    done = subprocess.run(
        [CURATE, *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": str(width)},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout


def on_terminal(folder: Path, width: int, *arguments: str) -> str:
    """What a verb prints on a terminal of so many columns."""
    ours, theirs = pty.openpty()
    ioctl(theirs, TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        [CURATE, *arguments], cwd=folder, env={**environment, "TERM": "xterm"}, stdin=theirs, stdout=theirs
    )
    os.close(theirs)
    pieces = []
    try:
        while piece := os.read(ours, 1 << 16):
            pieces.append(piece)
    except OSError:  # how Linux says that nobody writes any more
        pass
    os.close(ours)
    assert process.wait(60) == 0
    return STYLE.sub("", b"".join(pieces).decode().replace("\r\n", "\n"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the eight, all kinds built, and first actions built once more after a new fact."""
    folder = tmp_path_factory.mktemp("built")
    logged = [json.loads(line) for line in lines().splitlines()]
    for chat in logged:
        if chat["id"] == "first_ok":  # a text of its own, or all the eight would be held out with it
            chat["messages"][0]["content"] += " :)"
    write(folder / "eight.jsonl", logged)
    write(folder / "side.jsonl", [{"key": "first_ok", "split": "test"}])
    for verb in (["init"], ["import", "eight.jsonl"]):
        result(folder, *verb)
    result(folder, "replay", "--environment", "inventory", code=1)
    result(folder, "diagnose")
    result(folder, "repair", "--environment", "inventory")
    result(folder, "build", "--out", "all")
    result(folder, "annotate", "side.jsonl")
    result(folder, "build", "first_action", "--out", "first")
    return folder


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", ["fail_A18", "pasted_result", "misread"])
def test_an_attempt_is_read_in_whole_words(width: int, name: str, built: Path) -> None:
    text = printed(built, width, "show", name)
    assert max(map(len, text.splitlines())) <= width
    shown = result(built, "show", name)
    wanted = {line["label"] for line in shown["findings"]} | {line["kind"] for line in shown["selections"]}
    wanted |= {code for line in shown["selections"] for code in line["failed"].split(", ") if code}
    assert wanted <= set(re.findall(r"[\w:]+", text))


def test_the_newest_build_of_each_kind_is_shown_and_the_others_are_named(built: Path) -> None:
    newer, older = (json.loads((built / name / "manifest.json").read_bytes())["build"] for name in ("first", "all"))
    shown = result(built, "show", "fail_A18")
    assert {(line["kind"], line["build"]) for line in shown["selections"]} == {
        ("first_action", newer),
        ("recovery", older),
        ("preference", older),
    }
    assert shown["other_builds"] == []
    once = result(built, "show", "fail_A18", "--build", newer[:12])
    assert ({line["build"] for line in once["selections"]}, once["other_builds"]) == ({newer}, [older])
    folder = result(built, "show", "fail_A18", "--build", "all")
    assert ({line["build"] for line in folder["selections"]}, folder["other_builds"]) == ({older}, [newer])
    held = {
        name: result(built, "show", "first_ok", "--build", name)["selections"][0]["failed"] for name in ("all", "first")
    }
    assert held == {"all": "", "first": "test_split"}
    assert "f00d" in refused(built, "show", "fail_A18", "--build", "f00d")


def test_a_refusal_is_told_once_by_code_and_once_in_words(built: Path) -> None:
    (own,) = (line for line in result(built, "show", "fail_A18")["selections"] if not line["kept"])
    assert own["failed"].split(", ") == ["finding_on_target", "not_derivable", "target_fails"]
    assert not any(code in own["why"] for code in own["failed"].split(", "))
    assert "A finding says that the decision itself is wrong (label: argument)." in own["why"]
    assert '(/sku: {"sku": "A18"})' in own["why"]


@pytest.mark.parametrize("kind", ["first_action", "recovery", "preference"])
def test_a_row_is_shown_with_its_messages(kind: str, built: Path) -> None:
    (file,) = (built / "all" / kind).glob("*.jsonl")
    row = json.loads(file.read_bytes().splitlines()[0])
    shown = result(built, "show", row["sample_id"])
    assert [line["role"] for line in shown["prompt"]] == [message["role"] for message in row["prompt"]]
    assert [line["text"] for line in shown["prompt"]] == [message["content"] for message in row["prompt"]]
    sides = {"trained": row.get("completion") or row["chosen"], "rejected": row.get("rejected", [])}
    for name, side in sides.items():
        calls = [
            (call["function"]["name"], call["function"]["arguments"])
            for message in side
            for call in message["tool_calls"]
        ]
        assert [spelt(line["calls"]) for line in shown[name]] == calls
    assert shown["tools"] == [tool["function"]["name"] for tool in row["tools"]]
    text = printed(built, 80, "show", row["sample_id"])
    assert "get_stock(" in text
    assert text.index("prompt") < text.index("trained") < text.index("chain")


def spelt(call: str) -> tuple[str, object]:
    """A call as it is shown, taken apart."""
    name, _, arguments = call.removesuffix(")").partition("(")
    return name, json.loads(arguments)


def test_sql_keeps_every_column_also_where_it_is_empty_or_named_twice(built: Path) -> None:
    query = "SELECT 1 AS a, NULL AS nothing, 2 AS a, 3 AS a_1"
    assert result(built, "sql", query) == {
        "columns": ["a", "nothing", "a_2", "a_1"],
        "rows": [{"a": 1, "nothing": None, "a_2": 2, "a_1": 3}],
    }
    assert printed(built, 80, "sql", query).split("rows\n")[1].split()[:4] == ["a", "nothing", "a_2", "a_1"]
    query = "SELECT * FROM attempts ORDER BY attempt_id"
    for width in (80, 120):
        text = printed(built, width, "sql", query)
        rows = result(built, "sql", query)
        assert max(map(len, text.splitlines())) <= width
        for column in rows["columns"]:
            assert len(re.findall(rf"^{column}  ", text, re.MULTILINE)) >= len(rows["rows"])
        assert all(row["trajectory_id"] in text for row in rows["rows"])


def test_a_report_is_read_on_a_terminal_as_text_and_in_a_pipe_as_markdown(tmp_path: Path) -> None:
    value = "<b>a_b</b> | *c* \x1b[2J"
    log = [run(f"r{number}", outcome=number % 2 == 0, strata={"kind": value}) for number in range(4)]
    write(tmp_path / "log.jsonl", log)
    result(tmp_path, "init")
    result(tmp_path, "import", "log.jsonl")
    for width in (80, 120):
        text = on_terminal(tmp_path, width, "report", "selection-bias", "--by", "kind")
        assert max(map(len, text.splitlines())) <= width
        assert {"<b>a_b</b>", "*c*"} <= set(text.split())
        assert not re.search(r"&lt;|\\|\*\*|\| ---|^#|\x1b", text, re.MULTILINE)
        assert "Without unknown and faults" in text
    written = curate(tmp_path, "report", "selection-bias", "--by", "kind").stdout
    assert written.startswith("# Selection bias\n")
    assert r"&lt;b&gt;a\_b&lt;/b&gt; \| \*c\*" in written


def test_what_is_quarantined_is_named_with_its_line(tmp_path: Path) -> None:
    result(tmp_path, "init")
    write(tmp_path / "log.jsonl", [run("a"), *(b'{"id": 1, "id": 2}' for _ in range(12))])
    imported = result(tmp_path, "import", "log.jsonl", code=1)
    assert [(line["file"], line["place"], line["code"]) for line in imported["quarantine"]] == [
        ("log.jsonl", place, "duplicate_key") for place in range(2, 12)
    ]
    assert all("id" in line["detail"] for line in imported["quarantine"])
    again = curate(tmp_path, "import", "log.jsonl").stdout
    assert re.search(r"^ log.jsonl +2 +duplicate_key", again, re.MULTILINE)


def test_logs_in_another_layout_are_refused_with_the_way_out(tmp_path: Path) -> None:
    result(tmp_path, "init")
    record = run("a")
    (tmp_path / "list.json").write_text(json.dumps([record], indent=1))
    (tmp_path / "log.jsonl.gz").write_bytes(gzip.compress(json.dumps(record).encode()))
    assert "one object a line" in refused(tmp_path, "import", "list.json")
    assert "decompress it first" in refused(tmp_path, "import", "log.jsonl.gz")


def test_a_folder_is_imported_without_what_is_hidden_and_without_stores(tmp_path: Path) -> None:
    result(tmp_path, "init")
    result(tmp_path, "init", "--store", "logs/other")
    (tmp_path / ".cache").mkdir()
    write(tmp_path / ".cache" / "hidden.jsonl", [run("hidden")])
    write(tmp_path / "logs" / "log.jsonl", [run("a")])
    for _ in range(2):
        imported = result(tmp_path, "import", ".")
        assert imported["read"] == 1
        assert imported["passed_over"].keys() == {".cache", ".curation", "logs/other"}
    assert result(tmp_path, "import", ".cache")["accepted"] == 1


def test_a_store_that_is_there_is_named_and_one_that_was_cut_off_is_completed(tmp_path: Path) -> None:
    result(tmp_path, "init")
    (line,) = curate(tmp_path, "init").stderr.splitlines()
    assert "'.curation' is a store already" in line
    assert "--store" in line
    for file in sorted((tmp_path / ".curation" / "selections").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    assert "selections" in refused(tmp_path, "show")
    result(tmp_path, "init")
    assert result(tmp_path, "show")["attempts"] == 0


def test_a_recovery_that_leaves_something_behind_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "my_world.py").write_bytes((EXAMPLES / "my_world.py").read_bytes())
    answer = {"degrees": 25, "before": 20}
    call = {"name": "heat", "arguments": json.dumps({"room": "kitchen", "degrees": 25})}
    messages = [
        {"role": "user", "content": "Set the kitchen to 22 degrees."},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "type": "function", "function": call}]},
        {"role": "tool", "tool_call_id": "c", "content": json.dumps(answer, separators=(",", ":"))},
    ]
    write(tmp_path / "log.jsonl", [{"id": "too_warm", "messages": messages}])
    world = ("--environment", "my_world:house")
    for verb in (["init"], ["import", "log.jsonl"], ["replay", *world]):
        result(tmp_path, *verb)
    calls = [{"room": "office", "degrees": 21}, {"room": "kitchen", "degrees": 22}]
    given = [word for call in calls for word in ("--call", json.dumps({"name": "heat", "arguments": call}))]
    forks = result(tmp_path, "fork", "too_warm", "--at", "1", *given, *world, code=1)["forks"]
    clean, recovery = forks
    assert (clean["verified"], recovery["refused"]) == (True, "effect_not_undone")
    states = re.fullmatch(
        r"the recovery leaves the world in state (\w{12}), without the mistake it would be in (\w{12})",
        recovery["detail"],
    )
    assert states is not None
    assert states[1] != states[2]


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    done = curate(tmp_path, "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"curate \d+\.\d+\.\d+\n", done.stdout)

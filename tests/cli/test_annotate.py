"""Late facts in bulk as a user gives them: from CSV, JSON Lines, Parquet and SQL, by any key, and by a template."""

import contextlib
import csv
import io
import json
import re
import sys
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest

from curation.cli.main import main
from tests.ingest.logs import run, write

RUNS = ("007", "7", "b")
EARLY = [{"key": name, "outcome": True, "strata": {"level": "easy"}} for name in RUNS]
LATE: list[dict[str, Any]] = [
    {"key": "007", "outcome": "failure", "score": 0.25, "strata": {"level": "010"}, "budget": {"steps": 30}},
    {"key": "7", "outcome": "success", "strata": {"level": "2024-05-15"}, "stop": "completed"},
    {"key": "b", "outcome": "unknown", "strata": {"level": "true"}, "split": "test"},
]
COLUMNS = ("task_id", "verdict", "reward", "difficulty", "budget.steps", "stop", "split", "note")
ROWS = [
    ("007", "failure", 0.25, "010", 30, None, None, "x"),
    ("7", "success", None, "2024-05-15", None, "completed", "", "y, z"),
    ("b", "unknown", None, "true", None, None, "test", 'a "line"\nof two'),
]
MAPPED = ("--map", "task_id=key", "--outcome", "verdict", "--map", "reward=score", "--map", "difficulty=strata.level")
RENAMED = (
    'task_id AS key, verdict AS outcome, reward AS score, difficulty AS "strata.level", "budget.steps", stop, split'
)


def curate(folder: Path, *arguments: str) -> tuple[int | str | None, str, str]:
    """Run the command in a folder: its exit code, output and errors."""
    out, errors = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(errors),
        patch.object(sys, "argv", ["curate", *arguments]),
        pytest.raises(SystemExit) as end,
    ):
        main()
    return end.value.code, out.getvalue(), errors.getvalue()


def result(folder: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    """What a verb prints as JSON, with the exit code it must have."""
    ended, out, errors = curate(folder, *arguments, "--json")
    assert (ended, errors) == (code, "")
    printed: dict[str, Any] = json.loads(out)
    return printed


def refused(folder: Path, *arguments: str) -> str:
    """The one line with which a verb is refused."""
    ended, out, errors = curate(folder, *arguments)
    assert (ended, out) == (2, "")
    (line,) = errors.splitlines()
    return line


def new(folder: Path, *imports: str) -> Path:
    """A folder with a store that has read a log of three runs."""
    folder.mkdir()
    result(folder, "init")
    write(folder / "log.jsonl", [run(name, info={"n": n}) for n, name in enumerate(RUNS)])
    result(folder, "import", "log.jsonl", *imports)
    return folder


def table(folder: Path, form: str) -> tuple[str, ...]:
    """The late facts in one form, and how they are named on the command line."""
    if form == "jsonl":
        return (write(folder / "late.jsonl", LATE).name,)
    if form.startswith("csv") or form == "sql over csv":
        with (folder / "late.csv").open("w", encoding="utf-8-sig", newline="") as file:
            csv.writer(file, delimiter=";" if form == "csv;" else ",").writerows([COLUMNS, *ROWS])
        return ("late.csv", *MAPPED, "--map", "note=") if form != "sql over csv" else sql("late.csv")
    pl.DataFrame(ROWS, schema=list(COLUMNS), orient="row").write_parquet(folder / "late.parquet")
    return ("late.parquet", *MAPPED, "--map", "*=") if form == "parquet" else sql("late.parquet")


def sql(file: str) -> tuple[str, ...]:
    return ("--sql", f"SELECT {RENAMED} FROM '{file}'")


def attempts(folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = result(folder, "sql", "SELECT * FROM attempts ORDER BY run")["rows"]
    return rows


@pytest.mark.parametrize("form", ["jsonl", "csv", "csv;", "parquet", "sql over csv", "sql over parquet"])
def test_a_later_word_supersedes_whatever_it_comes_from(tmp_path: Path, form: str) -> None:
    write(tmp_path / "early.jsonl", EARLY)
    late, only = new(tmp_path / "late", "--manifest", "../early.jsonl"), new(tmp_path / "only")
    ids = [row["trajectory_id"] for row in attempts(late)]

    said = result(late, "annotate", *table(late, form))
    assert (said["lines"], said["matched"], said["unmatched"], said["attempts_without_line"]) == (3, 3, 0, 0)
    assert said["written"] == said["statements"] == 8
    assert result(late, "annotate", *table(late, form))["written"] == 0
    result(only, "annotate", *table(only, "jsonl"))

    assert attempts(late) == attempts(only)
    assert [row["trajectory_id"] for row in attempts(late)] == ids
    levels = "SELECT value, count(*) AS n FROM annotations WHERE field = 'strata.level' GROUP BY value ORDER BY value"
    assert [(row["value"], row["n"]) for row in result(late, "sql", levels)["rows"]] == [
        ("010", 1),
        ("2024-05-15", 1),
        ("easy", 3),
        ("true", 1),
    ]
    report = ("report", "selection-bias", "--by", "strata.level")
    assert result(late, *report)["strata"] == result(only, *report)["strata"]


def test_a_later_verifier_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    folder = new(tmp_path / "late")
    (folder / "first.csv").write_text("key,passed\n007,true\n7,False\n")
    (folder / "second.csv").write_text("key,passed,split\n007,false,test\n")
    result(folder, "annotate", "first.csv", "--outcome", "passed", "--verifier", "tests@1")
    assert [row["outcome"] for row in attempts(folder)] == ["success", "failure", "unknown"]
    result(folder, "annotate", "second.csv", "--outcome", "passed", "--verifier", "judge@2.1")
    assert [row["outcome"] for row in attempts(folder)] == ["failure", "failure", "unknown"]
    query = "SELECT author_kind, author_name, author_version, result FROM verifications ORDER BY ALL"
    assert [tuple(row.values()) for row in result(folder, "sql", query)["rows"]] == [
        ("side_file", "judge", "2.1", "failed"),
        ("side_file", "tests", "1", "failed"),
        ("side_file", "tests", "1", "passed"),
    ]
    query = "SELECT author_name FROM annotations"
    assert [row["author_name"] for row in result(folder, "sql", query)["rows"]] == [""]


@pytest.mark.parametrize(
    ("by", "keys"),
    [
        ("/info/n", ["0", "1", "2"]),
        ("run", list(RUNS)),
        ("file:line", ["log.jsonl:1", "log.jsonl:2", "log.jsonl:3"]),
        ("attempt_id", None),
    ],
)
def test_attempts_are_named_in_four_ways(tmp_path: Path, by: str, keys: list[str] | None) -> None:
    folder = new(tmp_path / "store")
    named = keys or [row["attempt_id"] for row in attempts(folder)]
    (folder / "side.csv").write_text("".join(f"{line}\n" for line in ["key,split", *(f"{key},{key}" for key in named)]))
    assert result(folder, "annotate", "side.csv", "--key", by)["matched"] == 3
    assert [row["split"] for row in attempts(folder)] == named


def test_a_dry_run_counts_both_ways_and_leaves_every_byte(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    result(folder, "init")
    write(folder / "log.jsonl", [run(f"r{n:02}") for n in range(30)])
    result(folder, "import", "log.jsonl")
    lines = ["key,split", *(f"r{n:02},s" for n in range(5)), *(f"x{n},s" for n in range(20))]
    (folder / "side.csv").write_text("\n".join(lines))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    said = result(folder, "annotate", "side.csv", "--dry-run", code=1)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert [said[name] for name in ("form", "lines", "matched", "unmatched", "statements", "written")] == [
        *("csv", 25, 5, 20, 5, 0)
    ]
    assert said["unmatched_lines"] == [{"line": 7 + n, "about": f"key 'x{n}'"} for n in range(10)]
    assert said["attempts_without_line"] == 25
    silent = [attempt["run"] for attempt in said["unmentioned"]]
    assert len(silent) == len(set(silent)) == 10
    assert set(silent) <= {f"r{n:02}" for n in range(5, 30)}


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("key,splitt\n7,test\n", (), ["side.csv:2: column 'splitt'", "--map 'splitt="]),
        ('key,note\n\n7,"a\nb"\n7,"c\n', ("--map", "note="), ["side.csv:5:", "quote"]),
        ("key,split\n7,test,train\n", (), ["side.csv:2: 3 values for 2 columns", "'7'"]),
        ("key,split,split\n7,a,b\n", (), ["side.csv:1: column 'split'", "2 times"]),
        (
            "key,passed\n7,1\n",
            ("--outcome", "passed"),
            ["side.csv:2: column 'passed' is '1'", "true or false", "exit code", "--sql"],
        ),
        ("key,outcome\n7,maybe\n", (), ["side.csv:2: column 'outcome' is 'maybe'", "yes or no, true or false;"]),
        ("key,attempt\nb,\n7,01\n", (), ["side.csv:3: column 'attempt' is '01'"]),
        ("key,score\n7,NaN\n", (), ["side.csv:2: column 'score' is 'NaN'"]),
        ("key,score\n7,1e999\n", (), ["side.csv:2: column 'score' is '1e999'"]),
        ("key,budget.steps\n7,2.5\n", (), ["side.csv:2: column 'budget.steps' is '2.5'"]),
        ("key,stop\n7,tired\n", (), ["side.csv:2: column 'stop' is 'tired'", "--map 'stop='"]),
        ("key,tools\n7,look_up\n", (), ["side.csv:2: column 'tools' is 'look_up'"]),
        ("key,outcome,passed\n7,,true\n", ("--outcome", "passed"), ["'outcome' and 'passed'", "--map 'outcome='"]),
        ("key,split\n7,a\n", ("--map", "fold=split"), ["side.csv", "'fold'"]),
        ("key,split\n7,a\n", ("--map", "split=spilt"), ["'spilt' is no key", "strata.NAME"]),
        ("key,seed\n7,3\n", ("--map", "seed"), ["'seed' is no column=key", "'seed=' leaves a column out"]),
        ("key,split\n7,a\n", ("--verifier", "judge"), ["'judge'", "NAME@VERSION"]),
        ("key,split\n7,a\n", ("--key", "id"), ["'id'", "attempt_id"]),
        ("key,split\n7,a\n", ("--key", "file:line"), ["side.csv:2: key '7'", "logs/runs.jsonl:12"]),
        ("key,split\n7,a\n7,b\n", (), ["side.csv:3: line 2 is about the same attempt"]),
        ("", ("--sql", "SELECT 1 AS key"), ["one source"]),
    ],
)
def test_what_is_of_no_use_is_named_with_its_place_and_the_way_out(
    tmp_path: Path, text: str, arguments: tuple[str, ...], words: list[str]
) -> None:
    folder = new(tmp_path / "store")
    (folder / "side.csv").write_text(text)
    line = refused(folder, "annotate", "side.csv", *arguments)
    assert [part for part in words if part not in line] == []
    assert result(folder, "sql", "SELECT * FROM annotations")["rows"] == []


def test_a_file_that_is_no_text_is_refused_with_its_line(tmp_path: Path) -> None:
    folder = new(tmp_path / "store")
    (folder / "side.csv").write_bytes(b"key,split\n7,caf\xe9\n")
    assert "side.csv:2: b'\\xe9' is no UTF-8" in refused(folder, "annotate", "side.csv")


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT * FROM 'https://localhost:9/x.parquet'", "only local files are read"),
        ("SELECT * FROM 's3://bucket/x.csv'", "only local files are read"),
        ("COPY (SELECT 1) TO 'out.csv'", "one SELECT statement"),
        ("INSTALL httpfs", "one SELECT statement"),
        ("SELECT 1; SELECT 2", "one SELECT statement"),
        ("SELECT key FROM nowhere", "nowhere"),
        ("SELEC", "SELEC"),
        ("SELECT '7' AS key, DATE '2024-05-15' AS split", "row 1: column 'split' is datetime.date(2024, 5, 15)"),
        ("SELECT '7' AS key, 'nan'::DOUBLE AS score", "row 1: column 'score' is nan"),
        ("SELECT '7' AS key, 1 AS outcome", "true or false"),
        ("SELECT '7' AS key, {'a': 1} AS parameters", "JSON text"),
    ],
)
def test_a_query_reads_local_files_and_nothing_else(tmp_path: Path, query: str, words: str) -> None:
    folder = new(tmp_path / "store")
    assert words in refused(folder, "annotate", "--sql", query)
    assert not (folder / "out.csv").exists()


def test_numbers_and_objects_of_a_query_are_those_of_the_keys(tmp_path: Path) -> None:
    folder = new(tmp_path / "store")
    query = """SELECT 7 AS key, 0.5 AS score, true AS outcome, {'level': 'hard', 'n': 3::HUGEINT} AS strata,
               {'steps': 30.0, 'cost': 1.25} AS budget, '[{"name": "look_up"}]' AS tools"""
    assert result(folder, "annotate", "--sql", query)["written"] == 6
    row = attempts(folder)[1]
    assert (row["run"], row["outcome"], row["score"], row["strata"]) == (
        "7",
        "success",
        0.5,
        {"level": "hard", "n": "3"},
    )
    values = result(folder, "sql", "SELECT field, value FROM annotations WHERE field LIKE 'budget%' ORDER BY field")
    assert [row["value"] for row in values["rows"]] == ["1.25", "30"]


@pytest.mark.parametrize("name", ["side.csv", "side.jsonl"])
@pytest.mark.parametrize("by", ["/id", "/info/n", "/nowhere", "run", "file:line", "attempt_id"])
def test_a_template_that_is_filled_in_is_read_back(tmp_path: Path, name: str, by: str) -> None:
    folder = new(tmp_path / "store")
    write(folder / "known.jsonl", [{"key": "b", "outcome": "partial", "strata": {"level": "easy"}}])
    result(folder, "annotate", "known.jsonl")
    blank = result(folder, "annotate", "--template", name, "--key", by)
    assert (blank["attempts"], blank["lines"]) == (3, 3)
    assert (blank["missing"]["outcome"], blank["missing"]["split"], blank["missing"]["strata.level"]) == (2, 3, 2)
    assert "tools" not in blank["missing"], "the log says them"
    assert result(folder, "annotate", name, "--key", by) | {"form": ""} == {
        "form": "",
        "lines": 3,
        "matched": 3,
        "unmatched": 0,
        "unmatched_lines": [],
        "attempts_without_line": 0,
        "unmentioned": [],
        "statements": 0,
        "written": 0,
        "overruled": 0,
    }
    fill(folder / name)
    assert result(folder, "annotate", name, "--key", by)["matched"] == 3
    assert [(row["outcome"], row["split"]) for row in attempts(folder)] == [
        ("success", "train"),
        ("success", "train"),
        ("partial", "train"),
    ]
    assert "is there already" in refused(folder, "annotate", "--template", name)


@pytest.mark.parametrize(
    ("good", "bad"), [("true", "FALSE"), ("Yes", "no"), ("PASS", "Fail"), ("passed", "failed"), ("Success", "FAILURE")]
)
def test_verdicts_are_read_as_tables_write_them(tmp_path: Path, good: str, bad: str) -> None:
    folder = new(tmp_path / "store")
    (folder / "side.csv").write_text(f"key,passed\n007,{good}\n7,{bad}\nb,\n")
    result(folder, "annotate", "side.csv", "--outcome", "passed")
    assert [row["outcome"] for row in attempts(folder)] == ["success", "failure", "unknown"]


def test_the_help_leaves_a_column_out_as_the_verb_does(tmp_path: Path) -> None:
    folder = new(tmp_path / "store")
    (folder / "side.csv").write_text("key,seed,split\n7,3,a\n")
    _, out, _ = curate(folder, "annotate", "--help")
    assert "COLUMN= leaves it out" in " ".join(re.sub("[│|]", " ", out).split())
    assert result(folder, "annotate", "side.csv", "--map", "seed=")["statements"] == 1


def test_bits_are_read_where_a_query_says_what_they_are(tmp_path: Path) -> None:
    folder = new(tmp_path / "store")
    (folder / "side.csv").write_text("key,reward\n007,1\n7,0\n")
    result(folder, "annotate", "--sql", "SELECT key, reward = 1 AS outcome FROM 'side.csv'")
    assert [row["outcome"] for row in attempts(folder)] == ["success", "failure", "unknown"]


def test_a_template_asks_for_the_task_and_tells_what_is_known_from_what_is_missing(tmp_path: Path) -> None:
    folder = new(tmp_path / "store")
    write(folder / "known.jsonl", [{"key": "b", "outcome": "partial", "split": "train"}])
    result(folder, "annotate", "known.jsonl")
    blank = result(folder, "annotate", "--template", "side.csv")
    assert blank["missing"]["task"] == 3
    rows = list(csv.DictReader((folder / "side.csv").read_text().splitlines()))
    known = {row["key"]: row["known, not read back"] for row in rows}
    assert known == {"007": "", "7": "", "b": "outcome, split"}
    told = [row | {"task": f"t{row['key']}"} for row in rows]
    with (folder / "side.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(told)
    assert "--revise" in refused(folder, "annotate", "side.csv")
    result(folder, "import", "log.jsonl", "--revise", "--manifest", "side.csv")
    assert [row["task"] for row in attempts(folder)] == ["t007", "t7", "tb"]


HOSTILE = [
    "=1+1",
    "+1",
    "-1",
    "@x",
    "\t=1",
    "\r=1",
    "\n=1",
    "'=1",
    "''=1",
    "'",
    "'plain",
    "a;=1+1",
    "\uff1d1",
    'x","=1',
    "a\rb",
]


def test_no_text_of_a_log_is_a_formula_in_a_template_and_each_is_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    write(folder / "log.jsonl", [run(text, task=text) for text in HOSTILE])
    result(folder, "init")
    result(folder, "import", "log.jsonl")
    result(folder, "annotate", "--template", "side.csv")
    text = (folder / "side.csv").read_bytes().decode()
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header[-1] == "' before = + - @ is no part of a value"
    assert not [cell for row in rows for cell in row if cell.startswith(tuple("=+-@\t\r\n\uff1d"))]
    told = [
        [f"t{number}" if name == "split" else cell for name, cell in zip(header, row, strict=True)]
        for number, row in enumerate(rows)
    ]
    with (folder / "side.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *told])
    said = result(folder, "annotate", "side.csv")
    assert (said["lines"], said["matched"], said["unmatched"]) == (len(HOSTILE), len(HOSTILE), 0)
    found = result(folder, "sql", "SELECT run, task, split FROM attempts ORDER BY split")["rows"]
    assert {(row["run"], row["task"]) for row in found} == {(text, text) for text in HOSTILE}
    assert {row["split"] for row in found} == {f"t{number}" for number in range(len(HOSTILE))}


def test_an_apostrophe_is_a_part_of_a_value_in_a_table_that_does_not_say_otherwise(tmp_path: Path) -> None:
    folder = new(tmp_path / "store")
    (folder / "own.csv").write_text("key,split,group\nb,'=1,-1\n")
    result(folder, "annotate", "own.csv")
    (row,) = [row for row in attempts(folder) if row["run"] == "b"]
    assert (row["split"], row["group"]) == ("'=1", "-1")


def fill(path: Path) -> None:
    """Fill in a template: what is missing of outcome and split, by the attempt's run."""
    text = path.read_text()
    if path.suffix == ".csv":
        rows = list(csv.DictReader(text.splitlines()))
        for row in rows:
            row |= {"split": "train", "outcome": "" if row["run"] == "b" else "success"}
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        lines = [json.loads(line) for line in text.splitlines()]
        assert [line["run"] for line in lines if "outcome" not in line] == ["b"]
        write(path, [line | {"split": "train"} | ({"outcome": True} if "outcome" in line else {}) for line in lines])


def test_an_import_takes_a_table_as_its_side_file(tmp_path: Path) -> None:
    (tmp_path / "side.csv").write_text("key,task,outcome\n007,010,success\n7,7,failure\n")
    folder = new(tmp_path / "store", "--manifest", "../side.csv")
    assert [(row["task"], row["outcome"]) for row in attempts(folder)] == [
        ("010", "success"),
        ("7", "failure"),
        (None, "unknown"),
    ]

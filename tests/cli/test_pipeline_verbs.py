"""The verbs that lead from the eight records to rows and a report: what scripts may rely on, and what a person sees."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_store_verbs import curate, result
from tests.eight import lines, records

KINDS = ("first_action", "recovery", "preference")
KEPT = {
    "first_action": {"fail_A18", "first_ok", "recovered", "misread"},
    "recovery": {"fail_A18", "recovered"},
    "preference": {"fail_A18", "recovered"},
}
IMPORT = {"read", "accepted", "duplicates", "quarantined", "reasons", "tasks", "seconds", "bytes", "formats"}
REPLAY = {"calls", "equal_bytes", "equal_normalised", "equal_semantic", "different", "unverifiable", "not_run"}
REPLAY |= {"runs", "outcomes_agree", "outcomes_differ"}
STRATUM = {"value", "tasks", "tasks_kept", "attempts", "unknown", "faults", "kept", "retention", "low", "high"}
STRATUM |= {"share_before", "share_after"}

Result = dict[str, Any]


@pytest.fixture(scope="module")
def went(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Result]]:
    """A folder with the eight from log to rows, and what each verb printed."""
    folder = tmp_path_factory.mktemp("went")
    (folder / "eight.jsonl").write_bytes(lines())
    done = {"init": result(folder, "init"), "import": result(folder, "import", "eight.jsonl")}
    done["replay"] = result(folder, "replay", "--environment", "inventory", code=1)
    done["diagnose"] = result(folder, "diagnose")
    done["repair"] = result(folder, "repair", "--environment", "inventory")
    done["build"] = result(folder, "build", "--out", "rows")
    done["report"] = result(folder, "report", "selection-bias", "--build", "rows", "--by", "run", "--by", "outcome")
    done["fsck"] = result(folder, "fsck")
    return folder, done


def rows(folder: Path, build: Result, kind: str) -> list[Result]:
    files = build["kinds"][kind]["files"]
    return [json.loads(line) for file in files for line in (folder / "rows" / file).read_bytes().splitlines()]


def test_what_scripts_rely_on_is_there(went: tuple[Path, dict[str, Result]]) -> None:
    _, done = went
    assert done["import"].keys() >= IMPORT
    assert done["replay"].keys() >= REPLAY
    assert done["repair"].keys() >= {"failures", "proposed", "executed", "verified", "refused"}
    for kind in KINDS:
        assert done["build"]["kinds"][kind].keys() >= {"candidates", "kept", "rows", "refused", "files"}
    assert done["report"].keys() >= {"unit", "rule", "total", "kept", "strata"}
    for table in done["report"]["strata"]:
        assert table.keys() >= {"by", "rows", "total_variation"}
        assert all(row.keys() >= STRATUM for row in table["rows"])
    assert done["fsck"].keys() >= {"checked", "bad"}


def test_the_counts_of_the_eight(went: tuple[Path, dict[str, Result]]) -> None:
    _, done = went
    replay, diagnosis, repair = done["replay"], done["diagnose"], done["repair"]
    assert [replay[match] for match in ("calls", "equal_bytes", "different", "unverifiable")] == [8, 5, 2, 1]
    assert replay["reasons"] == {"environment_fault": 1}
    assert diagnosis["labels"] == {
        "argument": 2,
        "format": 2,
        "undetermined": 2,
        "environment": 1,
        "result_interpretation": 1,
    }
    assert [repair[name] for name in ("failures", "proposed", "executed", "verified")] == [6, 2, 3, 3]
    assert sum(repair["refused"].values()) + repair["verified"] == 2 * repair["failures"]
    for kind, counted in done["build"]["kinds"].items():
        assert (counted["kept"], counted["rows"]) == (len(KEPT[kind]), 1)
        assert counted["candidates"] == counted["kept"] + sum(counted["refused"].values())
    assert done["fsck"]["bad"] == []


def test_a_report_on_a_build_keeps_the_attempts_of_its_rows(went: tuple[Path, dict[str, Result]]) -> None:
    _, done = went
    report = done["report"]
    by_run, by_outcome = report["strata"]
    assert (report["unit"], report["total"], report["kept"]) == ("attempt", 8, len(KEPT["first_action"]))
    assert {row["value"] for row in by_run["rows"] if row["kept"]} == KEPT["first_action"]
    assert {row["value"]: (row["attempts"], row["kept"]) for row in by_outcome["rows"]} == {
        "success": (2, 2),
        "failure": (6, 2),
    }


def test_a_row_is_shown_down_to_the_lines_it_comes_from(went: tuple[Path, dict[str, Result]]) -> None:
    folder, done = went
    order = [record["id"] for record in records()]
    for kind in KINDS:
        (row,) = rows(folder, done["build"], kind)
        shown = result(folder, "show", row["sample_id"])
        assert (shown["sample"], shown["kind"]) == (row["sample_id"], kind)
        assert {order[place["place"] - 1] for place in shown["read_from"]} == KEPT[kind]
        chain = "\n".join(shown["chain"])
        assert all(f"read from eight.jsonl, line or item {order.index(name) + 1}," in chain for name in KEPT[kind])
        raw = json.loads(result(folder, "show", shown["read_from"][0]["raw"])["content"])
        assert raw["id"] in KEPT[kind]
        if kind == "recovery":
            assert f"recovery fork {row['trajectory_id']}, branched from {row['parent_trajectory_id']} at" in chain


def test_an_attempt_is_shown_with_its_findings_forks_and_every_refusal(went: tuple[Path, dict[str, Result]]) -> None:
    folder, done = went
    shown = result(folder, "show", "fail_A18")
    assert [(line["label"], line["message"]) for line in shown["findings"]] == [("argument", 1)]
    assert [(line["kind"], line["branch_point"]) for line in shown["forks"]] == [("clean", 1), ("recovery", 3)]
    refused = [line for line in shown["selections"] if not line["kept"]]
    assert [line["failed"].split(", ") for line in refused] == [["finding_on_target", "not_derivable", "target_fails"]]
    pasted = result(folder, "show", "pasted_result")
    assert {line["kind"] for line in pasted["selections"]} == set(KINDS)
    assert not any(line["kept"] for line in pasted["selections"])
    assert all(line["failed"] and line["why"] for line in pasted["selections"])
    assert "contradicted_record" in pasted["selections"][0]["failed"].split(", ")
    assert done["build"]["build"].startswith(pasted["selections"][0]["build"])


def test_cause_and_stop_are_two_things(went: tuple[Path, dict[str, Result]]) -> None:
    folder, _ = went
    shown = result(folder, "show", "bad_json")
    assert {line["label"] for line in shown["findings"]} == {"format"}
    assert shown["stop_text"] == "format error: not valid json; then budget exhausted"


@pytest.mark.parametrize(
    ("ending", "start"), [(".html", "<!doctype html>"), (".md", "# Selection bias"), (".json", "{")]
)
def test_a_report_is_written_in_the_form_its_name_asks_for(
    ending: str, start: str, went: tuple[Path, dict[str, Result]]
) -> None:
    folder, done = went
    name = f"report{ending}"
    printed = result(folder, "report", "selection-bias", "--by", "outcome", "--out", name)
    text = (folder / name).read_text(encoding="utf-8")
    assert text.startswith(start)
    assert (printed["kept"], printed["total"]) == (2, done["report"]["total"])
    if ending == ".json":
        assert json.loads(text) == printed


def test_a_persons_correction_is_executed_and_makes_no_pair(tmp_path: Path) -> None:
    """Handed in for many, or for one: who read the error is no side of a comparison."""
    (tmp_path / "eight.jsonl").write_bytes(lines())
    call = {"name": "get_stock", "arguments": {"sku": "A17", "city": "Hangzhou"}}
    line = {"key": "fail_A18", "message": 1, "calls": [call], "author": "Ada"}
    (tmp_path / "proposals.jsonl").write_text(json.dumps(line) + "\n")
    for verb in (["init"], ["import", "eight.jsonl"]):
        result(tmp_path, *verb)
    result(tmp_path, "replay", "--environment", "inventory", code=1)
    result(tmp_path, "diagnose")
    result(tmp_path, "repair", "--environment", "inventory", "--proposals", "proposals.jsonl")
    result(tmp_path, "build", "--out", "rows")
    kept = {
        kind: [line["kept"] for line in result(tmp_path, "show", "fail_A18")["selections"] if line["kind"] == kind]
        for kind in KINDS
    }
    assert kept == {"first_action": [True, False], "preference": [False], "recovery": [True]}
    (pair,) = (line for line in result(tmp_path, "show", "fail_A18")["selections"] if line["kind"] == "preference")
    assert pair["failed"].split(", ") == ["corrector_saw_more"]
    wrong = json.dumps({"name": "get_stock", "arguments": {"sku": "A18"}})
    forks = result(tmp_path, "fork", "fail_A18", "--at", "1", "--call", wrong, "--environment", "inventory", code=1)
    assert [(fork["verified"], fork["refused"]) for fork in forks["forks"]] == [(False, "same_call")] * 2


def test_a_table_for_a_person_holds_what_the_json_holds(went: tuple[Path, dict[str, Result]]) -> None:
    folder, _ = went
    printed = curate(folder, "show", "misread").stdout
    assert "result_interpretation" in printed
    assert "claim_without_action" in printed
    assert "A17 is reserved for you" in printed

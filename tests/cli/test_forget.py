"""Erasure as a user runs it: what would go, what goes, what is to be built again."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_store_verbs import curate, refused, result
from tests.eight import records
from tests.ingest.logs import run, write
from tests.store.erasing import bytes_of, files_with

WORD = "Zaphodbeeble"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a store of three attempts, two of them by one person."""
    lines = [run("a", user=WORD, outcome=True), run("b", "A18", user=WORD), run("c", user="another")]
    write(tmp_path / "log.jsonl", lines)
    result(tmp_path, "init")
    result(tmp_path, "import", "log.jsonl")
    return tmp_path


def test_nothing_goes_without_yes(folder: Path) -> None:
    before = bytes_of(folder)
    told = result(folder, "forget", "a")
    assert (told["done"], told["erased"]) == (False, {"raw": 1, "trajectory": 1})
    assert [item["outcome"] for item in told["attempts"]] == ["success"]
    assert bytes_of(folder) == before
    assert told["note"] == "nothing is erased yet: give --yes"
    assert told["note"] in curate(folder, "forget", "a").stdout
    assert "--yes" in refused(folder, "forget")
    assert result(folder, "forget", "a", "--yes")["note"] is None


def test_what_has_a_value_of_a_key_goes_and_still_counts(folder: Path) -> None:
    rule = ("report", "selection-bias", "--by", "outcome")
    before = result(folder, *rule)
    done = result(folder, "forget", WORD, "--key", "/user", "--reason", "asked to", "--by", "desk", "--yes")
    assert (done["done"], done["erased"]) == (True, {"raw": 2, "trajectory": 2})
    assert files_with(folder / ".curation", WORD) == []
    assert result(folder, "fsck")["erased"] == {"raw": 2, "trajectory": 2}
    after = result(folder, *rule)
    assert (after["total"], after["kept"]) == (before["total"], before["kept"])
    listed = result(folder, "show")
    assert [line["erased"] for line in listed["list"]].count(True) == 2
    stone = result(folder, "show", done["attempts"][0]["attempt"])
    assert {"asked to", "desk"} <= {
        json.loads(stone["content"])["reason"],
        json.loads(stone["content"])["author"]["name"],
    }
    assert "nobody" in refused(folder, "forget", "nobody", "--key", "/user")


def test_what_was_erased_comes_back_only_when_told_to(folder: Path) -> None:
    result(folder, "forget", "a", "--yes")
    again = result(folder, "import", "log.jsonl", code=1)
    assert (again["reasons"], again["duplicates"]) == ({"erased": 1}, 2)
    assert "--readmit" in curate(folder, "import", "log.jsonl").stdout
    assert "erased" in refused(folder, "diff", again_id(folder), again_id(folder))
    back = result(folder, "import", "log.jsonl", "--readmit")
    assert (back["accepted"], back["quarantined"]) == (1, 0)
    assert result(folder, "fsck") == {"checked": result(folder, "fsck")["checked"], "erased": {}, "bad": []}
    assert result(folder, "show", "a")["outcome"] == "success"
    result(folder, "forget", "a", "--yes")
    assert result(folder, "fsck")["erased"] == {"raw": 1, "trajectory": 1}
    assert result(folder, "sql", "SELECT count(*) AS n FROM attempts")["rows"] == [{"n": 3}]


def again_id(folder: Path) -> str:
    """The id of the erased record."""
    (row,) = result(folder, "sql", "SELECT trajectory_id FROM attempts WHERE erased")["rows"]
    identity: str = row["trajectory_id"]
    return identity


def test_every_verb_goes_on_after_an_erasure_and_rows_that_held_it_are_named(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = records()
    write(tmp_path / "eight.jsonl", lines)
    result(tmp_path, "init")
    result(tmp_path, "import", "eight.jsonl")
    result(tmp_path, "replay", "--environment", "inventory", code=1)
    result(tmp_path, "diagnose")
    result(tmp_path, "repair", "--environment", "inventory")
    built = result(tmp_path, "build", "--out", "rows")

    done = result(tmp_path, "forget", "fail_A18", "recovered", "--build", "rows", "--yes")
    assert {item["kind"] for item in done["builds"]} == {"first_action", "preference", "recovery"}
    (rebuild,) = done["rebuild"]
    assert {Path(name).parts[0] for name in rebuild["files"]} == {"first_action", "preference", "recovery"}
    manifest = json.loads((tmp_path / "rows" / "manifest.json").read_bytes())
    assert manifest["erased"] == {"files": rebuild["files"], "samples": rebuild["samples"]}
    assert set(rebuild["samples"]) >= {sample for item in done["builds"] for sample in item["samples"]}
    assert files_with(tmp_path / ".curation", "fail_A18") == []
    (held, *_) = [item["samples"][0] for item in done["builds"] if item["kind"] == "preference"]
    shown = curate(tmp_path, "show", held)
    assert (shown.returncode, "build the rows again" in shown.stderr) == (2, True)

    result(tmp_path, "replay", "--environment", "inventory", code=1)
    result(tmp_path, "diagnose")
    result(tmp_path, "repair", "--environment", "inventory")
    again = result(tmp_path, "build", "--out", "rows")
    assert (again["attempts"], again["build"] == built["build"]) == (8, False)
    assert "erased" not in json.loads((tmp_path / "rows" / "manifest.json").read_bytes())
    line = files_of(tmp_path, again, "first_action")[0].read_bytes().splitlines()[0]
    shown = curate(tmp_path, "show", json.loads(line)["sample_id"])
    assert (shown.returncode, shown.stderr) == (0, "")
    assert result(tmp_path, "fsck")["bad"] == []


def files_of(folder: Path, built: dict[str, Any], kind: str) -> list[Path]:
    """The data files of a kind."""
    return [folder / "rows" / name for name in built["kinds"][kind]["files"]]


WORLD = ("--environment", "inventory")


def through(folder: Path, attempts: int, forks: int) -> None:
    """Every verb that writes does its work, and nothing in the store is wrong afterwards."""
    result(folder, "replay", *WORLD, code=1)
    assert result(folder, "diagnose")["attempts"] == attempts
    assert result(folder, "repair", *WORLD)["verified"] == forks
    result(folder, "build", "--out", "rows")
    assert result(folder, "fsck")["bad"] == []


def test_every_verb_does_for_an_attempt_that_is_back_what_it_did_before(tmp_path: Path) -> None:
    write(tmp_path / "eight.jsonl", records())
    result(tmp_path, "init")
    result(tmp_path, "import", "eight.jsonl")
    through(tmp_path, 8, 3)
    forks = "SELECT id FROM trajectories WHERE parent IS NOT NULL ORDER BY id"
    findings = "SELECT count(*) AS n FROM effective_findings"
    before = [result(tmp_path, "sql", query)["rows"] for query in (forks, findings)]
    assert result(tmp_path, "forget", "fail_A18", "--yes")["erased"]["fork"] == 2
    through(tmp_path, 7, 1)
    assert result(tmp_path, "fsck")["erased"] == {"fork": 2, "raw": 1, "trajectory": 1}
    assert files_with(tmp_path / ".curation", "fail_A18") == []
    assert result(tmp_path, "import", "eight.jsonl", "--readmit")["accepted"] == 1
    checked = result(tmp_path, "fsck")
    assert (checked["bad"], checked["erased"]) == ([], {"fork": 2})
    through(tmp_path, 8, 3)
    assert result(tmp_path, "fsck")["erased"] == {}
    assert [result(tmp_path, "sql", query)["rows"] for query in (forks, findings)] == before
    assert result(tmp_path, "forget", "fail_A18", "--yes")["erased"]["fork"] == 2
    assert files_with(tmp_path / ".curation", "fail_A18") == []


def test_a_fork_that_was_erased_by_its_name_is_refused_with_a_reason_and_stops_no_other(tmp_path: Path) -> None:
    write(tmp_path / "eight.jsonl", records())
    result(tmp_path, "init")
    result(tmp_path, "import", "eight.jsonl")
    result(tmp_path, "replay", *WORLD, code=1)
    result(tmp_path, "diagnose")
    assert result(tmp_path, "repair", *WORLD)["verified"] == 3
    asked = ("fork", "fail_A18", "--at", "1", "--call", '{"name": "get_stock", "arguments": {"sku": "A17"}}', *WORLD)
    given = {fork["kind"]: fork["id"] for fork in result(tmp_path, *asked)["forks"]}
    (made,) = result(
        tmp_path,
        "sql",
        "SELECT f.id FROM trajectories f JOIN attempts a ON a.trajectory_id = f.parent"
        f" WHERE a.run = 'fail_A18' AND fork_kind = 'clean' AND f.id <> '{given['clean']}'",
    )["rows"]
    assert result(tmp_path, "forget", made["id"], given["clean"], "--yes")["erased"] == {"fork": 2}
    repaired = result(tmp_path, "repair", *WORLD)
    assert (repaired["verified"], repaired["refused"]["erased"]) == (2, 1)
    lines = {fork["kind"]: fork for fork in result(tmp_path, *asked, code=1)["forks"]}
    assert (lines["clean"]["refused"], lines["clean"]["detail"]) == ("erased", given["clean"])
    assert (lines["recovery"]["refused"], lines["recovery"]["id"]) == (None, given["recovery"])
    assert "curate forget" in lines["clean"]["way_out"]
    checked = result(tmp_path, "fsck")
    assert (checked["bad"], checked["erased"]) == ([], {"fork": 2})


def test_nothing_that_was_erased_comes_back_by_another_way(folder: Path) -> None:
    write(folder / "better.jsonl", [run("a", "A18", user=WORD, outcome=True)])
    write(folder / "side.jsonl", [{"key": "a", "strata": {"customer": WORD}}])
    for way in ("log.jsonl", "better.jsonl"):
        result(folder, "import", way, "--revise")
    assert result(folder, "forget", "a", "b", "--yes")["erased"]["trajectory"] == 3
    for way in ("log.jsonl", "better.jsonl"):
        for how in ((), ("--revise",), ("--run", "second"), ("--attempts", "order"), ("--manifest", "side.jsonl")):
            assert curate(folder, "import", way, *how).returncode in (0, 1)
            assert files_with(folder / ".curation", WORD) == []
    said = result(folder, "annotate", "side.jsonl", "--key", "run", code=1)
    assert (said["matched"], said["written"]) == (0, 0)
    assert files_with(folder / ".curation", WORD) == []
    assert result(folder, "fsck")["bad"] == []
    back = result(folder, "import", "log.jsonl", "--readmit")
    assert back["reasons"] == {}
    again = result(folder, "import", "better.jsonl", "--readmit", "--revise")
    assert again["accepted"] == 1
    checked = result(folder, "fsck")
    assert (checked["bad"], checked["erased"]) == ([], {})

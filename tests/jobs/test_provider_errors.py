"""Runs that the harness skipped because the provider failed or refused: environment faults, and nothing else."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from curation.store import Store
from tests.cli.test_store_verbs import result


@pytest.fixture(scope="module")
def folder(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all skipped runs of the published logs, imported and diagnosed."""
    folder = tmp_path_factory.mktemp("skipped")
    (folder / "runs").mkdir()
    for path in sorted((logs / "agentdojo").rglob("*.json")):
        if (json.loads(path.read_bytes())["error"] or "").startswith("Skipping task"):
            shutil.copy(path, folder / "runs" / f"{path.parts[-5]}.json")
    result(folder, "init")
    assert result(folder, "import", "runs")["accepted"] == 4
    found = result(folder, "diagnose")
    assert (found["labels"], found["stops"]) == ({"environment": 4}, {"provider_error": 4})
    return folder


def rows(folder: Path, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = Store.open(str(folder / ".curation")).sql(query).to_pylist()
    return found


def test_they_are_faults_whose_outcome_nobody_knows(folder: Path) -> None:
    found = rows(folder, "SELECT outcome, stop, fault, trajectory_id FROM attempts")
    assert {(row["outcome"], row["stop"], row["fault"]) for row in found} == {("unknown", "provider_error", True)}
    store = Store.open(str(folder / ".curation"))
    texts = [store.trajectory(row["trajectory_id"]).stop_text or "" for row in found]
    assert len(texts) == 4
    assert all(text.startswith("Skipping task") for text in texts)
    assert sum("context_length_exceeded" in text for text in texts) == 2


def test_nothing_is_held_against_the_model(folder: Path) -> None:
    found = rows(folder, "SELECT label, detail, call FROM effective_findings")
    assert {(row["label"], row["detail"], row["call"]) for row in found} == {("environment", "provider_error", None)}
    assert not rows(folder, "SELECT id FROM effective_verifications WHERE result = 'failed'")


def test_reports_count_them_as_faults_and_builds_take_nothing_from_them(folder: Path) -> None:
    report = result(folder, "report", "selection-bias", "--by", "suite")
    suites = {row["value"]: row for stratum in report["strata"] for row in stratum["rows"]}
    assert {name: (row["attempts"], row["unknown"], row["faults"]) for name, row in suites.items()} == {
        "workspace": (3, 3, 3),
        "travel": (1, 1, 1),
    }
    built = result(folder, "build", "--out", "out")
    assert [kind["kept"] for kind in built["kinds"].values()] == [0, 0, 0]

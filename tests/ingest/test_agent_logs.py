"""Real logs of coding agents through the store: nothing is lost, and a second look changes nothing."""

import shutil
from pathlib import Path

import pytest

from curation.ingest import IngestOptions, find_sources, ingest
from tests.ingest.logs import attempts, import_file, new_store, records

FOLDERS = {"swe-agent": (13, 13), "mini-swe-agent": (2, 2), "openhands": (9, 6)}  # attempts, files


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_real_logs_is_kept_whole_and_read_once(logs: Path, tmp_path: Path, name: str) -> None:
    store = new_store(tmp_path)
    sources = find_sources([logs / name], "auto")
    first = ingest(store, sources, IngestOptions())
    runs, files = FOLDERS[name]
    assert (first.read, first.accepted, first.duplicates, first.quarantined) == (runs, runs, 0, 0)
    assert {form: found.files for form, found in first.formats.items()} == {name: files}
    stored = set(store.sql("SELECT bytes FROM objects WHERE kind = 'raw'")["bytes"].to_pylist())
    for source in sources.files:
        data = source.path.read_bytes()
        lines = data.splitlines() if source.path.suffix == ".jsonl" else [data.strip()]
        assert stored >= set(lines)
    before = records(store)
    for number, source in enumerate(sources.files):
        copy = tmp_path / f"{number}-under-another-name"
        shutil.copy(source.path, copy)
        again = import_file(store, copy)
        assert (again.accepted, again.duplicates) == (0, again.read)
    assert records(store) == before
    assert len(attempts(store)) == runs


def test_what_is_no_run_is_passed_over_with_its_reason(logs: Path) -> None:
    passed = find_sources([logs / "swe-agent", logs / "mini-swe-agent", logs / "openhands"], "auto").passed_over
    why = {Path(name).name: reason for name, reason in passed.items()}
    for name in ("all_preds.jsonl", "results.json", "example_model_output.json"):
        assert "it holds predictions, no runs" in why[name]
    assert "args.yaml" in why

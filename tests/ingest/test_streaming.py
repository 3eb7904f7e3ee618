"""Memory grows neither with the size of a log nor with the number of files, and all of them are read."""

from pathlib import Path

from curation.store import Store
from curation.store.fsck import check
from tests.ingest.logs import new_store, run, write
from tests.ingest.processes import import_measured

GROWTH = 1.25
"""How much more memory many files may take than one that holds the same."""
FILES = 10_000
STRANGE = 25


def test_ten_thousand_files_are_read_whole_in_the_memory_that_one_file_takes(tmp_path: Path) -> None:
    lines = [run(f"run-{number}", outcome=number % 2 == 0) for number in range(FILES)]
    for number, line in enumerate(lines):
        write(tmp_path / "logs" / f"{number % 10}" / f"{number}.jsonl", [line])
    for number in range(STRANGE):
        (tmp_path / "logs" / f"{number % 10}" / f"notes-{number}.txt").write_text("no log")

    many, one = new_store(tmp_path, "many"), new_store(tmp_path, "one")
    printed, peak = import_measured(many, tmp_path / "logs")
    assert [printed[name] for name in ("read", "accepted", "duplicates", "quarantined")] == [FILES, FILES, 0, 0]
    assert printed["formats"]["openai-chat"]["files"] == FILES
    assert sorted(Path(name).name for name in printed["passed_over"]) == sorted(
        f"notes-{number}.txt" for number in range(STRANGE)
    )
    assert peak <= GROWTH * import_measured(one, write(tmp_path / "all.jsonl", lines)).peak

    store = Store.open(many.uri)
    sightings = store.sql("SELECT name, trajectory FROM sightings").to_pylist()
    assert len({row["name"] for row in sightings}) == len(sightings) == FILES
    runs = store.sql("SELECT run, outcome FROM attempts").to_pylist()
    assert {row["run"]: row["outcome"] == "success" for row in runs} == {line["id"]: line["outcome"] for line in lines}
    assert len(runs) == FILES
    assert check(many.uri).problems == []

    printed, _ = import_measured(many, tmp_path / "logs" / "3")
    assert (printed["read"], printed["accepted"], printed["duplicates"]) == (FILES // 10, 0, FILES // 10)

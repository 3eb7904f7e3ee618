"""Memory grows neither with the size of a log nor with the number of files, and all of them are read."""

import json
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from curation.store import Store
from curation.store.fsck import check
from tests.ingest.logs import new_store, run, write
from tests.ingest.processes import import_measured

MEGABYTE = 2**20
SMALL, LARGE = 15 * MEGABYTE, 60 * MEGABYTE
RECORD = 50_000
PORTION = 2 * MEGABYTE
GROWTH = 1.25
"""How much more memory a log of four times the size, or in many files, may take."""
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


def texts(size: int) -> Iterator[tuple[str, list[str]]]:
    """Attempts of a log of that size: a name, and messages of words that are not the same twice."""
    chance = random.Random(size)
    words = [f"{chance.getrandbits(32):x}" for _ in range(3_000)]
    for number in range(size // RECORD):
        yield f"run-{number}", [" ".join(chance.choices(words, k=250)) for _ in range(RECORD // 2_200)]


def messages(said: list[str]) -> list[dict[str, Any]]:
    """What a user and an assistant say by turns."""
    return [
        {"id": f"m{number}", "role": "assistant" if number % 2 else "user", "content": text}
        for number, text in enumerate(said)
    ]


def write_chats(path: Path, size: int) -> None:
    """Chats, one a line."""
    with path.open("w") as file:
        for name, said in texts(size):
            file.write(json.dumps({"id": name, "messages": messages(said)}) + "\n")


def write_archive(path: Path, size: int) -> None:
    """An Inspect evaluation, a sample a member."""
    header = {"version": 2, "status": "success", "eval": {"task": "stock", "task_id": "T1", "run_id": "R1"}}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("header.json", json.dumps(header))
        for name, said in texts(size):
            sample = {"id": name, "epoch": 1, "input": said[0], "messages": messages(said), "uuid": name}
            archive.writestr(f"samples/{name}_epoch_1.json", json.dumps(sample))


@pytest.mark.parametrize("write_log", [write_chats, write_archive])
def test_four_times_the_log_takes_no_more_memory(tmp_path: Path, write_log: Callable[[Path, int], None]) -> None:
    """In portions that are smaller than either log: what is held of one is gone with the next."""
    peaks = []
    for size in (SMALL, LARGE):
        path = tmp_path / f"{size}.log"
        write_log(path, size)
        printed, peak = import_measured(new_store(tmp_path, f"store-{size}"), path, portion_bytes=PORTION)
        assert (printed["read"], printed["accepted"]) == (size // RECORD, size // RECORD)
        peaks.append(peak)
    small, large = peaks
    assert large <= GROWTH * small

"""How fast logs are read and imported, beside JSON and beside other tools, as ratios of one run.

    python benchmarks/importers.py --logs FOLDER [--teich PROGRAM] [--trace2train PROGRAM] [--json]

- ``NAME_over_json``: reading the real logs of a format in the folder, again and again up to ``--megabytes``, over
  ``json.loads`` of the same bytes; ``NAME_mb_per_second`` beside it
- ``small_over_teich``, ``small_over_trace2train``: the whole process of ``curate import`` on ``--records`` small chats
  over that of ``teich convert`` and ``trace2train inspect`` on the same file; the programs are those of environments
  of their own, and a ratio whose program is not given is left out
- ``files_over_small``: that of the same chats in a file each, in one folder, over that of the one file
- ``again_over_small``: that of importing the file once more, which adds nothing
- ``many_seconds``, ``many_peak_mib``: the whole process of ``curate import`` on ``--trajectories`` chats of four
  messages; the memory is that of its largest process
- ``many_peak_over_quarter``: that memory over the one that a quarter of the chats takes
- ``large_*``: the same, and megabytes per second, of a file of ``--large`` megabytes in chats of about 60 kB
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from curation.errors import UsageError
from curation.importers.face import Importer
from curation.importers.formats import detect, find
from curation.importers.inspect_slices import ZIP

Ratios = dict[str, float]
CURATE = (sys.executable, "-c", "from curation.cli.main import main; main()")
ROOT = Path(__file__).resolve().parents[1]
_LONG = 60_000  # bytes of a long chat
_ZSTD = 93  # a method of packing that zipfile does not know


class Ran(NamedTuple):
    """What a process took: seconds, and the memory of the largest of it and its own processes in MiB."""

    seconds: float
    peak_mib: float


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--logs", type=Path, required=True, help="A folder of logs of any formats.")
    options.add_argument("--megabytes", type=float, default=4)
    options.add_argument("--records", type=int, default=10_000)
    options.add_argument("--trajectories", type=int, default=200_000)
    options.add_argument("--large", type=float, default=200)
    options.add_argument("--teich", help="The program, of an environment of its own.")
    options.add_argument("--trace2train", help="The program, of an environment of its own.")
    options.add_argument("--json", action="store_true")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        measured = (
            measure_formats(given.logs, int(given.megabytes * 1e6))
            | measure_small(folder, given.records, given.teich, given.trace2train)
            | measure_many(folder, given.trajectories)
            | measure_large(folder, given.large)
        )
    if given.json:
        print(json.dumps(measured, indent=2))
    else:
        for name, value in measured.items():
            print(f"{name:40}{value:>10}")


def measure_formats(logs: Path, enough: int) -> Ratios:
    """Reading the logs of each format over JSON's reading of them, until so many bytes were read."""
    files: dict[str, list[Path]] = {}
    for path in sorted(file for file in logs.rglob("*") if file.is_file()):
        try:
            files.setdefault(detect(path)[0].name, []).append(path)
        except UsageError:
            continue
    measured: Ratios = {}
    for name, paths in sorted(files.items()):
        read, size = _timed(partial(_read_log, find(name)), paths, enough)
        parsed, _ = _timed(_parse_log, paths, enough)
        measured[f"{name}_over_json"] = round(read / parsed, 2)
        measured[f"{name}_mb_per_second"] = round(size / 1e6 / read, 2)
    return measured


def measure_small(folder: Path, records: int, teich: str | None, trace2train: str | None) -> Ratios:
    """Importing small chats over what other tools take for the same file."""
    log = folder / "small.jsonl"
    write_chats(log, records)
    programs = {
        "teich": (teich, ("convert", str(log), "--out", str(folder / "teich.jsonl"))),
        "trace2train": (trace2train, ("inspect", str(log), "--json")),
    }
    ours = _import(log, folder / "small")
    again = _run(*CURATE, "import", str(log), "--store", str(folder / "small"), "--json")
    files = folder / "files"
    files.mkdir()
    for number, line in enumerate(log.read_text(encoding="utf-8").splitlines()):
        (files / f"{number}.jsonl").write_text(line, encoding="utf-8")
    measured = {
        "small_seconds": round(ours.seconds, 2),
        "files_over_small": round(_import(files, folder / "small_files").seconds / ours.seconds, 2),
        "again_over_small": round(again.seconds / ours.seconds, 2),
    }
    for name, (program, arguments) in programs.items():
        if program is not None:
            measured[f"small_over_{name}"] = round(ours.seconds / _run(program, *arguments).seconds, 2)
    return measured


def measure_many(folder: Path, trajectories: int) -> Ratios:
    """Time and memory of importing so many chats, and the memory over that of importing a quarter of them."""
    part, whole = (_import_chats(folder, rows) for rows in (trajectories // 4, trajectories))
    return {
        "many_seconds": round(whole.seconds, 2),
        "many_peak_mib": round(whole.peak_mib),
        "many_peak_over_quarter": round(whole.peak_mib / part.peak_mib, 2),
    }


def measure_large(folder: Path, megabytes: float) -> Ratios:
    """The same of a file of so many megabytes in longer chats."""
    rows = max(4, int(megabytes * 1e6 / _LONG))
    part, whole = (_import_chats(folder, size, _LONG) for size in (rows // 4, rows))
    return {
        "large_mb_per_second": round(rows * _LONG / 1e6 / whole.seconds, 2),
        "large_peak_mib": round(whole.peak_mib),
        "large_peak_over_quarter": round(whole.peak_mib / part.peak_mib, 2),
    }


def _import_chats(folder: Path, rows: int, size: int = 0) -> Ran:
    log = folder / f"{rows}-{size}.jsonl"
    write_chats(log, rows, size)
    ran = _import(log, log.with_suffix(""))
    log.unlink()
    return ran


def write_chats(path: Path, rows: int, size: int = 0) -> None:
    """Chats of four messages, one of them a call, as JSON lines; of about so many bytes each."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(rows):
            function = {"name": "get_stock", "arguments": json.dumps({"sku": f"A{number}"})}
            call = {"id": "c1", "type": "function", "function": function}
            messages = [
                {
                    "role": "user",
                    "content": f"How many A{number} are left?" + f" {number}" * (size // (len(f"{number}") + 1)),
                },
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"sku": f"A{number}", "stock": number})},
                {"role": "assistant", "content": f"There are {number}."},
            ]
            file.write(json.dumps({"id": f"run-{number}", "messages": messages}) + "\n")


def _timed(read: Callable[[Path], None], paths: Iterable[Path], enough: int) -> tuple[float, int]:
    """Seconds and bytes of reading the files over and over, at least once each; the first round does not count."""
    sizes = {path: path.stat().st_size for path in paths}
    for path in sizes:
        read(path)
    rounds = max(1, -(-enough // sum(sizes.values())))
    started = time.perf_counter()
    for _ in range(rounds):
        for path in sizes:
            read(path)
    return time.perf_counter() - started, rounds * sum(sizes.values())


def _read_log(importer: Importer, path: Path) -> None:
    for _ in importer.read(path):
        pass


def _parse_log(path: Path) -> None:
    """Every value in a file: of lines, of one document, or of an archive's members."""
    data = path.read_bytes()
    if data.startswith(ZIP):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.compress_type != _ZSTD:
                    json.loads(archive.read(member))
        return
    try:
        json.loads(data)
    except ValueError:
        for line in data.splitlines():
            with suppress(ValueError):
                json.loads(line)


def _import(log: Path, store: Path) -> Ran:
    _run(*CURATE, "init", "--store", str(store))
    return _run(*CURATE, "import", str(log), "--store", str(store), "--json")


def _run(*command: str) -> Ran:
    """Run a program to its end. Raises SystemExit with what it said where it failed."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with tempfile.TemporaryFile() as said:
        started = time.perf_counter()
        child = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
        _, status, used = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(command)}: {said.read().decode(errors='replace')[-500:]}")
    return Ran(seconds, used.ru_maxrss / 1024)


if __name__ == "__main__":
    main()

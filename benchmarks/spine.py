"""How long the spine takes beside what people use on the same file, as ratios of one run.

    python benchmarks/spine.py [--json] [--rows 20000]

- ``import_over_datasets``: ``ingest`` (parse, check, digest, deduplicate, keep raw, commit) over ``load_dataset``
- ``build_over_map``: building all three kinds, of a log as it was imported (nothing replayed, so no rows), over
  ``Dataset.map`` with a function that only counts messages
- ``build_rows_over_map``: the same where every call of a tenth of the attempts is confirmed, so that each makes a row
- ``import_over_floor``: ``ingest`` over parsing with orjson, SHA-256, and Parquet with zstd of the same bytes
- ``import_peak_mib``: the largest resident set of the importing process and of each of its workers, together

Every part runs in a process of its own, one after the other; loading libraries does not count for any of them.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from curation.store import Store

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Run every part and print the ratios."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", action="store_true")
    options.add_argument("--rows", type=int, default=20_000)
    options.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.part:
        print(json.dumps(PARTS[given.part](given.folder)))
        return
    with tempfile.TemporaryDirectory() as name:
        measured = _measure(Path(name), given.rows)
    if given.json:
        print(json.dumps(measured["ratios"], indent=2))
    else:
        for name, value in (*measured["seconds"].items(), *measured["ratios"].items()):
            print(f"{name:24}{value:>10}")


def _measure(folder: Path, rows: int) -> dict[str, dict[str, float]]:
    from benchmarks.logs import write_log

    size = write_log(folder / "log.jsonl", rows)
    found = {name: _in_process(name, folder) for name in PARTS}
    seconds = {f"{name}_seconds": round(part["seconds"], 3) for name, part in found.items()}
    return {
        "seconds": {"megabytes": round(size / 1e6, 1), **seconds},
        "ratios": {
            "import_over_datasets": round(found["import"]["seconds"] / found["load"]["seconds"], 3),
            "build_over_map": round(found["build"]["seconds"] / found["map"]["seconds"], 3),
            "build_rows_over_map": round(found["rows"]["seconds"] / found["map"]["seconds"], 3),
            "import_over_floor": round(found["import"]["seconds"] / found["floor"]["seconds"], 3),
            "import_peak_mib": round(found["import"]["peak_mib"]),
        },
    }


def _in_process(part: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, str(HERE / "spine.py"), "--part", part, "--folder", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def _import(folder: Path) -> dict[str, float]:
    from curation.ingest import IngestOptions, find_sources, ingest
    from curation.readers import Readers
    from curation.store import Store

    processes = os.cpu_count() or 1
    Store.create(str(folder / "store"))
    started = time.perf_counter()
    with Readers(processes) as readers:
        store = Store.open(str(folder / "store"))
        ingest(store, find_sources([folder / "log.jsonl"], "auto"), IngestOptions(), readers)
    seconds = time.perf_counter() - started
    peaks = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return {"seconds": seconds, "peak_mib": (peaks[0] + processes * peaks[1]) / 1024}


def _load(folder: Path) -> dict[str, float]:
    import datasets

    datasets.disable_progress_bars()
    started = time.perf_counter()
    datasets.load_dataset("json", data_files=str(folder / "log.jsonl"), cache_dir=str(folder / "cache"))
    return {"seconds": time.perf_counter() - started}


def _floor(folder: Path) -> dict[str, float]:
    import hashlib

    import orjson
    import pyarrow as pa
    import pyarrow.parquet as pq

    started = time.perf_counter()
    schema = pa.schema([("id", pa.string()), ("bytes", pa.binary())])
    with (
        (folder / "log.jsonl").open("rb") as file,
        pq.ParquetWriter(folder / "floor.parquet", schema, compression="zstd") as out,
    ):
        ids: list[str] = []
        lines: list[bytes] = []
        for line in file:
            orjson.loads(line)
            ids.append(hashlib.sha256(line).hexdigest())
            lines.append(line)
            if len(lines) == 2_000:
                out.write_batch(pa.record_batch([pa.array(ids), pa.array(lines)], schema=schema))
                ids, lines = [], []
        if lines:
            out.write_batch(pa.record_batch([pa.array(ids), pa.array(lines)], schema=schema))
    return {"seconds": time.perf_counter() - started}


def _build(folder: Path) -> dict[str, float]:
    from builders.build import build
    from curation.store import Store

    store = Store.open(str(folder / "store"))
    started = time.perf_counter()
    build(store, None, folder / "rows")
    return {"seconds": time.perf_counter() - started}


def _rows(folder: Path) -> dict[str, float]:
    from builders.build import build
    from curation.store import Store

    store = Store.open(str(folder / "store"))
    _confirm(store)
    started = time.perf_counter()
    build(store, None, folder / "more_rows")
    return {"seconds": time.perf_counter() - started}


def _confirm(store: "Store") -> None:
    """Say of every call of a tenth of the attempts what a replay and a diagnosis say of a right one."""
    from schemas.statements import Execution, Layer, Verification
    from schemas.trajectory import Author

    identities = store.sql("SELECT trajectory_id AS id FROM attempts ORDER BY id")["id"].to_pylist()
    world, rule = Author("environment", "inventory", "1"), Author("rule", "diagnosis", "1")
    ran = Execution("inventory@1", match="equal_bytes", status="ok", state_before="state", state_after="state")
    layers: tuple[Layer, ...] = ("syntax", "semantics")
    with store.batch() as batch:
        for identity, trajectory in store.trajectories(identities[::10]):
            for index, message in enumerate(trajectory.messages):
                for call in message.tool_calls:
                    batch.add_statement(
                        Verification(identity, "execution", "passed", world, index, call.uid, execution=ran)
                    )
                    for layer in layers:
                        batch.add_statement(Verification(identity, layer, "passed", rule, index, call.uid))
        store.write(batch)


def _map(folder: Path) -> dict[str, float]:
    import datasets

    datasets.disable_progress_bars()
    loaded = datasets.load_dataset(
        "json", data_files=str(folder / "log.jsonl"), cache_dir=str(folder / "cache"), split="train"
    )
    started = time.perf_counter()
    loaded.map(lambda row: {"count": len(row["messages"])})
    return {"seconds": time.perf_counter() - started}


PARTS: dict[str, Callable[[Path], dict[str, float]]] = {
    "import": _import,
    "load": _load,
    "floor": _floor,
    "build": _build,
    "rows": _rows,
    "map": _map,
}

if __name__ == "__main__":
    main()

"""What it costs to keep and to fork a state, in one run.

    python benchmarks/worlds.py [--rows N] [--rounds N] [--json]

- ``fork_ms``: taking a snapshot of 100 kB of Python state and opening it; ``fork_over_json``: over its JSON round trip

The others are over a copy of an SQLite file of N rows (80 MB at the default) to the same disk:

- ``first_over_copy``: the first snapshot of a world on it, after a write; it puts the start's image into the blobs
- ``later_over_copy``: any later one, a changeset since that image where apsw is installed
- ``pages_over_copy``: one after a change of the schema, which no changeset holds: the pages that differ
- ``whole_over_copy``: one after most pages have changed: the whole image
- ``fork_over_copy``: opening a changeset beside its parent, its digest found again
- ``taken_back_over_copy``: a write in a savepoint that is taken back

Everything stays in this process, and blobs in its memory: what a worker's line or a store add is not in it. Opening the
first world of a process, which reads every row once, is printed beside them. All are medians of the rounds.
"""

import argparse
import json
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from environments.blobs import MemoryBlobs
from environments.protocol import Controls
from environments.python_state import PythonWorld
from environments.sqlite_world import SqliteSession, SqliteWorld
from schemas.canonical import raw
from schemas.trajectory import Task, ToolCall

RATIOS = (
    "fork_over_json",
    *(f"{part}_over_copy" for part in ("first", "later", "pages", "whole", "fork", "taken_back")),
)


class Clock:
    """Milliseconds by what they were spent on."""

    def __init__(self) -> None:
        self.spent: dict[str, list[float]] = {}

    @contextmanager
    def on(self, what: str) -> Iterator[None]:
        """Count what the block takes."""
        started = time.perf_counter()
        yield
        self.spent.setdefault(what, []).append((time.perf_counter() - started) * 1000)

    def median(self, what: str) -> float:
        """Of all blocks of that name."""
        return median(self.spent[what])


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", action="store_true")
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    clock = Clock()
    _fork_python(clock, 40 * given.rounds)
    with tempfile.TemporaryDirectory() as name:
        size = _keep_sqlite(clock, Path(name), given.rows, given.rounds)
    figures = {"megabytes": size / 1e6, "fork_ms": clock.median("fork_python")}
    figures["fork_over_json"] = clock.median("fork_python") / clock.median("json")
    for part in RATIOS[1:]:
        figures[part] = clock.median(part.removesuffix("_over_copy")) / clock.median("copy")
    rounded = {name: round(value, 4) for name, value in figures.items()}
    if given.json:
        print(json.dumps(rounded, indent=2))
        return
    for what, spent in clock.spent.items():
        print(f"{what + '_ms':24}{median(spent):>12.2f}")
    for name, value in rounded.items():
        print(f"{name:24}{value:>12}")


def touch(state: dict[str, Any], item: str) -> dict[str, Any]:
    """Count an item up"""
    state[item]["count"] += 1
    return {"count": state[item]["count"]}


def write(db: sqlite3.Connection, order: int, qty: int) -> dict[str, Any]:
    """Change an order"""
    with db:
        db.execute("UPDATE orders SET qty = ? WHERE id = ?", (qty, order))
    return {"order": order}


def extend(db: sqlite3.Connection, name: str) -> dict[str, Any]:
    """Add a table"""
    db.execute(f'CREATE TABLE "{name}" (x)')
    return {"table": name}


def rewrite(db: sqlite3.Connection) -> dict[str, Any]:
    """Move the rows to other pages"""
    db.execute("DELETE FROM orders WHERE id < 1000")
    db.commit()
    db.execute("VACUUM")
    return {}


def _fork_python(clock: Clock, times: int) -> None:
    state = {f"item {n}": {"count": n, "price": n / 7, "tags": ["a", "b"], "text": "x" * 40} for n in range(900)}
    world = PythonWorld("items", state, writes=[touch])
    blobs = MemoryBlobs()
    with world.open(Task(), Controls(), blobs) as session:
        for _ in range(times):
            session.call([_call("touch", item="item 5")])
            with clock.on("fork_python"):
                fork = world.open(session.snapshot(), Controls(), blobs)
            fork.close()
            with clock.on("json"):
                json.loads(json.dumps(state))


def _keep_sqlite(clock: Clock, folder: Path, rows: int, rounds: int) -> int:
    path = folder / "shop.db"
    _fill(path, rows)
    world = SqliteWorld("shop", path, writes=[write, extend, rewrite])
    with clock.on("open_first"):
        world.open(Task(), Controls(), MemoryBlobs()).close()
    for number in range(rounds):
        with clock.on("copy"):
            shutil.copyfile(path, folder / f"copy {number}")
        blobs = MemoryBlobs()
        with clock.on("open_again"):
            session = world.open(Task(), Controls(), blobs)
        with session:
            _round(clock, world, session, blobs, rows)
        (folder / f"copy {number}").unlink()
    return path.stat().st_size


def _round(clock: Clock, world: SqliteWorld, session: SqliteSession, blobs: MemoryBlobs, rows: int) -> None:
    for part in ("first", "later", "later"):
        session.call([_call("write", order=rows // 2, qty=len(part)), _call("write", order=rows // 3, qty=len(part))])
        with clock.on(part):
            snapshot = session.snapshot()
    with clock.on("fork"):
        world.open(snapshot, Controls(), blobs).close()
    with clock.on("taken_back"), session.state.taken_back():
        session.call([_call("write", order=1, qty=77)])
    session.call([_call("extend", name="more")])
    with clock.on("pages"):
        session.snapshot()
    session.call([_call("rewrite")])
    with clock.on("whole"):
        session.snapshot()


def _fill(path: Path, rows: int) -> None:
    db = sqlite3.connect(path)
    with db:
        db.execute(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, buyer TEXT, item TEXT, qty INTEGER, price REAL, note TEXT)"
        )
        db.executemany(
            "INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)",
            ((n, f"buyer {n * 7919 % 999_983}", f"item {n % 9973}", n % 9, n / 7, "n" * 32) for n in range(rows)),
        )
    db.close()


def _call(tool: str, **arguments: Any) -> ToolCall:
    return ToolCall("0.0", tool, json.dumps(arguments), arguments=raw(arguments))


if __name__ == "__main__":
    main()

"""The verbs that execute, in another order and again: nothing is said a second time, and nothing is lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curation.jobs.powering import measure_power
from curation.jobs.repairing import repair_attempts
from curation.jobs.replaying import replay_attempts
from curation.store import Store
from tests.jobs.booked import book, look, replayed
from tests.jobs.test_powering import RUNS

EITHER = "Book 1 B17 or B18, whichever lies in Shanghai."
MISREAD = [
    ("misread", "Book 1 B17 please.", {"B17": 1}, [book("B18")]),
    ("either", EITHER, {"B18": 1}, [book("B18")]),
    ("also", EITHER, {"B18": 1}, [look("B17"), book("B17")]),
]
VERBS: dict[str, Callable[[Store], object]] = {
    "replay": lambda store: replay_attempts(store, "booking"),
    "power": lambda store: measure_power(store, "booking"),
    "repair": lambda store: repair_attempts(store, "booking"),
}


def written(store: Store) -> dict[str, int]:
    """How many rows of each kind were ever written."""
    tables = ("trajectories", "objects", "annotations", "findings", "verifications")
    return {table: store.sql(f"SELECT count(*) AS n FROM {table}")["n"][0].as_py() for table in tables}


def holding(store: Store) -> list[dict[str, Any]]:
    """What holds of everything, but for what it supersedes."""
    rows: list[dict[str, Any]] = store.sql(
        """SELECT trajectory, message, call, layer, author_name, result, match, reason,
               from_json(record, '{"placebo": "DOUBLE"}').placebo AS placebo
           FROM effective_verifications ORDER BY ALL"""
    ).to_pylist()
    return rows


@pytest.mark.parametrize("order", [("replay", "power", "repair"), ("repair", "power", "replay")])
def test_any_order_comes_to_an_end_and_again_writes_nothing(order: tuple[str, ...], tmp_path: Path) -> None:
    store = replayed(tmp_path, [*RUNS, *MISREAD])
    for name in (*order, *order):
        VERBS[name](store)
    done, holds = written(store), holding(store)
    for name in order:
        VERBS[name](store)
        assert written(store) == done, name
    assert holding(store) == holds
    assert {row["placebo"] for row in holds if row["layer"] == "step"} == {0.0}

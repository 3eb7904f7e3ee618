"""Every key that a side file may hold, and where it is found again."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.annotate import annotate
from schemas.side_file import IDENTITY, SideLine
from tests.eight import TOOLS
from tests.ingest.logs import attempts, import_file, new_store, run, said, write

IDENTIFYING: dict[str, Any] = {
    "namespace": "shop",
    "task": "t1",
    "variant": "v2",
    "parameters": {"stock": {}},
    "run": "night",
    "attempt": 3,
}
SAID: dict[str, Any] = {
    "outcome": "partial",
    "score": 0.5,
    "strata": {"difficulty": "hard"},
    "split": "train",
    "group": "g1",
    "environment": "inventory@1",
    "stop": "max_steps",
    "allocation": "until_success",
    "tools": TOOLS,
    "budget": {"steps": 8, "seconds": 1.5},
}


def test_no_key_is_left_out() -> None:
    places = {"key", "file", "line"}
    assert set(IDENTITY) == set(IDENTIFYING)
    assert set(SideLine.__struct_fields__) == places | set(IDENTIFYING) | set(SAID)


@pytest.mark.parametrize("place", [{"key": "a"}, {"file": "log.jsonl", "line": 1}])
@pytest.mark.parametrize("later", [False, True])
def test_every_key_is_found_again(tmp_path: Path, place: dict[str, Any], later: bool) -> None:
    store = new_store(tmp_path)
    log = write(tmp_path / "log.jsonl", [{name: value for name, value in run("a").items() if name != "tools"}])
    import_file(store, log, side=write(tmp_path / "first.jsonl", [place | IDENTIFYING | ({} if later else SAID)]))
    if later:
        assert annotate(store, said(write(tmp_path / "later.jsonl", [place | SAID]))).matched == 1
    (row,) = attempts(store)
    assert [row[name] for name in ("namespace", "task", "variant", "run", "attempt")] == [
        "shop",
        "t1",
        "v2",
        "night",
        3,
    ]
    assert json.loads(store.sql("SELECT parameters FROM trajectories")["parameters"][0].as_py()) == {"stock": {}}
    assert [row[name] for name in ("outcome", "outcome_by", "score")] == ["partial", "side_file", 0.5]
    assert [row[name] for name in ("split", "group", "environment", "stop", "allocation")] == [
        "train",
        "g1",
        "inventory@1",
        "max_steps",
        "until_success",
    ]
    assert row["strata"] == {"difficulty": "hard"}
    assert json.loads(store.object(row["tools"])) == TOOLS
    budget = store.sql(
        "SELECT field, value FROM effective_annotations WHERE starts_with(field, 'budget.') ORDER BY field"
    )
    assert [tuple(item.values()) for item in budget.to_pylist()] == [("budget.seconds", "1.5"), ("budget.steps", "8")]

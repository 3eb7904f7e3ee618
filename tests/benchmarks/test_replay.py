"""The benchmark runs and prints what it promises; how long things take is no matter of a test."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("agentdojo", reason="the package agentdojo (extra `agentdojo`) is not installed")

ROOT = Path(__file__).parents[2]


def test_it_prints_where_the_time_goes(logs: Path) -> None:
    folder = logs / "agentdojo" / "runs" / "meta-llama_Llama-3.3-70B-Instruct" / "banking"
    command = [sys.executable, str(ROOT / "benchmarks" / "replay.py"), str(folder), "--calls", "20", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert printed["calls"] >= 20
    parts = ("tools", "session", "worker", "replay", "store")
    assert all(printed[f"{part}_seconds"] > 0 for part in parts)
    assert 0 < printed["outside_tools"] < 1
    assert printed["both_cores"] > 0

"""The benchmark runs and prints what it promises; how long things take is no matter of a test."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.worlds import RATIOS

HERE = Path(__file__).parents[2]


def test_it_prints_the_ratios_of_one_run() -> None:
    command = [sys.executable, str(HERE / "benchmarks" / "worlds.py"), "--rows", "30000", "--rounds", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(HERE)})
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    assert printed.keys() == {"megabytes", "fork_ms", *RATIOS}
    assert all(value > 0 for value in printed.values())

"""The benchmark runs and prints what it promises; how long things take is no matter of a test."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_it_prints_how_the_time_of_each_log_grows() -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "growth.py"), "--spans", "4", "--calls", "40", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(ROOT)})
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    spans = {"otel_spans", "openinference_spans", "langsmith_runs", "tool_spans", "span_events"}
    calls = {"calls_answered", "calls_answered_backwards", "calls_without_ids", "session_events"}
    assert printed.keys() == spans | calls
    assert all(growth > 0 for growth in printed.values())

"""The benchmark runs and prints what it promises; how long things take is no matter of a test."""

import json
import subprocess
import sys
from pathlib import Path

from tests.ingest.logs import run, write

HERE = Path(__file__).parents[2]


def test_it_prints_the_ratios_of_one_run(tmp_path: Path) -> None:
    write(tmp_path / "logs" / "chats.jsonl", [run("a"), run("b")])
    sizes = ["--megabytes", "0", "--records", "20", "--trajectories", "40", "--large", "0.3"]
    tools = ["--teich", sys.executable]  # which understands no "convert": the failure of a tool is said
    command = [
        sys.executable,
        str(HERE / "benchmarks" / "importers.py"),
        "--json",
        "--logs",
        str(tmp_path / "logs"),
        *sizes,
    ]
    environment = {"PYTHONPATH": str(HERE)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    formats = {"openai-chat_over_json", "openai-chat_mb_per_second"}
    small = {"small_seconds", "files_over_small", "again_over_small"}
    many = {"many_seconds", "many_peak_mib", "many_peak_over_quarter"}
    large = {"large_mb_per_second", "large_peak_mib", "large_peak_over_quarter"}
    assert printed.keys() == formats | small | many | large
    assert all(value > 0 for value in printed.values())
    failed = subprocess.run([*command, *tools], capture_output=True, text=True, check=False, env=environment)
    assert failed.returncode == 1
    assert "convert" in failed.stderr

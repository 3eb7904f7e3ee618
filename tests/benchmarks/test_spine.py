"""The benchmark runs and prints what it promises; how long things take is no matter of a test."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.logs import write_log
from benchmarks.spine import HERE


def test_it_prints_the_ratios_of_one_run() -> None:
    command = [sys.executable, str(HERE / "spine.py"), "--rows", "30", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    promised = {"import_over_datasets", "build_over_map", "build_rows_over_map", "import_over_floor", "import_peak_mib"}
    assert printed.keys() == promised
    assert all(value > 0 for value in printed.values())


def test_its_log_is_the_same_each_time_and_about_thirteen_kilobytes_a_row(tmp_path: Path) -> None:
    sizes = [write_log(tmp_path / name, 40) for name in ("a", "b")]
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert 12_000 < sizes[0] / 40 < 14_000

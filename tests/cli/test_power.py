"""``curate environment power`` and what ``curate repair`` says of right calls, as a user sees them."""

from pathlib import Path

from tests.cli.test_store_verbs import curate, result
from tests.ingest.logs import write
from tests.jobs.booked import lines
from tests.jobs.test_powering import RUNS
from tests.jobs.test_repairing import MISREAD

REPAIR = {"failures", "proposed", "executed", "verified", "refused", "known_right", "false_corrections"}
REPAIR |= {"false_refusals", "false_correction_rate", "false_refusal_rate", "authors"}


def test_measured_once_a_rate_stands_with_every_check_of_a_fork(tmp_path: Path) -> None:
    result(tmp_path, "init")
    write(tmp_path / "log.jsonl", lines([*RUNS, MISREAD]))
    for verb in (("import", "log.jsonl"), ("replay", "--environment", "booking"), ("diagnose",)):
        result(tmp_path, *verb)
    power = result(tmp_path, "environment", "power", "booking", "--values", "2", "--seed", "1")
    assert power.keys() >= {
        "known_right",
        "calls",
        "probed",
        "wrong_calls",
        "unprobed",
        "totals",
        "by_effect",
        "by_tool",
    }
    for share in power["by_tool"]:
        assert share["rate"] == share["passed"] / share["wrong"]
    repair = result(tmp_path, "repair", "--environment", "booking", "--no-siblings")
    assert repair.keys() >= REPAIR
    assert repair["authors"].keys() == {"rule"}
    query = "SELECT count(*) AS n FROM effective_verifications WHERE layer = 'step' AND record LIKE '%\"placebo\"%'"
    assert result(tmp_path, "sql", query)["rows"] == [{"n": repair["authors"]["rule"]["at_step"]}]
    shown = curate(tmp_path, "environment", "power", "booking").stdout
    assert all(word in shown for word in ("no_error", "match", "step", "task", "get_stock"))


def test_a_limit_below_one_is_misuse(tmp_path: Path) -> None:
    assert curate(tmp_path, "environment", "power", "booking", "--limit", "0").returncode == 2

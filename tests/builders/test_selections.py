"""Whatever is in a store: for every kind and stratum each attempt is judged, and the lines add up."""

import tempfile
from pathlib import Path
from typing import Any, Literal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders.build import NO_CANDIDATE
from reports.selection_bias import selection_bias
from schemas.selection import KINDS
from schemas.statements import Result
from tests.builders.desk import Desk
from tests.records import A17, A18, BAD, OK, REQUEST, Call

B17: Call = ("get_stock", {"sku": "B17"})
BROKEN: Call = ("get_stock", '{"sku": A17')
ANSWERS: dict[str, tuple[Call, dict[str, Any]]] = {
    "right": (A17, OK),
    "wrong": (A18, BAD),
    "other": (B17, {"sku": "B17"}),
    "broken": (BROKEN, {"harness": "not JSON"}),
}

Try = tuple[list[str], bool, bool, Result | None, str | None, list[Literal["clean", "recovery"]]]
TRIES: st.SearchStrategy[list[Try]] = st.lists(
    st.tuples(
        st.lists(st.sampled_from(sorted(ANSWERS)), max_size=3),
        st.booleans(),
        st.booleans(),
        st.sampled_from([None, "passed", "failed", "unknown"]),
        st.sampled_from([None, "easy", "hard"]),
        st.lists(st.sampled_from(["clean", "recovery"]), unique=True),
    ),
    min_size=1,
    max_size=6,
)


def fill(desk: Desk, tries: list[Try]) -> None:
    """Attempts of two tasks, some replayed, some with a finding, an outcome, a stratum, or forks."""
    for number, (names, confirmed, found, outcome, level, forks) in enumerate(tries):
        turns = [turn for name in names for turn in ANSWERS[name]]
        attempt = desk.attempt(
            REQUEST, *turns, "Done.", run=str(number), task=f"t{number % 2}", confirm=confirmed, outcome=outcome
        )
        if level:
            desk.annotate(attempt, "strata.level", level)
        if found and names:
            desk.find(attempt)
        for kind in forks if names and confirmed else ():
            desk.fork(attempt, kind, 1 if kind == "clean" else 3, A17, OK)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(tries=TRIES)
def test_selections_add_up_for_every_kind_and_stratum(tries: list[Try]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        fill(desk, tries)
        result = desk.build(*KINDS)
        live = set(desk.store.sql("SELECT attempt_id FROM attempts")["attempt_id"].to_pylist())
        assert len(live) == len(tries), "a fork is no attempt"
        kept: set[str] = set()
        for kind in KINDS:
            counted, lines = result.kinds[kind], desk.lines(kind)
            without = [line for line in lines if line["failed"] and line["failed"][0].startswith(NO_CANDIDATE)]
            assert {line["attempt"] for line in lines} == live
            assert all(line["kept"] != bool(line["failed"]) == (line["sample"] is None) for line in lines)
            judged = {line["attempt"] for line in lines} - {line["attempt"] for line in without}
            assert len(without) == len(live) - len(judged), "one line where there is no candidate"
            assert counted.candidates == len(lines) - len(without) == counted.kept + sum(counted.refused.values())
            assert counted.without_candidate.keys() == {
                line["failed"][0].removeprefix(NO_CANDIDATE) for line in without
            }
            samples = [line["sample"] for line in lines if line["kept"]]
            assert (
                (len(samples), len(set(samples)))
                == (counted.kept, counted.rows)
                == (counted.kept, len(desk.rows(kind)))
            )
            kept |= {line["attempt"] for line in lines if line["kept"]}
        by = ["task", "outcome", *(["level"] if any(level for *_, level, _ in tries) else [])]
        report = selection_bias(desk.store, build=result.build, by=by)
        assert (report.total, report.kept) == (len(live), len(kept)) == (result.attempts, result.attempts_kept)
        for table in report.strata:
            assert sum(row.attempts for row in table.rows) == report.total
            assert sum(row.kept for row in table.rows) == report.kept

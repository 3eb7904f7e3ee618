"""What repair would do to calls that are known to be right, and which rate its checks carry."""

from pathlib import Path

import msgspec
import pytest

from curation.jobs.forking import fork_attempt
from curation.jobs.powering import measure_power
from curation.jobs.repairing import repair_attempts
from curation.proposals import ProposalLine, read_calls
from curation.store import Store
from schemas.statements import Finding, Power, Verification
from schemas.trajectory import Author, Reads
from tests.jobs.booked import book, look, replayed
from tests.jobs.test_powering import RUNS

MISREAD = ("misread", "Book 1 B17 please.", {"B17": 1}, [book("B18")])


def steps(store: Store) -> list[tuple[str, float | None]]:
    """The step checks that hold of forks: which trajectory, and the rate they name."""
    rows = store.sql(
        """SELECT trajectory, from_json(record, '{"placebo": "DOUBLE"}').placebo AS placebo
           FROM effective_verifications WHERE layer = 'step' ORDER BY trajectory"""
    ).to_pylist()
    return [(row["trajectory"], row["placebo"]) for row in rows]


def test_right_calls_that_repair_would_change_are_counted(tmp_path: Path) -> None:
    """The task wants another booking than its request says: the rule's correction is false, and executes well."""
    store = replayed(tmp_path, [("right", "Book 1 B17 please.", {"B18": 1}, [book("B18")]), *RUNS[:1]])
    result = repair_attempts(store, "booking")
    assert (result.known_right, result.false_corrections, result.false_corrections_verified) == (3, 1, 1)
    assert result.false_correction_rate == 1 / 3


def test_right_calls_that_repair_could_never_make_are_counted(tmp_path: Path) -> None:
    runs = [("guess", "Book one item that lies in Shanghai.", {"B18": 1}, [book("B18")]), *RUNS[:1]]
    result = repair_attempts(replayed(tmp_path, runs), "booking")
    assert (result.known_right, result.false_corrections, result.false_refusals) == (3, 0, 1)
    assert result.falsely_refused == {"not_derivable": 1}
    assert result.false_refusal_rate == 1 / 3


def test_a_failed_attempt_has_no_call_that_is_known_to_be_right(tmp_path: Path) -> None:
    result = repair_attempts(replayed(tmp_path, [MISREAD]), "booking")
    assert (result.known_right, result.false_correction_rate, result.false_refusal_rate) == (0, None, None)


def test_a_call_that_failed_or_that_a_person_objects_to_is_not_known_to_be_right(tmp_path: Path) -> None:
    calls = [look("Z99"), look("B17"), book("B17")]
    store = replayed(tmp_path, [("tries", "Is there Z99 or B17? Book 1 B17.", {"B17": 1}, calls)])
    assert repair_attempts(store, "booking").known_right == 2
    identity = store.sql("SELECT trajectory_id AS t FROM attempts")["t"][0].as_py()
    batch = store.batch()
    batch.add_statement(Finding(identity, 3, "tool_choice", Author("human", "Ada"), "needless", "3.0"))
    store.write(batch)
    assert repair_attempts(store, "booking").known_right == 1


def test_the_checks_of_forks_name_what_was_measured_before_or_after_them(tmp_path: Path) -> None:
    after, before = (replayed(tmp_path / name, [*RUNS, MISREAD]) for name in ("after", "before"))
    repair_attempts(after, "booking")
    assert {placebo for _, placebo in steps(after)} == {None}
    assert measure_power(after, "booking").forks == 2
    measure_power(before, "booking")
    repair_attempts(before, "booking")
    assert steps(before) == steps(after)
    assert {placebo for _, placebo in steps(after)} == {0.0}
    assert repair_attempts(after, "booking").authors["rule"].at_step == 2
    assert steps(before) == steps(after)


def test_a_check_that_wrong_calls_pass_supports_no_correction(tmp_path: Path) -> None:
    store = replayed(tmp_path, [*RUNS, MISREAD])
    parent = store.sql("SELECT trajectory_id AS t FROM attempts WHERE run = 'misread'")["t"][0].as_py()
    right = store.sql("SELECT trajectory_id AS t FROM attempts WHERE run = 'two'")["t"][0].as_py()
    batch = store.batch()
    power = Power("step", "book", 4, 3)
    batch.add_statement(
        Verification(right, "step", "unknown", Author("rule", "placebo.step", "1"), 1, "1.0", "booking@1", power=power)
    )
    store.write(batch)
    counted = repair_attempts(store, "booking").authors["rule"]
    assert (counted.verified, counted.at_step) == (2, 0)
    proposal = read_calls(parent, 1, ['{"name": "book", "arguments": {"sku": "B17", "qty": 1}}'], "Ada")
    assert all(line.verified for line in fork_attempt(store, "booking", proposal).forks)
    assert {placebo for _, placebo in steps(store)} == {0.75}
    assert len(steps(store)) == 4


@pytest.mark.parametrize(("reads", "at_step"), [(("state",), 2), (("state", "hidden_answer"), 0)])
def test_a_check_supports_nobody_who_had_read_what_it_reads(
    reads: tuple[Reads, ...], at_step: int, tmp_path: Path
) -> None:
    store = replayed(tmp_path, [MISREAD])
    parent = store.sql("SELECT trajectory_id AS t FROM attempts")["t"][0].as_py()
    call = {"name": "book", "arguments": {"sku": "B17", "qty": 1}}
    line = {"trajectory": parent, "message": 1, "calls": [call], "author": "Ada", "reads": reads}
    proposal = msgspec.convert(line, ProposalLine)
    counted = repair_attempts(store, "booking", [proposal]).authors["human"]
    assert (counted.verified, counted.at_step) == (2, at_step)

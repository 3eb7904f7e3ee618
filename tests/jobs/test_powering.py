"""What the checks of the booking world are worth, measured with wrong calls in the place of right ones."""

from pathlib import Path
from typing import Any

import pytest

from curation.jobs.placebos import read_rates
from curation.jobs.powering import PowerResult, measure_power
from curation.jobs.replaying import replay_attempts
from curation.power import values_of, wrong_calls
from curation.store import Store
from curation.store.supersede import superseding
from environments.booking import Booking
from schemas.canonical import raw
from schemas.reasons import NOT_KNOWN_RIGHT
from schemas.statements import Finding, Power, Verification
from schemas.trajectory import Author
from tests.ingest.logs import attempts, import_lines, new_store, run
from tests.jobs.booked import book, lines, look, replayed
from tests.records import call

RUNS = [
    ("one", "Is there B17? Book 1 B17 then.", {"B17": 1}, [look("B17"), book("B17")]),
    ("two", "Book 1 B18 please.", {"B18": 1}, [book("B18")]),
    ("wrong", "Book 1 C17 please, or ask about Z99.", {"C17": 1}, [look("Z99")]),
]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, PowerResult]:
    store = replayed(tmp_path_factory.mktemp("power"), RUNS)
    return store, measure_power(store, "booking")


def counts(shares: list[Any]) -> dict[tuple[str, str], tuple[int, int]]:
    return {(share.check, share.tool): (share.passed, share.wrong) for share in shares}


def test_only_calls_of_runs_that_passed_their_check_are_tried(measured: tuple[Store, PowerResult]) -> None:
    _, result = measured
    assert (result.attempts, result.known_right, result.calls, result.probed) == (3, 2, 3, 3)
    assert (result.wrong_calls, result.unprobed) == (3, {})


def test_what_each_check_lets_by(measured: tuple[Store, PowerResult]) -> None:
    """Of a look-up at B17 the other value is Z99; of either booking the other's SKU, which exists too."""
    _, result = measured
    found = counts(result.by_tool)
    assert found["no_error", "get_stock"] == (0, 1)
    assert found["no_error", "book"] == (2, 2)
    assert found["match", "get_stock"] == (0, 1)
    assert found["match", "book"] == (0, 2)
    assert found["task", "get_stock"] == (1, 1), "the booking after it is still the right one"
    assert found["task", "book"] == (0, 2)
    assert ("step", "get_stock") not in found, "the check does not pass after the right look-up either"
    assert found["step", "book"] == (0, 2)
    for share in (*result.totals, *result.by_effect, *result.by_tool):
        assert 0 <= share.low <= share.rate <= share.high <= 1


def test_the_comparisons_are_measured_too(measured: tuple[Store, PowerResult]) -> None:
    _, result = measured
    bytewise = {score.alteration: (score.altered, score.called_equal) for score in result.mutations}
    assert result.answers > 0
    assert bytewise["pasted"][0] > 0
    assert {equal for _, equal in bytewise.values()} == {0}


def test_the_totals_tell_reading_from_writing(measured: tuple[Store, PowerResult]) -> None:
    _, result = measured
    task = {
        share.effect: (share.passed, share.wrong, share.check_read)
        for share in result.by_effect
        if share.check == "task"
    }
    assert task == {"read": (1, 1, "state, hidden_answer"), "write": (0, 2, "state, hidden_answer")}


def test_a_limit_leaves_calls_out_and_a_seed_chooses_them(measured: tuple[Store, PowerResult], tmp_path: Path) -> None:
    store = replayed(tmp_path, RUNS)
    some = measure_power(store, "booking", limit=1, seed=4)
    assert (some.calls, some.probed, some.unprobed) == (3, 1, {"over_limit": 2})
    again = measure_power(store, "booking", limit=1, seed=4)
    assert again == some
    assert measure_power(store, "booking").by_tool == measured[1].by_tool


def test_a_call_without_another_value_is_counted(tmp_path: Path) -> None:
    store = replayed(tmp_path, RUNS[1:2])
    result = measure_power(store, "booking")
    assert (result.calls, result.probed, result.unprobed) == (1, 0, {"no_other_value": 1})
    assert (result.totals, result.by_tool) == ([], [])


def test_every_attempt_that_is_not_known_to_be_right_has_a_reason(
    measured: tuple[Store, PowerResult], tmp_path: Path
) -> None:
    assert measured[1].not_known_right == {"not_passed": 1}
    pasted = book("B17")
    runs = [("fine", "Book 1 B18.", {"B18": 1}, [book("B18")]), ("told", "Book 1 B17.", {"B17": 1}, [pasted])]
    store = new_store(tmp_path)
    logged = lines(runs)
    import_lines(store, tmp_path, logged[:1])
    assert measure_power(store, "booking").not_known_right == {"not_replayed": 1}
    logged[1]["messages"][2]["content"] = '{"booked": "another"}'
    import_lines(store, tmp_path, logged[1:], "second.jsonl")
    replay_attempts(store, "booking")
    found = measure_power(store, "booking")
    assert (found.known_right, found.not_known_right) == (1, {"not_confirmed": 1})
    (right,) = [row["trajectory_id"] for row in attempts(store) if row["outcome"] == "success"]
    with store.batch() as batch:
        batch.add_statement(Finding(right, 1, "tool_choice", Author("human", "somebody")))
        store.write(batch)
    assert measure_power(store, "booking").not_known_right == {"finding": 1, "not_confirmed": 1}


def test_a_world_without_a_check_says_so(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a"), run("b", "A18")])
    replay_attempts(store, "inventory")
    result = measure_power(store, "inventory")
    assert (result.known_right, result.not_known_right) == (0, {"no_verdict": 2})
    assert result.not_known_right.keys() <= NOT_KNOWN_RIGHT.keys()


def test_what_is_measured_says_nothing_of_the_decision(measured: tuple[Store, PowerResult]) -> None:
    store, _ = measured
    stored = store.sql("SELECT count(*) AS n FROM verifications WHERE starts_with(author_name, 'placebo.')")
    held = store.sql("SELECT count(*) AS n FROM effective_verifications WHERE layer = 'step'")
    assert (stored["n"].to_pylist(), held["n"].to_pylist()) == ([3 * 4 - 1], [0])


def test_a_run_that_does_not_pass_its_own_check_here_says_nothing_of_checks(tmp_path: Path) -> None:
    unmet = ("unmet", "Is there B17?", {"B17": 1}, [look("B17")])
    store = replayed(tmp_path, [*RUNS, unmet])
    identity = store.sql("SELECT trajectory_id AS t FROM attempts WHERE run = 'unmet'")["t"][0].as_py()
    batch = store.batch()
    elsewhere = Verification(identity, "task", "passed", Author("environment", "booking", "1"))
    for statement in superseding(store, [elsewhere]):
        batch.add_statement(statement)
    store.write(batch)
    result = measure_power(store, "booking")
    assert (result.known_right, result.calls, result.probed) == (3, 4, 3)
    assert result.unprobed == {"not_reproduced": 1}


def test_a_step_is_measured_where_the_right_call_makes_the_check_pass(tmp_path: Path) -> None:
    """After the booking the check passes already, so that a wrong look-up says nothing of it."""
    after = ("after", "Book 1 A17, then look at B17.", {"A17": 1}, [book("A17"), look("B17")])
    found = counts(measure_power(replayed(tmp_path, [after, *RUNS[1:]]), "booking").by_tool)
    assert found["task", "get_stock"] == (1, 1)
    assert ("step", "get_stock") not in found
    assert found["step", "book"] == (0, 2)


def test_a_wrong_call_satisfies_the_schema_of_its_tool() -> None:
    right, other = (call(1, 0, "book", {"sku": "A17", "qty": qty}) for qty in (1, 0))
    schema = raw({"type": "object", "properties": {"qty": {"type": "integer", "minimum": 1}}})
    values = values_of([right, other])
    assert len(wrong_calls(right, values, None, 3, "")) == 1
    assert wrong_calls(right, values, schema, 3, "") == ()


def test_a_measurement_is_of_the_world_it_was_made_in(tmp_path: Path) -> None:
    """Both attempts were executed in the world that is asked for; one was measured in an earlier version of it."""
    store, spec = replayed(tmp_path, RUNS), Booking().spec
    ids = store.sql("SELECT trajectory_id AS t FROM attempts ORDER BY run")["t"].to_pylist()
    batch = store.batch()
    for identity, world, passed in zip(ids, (spec.name, f"{spec.id}@0"), (1, 4), strict=False):
        author, power = Author("rule", "placebo.step", "1"), Power("step", "book", 4, passed)
        batch.add_statement(Verification(identity, "step", "unknown", author, 1, "1.0", world, power=power))
    store.write(batch)
    assert read_rates(store, spec) == {("step", "book"): Power("step", "book", 4, 1)}

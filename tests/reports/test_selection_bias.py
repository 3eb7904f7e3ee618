from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curation.errors import NotFoundError, UsageError
from reports.markdown import markdown
from reports.selection_bias import SelectionBias, selection_bias
from reports.strata import Row, Stratification
from reports.table import never_kept_text, rate_text
from tests.reports.attempts import Attempts, Try, seed


def rows(table: Stratification) -> dict[str, Row]:
    return {row.value: row for row in table.rows}


def test_the_figures_of_100_tasks_with_one_attempt_each() -> None:
    report = selection_bias(Attempts(seed()), by=["difficulty"])
    (table,) = report.strata
    easy, hard = table.rows
    assert (report.unit, report.rule, report.rule_from) == ("attempt", "outcome = 'success'", "default")
    assert (report.total, report.kept, report.tasks_vanished) == (100, 55, 45)
    assert (easy.value, hard.value) == ("easy", "hard")
    assert rate_text(easy) == "90.0 % [78.6, 95.7]"
    assert rate_text(hard) == "20.0 % [11.2, 33.0]"
    assert (easy.interval, hard.interval) == ("wilson", "wilson")
    assert (easy.share_before, round(easy.share_after or 0, 4)) == (0.5, 0.8182)
    assert table.total_variation == pytest.approx(0.3182, abs=5e-5)
    assert easy.attempts_per_kept == pytest.approx(1.111, abs=5e-4)
    assert hard.attempts_per_kept == 5.0
    assert table.effective_kept == pytest.approx(32.73, abs=5e-3)
    assert table.undefined is None


def test_a_stratum_with_nothing_kept_stays_without_a_weight() -> None:
    tries = [Try(str(number), strata={"level": "hard"}) for number in range(50)]
    report = selection_bias(Attempts([*tries, Try("easy", "success", strata={"level": "easy"})]), by=["level"])
    (table,) = report.strata
    hard = rows(table)["hard"]
    assert rate_text(hard) == "0.0 % [0.0, 7.1]"
    assert (hard.kept, hard.share_after, hard.attempts_per_kept) == (0, 0.0, None)
    assert table.never_kept == 1
    assert "weight undefined, no weight can create examples" in never_kept_text(table)
    assert "no weight can create examples" in {note.about: note.text for note in report.notes}["Positivity"]


def test_rates_with_and_without_faults_stand_side_by_side() -> None:
    tries = [Try("one", "success"), *(Try("one", "unknown", fault=True) for _ in range(3))]
    report = selection_bias(Attempts(tries), by=["task"])
    (row,) = report.strata[0].rows
    assert (row.attempts, row.unknown, row.faults, row.kept) == (4, 3, 3, 1)
    assert rate_text(row) == "25.0 % [4.6, 69.9]"
    assert row.interval == "wilson_one_task"
    assert (row.verdicts.kept, row.verdicts.attempts) == (1, 1)
    assert rate_text(row.verdicts) == "100.0 % [20.7, 100.0]"


def test_attempts_without_a_value_have_their_own_row_and_rows_add_up() -> None:
    tries = [
        Try(str(number), "success" if number % 3 else "failure", strata={"difficulty": "easy"} if number >= 12 else {})
        for number in range(100)
    ]
    report = selection_bias(Attempts(tries), by=["difficulty"])
    easy, missing = report.strata[0].rows
    assert (easy.value, easy.missing, easy.attempts) == ("easy", False, 88)
    assert (missing.value, missing.missing, missing.attempts) == ("missing", True, 12)
    assert easy.kept + missing.kept == report.kept


def test_a_value_that_reads_missing_is_not_the_missing_row() -> None:
    tries = [Try("a", strata={"level": "missing"}), Try("b"), Try("c", strata={"level": ""})]
    report = selection_bias(Attempts(tries), by=["level"])
    assert [(row.value, row.missing) for row in report.strata[0].rows] == [
        ("", False),
        ("missing", False),
        ("missing", True),
    ]


def test_repeated_tasks_widen_the_interval() -> None:
    tries = [
        Try(str(task), "success" if task < 10 else "failure", strata={"s": "x"}, attempt=number)
        for task in range(20)
        for number in range(4)
    ]
    report = selection_bias(Attempts(tries), by=["s"])
    (row,) = report.strata[0].rows
    assert (row.tasks, row.tasks_kept, row.attempts, row.kept) == (20, 10, 80, 40)
    assert (row.interval, row.effective_n, report.strata[0].icc) == ("wilson_effective_n", 20.0, 1.0)
    assert row.low is not None
    assert row.low < 0.3
    assert "effective n" in {note.about: note.text for note in report.notes}["Intervals"]


def test_the_funnel_names_what_is_lost_where_and_what_is_kept_beside_it() -> None:
    tries = [
        Try("a", "success"),
        Try("b", "success", fault=True),
        Try("c", "partial"),
        Try("d", "unknown"),
        Try("e", "failure"),
    ]
    report = selection_bias(Attempts(tries), keep="outcome IN ('success', 'partial')")
    assert [step.attempts for step in report.funnel] == [5, 3, 1, 1]
    assert (report.kept, report.kept_without_success) == (3, 2)
    assert "kept" not in {step.step for step in report.funnel}
    text = " ".join(markdown(report).split())
    assert "3 of 5 attempts kept, 1 of them as a success without a fault;" in text
    assert "Also kept: 2 attempts outside this funnel (another outcome, or a fault); 3 in all." in text


def test_tasks_that_vanish_are_counted_and_named_with_what_they_cost() -> None:
    tries = [Try("solved", "success"), Try("once"), *(Try("often", attempt=number) for number in range(3))]
    report = selection_bias(Attempts(tries))
    assert [(gone.task, gone.attempts) for gone in report.vanished] == [("world/often", 3), ("world/once", 1)]
    assert [(row.successes, row.tasks) for row in report.successes_per_task] == [(0, 2), (1, 1)]
    assert (report.tasks_vanished, report.largest_task_share) == (2, 1.0)


def test_an_attempt_for_which_the_rule_has_no_answer_is_counted_and_not_kept() -> None:
    report = selection_bias(Attempts([Try("a", model="x"), Try("b", model=None)]), keep="model = 'x'")
    assert (report.kept, report.undecided) == (1, 1)
    assert "no answer" in {note.about: note.text for note in report.notes}["Rule"]


def test_a_build_keeps_the_attempts_of_its_kept_decisions() -> None:
    store = Attempts(
        [Try("a"), Try("b", "success"), Try("c")],
        kept=[("b1", 0, True), ("b1", 0, False), ("b1", 1, False), ("it's", 2, True)],
    )
    report = selection_bias(store, build="b1")
    assert (report.kept, report.rule_from, report.build) == (1, "build", "b1")
    assert [gone.task for gone in report.vanished] == ["world/b", "world/c"]
    assert selection_bias(store, keep=selection_bias(store, build="it's").rule).kept == 1
    with pytest.raises(NotFoundError, match=r"'b2'.*known: b1, it's"):
        selection_bias(store, build="b2")
    with pytest.raises(UsageError, match="give one of them"):
        selection_bias(store, build="b1", keep="true")


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("outcom = 'success'", "outcom"),
        ("true; DROP TABLE attempts", "more than one statement"),
        ("true) FROM attempts --", "syntax error"),
        ("true FROM attempts", "FROM"),
        ("true, false", "single expression"),
        ("", "SELECT clause"),
        ("outcome", "string"),
        ("count(*) > 1", "aggregate"),
        ("unnest([true, false])", "UNNEST"),
        ("*", "STAR"),
        ("model::INTEGER > 1", "Could not convert"),
        ("attempt = ?", "parameters"),
        ("kept", "kept"),
        ("label = 'world/a'", "label"),
        ("random() < 0.5", "another answer each time"),
    ],
)
def test_a_bad_rule_is_refused_with_itself_the_cause_and_the_columns(rule: str, why: str) -> None:
    store = Attempts(seed())
    with pytest.raises(UsageError, match=rf"(?is)rule .*{why}.*columns of attempts: .*outcome"):
        selection_bias(store, keep=rule)
    assert selection_bias(store).total == 100


def test_a_rule_may_end_in_a_comment_and_ask_other_tables() -> None:
    store = Attempts(seed(), kept=[("b", 3, True)])
    assert selection_bias(store, keep="attempt_id IN (SELECT attempt FROM selections) -- kept once").kept == 1


def test_a_rule_and_a_stratum_mean_the_columns_of_the_view() -> None:
    report = selection_bias(Attempts([Try("a"), Try("b")]), keep="task = 'a'", by=["task", "outcome", "fault"])
    assert [(row.value, row.kept) for row in report.strata[0].rows] == [("a", 1), ("b", 0)]
    assert [[row.value for row in table.rows] for table in report.strata[1:]] == [["failure"], ["false"]]


def test_strata_are_named_with_or_without_prefix_and_once() -> None:
    report = selection_bias(Attempts(seed()), by=["difficulty", "strata.difficulty", "model", "attempts.model"])
    assert [(table.by, table.source) for table in report.strata] == [
        ("difficulty", "strata.difficulty"),
        ("model", "model"),
    ]


def test_without_a_stratum_every_declared_one_is_reported() -> None:
    tries = [Try("a", strata={"suite": "s", "difficulty": "easy"}), Try("b", strata={"model": "x"})]
    report = selection_bias(Attempts(tries))
    assert [table.by for table in report.strata] == ["difficulty", "strata.model", "suite"]
    assert selection_bias(Attempts(tries), by=[]).strata == ()


def test_a_stratum_that_is_not_there_or_is_two_things_is_refused() -> None:
    store = Attempts([Try("a", strata={"it's": "x", "model": "y"})])
    with pytest.raises(UsageError, match=r"unknown stratum 'mood'; known: strata.it's, strata.model, attempt"):
        selection_bias(store, by=["mood"])
    with pytest.raises(UsageError, match=r"write 'strata.model' or 'attempts.model'"):
        selection_bias(store, by=["model"])
    with pytest.raises(UsageError, match="unknown stratum 'strata'"):
        selection_bias(store, by=["strata"])
    report = selection_bias(store, by=["strata.model", "attempts.model", "it's"])
    assert [table.rows[0].value for table in report.strata] == ["y", "m", "x"]


def test_strata_come_in_natural_order() -> None:
    values = ["10+", "2", "a10", "a9", "1", "007", "9" * 5000, "z"]
    report = selection_bias(Attempts([Try(value, strata={"s": value}) for value in values]), by=["s"])
    assert [row.value for row in report.strata[0].rows] == ["1", "2", "007", "10+", "9" * 5000, "a9", "a10", "z"]


def test_a_store_without_attempts_has_a_report() -> None:
    report = selection_bias(Attempts(), by=["model"])
    assert (report.total, report.kept, report.overall.retention, report.largest_task_share) == (0, 0, None, None)
    (table,) = report.strata
    assert (table.rows, table.total_variation, table.undefined) == ((), None, "undefined: there are no attempts")


def test_where_nothing_is_kept_there_is_no_mix_to_compare() -> None:
    report = selection_bias(Attempts([Try("a"), Try("b")]), by=["model"])
    (table,) = report.strata
    assert (table.total_variation, table.effective_kept, table.rows[0].share_after) == (None, None, None)
    assert table.undefined == "undefined: nothing is kept, so there is no mix to compare"


def test_a_report_is_the_same_twice_and_comes_back_from_json() -> None:
    store = Attempts(seed())
    data = msgspec.json.encode(selection_bias(store, by=["difficulty", "task"]))
    assert data == msgspec.json.encode(selection_bias(store, by=["difficulty", "task"]))
    assert msgspec.json.decode(data, type=SelectionBias).total == 100


TRIES = st.lists(
    st.builds(
        Try,
        task=st.sampled_from("abcdef"),
        outcome=st.sampled_from(["success", "failure", "partial", "unknown"]),
        fault=st.booleans(),
        strata=st.dictionaries(st.just("level"), st.text(alphabet="ab1 \x1b<", max_size=2)),
        attempt=st.integers(0, 3),
    ),
    max_size=30,
)


@settings(deadline=None, max_examples=60)
@given(TRIES, st.sampled_from(["outcome = 'success'", "attempt > 1", "NOT fault", "false", "true"]))
def test_rows_add_up_for_every_stratum_and_rule(tries: list[Try], rule: str) -> None:
    report = selection_bias(Attempts(tries), keep=rule, by=["attempt", "outcome", "task", *_declared(tries)])
    counts: list[tuple[str, Callable[[Row], int]]] = [
        ("attempts", lambda row: row.attempts),
        ("kept", lambda row: row.kept),
        ("unknown", lambda row: row.unknown),
        ("faults", lambda row: row.faults),
        ("successes", lambda row: row.successes),
        ("verdicts", lambda row: row.verdicts.attempts),
        ("kept with a verdict", lambda row: row.verdicts.kept),
    ]
    for table in report.strata:
        for name, count in counts:
            assert sum(map(count, table.rows)) == count(report.overall), (table.by, name)
        for row in table.rows:
            assert 0 <= row.tasks_kept <= row.tasks <= row.attempts
            assert row.verdicts.attempts >= row.attempts - row.unknown - row.faults
        if report.kept:
            assert sum(row.share_before or 0 for row in table.rows) == pytest.approx(1)
            assert sum(row.share_after or 0 for row in table.rows) == pytest.approx(1)
            assert 0 <= (table.total_variation or 0) <= 1
    assert report.total == len(tries)
    assert sum(row.tasks for row in report.successes_per_task) == report.tasks
    assert report.funnel[-1].attempts + report.kept_without_success == report.kept


def _declared(tries: list[Try]) -> list[str]:
    return ["level"] if any(item.strata for item in tries) else []

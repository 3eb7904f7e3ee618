import pytest
from hypothesis import given
from hypothesis import strategies as st

from curation.shares import wilson
from reports.intervals import Clustering, Clusters, clustering, effective_attempts, estimate, student_t


def cells(*tasks: tuple[int, int]) -> Clusters:
    """A stratum of tasks given as (attempts, kept)."""
    return Clusters(
        len(tasks),
        sum(attempts for attempts, _ in tasks),
        sum(kept for _, kept in tasks),
        sum(attempts**2 for attempts, _ in tasks),
        sum(kept**2 / attempts for attempts, kept in tasks),
    )


@pytest.mark.parametrize(
    ("kept", "attempts", "low", "high"),
    [
        (45, 50, 0.786, 0.957),
        (10, 50, 0.112, 0.330),
        (45, 55, 0.697, 0.898),
        (0, 50, 0.0, 0.0713),
        (1, 1, 0.207, 1.0),
        (1, 4, 0.046, 0.699),
        (125, 1610, 0.0656, 0.0917),
        (67, 230, 0.236, 0.353),
        (299, 4876, 0.0549, 0.0684),
    ],
)
def test_wilson_gives_the_published_figures(kept: int, attempts: int, low: float, high: float) -> None:
    found = wilson(kept, attempts)
    assert found.low == pytest.approx(low, abs=6e-4)
    assert found.high == pytest.approx(high, abs=6e-4)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_share_and_mirrors(counts: tuple[int, int]) -> None:
    kept, attempts = counts
    found, mirrored = wilson(kept, attempts), wilson(attempts - kept, attempts)
    assert 0 <= found.low <= kept / attempts <= found.high <= 1
    assert found.low == pytest.approx(1 - mirrored.high, abs=1e-9)


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.706), (2, 4.303), (10, 2.228), (11, 2.201), (20, 2.086), (30, 2.042), (120, 1.980)]
)
def test_students_t_is_that_of_the_tables(freedom: int, quantile: float) -> None:
    assert student_t(freedom) == pytest.approx(quantile, abs=6e-4)


@pytest.mark.parametrize(("icc", "worth"), [(0.3, 105), (0.7, 65), (0.0, 200), (1.0, 50)])
def test_repeated_attempts_are_worth_less(icc: float, worth: float) -> None:
    assert effective_attempts(cells(*[(4, 1)] * 50), icc) == pytest.approx(worth, abs=0.5)


def test_tasks_that_always_end_alike_count_once() -> None:
    stratum = cells((4, 4), (4, 0), (4, 4), (4, 0))
    pooled = clustering([stratum])
    assert pooled == Clustering(1.0, 3)
    found = estimate(stratum, pooled)
    assert found is not None
    assert (found.method, found.effective_n) == ("wilson_effective_n", 4)
    assert found[:2] == wilson(2, 4, student_t(3))


def test_tasks_that_differ_no_more_than_chance_cost_nothing() -> None:
    pooled = clustering([cells((2, 1), (2, 1), (2, 1))])
    assert pooled.icc == 0.0


def test_where_nothing_varies_the_task_is_the_unit() -> None:
    stratum = cells((4, 0), (4, 0))
    pooled = clustering([stratum])
    assert pooled.icc is None
    found = estimate(stratum, pooled)
    assert found is not None
    assert found.effective_n == 2


def test_one_attempt_a_task_is_plain_wilson_and_one_task_says_so() -> None:
    several, one = cells(*[(1, 1)] * 45, *[(1, 0)] * 5), cells((4, 1))
    pooled = clustering([several, one])
    assert estimate(several, pooled) == (*wilson(45, 50), "wilson", 50)
    assert estimate(one, pooled) == (*wilson(1, 4), "wilson_one_task", 4)
    assert estimate(Clusters(0, 0, 0, 0, 0.0), pooled) is None


@given(
    st.lists(
        st.lists(st.integers(1, 6).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))), min_size=1, max_size=6),
        min_size=1,
        max_size=4,
    )
)
def test_every_stratum_with_attempts_has_an_interval_around_its_share(strata: list[list[tuple[int, int]]]) -> None:
    counted = [cells(*tasks) for tasks in strata]
    pooled = clustering(counted)
    assert pooled.icc is None or 0 <= pooled.icc <= 1
    for stratum in counted:
        found = estimate(stratum, pooled)
        assert found is not None
        assert 0 <= found.low <= stratum.kept / stratum.attempts + 1e-12
        assert stratum.kept / stratum.attempts - 1e-12 <= found.high <= 1
        assert stratum.tasks - 1e-9 <= found.effective_n <= stratum.attempts or stratum.squares > stratum.attempts

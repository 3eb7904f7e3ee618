"""Intervals of 95 % for shares, also where several attempts of one task are no independent observations.

Sources: the design effect 1 + (m - 1) icc and its unequal-size form, Kish, Survey Sampling
(1965); the analysis-of-variance estimate of the intra-class correlation, Donner, Int. Stat. Review 54 (1986); Student's
t beyond ten degrees of freedom, Abramowitz and Stegun 26.7.5.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

from curation.shares import Z95, wilson

Method = Literal["wilson", "wilson_one_task", "wilson_effective_n"]

METHODS: dict[Method, str] = {
    "wilson": "Wilson on attempts: every task of the stratum has one attempt, so attempts are independent.",
    "wilson_one_task": (
        "Wilson on one task: all attempts of the stratum are of one single task, so the interval speaks of that task "
        "and not of others."
    ),
    "wilson_effective_n": (
        "Wilson on the effective n: the task is the unit, as attempts of one task resemble each other. n is attempts / "
        "(1 + (m - 1) icc), where m is attempts per task (weighted by attempts) and icc the intra-class correlation of "
        "kept within tasks, pooled over the strata of the table (1 where nothing varies); the quantile is Student's t "
        "with as many degrees of freedom as the table has tasks more than strata."
    ),
}

_T95 = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)


class Clusters(NamedTuple):
    """The attempts of a stratum by task, as sums over its tasks.

    ``squares`` is the sum of attempts², ``agreement`` the sum of kept² / attempts.
    """

    tasks: int
    attempts: int
    kept: int
    squares: int
    agreement: float


class Clustering(NamedTuple):
    """How much attempts of one task resemble each other, in [0, 1], and the degrees of freedom of that estimate.

    ``icc`` is None where no task has two attempts or nothing varies: then nothing is known about it.
    """

    icc: float | None
    freedom: int


class Estimate(NamedTuple):
    """An interval, the method that gave it, and how many independent attempts it counts with."""

    low: float
    high: float
    method: Method
    effective_n: float


def student_t(freedom: int) -> float:
    """The 97.5 % point of Student's t, good to three decimals. ``freedom`` is 1 or more."""
    if freedom <= len(_T95):
        return _T95[freedom - 1]
    z = Z95
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def clustering(strata: Iterable[Clusters]) -> Clustering:
    """The intra-class correlation of kept within tasks, pooled over strata (one-way analysis of variance)."""
    strata = tuple(stratum for stratum in strata if stratum.attempts)
    attempts = sum(stratum.attempts for stratum in strata)
    tasks = sum(stratum.tasks for stratum in strata)
    freedom = tasks - len(strata)
    if freedom < 1 or attempts == tasks:
        return Clustering(None, freedom)
    within = sum(stratum.kept - stratum.agreement for stratum in strata) / (attempts - tasks)
    between = sum(stratum.agreement - stratum.kept**2 / stratum.attempts for stratum in strata) / freedom
    size = (attempts - sum(stratum.squares / stratum.attempts for stratum in strata)) / freedom
    spread = between + (size - 1) * within
    if spread <= 1e-12:
        return Clustering(None, freedom)
    return Clustering(min(1.0, max(0.0, (between - within) / spread)), freedom)


def effective_attempts(stratum: Clusters, icc: float) -> float:
    """How many independent attempts the attempts of a stratum's tasks are worth."""
    return stratum.attempts / (1 + (stratum.squares / stratum.attempts - 1) * icc)


def estimate(stratum: Clusters, pooled: Clustering) -> Estimate | None:
    """The interval of a stratum's kept share by the method that its tasks allow; None without attempts."""
    if not stratum.attempts:
        return None
    if stratum.tasks in (1, stratum.attempts):
        method: Method = "wilson" if stratum.tasks == stratum.attempts else "wilson_one_task"
        return Estimate(*wilson(stratum.kept, stratum.attempts), method, stratum.attempts)
    size = effective_attempts(stratum, 1.0 if pooled.icc is None else pooled.icc)
    kept = size if stratum.kept == stratum.attempts else size * stratum.kept / stratum.attempts
    return Estimate(*wilson(kept, size, student_t(pooled.freedom)), "wilson_effective_n", size)

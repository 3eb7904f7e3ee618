"""Counts and shares of attempts per stratum: what went in, what was kept, how sure that is, and how the mix moved."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import chain, zip_longest
from typing import Any

import msgspec
import polars as pl

from reports.intervals import Clustering, Clusters, Method, clustering, estimate

MISSING = "missing"
NOTHING_KEPT = "undefined: nothing is kept, so there is no mix to compare"
NO_ATTEMPTS = "undefined: there are no attempts"

_NUMBER = re.compile(r"([0-9]+)")


class Rate(msgspec.Struct, frozen=True):
    """``kept`` of ``attempts`` in ``tasks`` tasks; the share, its 95 % interval and how it was made.

    ``retention``, ``low``, ``high``, ``interval`` and ``effective_n`` are None without attempts.
    """

    tasks: int
    attempts: int
    kept: int
    retention: float | None
    low: float | None
    high: float | None
    interval: Method | None
    effective_n: float | None


class Row(msgspec.Struct, frozen=True):
    """One stratum. Counts are attempts unless they say tasks; shares and rates lie in [0, 1].

    ``missing`` marks the row of attempts without a value. ``unknown`` have no verdict, ``faults`` met a fault of the
    environment or the provider; an attempt may be both, and ``verdicts`` is the rate without them.
    ``attempts_per_kept`` is also the weight that brings kept attempts back to the mix of all attempts (Horvitz and
    Thompson, JASA 47, 1952); None where nothing is kept.
    """

    value: str
    missing: bool
    tasks: int
    tasks_kept: int
    attempts: int
    unknown: int
    faults: int
    successes: int
    kept: int
    retention: float | None
    low: float | None
    high: float | None
    interval: Method | None
    effective_n: float | None
    verdicts: Rate
    share_before: float | None
    share_after: float | None
    attempts_per_kept: float | None


class Stratification(msgspec.Struct, frozen=True):
    """Attempts divided one way. The rows add up to all attempts.

    ``by`` is the name as asked for, ``source`` in full. ``total_variation`` is half the sum of the absolute differences
    between shares before and after, ``undefined`` says why where it is None. ``icc`` is the similarity of attempts of
    one task that the intervals count with. ``never_kept`` is the number of rows with nothing kept, ``effective_kept``
    what kept attempts are worth after weighting (Kish, over the rows that have a weight).
    """

    by: str
    source: str
    rows: tuple[Row, ...]
    total_variation: float | None
    undefined: str | None
    icc: float | None
    never_kept: int
    effective_kept: float | None


def count_stratum(attempts: pl.DataFrame, column: str, by: str, source: str) -> Stratification:
    """The strata of one column of ``attempts`` (see reports.attempts), in natural order, those without a value last."""
    counts = sorted(_count(attempts, column), key=lambda row: natural_key(row["value"]))
    total, kept = sum(row["attempts"] for row in counts), sum(row["kept"] for row in counts)
    pooled = clustering(map(_all_clusters, counts))
    judged = clustering(map(_verdict_clusters, counts))
    rows = tuple(_row(row, total, kept, pooled, judged) for row in counts)
    return Stratification(
        by=by,
        source=source,
        rows=rows,
        total_variation=_total_variation(rows),
        undefined=None if kept else NOTHING_KEPT if total else NO_ATTEMPTS,
        icc=pooled.icc,
        never_kept=sum(not row.kept for row in rows),
        effective_kept=_effective_kept(rows),
    )


def count_all(attempts: pl.DataFrame) -> Row:
    """All attempts as one row."""
    rows = count_stratum(attempts.with_columns(all=pl.lit("all")), "all", "all", "all").rows
    unknown = Clustering(None, 0)
    return rows[0] if rows else _row(defaultdict(int, value="all"), 0, 0, unknown, unknown)


def natural_key(value: str | None) -> tuple[Any, ...]:
    """Sorts text with its numbers by size ("2" before "10"), and no value behind every value."""
    if value is None:
        return (1,)
    text, numbers = _NUMBER.split(value)[::2], _NUMBER.findall(value)
    sizes = [(len(digits.lstrip("0")), digits.lstrip("0")) for digits in numbers]
    return (0, *chain.from_iterable(zip_longest(text, sizes, fillvalue=())), value)


def _count(attempts: pl.DataFrame, column: str) -> list[dict[str, Any]]:
    unknown, fault, kept = pl.col("outcome") == "unknown", pl.col("fault"), pl.col("kept").fill_null(False)
    verdict = ~(unknown | fault)
    cells = attempts.group_by(pl.col(column).alias("value"), "task").agg(
        attempts=pl.len().cast(pl.Int64),
        unknown=unknown.sum().cast(pl.Int64),
        faults=fault.sum().cast(pl.Int64),
        successes=(pl.col("outcome") == "success").sum().cast(pl.Int64),
        kept=kept.sum().cast(pl.Int64),
        verdicts=verdict.sum().cast(pl.Int64),
        kept_verdicts=(kept & verdict).sum().cast(pl.Int64),
    )
    judged = pl.col("verdicts") > 0
    sums = cells.group_by("value").agg(
        pl.sum("attempts", "unknown", "faults", "successes", "kept", "verdicts", "kept_verdicts"),
        tasks=pl.len(),
        tasks_kept=(pl.col("kept") > 0).sum(),
        tasks_verdicts=judged.sum(),
        squares=(pl.col("attempts") ** 2).sum(),
        squares_verdicts=(pl.col("verdicts") ** 2).sum(),
        agreement=(pl.col("kept") ** 2 / pl.col("attempts")).sum(),
        agreement_verdicts=(pl.col("kept_verdicts") ** 2 / pl.col("verdicts")).filter(judged).sum(),
    )
    return sums.to_dicts()


def _row(row: Mapping[str, Any], total: int, kept: int, pooled: Clustering, judged: Clustering) -> Row:
    rate, value = _rate(_all_clusters(row), pooled), row["value"]
    before = rate.attempts / total if total else None
    return Row(
        value=MISSING if value is None else value,
        missing=value is None,
        tasks=rate.tasks,
        tasks_kept=row["tasks_kept"],
        attempts=rate.attempts,
        unknown=row["unknown"],
        faults=row["faults"],
        successes=row["successes"],
        kept=rate.kept,
        retention=rate.retention,
        low=rate.low,
        high=rate.high,
        interval=rate.interval,
        effective_n=rate.effective_n,
        verdicts=_rate(_verdict_clusters(row), judged),
        share_before=before,
        share_after=rate.kept / kept if kept else None,
        attempts_per_kept=rate.attempts / rate.kept if rate.kept else None,
    )


def _rate(clusters: Clusters, pooled: Clustering) -> Rate:
    counts = (clusters.tasks, clusters.attempts, clusters.kept)
    found = estimate(clusters, pooled)
    if found is None:
        return Rate(*counts, None, None, None, None, None)
    return Rate(*counts, clusters.kept / clusters.attempts, found.low, found.high, found.method, found.effective_n)


def _all_clusters(row: Mapping[str, Any]) -> Clusters:
    return Clusters(row["tasks"], row["attempts"], row["kept"], row["squares"], row["agreement"])


def _verdict_clusters(row: Mapping[str, Any]) -> Clusters:
    return Clusters(
        row["tasks_verdicts"], row["verdicts"], row["kept_verdicts"], row["squares_verdicts"], row["agreement_verdicts"]
    )


def _total_variation(rows: Iterable[Row]) -> float | None:
    shares = [(row.share_before, row.share_after) for row in rows]
    moved = [abs(after - before) for before, after in shares if before is not None and after is not None]
    return sum(moved) / 2 if moved else None


def _effective_kept(rows: Iterable[Row]) -> float | None:
    weighted = [(row.attempts, row.attempts**2 / row.kept) for row in rows if row.kept]
    return sum(size for size, _ in weighted) ** 2 / sum(square for _, square in weighted) if weighted else None

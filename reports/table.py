"""A report's rows as text for people: the one place that words its numbers, for a page, Markdown and a terminal."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from reports.intervals import Method
from reports.notes import count
from reports.strata import MISSING, Rate, Row, Stratification
from schemas.display import clean_line

UNDEFINED = "undefined"

_COUNTED_AS: dict[Method, str] = {
    "wilson": "attempts",
    "wilson_one_task": "one task",
    "wilson_effective_n": "effective n",
}


class Column(NamedTuple):
    """A heading, what it means, the text of a row under it, and whether that may take two lines."""

    heading: str
    meaning: str
    cell: Callable[[Row], str]
    wraps: bool = False


def percent(share: float | None) -> str:
    """A share as per cent with one decimal: ``81.8 %``."""
    return UNDEFINED if share is None else f"{share:.1%}".replace("%", " %")


def rate_text(rate: Rate | Row) -> str:
    """A share with its interval: ``90.0 % [78.6, 95.7]``."""
    if rate.retention is None or rate.low is None or rate.high is None:
        return UNDEFINED
    return f"{percent(rate.retention)} [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"


def never_kept_text(table: Stratification) -> str:
    """What is to be said of strata in which nothing is kept, empty where there are none."""
    if not table.never_kept:
        return ""
    strata = count(table.never_kept, "stratum", "strata")
    return f"Nothing is kept in {strata}: weight undefined, no weight can create examples."


def row_names(rows: Iterable[Row], limit: int = 80) -> list[str]:
    """Safe, non-empty, distinct names of rows. A value that reads ``missing`` is quoted, the missing row is not."""
    names: dict[str, None] = {}
    taken: Counter[str] = Counter()
    for row in rows:
        name = MISSING if row.missing else clean_line(row.value, limit)
        if not row.missing and name in ("", MISSING):
            name = f'"{name}"'
        base = name
        while name in names:
            taken[base] += 1
            name = f"{base} ({taken[base] + 1})"
        names[name] = None
    return list(names)


COLUMNS: tuple[Column, ...] = (
    Column("Attempts", "tries of the tasks of this stratum", lambda row: f"{row.attempts:,}"),
    Column("Kept", "attempts that are kept", lambda row: f"{row.kept:,}"),
    Column("Retention", "kept of all attempts, 95 % interval", rate_text),
    Column("Share before", "of all attempts", lambda row: percent(row.share_before)),
    Column("Share after", "of kept attempts", lambda row: percent(row.share_after)),
    Column("Unknown", "attempts without a verdict", lambda row: f"{row.unknown:,}"),
    Column("Faults", "attempts that met a fault of environment or provider", lambda row: f"{row.faults:,}"),
    Column(
        "Without unknown and faults",
        "kept of the attempts with a verdict and without fault, 95 % interval; the same where there are no others",
        lambda row: _verdicts(row),
        wraps=True,
    ),
    Column("Successes", "attempts with outcome success", lambda row: f"{row.successes:,}"),
    Column("Tasks kept", "tasks with a kept attempt, of all tasks", lambda row: f"{row.tasks_kept:,} of {row.tasks:,}"),
    Column("Attempts per kept", "also the weight back to the mix of all attempts", lambda row: _weight(row)),
    Column(
        "Wilson on",
        "what the interval of the retention counts as independent",
        lambda row: _counted_as(row),
        wraps=True,
    ),
)


def _verdicts(row: Row) -> str:
    if row.verdicts.attempts == row.attempts:
        return "the same"
    return f"{row.verdicts.kept:,} of {row.verdicts.attempts:,}: {rate_text(row.verdicts)}"


def _weight(row: Row) -> str:
    return UNDEFINED if row.attempts_per_kept is None else f"{row.attempts_per_kept:.2f}"


def _counted_as(row: Row) -> str:
    if row.interval is None or row.effective_n is None:
        return UNDEFINED
    size = f" {row.effective_n:.1f}" if row.interval == "wilson_effective_n" else ""
    return f"{_COUNTED_AS[row.interval]}{size}"

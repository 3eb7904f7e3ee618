"""A report's rows as text for people: the one place that words its numbers, for a page, Markdown and a terminal."""

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import NamedTuple

from reports.intervals import Method
from reports.strata import MISSING, NO_WEIGHT, Rate, Row
from schemas.display import clean_line

UNDEFINED = "undefined"

_METHODS: dict[Method, str] = {
    "wilson": "Wilson",
    "wilson_one_task": "Wilson, one task",
    "wilson_effective_n": "Wilson, effective n",
}


class Column(NamedTuple):
    """A heading, what it means, and the text of a row under it."""

    heading: str
    meaning: str
    cell: Callable[[Row], str]


def percent(share: float | None) -> str:
    """A share as per cent with one decimal: ``81.8 %``."""
    return UNDEFINED if share is None else f"{share:.1%}".replace("%", " %")


def rate_text(rate: Rate | Row) -> str:
    """A share with its interval: ``90.0 % [78.6, 95.7]``."""
    if rate.retention is None or rate.low is None or rate.high is None:
        return UNDEFINED
    return f"{percent(rate.retention)} [{100 * rate.low:.1f}, {100 * rate.high:.1f}]"


def weight_text(row: Row) -> str:
    """Attempts per kept attempt, or why there is no such number."""
    return NO_WEIGHT if row.attempts_per_kept is None else f"{row.attempts_per_kept:.2f}"


def row_names(rows: Iterable[Row], limit: int = 80) -> list[str]:
    """Safe, non-empty, distinct names of rows. A value that reads ``missing`` is quoted, the missing row is not."""
    names: dict[str, None] = {}
    for row in rows:
        name = MISSING if row.missing else clean_line(row.value, limit)
        if not row.missing and name in ("", MISSING):
            name = f'"{name}"'
        names[next(free for free in _variants(name) if free not in names)] = None
    return list(names)


COLUMNS: tuple[Column, ...] = (
    Column("Tasks kept", "tasks with a kept attempt, of all tasks", lambda row: f"{row.tasks_kept:,} of {row.tasks:,}"),
    Column("Attempts", "tries of these tasks", lambda row: f"{row.attempts:,}"),
    Column("Unknown", "attempts without a verdict", lambda row: f"{row.unknown:,}"),
    Column("Faults", "attempts that met a fault of environment or provider", lambda row: f"{row.faults:,}"),
    Column("Successes", "attempts with outcome success", lambda row: f"{row.successes:,}"),
    Column("Kept", "attempts the rule keeps", lambda row: f"{row.kept:,}"),
    Column("Retention", "kept of all attempts, 95 % interval", rate_text),
    Column(
        "Interval",
        "how the interval is made, and how many independent attempts it counts with",
        lambda row: _method(row),
    ),
    Column(
        "Without unknown and faults",
        "kept of the attempts with a known verdict and no fault, 95 % interval",
        lambda row: f"{row.verdicts.kept:,} of {row.verdicts.attempts:,}: {rate_text(row.verdicts)}",
    ),
    Column("Share before", "of all attempts", lambda row: percent(row.share_before)),
    Column("Share after", "of kept attempts", lambda row: percent(row.share_after)),
    Column("Attempts per kept", "also the weight back to the mix of all attempts", weight_text),
)


def _variants(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name} ({number})" for number in count(2))


def _method(row: Row) -> str:
    if row.interval is None or row.effective_n is None:
        return UNDEFINED
    size = f" {row.effective_n:.1f}" if row.interval == "wilson_effective_n" else ""
    return f"{_METHODS[row.interval]}{size}"

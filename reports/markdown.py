"""A selection-bias report as Markdown, inert whatever its values hold."""

import re
from collections.abc import Iterable, Sequence
from html import escape

from reports.notes import count
from reports.selection_bias import SelectionBias
from reports.strata import Stratification
from reports.table import COLUMNS, never_kept_text, percent, row_names
from schemas.display import clean_line

_SYNTAX = re.compile(r"([\\`*_\[\]|~#$])")


def markdown(report: SelectionBias) -> str:
    """The report as one Markdown document: headline, funnel, one table per stratum, tasks, notes."""
    overall = report.overall
    parts = [
        "# Selection bias",
        f"**{report.kept:,} of {count(report.total, 'attempt')} kept; "
        f"{report.tasks_vanished:,} of {count(report.tasks, 'task')} vanish.**",
        f"Rule ({report.rule_from}): {_inert(report.rule)}",
        "## Funnel",
        _table(("Step", "Attempts"), ((step.step, f"{step.attempts:,}") for step in report.funnel)),
        "## All attempts",
        _table(("Figure", "Value"), ((column.heading, column.cell(overall)) for column in COLUMNS)),
        *(part for table in report.strata for part in _stratum(table)),
        "## Tasks",
        _table(
            ("Successes of a task", "Tasks"),
            ((f"{row.successes:,}", f"{row.tasks:,}") for row in report.successes_per_task),
        ),
        f"Largest share of one task among the kept attempts: {percent(report.largest_task_share)}.",
        *_vanished(report),
        "## How to read this",
        *(f"**{note.about}.** {_inert(note.text)}" for note in report.notes),
    ]
    return "\n\n".join(parts) + "\n"


def _stratum(table: Stratification) -> list[str]:
    names = row_names(table.rows)
    rows = [
        (_inert(name), *(column.cell(row) for column in COLUMNS)) for name, row in zip(names, table.rows, strict=True)
    ]
    moved = table.undefined if table.total_variation is None else f"{table.total_variation:.3f}"
    worth = "" if table.effective_kept is None else f" Effective number of kept attempts: {table.effective_kept:.1f}."
    return [
        f"## By {_inert(table.source)}",
        f"Total variation: {moved}.{worth}",
        _table(("Stratum", *(column.heading for column in COLUMNS)), rows),
        *filter(None, (never_kept_text(table),)),
    ]


def _vanished(report: SelectionBias) -> list[str]:
    if not report.vanished:
        return []
    rows = [
        (_inert(gone.task) or "no task id", f"{gone.attempts:,}", f"{gone.successes:,}") for gone in report.vanished
    ]
    left = report.tasks_vanished - len(rows)
    more = [f"{count(left, 'more task')} not listed."] if left else []
    return ["### Tasks of which nothing is kept", _table(("Task", "Attempts", "Successes"), rows), *more]


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    align = ("---", *("---:" for _ in headings[1:]))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, align, *rows))


def _inert(text: str) -> str:
    """Text on one line that Markdown and the HTML inside it give no meaning to."""
    return _SYNTAX.sub(r"\\\1", escape(clean_line(text), quote=False))

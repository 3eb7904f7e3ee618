"""A selection-bias report as one document: headings, paragraphs and tables of plain text, for faces that are text."""

from collections.abc import Iterator
from typing import NamedTuple

from reports.notes import count
from reports.selection_bias import SelectionBias
from reports.strata import Stratification
from reports.table import COLUMNS, never_kept_text, percent, row_names


class Heading(NamedTuple):
    """A heading; level 1 is the title."""

    level: int
    text: str


class Paragraph(NamedTuple):
    """A paragraph that may start with strong words."""

    text: str
    strong: str = ""


LONGEST = 2_000
"""Characters of one text that a face shows; a longer one, which only a log or a rule can be, ends with an ellipsis."""


class Table(NamedTuple):
    """Rows of cells under headings. The first cell names its row, perhaps in words of a log; the others are ours."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Part = Heading | Paragraph | Table


def document(report: SelectionBias) -> Iterator[Part]:
    """Headline, funnel, one table a stratum, tasks, notes. Texts are as logged: a face makes them safe."""
    yield Heading(1, "Selection bias")
    kept = f"{report.kept:,} of {count(report.total, 'attempt')} kept"
    if report.kept_without_success:
        kept += f", {report.kept - report.kept_without_success:,} of them as a success without a fault"
    yield Paragraph("", f"{kept}; {report.tasks_vanished:,} of {count(report.tasks, 'task')} vanish.")
    yield Paragraph(f"Rule ({report.rule_from}): {report.rule}")
    yield Heading(2, "Funnel")
    yield Table(("Step", "Attempts"), tuple((step.step, f"{step.attempts:,}") for step in report.funnel))
    if report.kept_without_success:
        also = f"{count(report.kept_without_success, 'attempt')} outside this funnel (another outcome, or a fault)"
        yield Paragraph(f"Also kept: {also}; {report.kept:,} in all.")
    yield Heading(2, "All attempts")
    yield Table(("Figure", "Value"), tuple((column.heading, column.cell(report.overall)) for column in COLUMNS))
    for table in report.strata:
        yield from _stratum(table)
    yield Heading(2, "Tasks")
    successes = tuple((f"{row.successes:,}", f"{row.tasks:,}") for row in report.successes_per_task)
    yield Table(("Successes of a task", "Tasks"), successes)
    yield Paragraph(f"Largest share of one task among the kept attempts: {percent(report.largest_task_share)}.")
    yield from _vanished(report)
    yield Heading(2, "How to read this")
    for note in report.notes:
        yield Paragraph(note.text, f"{note.about}.")


def _stratum(table: Stratification) -> Iterator[Part]:
    moved = table.undefined if table.total_variation is None else f"{table.total_variation:.3f}"
    worth = "" if table.effective_kept is None else f" Effective number of kept attempts: {table.effective_kept:.1f}."
    yield Heading(2, f"By {table.source}")
    yield Paragraph(f"Total variation: {moved}.{worth}")
    rows = zip(row_names(table.rows), table.rows, strict=True)
    yield Table(
        ("Stratum", *(column.heading for column in COLUMNS)),
        tuple((name, *(column.cell(row) for column in COLUMNS)) for name, row in rows),
    )
    if text := never_kept_text(table):
        yield Paragraph(text)


def _vanished(report: SelectionBias) -> Iterator[Part]:
    if not report.vanished:
        return
    rows = tuple((gone.task or "no task id", f"{gone.attempts:,}", f"{gone.successes:,}") for gone in report.vanished)
    yield Heading(3, "Tasks of which nothing is kept")
    yield Table(("Task", "Attempts", "Successes"), rows)
    if left := report.tasks_vanished - len(rows):
        yield Paragraph(f"{count(left, 'more task')} not listed.")

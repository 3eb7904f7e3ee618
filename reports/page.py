"""A selection-bias report as one HTML page: no script, nothing loaded, inert whatever its values hold."""

from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from reports.charts import AFTER, BARS, BEFORE, draw
from reports.document import LONGEST
from reports.notes import count
from reports.selection_bias import SelectionBias
from reports.strata import Row, Stratification
from reports.table import COLUMNS, UNDEFINED, Column, never_kept_text, percent, row_names
from schemas.display import clean_line

LISTED = 2_000

_SOURCES = {"default": "default rule", "keep": "rule given", "build": "by a build"}


def page(report: SelectionBias) -> str:
    """The report as one self-contained HTML document."""
    environment = Environment(
        autoescape=True, finalize=_clean, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(files("reports").joinpath("page.html").read_text(encoding="utf-8"))
    return template.render(
        report=report,
        columns=COLUMNS,
        source=_SOURCES[report.rule_from],
        tables=[_table(table, report) for table in report.strata],
        most_tasks=max((row.tasks for row in report.successes_per_task), default=0),
        before=BEFORE,
        after=AFTER,
        count=count,
        percent=percent,
        cell=_cell,
        undefined=UNDEFINED,
    )


def _table(table: Stratification, report: SelectionBias) -> dict[str, Any]:
    """What the template shows of a stratification: its named rows, its charts, and what either leaves out."""
    charts = draw(table, report.overall.retention)
    listed = table.rows[:LISTED]
    return {
        "by": table,
        "rows": list(zip(row_names(listed), listed, strict=True)),
        "unlisted": len(table.rows) - len(listed),
        "folded": len(table.rows) > BARS,
        "never_kept": never_kept_text(table),
        "shares": Markup(charts.shares),  # noqa: S704 - the renderer has escaped it
        "retention": Markup(charts.retention),  # noqa: S704
        "shown": charts.shown,
        "hidden": charts.hidden,
    }


def _cell(column: Column, row: Row) -> str:
    """A cell whose numbers stay on one line with their sign."""
    return column.cell(row).replace(" %", "\N{NO-BREAK SPACE}%")


def _clean(value: Any) -> Any:
    return value if not isinstance(value, str) or isinstance(value, Markup) else clean_line(value, LONGEST)

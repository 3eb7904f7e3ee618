"""Two charts per stratum as SVG: shares before and after, and retention with its interval.

Values of a log reach a chart only as data under fixed field names, cleaned: what is not XML aborts the renderer.
"""

from typing import Any, NamedTuple

import altair as alt
import vl_convert

from reports.strata import Row, Stratification
from reports.table import percent, rate_text, row_names

BARS = 20
BEFORE, AFTER = "#8a94a6", "#2f7fc1"

_SHARES, _RETENTION, _STEP, _LABEL = 340, 230, 34, 24


class Charts(NamedTuple):
    """Two SVG documents over the ``shown`` rows with the most attempts; ``hidden`` rows are in the table alone."""

    shares: str
    retention: str
    shown: int
    hidden: int


def draw(table: Stratification, overall: float | None) -> Charts:
    """The charts of a stratification; ``overall`` is the retention of all attempts, drawn as a line."""
    most = sorted(range(len(table.rows)), key=lambda index: (-table.rows[index].attempts, index))[:BARS]
    rows = [table.rows[index] for index in sorted(most)]
    names = row_names(rows, _LABEL)
    return Charts(
        _svg(_shares(rows, names), _SHARES),
        _svg(_retention(rows, names, overall), _RETENTION),
        len(rows),
        len(table.rows) - len(rows),
    )


def _shares(rows: list[Row], names: list[str]) -> alt.LayerChart | alt.FacetChart:
    data = [
        {"name": name, "when": when, "share": share or 0, "text": percent(share)}
        for name, row in zip(names, rows, strict=True)
        for when, share in (("before", row.share_before), ("after", row.share_after))
    ]
    base = alt.Chart(alt.InlineData(values=data)).encode(
        y=_names(names),
        yOffset=alt.YOffset("when:N", sort=["before", "after"], scale=alt.Scale(paddingInner=0.12)),
        x=alt.X("share:Q", title=None, scale=alt.Scale(domain=[0, _ceiling(rows)]), axis=_axis()),
    )
    colour = alt.Color("when:N", scale=alt.Scale(domain=["before", "after"], range=[BEFORE, AFTER]), legend=None)
    return alt.layer(
        base.mark_bar().encode(color=colour),
        base.mark_text(align="left", dx=4).encode(text="text:N"),
    )


def _retention(rows: list[Row], names: list[str], overall: float | None) -> alt.LayerChart | alt.FacetChart:
    data = [
        {"name": name, "rate": row.retention, "low": row.low, "high": row.high, "text": rate_text(row)}
        for name, row in zip(names, rows, strict=True)
    ]
    base = alt.Chart(alt.InlineData(values=data)).encode(y=_names(names))
    rate = alt.X("rate:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=_axis())
    layers: list[alt.Chart] = [
        base.mark_rule(strokeWidth=3, color=AFTER, opacity=0.55).encode(x=alt.X("low:Q", title=None), x2="high:Q"),
        base.mark_point(filled=True, size=70, color=AFTER, opacity=1).encode(x=rate),
        base.mark_text(align="left", dx=10).encode(x=alt.value(_RETENTION), text="text:N"),
    ]
    if overall is not None:
        line = alt.Chart(alt.InlineData(values=[{"rate": overall}]))
        layers.insert(0, line.mark_rule(strokeDash=[3, 3], color=BEFORE, strokeWidth=1.5).encode(x=rate))
    return alt.layer(*layers)


def _names(names: list[str]) -> alt.Y:
    axis = alt.Axis(title=None, ticks=False, domain=False, labelPadding=8, labelLimit=180)
    return alt.Y("name:N", sort=names, axis=axis, scale=alt.Scale(paddingInner=0.25, paddingOuter=0.15))


def _axis() -> alt.Axis:
    text = "datum.value > 1 ? '' : round(datum.value * 100) + ' %'"
    return alt.Axis(labelExpr=text, labelFlush=False, tickCount=4, domain=False, ticks=False, labelPadding=6)


def _ceiling(rows: list[Row]) -> float:
    """Room for the longest bar and its text."""
    shares = [share for row in rows for share in (row.share_before, row.share_after) if share is not None]
    return 1.22 * max(shares, default=1.0)


def _svg(chart: alt.LayerChart | alt.FacetChart, width: int) -> str:
    spec: dict[str, Any] = (
        chart.properties(width=width, height=alt.Step(_STEP, **{"for": "position"}), background="transparent")
        .configure(font="system-ui, sans-serif", padding={"left": 2, "top": 4, "bottom": 2, "right": 24})
        .configure_view(stroke=None)
        .configure_axis(gridColor="#d9dee6", labelColor="#333b47", labelFontSize=11)
        .configure_text(color="#333b47", fontSize=11)
        .to_dict()
    )
    return str(vl_convert.vegalite_to_svg(spec))

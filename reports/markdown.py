"""A selection-bias report as Markdown, inert whatever its values hold."""

import re
from collections.abc import Iterable
from html import escape

from reports.document import LONGEST, Heading, Paragraph, Part, Table, document
from reports.selection_bias import SelectionBias
from schemas.display import clean_line

_SYNTAX = re.compile(r"([\\`*_\[\]|~#$])")


def markdown(report: SelectionBias) -> str:
    """The report as one Markdown document: headline, funnel, one table per stratum, tasks, notes."""
    return "\n\n".join(map(_written, document(report))) + "\n"


def _written(part: Part) -> str:
    match part:
        case Heading(level, text):
            return f"{'#' * level} {_inert(text)}"
        case Paragraph(text, strong):
            return " ".join(filter(None, (f"**{_inert(strong)}**" if strong else "", _inert(text))))
        case Table(headings, rows):
            align = ("---", *("---:" for _ in headings[1:]))
            return "\n".join(
                map(_row, (map(_inert, headings), align, *((_inert(name), *cells) for name, *cells in rows)))
            )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _inert(text: str) -> str:
    """Text on one line that Markdown and the HTML inside it give no meaning to."""
    return _SYNTAX.sub(r"\\\1", escape(clean_line(text, LONGEST), quote=False))

"""A report on a terminal: its text wrapped, its tables as wide as the terminal allows."""

from collections.abc import Iterable

from rich.text import Text

from curation.cli.output import open_console
from curation.cli.tables import Row, fit, lay_out
from reports.document import LONGEST, Heading, Paragraph, Part, Table
from schemas.display import clean_line


def print_document(parts: Iterable[Part]) -> None:
    """Print a report; a table that is too wide is turned on its side, or else becomes blocks."""
    console = open_console()
    for part in parts:
        match part:
            case Heading(level, text):
                console.print(Text(clean_line(text, LONGEST), "bold underline" if level == 1 else "bold"))
            case Paragraph(text, strong):
                words = [
                    Text(clean_line(piece, LONGEST), style) for piece, style in ((strong, "bold"), (text, "")) if piece
                ]
                console.print(Text(" ").join(words))
            case Table(headings, rows):
                upright = [dict(zip(headings, row, strict=True)) for row in rows]
                fitting = (table for way in (upright, _turned(part)) if (table := fit(way, console.width, whole=True)))
                console.print(next(fitting, None) or lay_out(upright, console.width, whole=True))
        console.print()


def _turned(table: Table) -> list[Row]:
    """The rows as columns, where their names can stand as headings: there are some, and they are distinct."""
    columns = list(zip(*table.rows, strict=True))
    names = (table.headings[0], *columns[0]) if columns else ()
    if len(names) < 2 or len(set(names)) < len(names):
        return []
    return [
        dict(zip(names, (heading, *column), strict=True))
        for heading, column in zip(table.headings[1:], columns[1:], strict=True)
    ]

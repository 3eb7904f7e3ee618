"""Texts of a log in a table that a spreadsheet may open: none of them is a formula there, and each is read back whole.

An apostrophe goes before a text that begins like a formula; a column that is named NOTE says so, and only a table with
that column is read so. The signs are those of OWASP's page on CSV injection.
"""

import re
from typing import Any

NOTE = "' before = + - @ is no part of a value"
"""The name of an empty column of a table whose cells are escaped."""

KNOWN = "known, not read back"
"""The name of a column that says what of a row's attempt is known already; whoever reads the table passes it over."""

_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]")


def escape(value: Any) -> Any:
    """A cell that no spreadsheet executes; numbers and all other values as they are."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def unescape(cell: str) -> str:
    """The value of an escaped cell."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell

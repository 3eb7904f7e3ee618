"""The page that lists every reason: ``python -m schemas.reasons_page > docs/reasons.md``."""

import sys

from schemas.reasons import TABLES, Reason


def page() -> str:
    """All tables of schemas.reasons in Markdown, one section each, codes in their own order."""
    return "\n".join(
        ["# Reasons", "", "Nothing is left out without one of these codes, and each code is counted.", ""]
        + [line for title, table in TABLES.items() for line in _section(title, table)]
    )


def _section(title: str, table: dict[str, Reason]) -> list[str]:
    rows = [f"| `{code}` | {reason.sentence} | {reason.way_out} |" for code, reason in table.items()]
    return [f"## {title}", "", "| code | what it says | way out |", "|---|---|---|", *rows, ""]


if __name__ == "__main__":
    sys.stdout.write(page())

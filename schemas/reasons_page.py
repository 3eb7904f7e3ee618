"""The page that lists every reason: ``python -m schemas.reasons_page > docs/reasons.md``."""

import sys

from schemas.reasons import (
    CONTINUATION,
    DIFFERENT,
    NOT_CARRIED,
    NOT_KNOWN_RIGHT,
    NOT_RUN,
    QUARANTINE,
    REPAIR,
    UNCHECKED,
    UNPROBED,
    UNVERIFIABLE,
    VERSIONS,
    WARNINGS,
    Reason,
)
from schemas.refusals import REFUSALS

TABLES: dict[str, dict[str, Reason]] = {
    "A line of a log is quarantined": QUARANTINE,
    "A record enters with a warning": WARNINGS,
    "What was said of a record is not said of the one that revises it": NOT_CARRIED,
    "An answer cannot be compared (unverifiable)": UNVERIFIABLE,
    "An answer is not the environment's, for a cause that is seen (different)": DIFFERENT,
    "A call is not executed again (not_run)": NOT_RUN,
    "No version is chosen for a run": VERSIONS,
    "Arguments cannot be checked against their schema": UNCHECKED,
    "A repair is refused": REPAIR,
    "A fork does not go on": CONTINUATION,
    "An attempt is not known to be right (environment power)": NOT_KNOWN_RIGHT,
    "A call is not probed by wrong ones (environment power)": UNPROBED,
    "A row is refused": REFUSALS,
}


def page() -> str:
    """All tables in Markdown, one section each, codes in their own order."""
    return "\n".join(
        ["# Reasons", "", "Nothing is left out without one of these codes, and each code is counted.", ""]
        + [line for title, table in TABLES.items() for line in _section(title, table)]
    )


def _section(title: str, table: dict[str, Reason]) -> list[str]:
    rows = [f"| `{code}` | {reason.sentence} | {reason.way_out} |" for code, reason in table.items()]
    return [f"## {title}", "", "| code | what it says | way out |", "|---|---|---|", *rows, ""]


if __name__ == "__main__":
    sys.stdout.write(page())

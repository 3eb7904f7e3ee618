"""Every code that our code gives stands in its table with a way out, and every code of a table is given somewhere."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.reasons import (
    NOT_RUN,
    QUARANTINE,
    REPAIR,
    UNCHECKED,
    UNVERIFIABLE,
    WARNINGS,
    sentence_of,
)
from schemas.reasons_page import TABLES, page
from schemas.refusals import REFUSALS

ROOT = Path(__file__).resolve().parents[2]
MODULES = [
    ast.parse(path.read_text(encoding="utf-8"))
    for folder in ("builders", "curation", "environments", "schemas")
    for path in (ROOT / folder).rglob("*.py")
    if path.name not in ("reasons.py", "refusals.py", "reasons_page.py")
]
GIVEN = {
    "Refusal": (0, REPAIR),
    "RefusedError": (0, QUARANTINE),
    "Rejected": (0, QUARANTINE),
    "UnreadableError": (0, QUARANTINE),
    "Verdict": (1, UNVERIFIABLE | NOT_RUN),
    "_UncheckedError": (0, UNCHECKED),
    "Check": (0, REFUSALS),
}


def constants(tree: ast.AST) -> Iterator[str]:
    return (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def given(called: str, position: int) -> set[str]:
    """The constant codes that are given as an argument to calls of that name."""
    calls = (node for tree in MODULES for node in ast.walk(tree) if isinstance(node, ast.Call))
    arguments = (
        node.args[position]
        for node in calls
        if isinstance(node.func, ast.Name) and node.func.id == called and len(node.args) > position
    )
    found = {text for argument in arguments if not isinstance(argument, ast.Call) for text in constants(argument)}
    return {text for text in found if re.fullmatch(r"[a-z_]+(:[a-z_]*)?", text)}


@pytest.mark.parametrize("called", sorted(GIVEN))
def test_what_is_given_is_in_its_table(called: str) -> None:
    position, table = GIVEN[called]
    codes = given(called, position)
    assert codes
    assert {code for code in codes if code not in table and code.partition(":")[0] not in table} == set()


def test_every_code_is_given_somewhere() -> None:
    words = {word for tree in MODULES for text in constants(tree) for word in re.findall(r"\w+", text)}
    unused = {code for table in TABLES.values() for code in table if code.rpartition(":")[2] not in words}
    assert unused == set()


def test_warnings_are_in_their_table() -> None:
    appended = {
        text
        for tree in MODULES
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("warnings.append")
        for argument in node.args
        for text in constants(argument)
    }
    assert appended == set(WARNINGS)


def test_every_reason_is_a_sentence_and_a_way_out() -> None:
    texts = [text for table in TABLES.values() for reason in table.values() for text in reason]
    assert [text for text in texts if not text.endswith(".") or "|" in text] == []


def test_a_code_with_a_field_has_the_sentence_of_its_code() -> None:
    assert sentence_of(REFUSALS, "unknown:budget").startswith(REFUSALS["unknown"].sentence)
    assert sentence_of(REFUSALS, "no_such_code") == ""


def test_the_page_is_what_the_tables_say() -> None:
    stored = (ROOT / "docs" / "reasons.md").read_text(encoding="utf-8")
    assert stored == page(), "run: python -m schemas.reasons_page > docs/reasons.md"

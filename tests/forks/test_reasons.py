"""Every code that a module gives stands in its table, and every code of the table is given somewhere."""

import ast
from collections.abc import Iterator
from pathlib import Path

import curation
from schemas.reasons import NOT_RUN, REPAIR, UNVERIFIABLE

HOME = Path(curation.__file__).parent


def literals(module: str, called: str, position: int) -> Iterator[str]:
    """The constant texts given as an argument to a call of that name."""
    for node in ast.walk(ast.parse((HOME / module).read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == called:
            for argument in node.args[position : position + 1]:
                yield from (
                    part.value
                    for part in ast.walk(argument)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str) and " " not in part.value
                )


def test_refusals_of_forks() -> None:
    given = {code for name in ("fork_plan.py", "fork.py", "repair.py") for code in literals(name, "Refusal", 0)}
    assert given == set(REPAIR)


def test_reasons_of_matches() -> None:
    given = {code for name in ("match.py", "replay.py") for code in literals(name, "Verdict", 1)}
    assert given == set(UNVERIFIABLE) | set(NOT_RUN)

"""Every regular expression of the packages takes bounded work: no repetition without end stands within another."""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.test_house import PACKAGES, place, sources

PARSER: Any = importlib.import_module("re._parser")  # how the standard library reads a pattern
ENDLESS = PARSER.MAXREPEAT
REPEATS = ("MAX_REPEAT", "MIN_REPEAT")
ONE_WAY = {"curation.rules._BRACKETS"}  # its quoted items end at the first quote without a backslash: one way to read


def nested(pattern: str | bytes, flags: int = 0) -> bool:
    """Whether something is repeated without end in what is itself repeated without end, and may be tried again."""
    return _nested(PARSER.parse(pattern, flags & ~re.DEBUG), within=False)


def _nested(parts: Any, *, within: bool) -> bool:
    for operation, argument in parts:
        name = str(operation)
        if name in REPEATS and argument[1] == ENDLESS:
            if within or _nested(argument[2], within=True):
                return True
        elif name in ("POSSESSIVE_REPEAT", "ATOMIC_GROUP"):  # never tried again
            continue
        elif any(_nested(inner, within=within) for inner in _inside(argument)):
            return True
    return False


def _inside(argument: Any) -> Iterator[Any]:
    """The parts of a pattern that an operation holds."""
    if isinstance(argument, PARSER.SubPattern):
        yield argument
    elif isinstance(argument, tuple | list):
        for item in argument:
            yield from _inside(item)


def compiled() -> Iterator[tuple[str, re.Pattern[Any]]]:
    """The patterns that stand in modules, by name."""
    for package in map(importlib.import_module, PACKAGES):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                module = importlib.import_module(found.name)
                for name, value in vars(module).items():
                    yield from ((f"{found.name}.{name}", pattern) for pattern in patterns(value))


def patterns(value: Any) -> Iterator[re.Pattern[Any]]:
    match value:
        case re.Pattern():
            yield value
        case dict():
            yield from patterns(list(value.values()))
        case list() | tuple():
            for item in value:
                yield from patterns(item)


def written() -> Iterator[tuple[str, str | bytes]]:
    """The patterns that are written where they are used, by module."""
    for path in sources(*PACKAGES):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="re")), args=[ast.Constant(value=str() | bytes() as text), *_]
                ):
                    yield place(path), text


@pytest.mark.parametrize("pattern", [r"(a+)+", r"(?:a*b?)*", r"((x|y+)z*){2,}", rb"(\s*,)*", r"(?:a+?,)+"])
def test_a_nested_repetition_is_seen(pattern: str | bytes) -> None:
    assert nested(pattern)


@pytest.mark.parametrize("pattern", [r"a+b*", r"(?:,\d{3})+", r"(?:a++b)*", r"(?:ab?)+", r"(a{0,9}){1,4}"])
def test_what_is_bounded_or_never_tried_again_is_not_nested(pattern: str) -> None:
    assert not nested(pattern)


def test_no_pattern_repeats_without_end_within_a_repetition_without_end() -> None:
    found = list(compiled())
    assert {name.split(".")[0] for name, _ in found} >= {"builders", "curation", "schemas"}
    assert {name for name, pattern in found if nested(pattern.pattern, pattern.flags)} == ONE_WAY
    inline = list(written())
    assert len(inline) > len(found) // 4
    assert {(where, text) for where, text in inline if nested(text)} == set()

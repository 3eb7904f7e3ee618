"""Normalisation rules that an environment may declare, by id.

A static rule holds for any text. A volatile rule forgives places of a text, and only those that moved when the same
calls were executed in other circumstances; a place is named by its ordinal among the places of that rule.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from curation.errors import UsageError
from environments.protocol import EnvSpec

MAX_TEXT = 200_000  # characters; in longer texts no volatile rule forgives anything

_URL = re.compile(r"(https://errors\.pydantic\.dev/)\d{1,4}(?:\.\d{1,4}){0,3}(?=/)")
_CLOCK = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?")
_FRACTION = re.compile(r"\.\d{1,9}")
_DIGIT = re.compile(r"\d")
_ITEM = r"""\s*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*"|'[^'\\]*+(?:\\.[^'\\]*+)*'|[^\[\]{},'"]++)\s*+"""
_BRACKETS = re.compile(rf"\[{_ITEM}(?:,{_ITEM})+\]", re.DOTALL)
_ITEMS = re.compile(_ITEM, re.DOTALL)
_DASHES = re.compile(r"^( *+)- [^\n]*+(?:\n\1- [^\n]*+)+", re.MULTILINE)


class Place(NamedTuple):
    """A span of a text that a volatile rule may forgive."""

    start: int
    end: int


class Volatile(NamedTuple):
    """Where the places of a rule are, and what of a place's text stays the same however it moves."""

    find: Callable[[str], Iterator[Place]]
    constant: Callable[[str], str]


def _mask_version(text: str) -> str:
    return _URL.sub(r"\1*", text)


def _timestamps(text: str) -> Iterator[Place]:
    return (Place(*found.span()) for found in _CLOCK.finditer(text))


def _clock_face(text: str) -> str:
    """How a timestamp is written, without its time: the same for every time that one tool writes."""
    return _DIGIT.sub("0", _FRACTION.sub("", text))


def _lists(text: str) -> Iterator[Place]:
    """The flat lists of two items or more in JSON or YAML text; of two that overlap the first."""
    spans = sorted(Place(*found.span()) for form in (_DASHES, _BRACKETS) for found in form.finditer(text))
    end = 0
    for place in spans:
        if place.start >= end:
            yield place
            end = place.end


def items_of(text: str) -> list[str]:
    """The items of a flat list as it is written."""
    if text.startswith("["):
        return [found[0].strip() for found in _ITEMS.finditer(text[1:-1])]
    return text.split("\n")


def _sorted(text: str) -> str:
    return list_of(sorted(items_of(text)), text)


def list_of(items: Sequence[str], like: str) -> str:
    """Items as a flat list, written as another one is."""
    return f"[{', '.join(items)}]" if like.startswith("[") else "\n".join(items)


STATIC: dict[str, Callable[[str], str]] = {"outer_whitespace@1": str.strip, "pydantic_url@1": _mask_version}
VOLATILE: dict[str, Volatile] = {
    "clock@1": Volatile(_timestamps, _clock_face),
    "set_order@1": Volatile(_lists, _sorted),
}


def declared(spec: EnvSpec) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The static and the volatile rules of an environment, in its order.

    Raises UsageError where it declares one that does not exist.
    """
    for name in spec.rules:
        if name not in STATIC and name not in VOLATILE:
            known = ", ".join(sorted([*STATIC, *VOLATILE]))
            raise UsageError(f"environment {spec.name!r} declares the rule {name!r}; known: {known}")
    return tuple(name for name in spec.rules if name in STATIC), tuple(name for name in spec.rules if name in VOLATILE)


def places(rule: str, text: str) -> tuple[Place, ...]:
    """The places of a volatile rule in a text, in order."""
    return tuple(VOLATILE[rule].find(text)) if len(text) <= MAX_TEXT else ()


def moved(rule: str, texts: Sequence[str]) -> frozenset[int]:
    """The ordinals of the places that are not the same in all texts, and differ by no more than the rule forgives.

    None at all where the texts do not have equally many places.
    """
    found = [[text[place.start : place.end] for place in places(rule, text)] for text in texts]
    if any(len(left) != len(right) for left, right in pairwise(found)):
        return frozenset()
    constant = VOLATILE[rule].constant
    return frozenset(
        number
        for number, written in enumerate(zip(*found, strict=True))
        if len(set(written)) > 1 and len({constant(text) for text in written}) == 1
    )


def forgive(rule: str, text: str, ordinals: frozenset[int] | None = None) -> str:
    """The text with these places (all, where none are named) replaced by what stays the same of them."""
    constant = VOLATILE[rule].constant
    pieces: list[str] = []
    end = 0
    for number, place in enumerate(places(rule, text)):
        if ordinals is None or number in ordinals:
            pieces += (text[end : place.start], constant(text[place.start : place.end]))
            end = place.end
    return "".join([*pieces, text[end:]])


def forgive_all(text: str, moves: Mapping[str, frozenset[int]]) -> str:
    """The text after every volatile rule, each with its places, in the order of the mapping."""
    for rule, ordinals in moves.items():
        text = forgive(rule, text, ordinals)
    return text

"""Dates in a text, in the ways people and logs write them; a date that can be read in two ways has both readings."""

import re
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|"
    r"aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_YMD = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_DMY = re.compile(r"(?<!\d)(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})(?!\d)")
_CHINESE = re.compile(r"(?:(?<!\d)(\d{4})\s?年\s?)?(?<!\d)(\d{1,2})\s?月\s?(\d{1,2})\s?[日号]")
_MONTH_FIRST = re.compile(
    rf"\b({_MONTH})\.?\s{{1,3}}(\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s{{1,3}}(\d{{4}})\b)?", re.IGNORECASE
)
_DAY_FIRST = re.compile(
    rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s{{1,3}}(?:of\s)?({_MONTH})\b\.?(?:,?\s{{1,3}}(\d{{4}})\b)?", re.IGNORECASE
)
_ISO = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::\d{2})?(?:Z|[+-]\d{2}:\d{2})?)?")


class Written(NamedTuple):
    """A date as a text writes it: its place, and (year or None, month, day) in each reading."""

    start: int
    end: int
    readings: tuple[tuple[int | None, int, int], ...]


def dates(text: str) -> Iterator[Written]:
    """The dates of a text; only such as exist."""
    for match in _YMD.finditer(text):
        yield from _written(match, (match[1], match[2], match[3]))
    for match in _DMY.finditer(text):
        yield from _written(match, (match[3], match[1], match[2]), (match[3], match[2], match[1]))
    for match in _CHINESE.finditer(text):
        yield from _written(match, (match[1], match[2], match[3]))
    for match in _MONTH_FIRST.finditer(text):
        yield from _written(match, (match[3], _month(match[1]), match[2]))
    for match in _DAY_FIRST.finditer(text):
        yield from _written(match, (match[3], _month(match[2]), match[1]))


def read_date(value: str) -> tuple[date, str | None] | None:
    """The day and, if there is one, the time (``HH:MM``) of a value that is an ISO date and nothing else."""
    match = _ISO.fullmatch(value)
    if match is None:
        return None
    try:
        return date.fromisoformat(match[1]), match[2]
    except ValueError:
        return None


def _written(match: re.Match[str], *parts: tuple[str | None, str, str]) -> Iterator[Written]:
    readings = tuple(
        dict.fromkeys(
            (None if year is None else int(year), int(month), int(day))
            for year, month, day in parts
            if _exists(year, month, day)
        )
    )
    if readings:
        yield Written(*match.span(), readings)


def _exists(year: str | None, month: str, day: str) -> bool:
    try:
        date(int(year or 2000), int(month), int(day))
    except ValueError:
        return False
    return True


def _month(name: str) -> str:
    return str(MONTHS.index(name[:3].lower()) + 1)

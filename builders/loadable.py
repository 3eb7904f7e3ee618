"""Which numbers come back from ``datasets`` as they were written: it passes JSON through another library."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import msgspec

# What can hold a number that does not survive: a fraction, an exponent, or nineteen digits in a row.
_DOUBTFUL = re.compile(rb"[0-9][.eE]|[0-9]{19}|-0")


def first_unloadable(text: bytes) -> str | None:
    """The first number in a JSON text that would be changed or refused on loading, as it is written."""
    if not _DOUBTFUL.search(text):
        return None
    found = (number for number in _numbers(msgspec.json.decode(text)) if not _survives(number))
    return next((repr(number) for number in found), None)


def _survives(number: int | float) -> bool:
    if isinstance(number, int):
        return -(2**63) <= number < 2**64
    written = repr(number)
    read = _loader().ujson_loads(_loader().ujson_dumps(_loader().ujson_loads(written)))
    return repr(read) == written


@cache
def _loader() -> Any:
    from datasets.utils import json

    return json


def _numbers(value: Any) -> Iterator[int | float]:
    pending = [value]
    while pending:
        match pending.pop():
            case bool():
                pass
            case int() | float() as number:
                yield number
            case dict() as node:
                pending.extend(node.values())
            case list() as node:
                pending.extend(node)

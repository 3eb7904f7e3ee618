"""The tokens that calls took, in the words of a log: how many the prompt had, and what the log counts beside totals."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

MAX_NAMES = 64
_APART = ("cache_creation_input_tokens", "cache_read_input_tokens")
_TOTALS = frozenset(
    (
        "completion",
        "completionTokens",
        "completion_tokens",
        "input",
        "inputTokens",
        "input_tokens",
        "output",
        "outputTokens",
        "output_tokens",
        "prompt",
        "promptTokens",
        "prompt_tokens",
        "tokens",
        "total",
        "totalTokens",
        "total_tokens",
    )
)


def prompt_tokens(usage: Mapping[str, Any]) -> int | None:
    """All tokens that were read; where those of the cache are counted apart, they are a part of them."""
    total = first_number(usage, "prompt_tokens", "promptTokens")
    if total is not None:
        return total
    plain = first_number(usage, "input_tokens", "input")
    return None if plain is None else plain + sum(first_number(usage, key) or 0 for key in _APART)


def first_number(usage: Mapping[str, Any], *names: str) -> int | None:
    """The first of the counts that is there."""
    return next((usage[name] for name in names if type(usage.get(name)) is int), None)


def usage_details(usage: Mapping[str, Any], prefix: str = "") -> dict[str, int]:
    """The counts that are no totals, such as those of cached tokens, as far as there are any: by name, or for those of
    an object in the usage, by ``OBJECT.NAME``. With a ``prefix``, those of names that begin with it alone.
    """
    found = {name: value for name, value in usage.items() if name.startswith(prefix)}
    for outer, inner in list(found.items()):
        if isinstance(inner, dict):
            found |= {f"{outer}.{name}": value for name, value in inner.items()}
    return {
        name: value
        for name, value in found.items()
        if type(value) is int and value and name.removeprefix(prefix) not in _TOTALS
    }


def summed(details: Iterable[Mapping[str, int]]) -> dict[str, int] | None:
    """The counts of several calls together, of ``MAX_NAMES`` names at most; None where there are none."""
    total = Counter[str]()
    for each in details:
        total.update(each)
    return dict(islice(total.items(), MAX_NAMES)) or None

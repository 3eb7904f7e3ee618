"""What a comparison is worth: of answers altered on purpose, how many each comparator and rule calls equal."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from itertools import islice
from typing import Any, Literal, NamedTuple

import msgspec

from curation.comparators import comparators
from curation.rules import STATIC, declared, forgive, items_of, list_of, places
from environments.protocol import EnvSpec
from schemas.canonical import UnreadableError, parse

Alteration = Literal["pasted", "number_flipped", "row_dropped", "cut", "reordered", "success_claimed"]

BYTES = "equal_bytes"
MAX_ALTERED = 8  # of one kind, of one answer

_NUMBER = re.compile(r"\d{1,300}")
_NONE: Any = object()
_DONE = '{"status":"ok"}'


class Answered(NamedTuple):
    """A confirmed answer as the log holds it; ``moves`` are the places that volatile rules forgave in it, by rule."""

    tool: str
    text: str
    failed: bool = False
    moves: Mapping[str, frozenset[int]] = {}


class Score(msgspec.Struct, frozen=True):
    """Of the answers altered in one way, how many a comparator or rule calls equal to the real one."""

    comparator: str
    alteration: Alteration
    altered: int
    called_equal: int


def mutation_scores(answers: Sequence[Answered], spec: EnvSpec) -> tuple[Score, ...]:
    """One score for each comparator and rule that compares answers of this environment, and each alteration.

    Byte equality, the declared static rules and the comparators meet every answer; a volatile rule only those in which
    it forgave something, with the places that it forgave. An alteration that leaves the text as it was does not count.
    """
    others = _by_tool(answers)
    counts: dict[tuple[str, Alteration], list[int]] = defaultdict(lambda: [0, 0])
    for number, answer in enumerate(answers):
        judges = dict(_judges(answer, spec))
        for kind, text in alterations(answer, others[answer.tool], number):
            for name, agrees in judges.items():
                count = counts[name, kind]
                count[0] += 1
                count[1] += agrees(text)
    return tuple(Score(name, kind, *count) for (name, kind), count in sorted(counts.items()))


def alterations(answer: Answered, others: Sequence[Answered], number: int = 0) -> Iterator[tuple[Alteration, str]]:
    """The altered texts of an answer, each different from it, at most eight of a kind.

    ``others`` are different answers of the same tool, taken from ``number`` on.
    """
    text = answer.text
    made: tuple[tuple[Alteration, Iterator[str]], ...] = (
        ("pasted", _pasted(others, number)),
        ("number_flipped", _flipped(text)),
        ("row_dropped", _rearranged(text, lambda items: items[1:])),
        ("cut", iter((text[: len(text) // 2], text[: -len(text) // 4]))),
        ("reordered", _rearranged(text, lambda items: items[::-1])),
        ("success_claimed", _claimed(answer, others)),
    )
    for kind, texts in made:
        for altered in islice(dict.fromkeys(texts), MAX_ALTERED):
            if altered != text:
                yield kind, altered


def _by_tool(answers: Sequence[Answered]) -> dict[str, list[Answered]]:
    found: dict[str, dict[str, Answered]] = defaultdict(dict)
    for answer in answers:
        found[answer.tool].setdefault(answer.text, answer)
    return {tool: list(distinct.values()) for tool, distinct in found.items()}


def _judges(answer: Answered, spec: EnvSpec) -> Iterator[tuple[str, Callable[[str], bool]]]:
    """What calls an altered text equal to this answer, by name."""
    yield BYTES, answer.text.__eq__
    for name in declared(spec)[0]:
        yield name, partial(_same, STATIC[name], answer.text)
    for name, ordinals in answer.moves.items():
        yield name, partial(_same, partial(forgive, name, ordinals=ordinals), answer.text)
    if _value(answer.text) is not _NONE:
        for name, agrees in comparators(spec).items():
            yield name, partial(_same_value, agrees, answer.text)


def _same(change: Callable[[str], str], real: str, altered: str) -> bool:
    return change(real) == change(altered)


def _same_value(agrees: Callable[[Any, Any], bool], real: str, altered: str) -> bool:
    value = _value(altered)
    return value is not _NONE and agrees(_value(real), value)


def _value(text: str) -> Any:
    try:
        return parse(text.encode())[0]
    except UnreadableError:
        return _NONE


def _pasted(others: Sequence[Answered], number: int) -> Iterator[str]:
    first = number % len(others) if others else 0
    return (other.text for other in (*others[first:], *others[:first]))


def _flipped(text: str) -> Iterator[str]:
    """The text with one number changed in its last digit, for numbers evenly spread over it."""
    ends = [found.end() for found in _NUMBER.finditer(text)]
    for end in ends[:: -(-len(ends) // MAX_ALTERED) or 1]:
        yield f"{text[: end - 1]}{(int(text[end - 1]) + 1) % 10}{text[end:]}"


def _rearranged(text: str, change: Callable[[list[Any]], list[Any]]) -> Iterator[str]:
    """The text with one list changed: an array of its JSON value, else a flat list in it, else its lines."""
    value = _value(text)
    if value is not _NONE:
        for path in islice(_arrays(value), MAX_ALTERED):
            copy = [_value(text)]
            *above, last = (0, *path)
            holder = reduce(lambda held, key: held[key], above, copy)
            holder[last] = change(holder[last])
            yield msgspec.json.encode(copy[0]).decode()
        return
    for place in islice(places("set_order@1", text), MAX_ALTERED):
        written = text[place.start : place.end]
        yield text[: place.start] + list_of(change(items_of(written)), written) + text[place.end :]
    yield "\n".join(change(text.split("\n")))


def _arrays(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the arrays are that have items, from the outside in."""
    if isinstance(value, list) and value:
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in entries:
        yield from _arrays(item, (*path, key))


def _claimed(answer: Answered, others: Sequence[Answered]) -> Iterator[str]:
    """What a call that succeeded is answered, where this one failed."""
    if answer.failed:
        yield from (other.text for other in others if not other.failed)
        yield _DONE

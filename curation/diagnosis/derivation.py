"""How a value of a call follows from what stood before it, or that it does not.

Typed: verbatim, another spelling, a number, a unit, a date, the schema, or arithmetic over few numbers. A part of a
longer word is never a source, and what the model itself wrote is none either.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import combinations
from typing import Any, Literal, NamedTuple

from msgspec import Raw

from curation.diagnosis.arguments import leaves
from curation.diagnosis.dates import read_date
from curation.diagnosis.quantities import Quantity, read_number
from curation.diagnosis.texts import read_text
from curation.diagnosis.tokens import MAX_TRIES, alike, find_folded, find_verbatim, fold, is_name, squeeze, word_at
from schemas.canonical import encode
from schemas.statements import Evidence
from schemas.tool_schema import named_values
from schemas.trajectory import Message, text_of

How = Literal["verbatim", "spelling", "number", "unit", "date", "enum", "default", "constant", "arithmetic"]

MAX_READ = 50_000  # characters of a text in which more than the value as it is written is looked for
MAX_OPERANDS = 8  # distinct numbers; with more, too many results would count as derived
MAX_SPELLED = 200  # characters of a value that may be spelled otherwise
MAX_COMPARED = 20_000_000  # values of a call times characters before it that a caller who bounds its time compares

_GIVEN = ("system", "user", "tool")  # the roles of those who say something that is not the model's own
_OWN = 100  # characters that the shortest message counts for


class Derivation(NamedTuple):
    """How a value follows, and the places that it follows from; a constant (true, null, "") needs none."""

    how: How
    evidence: tuple[Evidence, ...] = ()


class Candidate(NamedTuple):
    """A value of the request that is of the same kind as another, and where it stands."""

    value: Any
    evidence: Evidence


class _Source(NamedTuple):
    message: int
    text: str
    kind: Literal["request", "observation"]
    path: str | None = None

    def at(self, start: int, end: int) -> Evidence:
        if self.path is not None:
            return Evidence(self.kind, self.message, path=self.path, value=self.text[start:end])
        return Evidence(self.kind, self.message, start=start, end=end, value=self.text[start:end])


def derive(value: Any, messages: Sequence[Message], parameters: Raw | None = None, path: str = "") -> Derivation | None:
    """How a single JSON value follows from the messages before a call, or None.

    ``parameters`` is the schema of the tool's arguments, ``path`` the JSON pointer of the value in them.
    """
    return _derive(value, list(_sources(messages)), parameters, path)


def is_too_large(arguments: Any, messages: Sequence[Message]) -> bool:
    """Whether comparing every value of a call with every message before it would take more than ``MAX_COMPARED``."""
    size = sum(len(text_of(message.content)) + _OWN for message in messages if message.role in _GIVEN)
    return size * sum(1 for _ in leaves(arguments)) > MAX_COMPARED


def _derive(value: Any, sources: list["_Source"], parameters: Raw | None, path: str) -> Derivation | None:
    if value is None or isinstance(value, bool) or value in ("", [], {}):
        return Derivation("constant")
    found = _verbatim(value, sources) if isinstance(value, str) else _figures(value, sources)
    if found is not None:
        return found
    sources = [source for source in sources if len(source.text) <= MAX_READ]
    found = _spelled(value, sources) if isinstance(value, str) else None
    found = found or _from_number(value, sources) or _from_date(value, sources)
    return found or _from_schema(value, parameters, path) or _from_arithmetic(value, sources)


def underivable(
    arguments: Any, messages: Sequence[Message], parameters: Raw | None = None, besides: Any = None
) -> tuple[str, ...]:
    """JSON pointers of the values that follow from nothing; ``besides`` are arguments whose equal values are let by."""
    known = dict(leaves(besides))
    sources = list(_sources(messages))
    return tuple(
        path
        for path, value in leaves(arguments)
        if not (path in known and type(known[path]) is type(value) and known[path] == value)
        and _derive(value, sources, parameters, path) is None
    )


def derives(arguments: Any, messages: Sequence[Message], parameters: Raw | None = None, besides: Any = None) -> bool:
    """Whether every value of a call's arguments follows from the messages before it, those of ``besides`` let by."""
    return not underivable(arguments, messages, parameters, besides)


def is_prose(value: Any) -> bool:
    """Whether a value is text that is composed (a message, a query), not one that is given: a name, number or date."""
    return isinstance(value, str) and not is_name(value) and read_number(value) is None and read_date(value) is None


def candidates(value: Any, messages: Sequence[Message]) -> tuple[Candidate, ...]:
    """The other values of the users' messages that are of the same kind: names alike, dates, numbers; each once.

    A part of a joined word counts too, so that one candidate alone is really alone. Messages over ``MAX_READ`` are not
    read: a caller who needs to know that there is no other one looks at their length.
    """
    found: dict[Any, Candidate] = {}
    for source in _sources(messages, roles=("user",)):
        if len(source.text) > MAX_READ:
            continue
        for candidate in _alike(value, source):
            found.setdefault(_same(candidate.value), candidate)
    return tuple(found.values())


def _alike(value: Any, source: _Source) -> Iterator[Candidate]:
    if isinstance(value, str) and (day := read_date(value)) is not None:
        for (year, month, date), written in read_text(source.text).days.items():
            text = f"{year or day[0].year:04}-{month:02}-{date:02}{value[10:]}"
            if text != value:
                yield Candidate(text, source.at(written.start, written.end))
    elif isinstance(value, str) and is_name(value):
        sign = "#" if value.startswith("#") else ""
        for piece, places in read_text(source.text).names.items():
            if alike(piece, value.lstrip("#")) and fold(piece) != fold(value.lstrip("#")):
                yield Candidate(sign + piece, source.at(*places[0]))
    elif (number := read_number(value)) is not None:
        for quantity in read_text(source.text).numbers.values():
            if quantity.value != number and (whole := quantity.value == int(quantity.value)) >= isinstance(value, int):
                other: Any = int(quantity.value) if whole else float(quantity.value)
                yield Candidate(str(other) if isinstance(value, str) else other, source.at(*quantity[1:3]))


def _same(value: Any) -> Any:
    return fold(value) if isinstance(value, str) else value


def _sources(messages: Sequence[Message], roles: tuple[str, ...] = _GIVEN) -> Iterator[_Source]:
    """What others than the model said, newest first; strings that JSON had to escape are read out of it."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role not in roles:
            continue
        text = text_of(message.content)
        kind: Literal["request", "observation"] = "observation" if message.role == "tool" else "request"
        yield _Source(index, text, kind)
        if "\\" in text and len(text) <= MAX_READ:
            yield from (_Source(index, leaf, kind, path) for path, leaf in read_text(text).escaped)


def _verbatim(value: str, sources: list[_Source]) -> Derivation | None:
    for source in sources:
        if (span := find_verbatim(source.text, value)) is not None:
            return Derivation("verbatim", (source.at(*span),))
    return None


def _spelled(value: str, sources: list[_Source]) -> Derivation | None:
    if len(value) > MAX_SPELLED:
        return None
    wanted = squeeze(value)
    for source in sources:
        read = read_text(source.text)
        if wanted and wanted in read.squeezed and (span := find_folded(read.text, value, read.folded)) is not None:
            return Derivation("spelling", (source.at(*span),))
    return None


def _figures(value: Any, sources: list[_Source]) -> Derivation | None:
    """A number exactly as JSON writes it, sign and exponent included, and no part of a longer one."""
    if not isinstance(value, int | float):
        return None
    text = encode(value).decode()
    written = re.compile(rf"(?<![\w.+-]){re.escape(text)}(?![\w]|\.\d)")
    for source in sources:
        if text in source.text and (found := written.search(source.text)):
            return Derivation("number", (source.at(*found.span()),))
    return None


def _from_number(value: Any, sources: list[_Source]) -> Derivation | None:
    number = read_number(value)
    if number is None:
        return None
    for source in sources:
        read = read_text(source.text)
        same, worth = read.numbers.get(number), read.converted.get(number)
        if same is not None and (worth is None or same.start <= worth.start):
            return Derivation("number", (source.at(same.start, same.end),))
        if worth is not None:
            return Derivation("unit", (source.at(worth.start, worth.end),))
    return None


def _from_date(value: Any, sources: list[_Source]) -> Derivation | None:
    """A date said in any way; a year not said with it, and a time other than midnight, must stand elsewhere."""
    read = read_date(value) if isinstance(value, str) else None
    if read is None:
        return None
    day, time = read
    exact, unsaid = (day.year, day.month, day.day), (None, day.month, day.day)
    dated = [
        (source, days) for source in sources if not {exact, unsaid}.isdisjoint(days := read_text(source.text).days)
    ]
    if not dated:
        return None
    at_year = _place(str(day.year), sources)
    at_time = None if time in (None, "00:00") else _place(str(time), sources)
    if time not in (None, "00:00") and at_time is None:
        return None
    for source, days in dated:
        written, said = (days[exact], None) if exact in days else (days[unsaid], at_year)
        if exact in days or said is not None:
            places = (source.at(written.start, written.end), *filter(None, (at_time, said)))
            return Derivation("date", places)
    return None


def _place(text: str, sources: list[_Source]) -> Evidence | None:
    """Where a year or a time stands, alone or at the beginning or the end of a longer one."""
    for source in sources:
        at = source.text.find(text)
        for _ in range(MAX_TRIES):
            if at < 0:
                break
            word = word_at(source.text, at)
            if word is not None and (word.text == text or word.text.startswith((f"{text}-", f"{text}:"))):
                return source.at(word.start, word.end)
            at = source.text.find(text, at + 1)
    return None


def _from_schema(value: Any, parameters: Raw | None, path: str) -> Derivation | None:
    if parameters is None:
        return None
    named = named_values(parameters, path)
    evidence = (Evidence("schema", path=path, value=str(value)),)
    if _holds(named.default, value):
        return Derivation("default", evidence)
    return Derivation("enum", evidence) if _holds(named.allowed, value) else None


def _holds(values: tuple[Any, ...], value: Any) -> bool:
    return any(type(item) is type(value) and item == value for item in values)


def _from_arithmetic(value: Any, sources: list[_Source]) -> Derivation | None:
    number = read_number(value)
    if number is None:
        return None
    known: dict[Decimal, tuple[_Source, Quantity]] = {}
    for source in sources:
        for quantity in read_text(source.text).numbers.values():
            known.setdefault(quantity.value, (source, quantity))
            if len(known) > MAX_OPERANDS:
                return None
    for left, right in combinations(known, 2):
        if number in (left + right, left - right, right - left, left * right):
            pair = (known[left], known[right])
            return Derivation("arithmetic", tuple(source.at(item.start, item.end) for source, item in pair))
    return None

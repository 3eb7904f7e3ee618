"""Numbers in a text, in figures and in small number words, with the unit that follows them."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from curation.diagnosis.tokens import fold, is_name, words

_FIGURES = re.compile(r"(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,30}(?:\.\d{1,30})?)([^\W\d_]{1,10})?")
_SPELLED = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_WORDS = {word: Decimal(number) for number, word in enumerate(_SPELLED)} | {
    "a": Decimal(1),
    "an": Decimal(1),
    "single": Decimal(1),
    "both": Decimal(2),
    "couple": Decimal(2),
    "dozen": Decimal(12),
}
_COUNTERS = "个件张份间位台本只条双瓶箱盒"
_CHINESE = re.compile(rf"(?<![第一二两三四五六七八九十百千万零〇\d])([一二两三四五六七八九十])(?=[{_COUNTERS}])")
_CHINESE_NUMBERS = {character: Decimal(number) for number, character in enumerate("一二三四五六七八九十", 1)} | {
    "两": Decimal(2)
}
_UNIT_AFTER = re.compile(r"\s?(%|分钟|小时|天|周|万|千|[^\W\d_]{1,10})")

_SECONDS, _PARTS = ("60",), ("0.01",)
_FACTORS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("min", "mins", "minute", "minutes", "分钟"), _SECONDS),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours", "小时"), ("60", "3600")),
    **dict.fromkeys(("day", "days", "天"), ("24", "1440", "86400")),
    **dict.fromkeys(("week", "weeks", "周"), ("7", "168", "604800")),
    **dict.fromkeys(("%", "percent"), _PARTS),
    **dict.fromkeys(("k", "thousand", "km", "kg", "kilometers", "kilograms", "s", "sec", "seconds"), ("1000",)),
    **dict.fromkeys(("m", "meters", "metres"), ("100", "0.001")),
    **dict.fromkeys(("g", "grams"), ("0.001",)),
    **dict.fromkeys(("cm",), ("0.01", "10")),
    **dict.fromkeys(("million",), ("1000000",)),
    **dict.fromkeys(("dozen",), ("12",)),
    **dict.fromkeys(("万",), ("10000",)),
    **dict.fromkeys(("千",), ("1000",)),
    **dict.fromkeys(("usd", "dollar", "dollars", "eur", "euro", "euros"), ("100",)),
    **dict.fromkeys(("kb", "mb", "gb"), ("1000", "1024")),
}
_SCALES = ("hundred", "thousand", "million", "k", "dozen", "score", "万", "千", "百", "亿")
_MEASURES = (
    frozenset(unit for unit in _FACTORS if unit != "dozen")
    | frozenset(_SCALES)
    | frozenset(
        "second month months year years night nights ms am pm clock lb lbs pound pounds oz ounce ounces ton tons tonne"
        " tonnes liter liters litre litres ml l meter metre gram kilogram kilometer mile miles inch inches ft cent"
        " cents bucks rmb cny yuan gbp jpy yen pct us you".split()
    )
)
_CHINESE_MEASURE = re.compile(
    r"\s?(?:多|来|几)?个?(?:[%％万千百亿年月周天日号点分秒元块角斤克吨米升折楼岁晚]|小时|星期|礼拜|分钟|公斤|公里|厘米|毫|美|欧|人民币)"
)
_TENS = frozenset("twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million".split())
_SHORT_UNITS = frozenset(("kg", "lb", "day", "usd", "eur", "ms"))
_COUNTED = frozenset(
    "of more unit units piece pieces pcs item items copy copies pack packs box boxes bottle bottles"
    " ticket tickets".split()
)
_LABELS = frozenset(
    "no number nr step row line page version room floor level gate size type model order top first last next least most"
    " about around roughly nearly almost approximately to over under below above than every per other in on at"
    " by".split()
)
_CHINESE_BOUND = re.compile(r"(?:最多|最少|至少|至多|不超过|超过|不到|大约|大概|约|前|后|每|第)\s?$")
_LOOKED_AT = 60  # characters around a number


class Quantity(NamedTuple):
    """A number as a text writes it: its value, its place, and what it is worth in smaller or larger units."""

    value: Decimal
    start: int
    end: int
    converted: tuple[Decimal, ...] = ()


def quantities(text: str) -> Iterator[Quantity]:
    """The numbers of a text that stand alone or before a unit; digits inside a name are none."""
    for word in words(text):
        folded = fold(word.text)
        match = _FIGURES.fullmatch(folded)
        if match is None:
            if folded in _WORDS:
                yield Quantity(_WORDS[folded], word.start, word.end, _converted(_WORDS[folded], text, word.end))
            continue
        value = Decimal(match[1].replace(",", ""))
        if match[2] is None:
            cents = (value * 100,) if text[word.start - 1 : word.start] in tuple("$€£¥") else ()
            yield Quantity(value, word.start, word.end, (*cents, *_converted(value, text, word.end)))
        elif match[2] in _FACTORS:
            yield Quantity(value, word.start, word.end, _times(value, match[2]))
    for match in _CHINESE.finditer(text):
        yield Quantity(_CHINESE_NUMBERS[match[1]], *match.span())


def is_loose(word: str) -> bool:
    """Whether a word that counts as a number may as well say none: an article, ``both``."""
    return fold(word) in _WORDS.keys() - set(_SPELLED)


def is_count(text: str, start: int, end: int, name: str) -> bool:
    """Whether a number in a text says how many by itself, as the argument of this name can take it over.

    In figures, or a plain number word from two on; beside what is counted, or on its own beside a name or a pause. None
    that is part of a larger one, a bound or a label, and no amount of time, money, weight or the like, unless the
    argument's name says that unit.
    """
    written = fold(text[start:end])
    figures = _FIGURES.fullmatch(written)
    if figures is None and written not in _SPELLED[2:] and _CHINESE_NUMBERS.get(written, Decimal(1)) == 1:
        return False
    before = list(words(text[max(start - _LOOKED_AT, 0) : start]))
    if figures is None and any(fold(word.text) in _TENS for word in before[-2:]):
        return False
    units = set(_units(text, start, end)) | ({figures[2]} if figures and figures[2] else set())
    return all(_says(name, unit) for unit in units) if units else _counts(text, start, end, name)


def _counts(text: str, start: int, end: int, name: str) -> bool:
    before, after = text[max(start - _LOOKED_AT, 0) : start], text[end : end + _LOOKED_AT]
    if re.match(rf"\s?[{_COUNTERS}]", after):
        return not _CHINESE_BOUND.search(before)
    earlier, later = list(words(before)), next(words(after), None)
    previous = fold(earlier[-1].text) if earlier else ""
    if previous in _LABELS:
        return False
    if later is not None and after[: later.start].isspace():
        return fold(later.text) in _COUNTED or is_name(later.text) or _says(name, fold(later.text))
    gap = before[earlier[-1].end :] if earlier else ""
    return not previous or bool(gap.strip()) or is_name(previous) or previous in ("qty", "quantity", fold(name))


def _units(text: str, start: int, end: int) -> Iterator[str]:
    """The measures that a number is followed by, one word in between let by; a sign of money before it."""
    if text[start - 1 : start] in tuple("$€£¥￥"):
        yield text[start - 1]
    after = text[end : end + _LOOKED_AT]
    if found := _CHINESE_MEASURE.match(after) or re.match(r"\s?[%％$€£]", after):
        yield found[0].strip()
    for at, word in enumerate(list(words(after))[:2]):
        unit = fold(word.text)
        if unit in _MEASURES and (at == 0 or len(unit) > 1):
            yield unit


def _says(name: str, unit: str) -> bool:
    parts = {fold(part).removesuffix("s") for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    stem = "percent" if unit in ("%", "％", "pct") else unit.removesuffix("s")
    return stem in parts and (len(stem) >= 4 or stem in _SHORT_UNITS)


def read_number(value: object) -> Decimal | None:
    """The number that a value is, or that its text is, and nothing else."""
    match value:
        case bool():
            return None
        case int() | float():
            return Decimal(repr(value)) if abs(value) < 10**30 else None
        case str() if (found := _FIGURES.fullmatch(value)) and found[2] is None:
            return Decimal(found[1].replace(",", ""))
        case _:
            return None


def _converted(value: Decimal, text: str, end: int) -> tuple[Decimal, ...]:
    match = _UNIT_AFTER.match(text, end)
    return () if match is None else _times(value, fold(match[1]))


def _times(value: Decimal, unit: str) -> tuple[Decimal, ...]:
    return tuple(value * Decimal(factor) for factor in _FACTORS.get(unit, ()))

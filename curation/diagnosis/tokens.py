"""Words of a text with their places, whatever its script, and what kind of name a word is.

Scripts without spaces between words (Chinese, Japanese, Thai, ...), and Korean with its particles, end a word where
they begin, so ``型号A17在`` holds the word A17; ``A170`` and ``A17-B`` do not.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

MAX_VALUE_WORDS = 64
MAX_TRIES = 1_000  # places of one value in one text that are looked at
MAX_NAME = 100  # characters

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003ffff"
)
_LETTER = rf"[^\W{_UNSPACED}]"
_WORD = re.compile(rf"{_LETTER}++(?:(?:[-.@\u2011]|(?<=\d)[:,/](?=\d)){_LETTER}++)*")
_IS_LETTER = re.compile(_LETTER)
_NAME = re.compile(rf"#?{_WORD.pattern}")
_QUANTITY = re.compile(r"\d+[^\W\d_]+|[\d.,:/-]+")
_NEITHER = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"\d+")


class Word(NamedTuple):
    """A word and its place in the text, in characters."""

    text: str
    start: int
    end: int


def words(text: str) -> Iterator[Word]:
    """The words of a text, longest first where a hyphen, a point or an at sign joins them."""
    for match in _WORD.finditer(text):
        yield Word(match[0], *match.span())


def fold(text: str) -> str:
    """The text without its differences of case and width."""
    return unicodedata.normalize("NFKC", text).casefold()


def find_verbatim(text: str, value: str) -> tuple[int, int] | None:
    """Where a value stands in a text as it is written, not as a part of a longer word."""
    at = text.find(value) if value else -1
    for _ in range(MAX_TRIES):
        if at < 0:
            return None
        if not _joined(text, at) and not _joined(text, at + len(value)):
            return at, at + len(value)
        at = text.find(value, at + 1)
    return None


def find_folded(text: str, value: str, folded: str | None = None) -> tuple[int, int] | None:
    """Where the words of a value follow each other in a text, whatever their case, width and punctuation.

    ``folded`` is what ``fold_words`` gives for the text, if it is known.
    """
    wanted = fold_words(value)
    count = wanted.count("\n") - 1
    if not 0 < count <= MAX_VALUE_WORDS:
        return None
    folded = fold_words(text) if folded is None else folded
    at = folded.find(wanted)
    if at < 0:
        return None
    first = folded.count("\n", 0, at)
    found = list(islice(words(text), first, first + count))
    return found[0].start, found[-1].end


def fold_words(text: str) -> str:
    """The words of a text, folded, each between two line ends."""
    return "".join(["\n", *(f"{fold(word.text)}\n" for word in words(text))])


def word_at(text: str, at: int) -> Word | None:
    """The word that begins at a place, if one does."""
    match = None if _joined(text, at) else _WORD.match(text, at)
    return None if match is None else Word(match[0], *match.span())


def occurs(squeezed: str, value: str) -> bool:
    """Whether a value may stand in a squeezed text in any spelling; only a longer number around it tells it apart.

    Looser than any derivation: where this is False, the value has really not been seen.
    """
    wanted = squeeze(value)
    at = squeezed.find(wanted) if wanted else -1
    for _ in range(MAX_TRIES):
        if at < 0:
            return False
        around = squeezed[at - 1 : at] + wanted[0], wanted[-1] + squeezed[at + len(wanted) : at + len(wanted) + 1]
        if not any(len(pair) == 2 and pair.isdigit() for pair in around):
            return True
        at = squeezed.find(wanted, at + 1)
    return at >= 0


def squeeze(text: str) -> str:
    """The letters and digits of a text alone, folded."""
    return _NEITHER.sub("", fold(text))


def is_name(value: str) -> bool:
    """Whether a value is one word that names a thing: letters with digits, or a number of five digits or more.

    A quantity (``5kg``), a number, a time or a date is none.
    """
    if len(value) > MAX_NAME or not _NAME.fullmatch(value):
        return False
    if value.isdigit():
        return len(value) >= 5
    return bool(_DIGITS.search(value)) and not _QUANTITY.fullmatch(value.lstrip("#"))


def alike(left: str, right: str) -> bool:
    """Whether two names are of one kind: the same pattern of letters and digits, or the same but for the numbers."""
    if _pattern(left) == _pattern(right):
        return True
    return not left.isdigit() and not right.isdigit() and _DIGITS.sub("9", left) == _DIGITS.sub("9", right)


def pieces(word: str) -> list[str]:
    """A joined word and its parts."""
    return [word, *re.split(r"[-.@\u2011:,/]", word)]


def _pattern(name: str) -> str:
    return "".join(
        "9" if character.isdigit() else "A" if character.isupper() else "a" if character.isalpha() else character
        for character in name
    )


def _joined(text: str, at: int) -> bool:
    """Whether a place in a text lies inside a word."""
    if not 0 < at < len(text):
        return False
    left, right = text[at - 1], text[at]
    if _is_letter(left):
        if _is_letter(right):
            return True
        return at + 1 < len(text) and _joins(left, right, text[at + 1])
    return at >= 2 and _joins(text[at - 2], left, right)


def _joins(left: str, sign: str, right: str) -> bool:
    if not (_is_letter(left) and _is_letter(right)):
        return False
    return sign in "-.@\u2011" or (sign in ":,/" and left.isdigit() and right.isdigit())


def _is_letter(character: str) -> bool:
    return bool(_IS_LETTER.match(character))

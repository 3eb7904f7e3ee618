"""Where a text names a thing, and whether it does so in full: ``A17/XL`` and ``shop/A17`` may name something else."""

import re
from collections.abc import Iterator
from itertools import takewhile

from curation.diagnosis.tokens import fold, pieces, words

_AROUND = 20  # characters on either side of a word
_FULL_WIDTH = "，。！？；、…（）「」『』《》【】“”‘’"
_OPENING = f"([\"'`«:：{_FULL_WIDTH}"
_CLOSING = f".,;!?)]\"'`»{_FULL_WIDTH}"
_VARIANT = re.compile(r"\s(?:[A-Z]{1,4}|Pro|Plus|Max|Mini|Lite|Ultra)(?!\w)")
_POSSESSIVE = ("'s", "’s")


def mentions(text: str, name: str) -> Iterator[tuple[int, int]]:
    """The places of the words of a text that are a name or hold it as a part, whatever their case and width."""
    wanted = fold(name)
    for word in words(text):
        if any(fold(piece) == wanted for piece in pieces(word.text)):
            yield word.start, word.end


def stands_alone(text: str, start: int, end: int) -> bool:
    """Whether a place is a word of its own: white space, a script without spaces or plain punctuation on both sides.

    A size or an edition after a space belongs to it: ``A17 XL``.
    """
    if _VARIANT.match(text, end):
        return False
    before, after = text[max(start - _AROUND, 0) : start], text[end : end + _AROUND]
    return _opens(before) and _closes(after[2:] if after.startswith(_POSSESSIVE) else after)


def _opens(before: str) -> bool:
    left = before.rstrip(_OPENING)
    return not left or _pauses(left[-1]) or before[-1] in f"：{_FULL_WIDTH}"


def _closes(after: str) -> bool:
    signs = "".join(takewhile(_CLOSING.__contains__, after))
    rest = after[len(signs) :]
    if not rest or any(sign in _FULL_WIDTH for sign in signs):
        return True
    return _pauses(rest[0]) or (rest[0] == ":" and rest[1:2].strip() == "")


def _pauses(character: str) -> bool:
    """Whether a word ends at a character: white space, or a letter of a script without spaces between words."""
    return character.isspace() or (character.isalpha() and next(words(character), None) is None)

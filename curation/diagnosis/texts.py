"""A text read once for all that is asked of it: its names, numbers and dates by value, its words as folded.

What was read last is kept, up to a number of characters, so that the many values of a call, and the many calls after
one message, do not each read it again.
"""

from collections import OrderedDict
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property

from curation.diagnosis.arguments import leaves, read_json
from curation.diagnosis.dates import Written, dates
from curation.diagnosis.quantities import Quantity, quantities
from curation.diagnosis.tokens import fold_words, is_name, pieces, squeeze, words

MAX_KEPT = 2_000_000  # characters of the texts that are kept
_OWN = 100  # characters that the shortest text counts for


class Text:
    """What stands in a text; of equal things the first one, in the order in which they stand."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def squeezed(self) -> str:
        """Its letters and digits alone, folded."""
        return squeeze(self.text)

    @cached_property
    def folded(self) -> str:
        """Its words, folded, as ``find_folded`` takes them."""
        return fold_words(self.text)

    @cached_property
    def names(self) -> Mapping[str, list[tuple[int, int]]]:
        """Its names and those that are parts of joined words, with all places of the whole words."""
        found: dict[str, list[tuple[int, int]]] = {}
        for word in words(self.text):
            for piece in dict.fromkeys(pieces(word.text)):
                if is_name(piece):
                    found.setdefault(piece, []).append((word.start, word.end))
        return found

    @cached_property
    def numbers(self) -> Mapping[Decimal, Quantity]:
        """Its numbers by value."""
        found: dict[Decimal, Quantity] = {}
        for quantity in quantities(self.text):
            found.setdefault(quantity.value, quantity)
        return found

    @cached_property
    def converted(self) -> Mapping[Decimal, Quantity]:
        """Its numbers by what they are worth in other units."""
        found: dict[Decimal, Quantity] = {}
        for quantity in quantities(self.text):
            for value in quantity.converted:
                found.setdefault(value, quantity)
        return found

    @cached_property
    def days(self) -> Mapping[tuple[int | None, int, int], Written]:
        """Its dates by (year or None, month, day), each reading of a date for itself."""
        found: dict[tuple[int | None, int, int], Written] = {}
        for written in dates(self.text):
            for reading in written.readings:
                found.setdefault(reading, written)
        return found

    @cached_property
    def escaped(self) -> tuple[tuple[str, str], ...]:
        """The strings in it, with their paths, where it is JSON that had to escape some."""
        if "\\" not in self.text or (value := read_json(self.text)) is None:
            return ()
        return tuple((path, leaf) for path, leaf in leaves(value) if isinstance(leaf, str))


_kept: OrderedDict[str, Text] = OrderedDict()
_size = 0


def read_text(text: str) -> Text:
    """The text with what was read of it before, as long as it is kept."""
    global _size
    found = _kept.pop(text, None)
    if found is None:
        found = Text(text)
        _size += len(text) + _OWN
    _kept[text] = found
    while _size > MAX_KEPT and len(_kept) > 1:
        oldest, _ = _kept.popitem(last=False)
        _size -= len(oldest) + _OWN
    return found

"""The signs that give JSON text its shape, as its blocks come: brackets, commas and colons that stand in no string."""

import re
from collections.abc import Iterator

# Possessive, so that neither time nor memory grows with what could be matched in another way.
_STRING = rb'[^"\\]*+(?:\\.[^"\\]*+)*+'
_TO_QUOTE = re.compile(_STRING, re.DOTALL)
_TO_SIGN = re.compile(rb'[^"\[\]{},:]*+(?:"%s"[^"\[\]{},:]*+)*+' % _STRING, re.DOTALL)
_TO_BRACKET = re.compile(rb'[^"\[\]{}]*+(?:"%s"[^"\[\]{}]*+)*+' % _STRING, re.DOTALL)
_QUOTE = ord('"')
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class Signs:
    """Walks the blocks of a text. ``depth`` counts the brackets that are open behind the last sign.

    What lies deeper than ``level`` brackets is passed by, up to the bracket that closes it. Whether the text is JSON is
    for a parser to say.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.level = 1
        self.in_string = self._escaped = False

    def of(self, block: bytes) -> Iterator[int]:
        """Where the signs stand in the next block that lie no deeper than ``level``, which may change in between."""
        at = self._leave_string(block, int(self._escaped)) if self.in_string else 0
        while match := (_TO_BRACKET if self.depth > self.level else _TO_SIGN).match(block, at):
            at = match.end()
            if at == len(block):
                return
            sign = block[at]
            if sign == _QUOTE:
                at = self._leave_string(block, at + 1)
                continue
            deep = self.depth > self.level
            self.depth += _STEPS.get(sign, 0)
            if not deep:
                yield at
            at += 1

    def _leave_string(self, block: bytes, at: int) -> int:
        """Where it goes on behind the string that is open; at the end of the block where the string does not end."""
        match = _TO_QUOTE.match(block, at)
        end = at if match is None else match.end()
        self.in_string = block[end : end + 1] != b'"'
        self._escaped = self.in_string and end < len(block)
        return len(block) if self.in_string else end + 1

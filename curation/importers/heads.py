"""What the first bytes of a file hold, although they may end in the middle of a value.

A format is told by names and shapes. What only the one JSON door minds (how deep or how large a value is, how a text is
written) is mended here, so that such records are refused by their format, each with what is wrong with it.
"""

import re
from typing import Any

import jiter

from curation.importers.json_signs import Signs
from curation.importers.lines import BOM
from schemas import canonical

_LINES = 20
_DEEPEST = canonical.MAX_DEPTH // 2  # brackets of a mended head
_MENDED = ("recursion limit", "number out of range", "hex escape", "surrogate", "unicode", "control char", "escape")
_ESCAPE = re.compile(rb'(\\["\\/bfnrt])|\\(?:u[0-9a-fA-F]{0,4}|.?)', re.DOTALL)
_LONG_NUMBER = re.compile(rb"(?<![0-9])[0-9]{1000,}+")
_CONTROLS = bytes(max(byte, ord(" ")) for byte in range(256))


def head_values(head: bytes) -> list[Any]:
    """The JSON values that the first lines begin with; the last may be cut. Lines that are no JSON are left out."""
    lines = [line for line in head.removeprefix(BOM).split(b"\n", _LINES)[:_LINES] if line.strip()]
    return [value for line in lines if (value := head_value(line)) is not None]


def head_value(head: bytes) -> Any:
    """The one JSON value that these bytes begin with, as far as it goes; None where they hold none."""
    text = head.removeprefix(BOM)
    for mend in (bytes, _mend, _flatten):
        text = mend(text)
        try:
            return _read(text)
        except ValueError as error:
            if not any(words in str(error) for words in _MENDED):
                break
    return None


def _read(text: bytes) -> Any:
    return jiter.from_json(text, partial_mode="trailing-strings", cache_mode="keys")


def _mend(text: bytes) -> bytes:
    """The same JSON with something else in the place of numbers too long and of what no text may hold."""
    text = text.translate(_CONTROLS).decode("utf-8", "replace").encode()
    return _LONG_NUMBER.sub(b"0", _ESCAPE.sub(lambda match: match[1] or b"?", text))


def _flatten(text: bytes) -> bytes:
    """The same JSON without what lies too deep."""
    signs, kept, start, deep = Signs(), bytearray(), 0, False
    signs.level = _DEEPEST
    for at in signs.of(text):
        start = at if deep else start
        deep = signs.depth > _DEEPEST
        if deep:
            kept += text[start:at] + b"null"
    return bytes(kept if deep else kept + text[start:])

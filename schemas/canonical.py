"""The one parser at the door, the canonical bytes ``json/1``, and the digests that name things.

Canonical bytes: UTF-8, no spaces, keys sorted by bytes, integers exact, other numbers in their
shortest binary64 form, ``1`` and ``1.0`` apart, strings never normalised.
"""

import hashlib
import re
from typing import Any

import jiter
import msgspec

FORM = "json/1"
MAX_DEPTH = 200  # levels below the outermost value; the parser's own limit, so that no second walk is needed

_ENCODER = msgspec.json.Encoder(order="sorted")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|.)", re.DOTALL
)
# A number can only overflow with an exponent of three digits or with 200 digits and more. Every digit becomes 0 and
# every E an e, so that two searches for fixed bytes find both; a regular expression took nine tenths of the parsing.
_SHAPE_OF_NUMBERS = bytes(ord("0") if byte in b"0123456789" else byte | 32 for byte in range(128)) + bytes(128)
_LONG_EXPONENT = b"0e000"
_LONG_NUMBER = b"0" * 200
_REASONS = (
    ("Detected duplicate key", "duplicate_key"),
    ("recursion limit", "too_deep"),
    ("trailing characters", "trailing_text"),
    ("invalid unicode code point", "bad_utf8"),
    ("number out of range", "number_out_of_range"),
    ("EOF while parsing", "truncated"),
)


class UnreadableError(ValueError):
    """Bytes that are no JSON document for us; ``code`` is a quarantine code, ``detail`` the parser's words."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


def parse(data: bytes) -> tuple[Any, int]:
    """The value of one JSON document, and how many lone surrogate escapes became U+FFFD in it.

    Raises UnreadableError for duplicate keys, NaN and infinite numbers, depth over 200, bad UTF-8 and trailing text.
    """
    replaced = 0
    try:
        value = _read(data)
    except ValueError as error:
        if not _SURROGATE.search(data):
            raise _unreadable(error) from None
        data, replaced = _replace_lone_surrogates(data)
        try:
            value = _read(data)
        except ValueError as again:
            raise _unreadable(again) from None
    if _may_overflow(data) and _has_infinity(value):
        raise UnreadableError("number_out_of_range", "a number is too large for a binary64 value")
    return value, replaced


def encode(value: Any) -> bytes:
    """Canonical bytes of a JSON value or of a struct of ours."""
    return _ENCODER.encode(value)


def raw(value: Any) -> msgspec.Raw:
    """Arbitrary JSON as a struct field: its canonical bytes, kept as they are."""
    return msgspec.Raw(_ENCODER.encode(value))


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal: the name of these bytes."""
    return hashlib.sha256(data).hexdigest()


def _read(data: bytes) -> Any:
    return jiter.from_json(data, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys")


def _unreadable(error: ValueError) -> UnreadableError:
    words = str(error)
    code = next((code for part, code in _REASONS if part in words), "not_json")
    return UnreadableError(code, f"{words}; the limit is {MAX_DEPTH} levels" if code == "too_deep" else words)


def _replace_lone_surrogates(data: bytes) -> tuple[bytes, int]:
    count = 0

    def mend(match: re.Match[bytes]) -> bytes:
        nonlocal count
        code = match[3]
        if code is None or not 0xD800 <= int(code, 16) <= 0xDFFF:
            return match[0]
        count += 1
        return b"\\ufffd"

    return _ESCAPE.sub(mend, data), count


def _may_overflow(data: bytes) -> bool:
    shape = data.translate(_SHAPE_OF_NUMBERS, b"+")
    return _LONG_EXPONENT in shape or _LONG_NUMBER in shape


def _has_infinity(value: Any) -> bool:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, float):
            if item in (float("inf"), float("-inf")):
                return True
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
    return False

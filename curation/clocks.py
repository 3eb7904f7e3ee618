"""When the calls of a run were made, as its log says: a fact beside the record, which holds no clock.

The annotation ``clocks`` is a JSON object of message index to ISO time. A time holds from its message on, until the
next one. There are at most ``MAX_TIMES``; of a run with more the first are kept, so that the last of them holds on.
"""

from bisect import bisect_right
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from schemas.canonical import encode

CLOCKS = "clocks"
MAX_TIMES = 2_000  # about 90 kB of JSON

_KEYS = ("timestamp", "created_at", "created", "time", "start_time")
_KEY_SET = frozenset(_KEYS)
_SECONDS = (10**8, 10**10)  # 1973 to 2286
_MILLISECONDS = (10**11, 10**13)


class Clocks(NamedTuple):
    """The messages of a run from which on it is known what time it is, in order, and those times."""

    messages: tuple[int, ...] = ()
    times: tuple[str, ...] = ()

    def at(self, message: int) -> str | None:
        """The time last known at a message; None before the first."""
        known = bisect_right(self.messages, message)
        return self.times[known - 1] if known else None


NO_CLOCKS = Clocks()


def read_clocks(value: str | None) -> Clocks:
    """The times of an annotation ``clocks``; none where there is no annotation, or it holds something else."""
    try:
        times = msgspec.json.decode(value or "{}", type=dict[int, str])
    except msgspec.MsgspecError:
        return NO_CLOCKS
    if any(iso_time(time) is None for time in times.values()):
        return NO_CLOCKS
    messages = tuple(sorted(times))
    return Clocks(messages, tuple(times[message] for message in messages))


def write_clocks(times: Mapping[int, str]) -> str:
    """The value of an annotation ``clocks``, of times in the order of their messages."""
    return encode({str(message): time for message, time in islice(times.items(), MAX_TIMES)}).decode()


def logged_time(entry: Mapping[str, Any]) -> str | None:
    """The time of an entry of a log: its ``timestamp``, ``created_at``, ``created``, ``time`` or ``start_time``, the
    first of them that can be read.
    """
    if _KEY_SET.isdisjoint(entry):
        return None
    found = (iso_time(entry.get(key)) for key in _KEYS)
    return next((time for time in found if time is not None), None)


def iso_time(value: Any) -> str | None:
    """ISO text of a time, with its offset where the log gives one: of ISO text, or of seconds or milliseconds since
    1970. None where there is none or it cannot be read.
    """
    match value:
        case str() if len(value) <= 40:
            try:
                return datetime.fromisoformat(value).isoformat()
            except ValueError:
                return None
        case bool():
            return None
        case int() | float() if _SECONDS[0] <= value < _SECONDS[1]:
            return datetime.fromtimestamp(value, UTC).isoformat()
        case int() | float() if _MILLISECONDS[0] <= value < _MILLISECONDS[1]:
            return datetime.fromtimestamp(value / 1000, UTC).isoformat()
    return None

"""The time at which a log says that a message was written."""

from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import UNSET

from schemas.trajectory import Message

_SECONDS = (10**8, 10**10)  # 1973 to 2286
_MILLISECONDS = (10**11, 10**13)


class _Times(msgspec.Struct):
    timestamp: Any = None
    created_at: Any = None
    created: Any = None


def called_at(message: Message) -> str | None:
    """The ISO time, with its offset where the log gives one, that a message carries as ``timestamp``, ``created_at`` or
    ``created``: an ISO text, or seconds or milliseconds since 1970. None where there is none or it cannot be read.
    """
    if message.extra is UNSET:
        return None
    try:
        times = msgspec.json.decode(message.extra, type=_Times)
    except msgspec.MsgspecError:
        return None
    found = (_iso(value) for value in (times.timestamp, times.created_at, times.created))
    return next((time for time in found if time is not None), None)


def _iso(value: Any) -> str | None:
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

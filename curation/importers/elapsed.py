"""How long a run took, as its log measured it: a fact beside the record, to be held against the time that it had."""

from datetime import datetime
from typing import Any

from curation.clocks import iso_time
from curation.importers.face import Fact

ELAPSED = "elapsed.seconds"


def elapsed(seconds: Any) -> tuple[Fact, ...]:
    """The fact of a number of seconds; none where it is no number, or below zero."""
    known = (type(seconds) is int or type(seconds) is float) and 0 <= seconds < 2**53
    return (Fact(ELAPSED, seconds),) if known else ()


def between(start: Any, end: Any, rule: str) -> tuple[Fact, ...]:
    """The fact of the time from one time of the log to another, by the rule named; none where it does not tell both."""
    first, last = iso_time(start), iso_time(end)
    if first is None or last is None:
        return ()
    began, ended = datetime.fromisoformat(first), datetime.fromisoformat(last)
    if (began.tzinfo is None) != (ended.tzinfo is None) or ended < began:
        return ()
    return (Fact(ELAPSED, (ended - began).total_seconds(), "rule", rule),)

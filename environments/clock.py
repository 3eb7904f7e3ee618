"""The clock of a world: what time it is at each of its calls."""

from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

FIXED_CLOCK = "2026-01-01T00:00:00+00:00"
RECORDED = "recorded"
WALL = "wall"


class Clock:
    """What the control ``clock`` makes of the time, for one world."""

    def __init__(self, control: str, zone: str) -> None:
        self._zone = zone
        self._follows = control == RECORDED
        self._now = None if control == WALL else moment(FIXED_CLOCK if self._follows else control, zone)

    def read(self, at: str | None = None) -> datetime | None:
        """The time at a call of which a log may say when it was made; None on the wall clock.

        What a log says that is no time counts as not said: the last known one holds.
        """
        if self._follows and at is not None:
            with suppress(ValueError):
                self._now = moment(at, self._zone)
        return self._now

    def tell(self, at: str | None = None) -> str:
        """The same as ISO text; on the wall clock what it shows."""
        return (self.read(at) or datetime.now(UTC)).isoformat()

    def standing(self) -> AbstractContextManager[object]:
        """A block in which ``datetime``, ``date`` and ``time.time`` of this process stand at the time last read.

        ``time.monotonic`` and ``time.perf_counter`` go on: deadlines and time-outs are not touched.
        """
        if self._now is None:
            return nullcontext()
        import time_machine

        naive = self._now.astimezone(UTC).replace(tzinfo=None)  # with a zone, it would be the zone of the process too
        return time_machine.travel(naive, tick=False)


def moment(text: str, zone: str) -> datetime:
    """An ISO time; one without an offset is in the zone. Raises ValueError."""
    found = datetime.fromisoformat(text)
    if found.tzinfo is None:
        found = found.replace(tzinfo=zone_of(zone))
    try:
        found.astimezone(UTC)
    except OverflowError as error:
        raise ValueError(f"{text!r} is out of range ({error})") from None
    return found


def zone_of(name: str) -> tzinfo:
    """The time zone of a name such as Asia/Shanghai. Raises ValueError where this machine knows none."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"no time zone {name!r}") from None

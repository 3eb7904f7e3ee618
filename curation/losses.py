"""What reading a log could not keep as it was, or had to find out: counted in the records as they are read."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import pairwise

import msgspec
from msgspec import UNSET

from curation.clocks import CLOCKS, read_clocks
from curation.importers.face import Item, Parsed
from schemas.trajectory import Json, ToolCall

OUT_OF_ORDER = "clocks_out_of_order"

_SHOWN = 8
_KEYS = msgspec.json.Decoder(dict[str, msgspec.Raw])

Counts = dict[str, int]


class Losses(msgspec.Struct):
    """What the items that were read do not hold as the log had it, each item as often as it was read.

    What is not there is not counted. ``extra``: keys that are kept but not modelled, and of how many records
    (``messages.KEY``: of their messages). ``links``: answers by how their call was found (id, position, name; none: an
    orphan). ``ids``: calls whose id is absent, empty, or another call's too. ``arguments``: calls whose arguments are
    no object, by the parser's code. ``references``: parts kept as a blob, by type. ``hidden``: messages before which
    reasoning or history is left out. ``truncated``: answers that the log marks as cut, and items that end too early.
    ``records``: how many records have a warning, and those whose messages are not in the order of their times.
    """

    extra: Counts = {}
    links: Counts = {}
    ids: Counts = {}
    arguments: Counts = {}
    references: Counts = {}
    hidden: Counts = {}
    truncated: Counts = {}
    records: Counts = {}

    def count(self, item: Item) -> None:
        """Count what is lost of one item."""
        if not isinstance(item, Parsed):
            if item.code == "truncated":
                _add(self.truncated, "items")
            return
        named: list[str] = []
        unmodelled = set(_keys(item.trajectory.extra))
        for message in item.trajectory.messages:
            if message.extra is not UNSET:
                unmodelled.update(self._count_extra(message.extra))
            if message.role == "tool":
                _add(self.links, message.answers.by if message.answers else "none")
            if message.hidden is not None:
                _add(self.hidden, message.hidden)
            if isinstance(message.content, tuple):
                _add(self.references, *(part.type for part in message.content if part.sha256 is not None))
            if message.tool_calls:
                named.extend(self._count_calls(message.tool_calls))
        _add(self.extra, *unmodelled)
        if repeated := len(named) - len(set(named)):
            _add(self.ids, "repeated", times=repeated)
        _add(self.records, *item.warnings)
        times = next((fact.value for fact in item.facts if fact.field == CLOCKS and fact.by == "log"), None)
        if isinstance(times, str) and _is_disordered(times):
            _add(self.records, OUT_OF_ORDER)

    def add(self, other: "Losses") -> None:
        """Count what is lost of other items too."""
        for name in self.__struct_fields__:
            counts = getattr(self, name)
            for key, times in getattr(other, name).items():
                counts[key] = counts.get(key, 0) + times

    def ordered(self) -> "Losses":
        """The same, the most frequent of each first."""
        return Losses(**{name: dict(_by_number(getattr(self, name))) for name in self.__struct_fields__})

    def summary(self) -> "Losses":
        """The same with the most frequent of each alone, for a person."""
        return Losses(**{name: _first(getattr(self, name)) for name in self.__struct_fields__})

    def _count_extra(self, extra: Json) -> Iterator[str]:
        """Names of what is kept of a message."""
        for key, value in _keys(extra).items():
            yield f"messages.{key}"
            if key == "truncated" and bytes(value) == b"true":
                _add(self.truncated, "answers")

    def _count_calls(self, calls: Iterable[ToolCall]) -> Iterator[str]:
        """The ids of the calls that have one."""
        for call in calls:
            if call.id:
                yield call.id
            else:
                _add(self.ids, "absent" if call.id is None else "empty")
            if call.parse_error is not None:
                _add(self.arguments, call.parse_error)


def _add(counts: Counts, *names: str, times: int = 1) -> None:
    for name in names:
        counts[name] = counts.get(name, 0) + times


def _keys(extra: Json) -> Mapping[str, msgspec.Raw]:
    return {} if extra is UNSET else _KEYS.decode(extra)


def _is_disordered(value: str) -> bool:
    """Whether a later message has an earlier time; times of which one alone has an offset cannot be compared."""
    times = map(datetime.fromisoformat, read_clocks(value).times)
    return any((one.tzinfo is None) == (two.tzinfo is None) and two < one for one, two in pairwise(times))


def _by_number(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def _first(counts: Mapping[str, int]) -> Counts:
    first = dict(_by_number(counts)[:_SHOWN])
    more = len(counts) - len(first)
    return first | ({"others": more} if more else {})

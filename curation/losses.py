"""What reading a log could not keep as it was, or had to find out: counted from the stored records and sightings."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise

import msgspec

from curation.clocks import CLOCKS, read_clocks
from curation.store import Store

OUT_OF_ORDER = "clocks_out_of_order"

_SHOWN = 8
_SHAPE = (
    '{"extra":"JSON","messages":[{"role":"VARCHAR","answers":{"by":"VARCHAR"},"hidden":"VARCHAR","extra":"JSON",'
    '"tool_calls":[{"uid":"VARCHAR","id":"VARCHAR","parse_error":"VARCHAR"}]}]}'
)
_SEEN = "SELECT trajectory, code, warnings FROM sightings WHERE id IN (SELECT unnest($sightings))"
_COUNTS = f"""
WITH seen AS MATERIALIZED ({_SEEN}), shaped AS (
    SELECT record, from_json(record, '{_SHAPE}') AS r FROM trajectories WHERE id IN (SELECT trajectory FROM seen)
), parts AS (
    SELECT r.messages AS messages, flatten([m.tool_calls FOR m IN r.messages IF m.tool_calls IS NOT NULL]) AS calls,
        [m.extra FOR m IN r.messages IF m.extra IS NOT NULL] AS extras, json_keys(r.extra) AS own,
        CASE WHEN contains(record, '"sha256":') THEN json_extract(record, '$.messages[*].content[*]') END AS content
    FROM shaped
), told AS MATERIALIZED (
    SELECT [coalesce(m.answers.by, 'none') FOR m IN messages IF m.role = 'tool'] AS links,
        [m.hidden FOR m IN messages IF m.hidden IS NOT NULL] AS hidden,
        [CASE c.id WHEN '' THEN 'empty' ELSE 'absent' END FOR c IN calls IF coalesce(c.id, '') = ''] AS nameless,
        [c.id FOR c IN calls IF coalesce(c.id, '') <> ''] AS names,
        [c.parse_error FOR c IN calls IF c.parse_error IS NOT NULL] AS arguments,
        [p ->> 'type' FOR p IN content IF p ->> 'sha256' IS NOT NULL] AS "references",
        len([e FOR e IN extras IF e ->> 'truncated' = 'true']) AS cut,
        list_distinct(coalesce(own, []) || ['messages.' || k FOR k IN flatten([json_keys(e) FOR e IN extras])]) AS extra
    FROM parts
)
SELECT what, name, sum(n)::BIGINT AS n FROM (
    SELECT 'extra' AS what, unnest(extra) AS name, 1 AS n FROM told
    UNION ALL SELECT 'links', unnest(links), 1 FROM told
    UNION ALL SELECT 'ids', unnest(nameless), 1 FROM told
    UNION ALL SELECT 'ids', 'repeated', len(names) - len(list_distinct(names)) FROM told
    UNION ALL SELECT 'arguments', unnest(arguments), 1 FROM told
    UNION ALL SELECT 'references', unnest("references"), 1 FROM told
    UNION ALL SELECT 'hidden', unnest(hidden), 1 FROM told
    UNION ALL SELECT 'truncated', 'answers', cut FROM told
    UNION ALL SELECT 'truncated', 'items', 1 FROM seen WHERE code = 'truncated'
    UNION ALL SELECT 'records', unnest(warnings), 1 FROM seen WHERE code IS NULL
) GROUP BY what, name HAVING sum(n) > 0 ORDER BY what, n DESC, name"""
_TIMES = f"""
WITH seen AS ({_SEEN})
SELECT max(value) FROM annotations WHERE field = '{CLOCKS}' AND author_kind = 'log'
    AND trajectory IN (SELECT trajectory FROM seen) GROUP BY trajectory"""


class Losses(msgspec.Struct):
    """What the records that were read do not hold as the log had it; what is not there is not counted.

    ``extra``: keys that are kept but not modelled, and of how many records (``messages.KEY``: of their messages).
    ``links``: answers by how their call was found (id, position, name; none: an orphan). ``ids``: calls whose id is
    absent, empty, or another call's too. ``arguments``: calls whose arguments are no object, by the parser's code.
    ``references``: parts kept as a blob, by type. ``hidden``: messages before which reasoning or history is left out.
    ``truncated``: answers that the log marks as cut, and items that end too early. ``records``: how many records have a
    warning, and those whose messages are not in the order of their times.
    """

    extra: dict[str, int] = {}
    links: dict[str, int] = {}
    ids: dict[str, int] = {}
    arguments: dict[str, int] = {}
    references: dict[str, int] = {}
    hidden: dict[str, int] = {}
    truncated: dict[str, int] = {}
    records: dict[str, int] = {}

    def summary(self) -> "Losses":
        """The same with the most frequent of each alone, for a person."""
        return Losses(**{name: _first(getattr(self, name)) for name in self.__struct_fields__})


def read_losses(store: Store, sightings: Sequence[str]) -> Losses:
    """What was lost or found out in the records of these sightings, as the store has them."""
    given = {"sightings": list(sightings)}
    losses = Losses()
    for batch in store.stream(_COUNTS, given, 10_000):
        for row in batch.to_pylist():
            getattr(losses, row["what"])[row["name"]] = row["n"]
    disordered = sum(
        _is_disordered(value.as_py()) for batch in store.stream(_TIMES, given, 1_000) for value in batch.column(0)
    )
    if disordered:
        losses.records[OUT_OF_ORDER] = disordered
    return losses


def _is_disordered(value: str) -> bool:
    """Whether a later message has an earlier time; times of which one alone has an offset cannot be compared."""
    times = map(datetime.fromisoformat, read_clocks(value).times)
    return any((one.tzinfo is None) == (two.tzinfo is None) and two < one for one, two in pairwise(times))


def _first(counts: Mapping[str, int]) -> dict[str, int]:
    first = dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:_SHOWN])
    more = len(counts) - len(first)
    return first | ({"others": more} if more else {})

"""What is known of the attempts of a store, what is missing, and which rows that keeps them from."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from curation.store import Store

USES = ("first_action", "recovery", "preference", "preference_of_two", "selection_bias")
"""The kinds of rows, of them the pairs of two attempts apart, and the report. An attempt without what a use needs
cannot serve it, whatever else is known of it.
"""


class Need(NamedTuple):
    """The uses of an attempt that need a fact, and the command that brings it."""

    uses: tuple[str, ...]
    command: str


_ROWS = USES[:4]
_ANNOTATE = "curate annotate FILE"

NEEDS: dict[str, Need] = {
    "calls": Need(_ROWS, ""),
    "tools": Need(_ROWS, _ANNOTATE),
    "diagnosis": Need(_ROWS, "curate diagnose"),
    "replay": Need(_ROWS, "curate replay --environment NAME"),
    "task": Need(("preference_of_two",), "curate import LOG --revise --manifest FILE"),
    "budget": Need(("preference_of_two",), _ANNOTATE),
    "outcome": Need(("selection_bias",), _ANNOTATE),
    "strata": Need((), _ANNOTATE),
    "environment": Need((), _ANNOTATE),
    "stop": Need((), _ANNOTATE),
}
"""The facts, in the order in which they are best brought."""

_OF_CALLS = ("tools", "diagnosis", "replay")
_GAPS = """
WITH live AS (
    SELECT a.trajectory_id AS id, t.task, t.calls, a.tools, t.budget, a.outcome, a.strata, a.environment, a.stop
    FROM attempts a JOIN trajectories t ON t.id = a.trajectory_id WHERE NOT a.erased
), limited AS (
    SELECT trajectory FROM effective_annotations WHERE starts_with(field, 'budget.') AND value IS NOT NULL
), confirmed AS (
    SELECT trajectory FROM effective_verifications WHERE layer = 'execution' AND result = 'passed'
), examined AS (
    SELECT trajectory FROM verifications WHERE layer = 'syntax'
)
SELECT calls = 0 AS calls, calls > 0 AND tools IS NULL AS tools,
    calls > 0 AND id NOT IN (SELECT trajectory FROM examined) AS diagnosis,
    calls > 0 AND id NOT IN (SELECT trajectory FROM confirmed) AS replay, task IS NULL AS task,
    budget IS NULL AND id NOT IN (SELECT trajectory FROM limited) AS budget, outcome = 'unknown' AS outcome,
    cardinality(strata) = 0 AS strata, environment IS NULL AS environment,
    coalesce(stop, 'unknown') = 'unknown' AS stop, count(*) AS n
FROM live GROUP BY ALL
"""


class Lack(msgspec.Struct):
    """A fact: of how many attempts it is known and missing; of attempts without calls, what is about calls is neither.

    ``keeps_from`` are the uses that each attempt without it is kept from. ``alone`` are the attempts that lack nothing
    else for one of them. ``command`` brings it; none where nothing can.
    """

    known: int
    missing: int
    keeps_from: tuple[str, ...]
    alone: int
    command: str


class DoctorResult(msgspec.Struct):
    """The live attempts of a store, how many of them nothing keeps from each use, and what is missing.

    What can be used need not become a row: that is for a build to say.
    """

    attempts: int
    usable: dict[str, int]
    facts: dict[str, Lack]


def examine(store: Store) -> DoctorResult:
    """What is known and missing of a store's live attempts."""
    groups = store.sql(_GAPS).to_pylist()
    usable = {use: _count(group for group in groups if not _lacking(group, use)) for use in USES}
    return DoctorResult(_count(groups), usable, {fact: _lack(groups, fact) for fact in NEEDS})


def _lack(groups: list[dict[str, Any]], fact: str) -> Lack:
    need = NEEDS[fact]
    without = [group for group in groups if group[fact]]
    known = _count(group for group in groups if not group[fact] and not (fact in _OF_CALLS and group["calls"]))
    alone = _count(group for group in without if any(_lacking(group, use) == [fact] for use in need.uses))
    return Lack(known, _count(without), need.uses, alone, need.command if without else "")


def _lacking(group: Mapping[str, Any], use: str) -> list[str]:
    """The facts that the attempts of a group lack for a use."""
    return [fact for fact, need in NEEDS.items() if use in need.uses and group[fact]]


def _count(groups: Iterable[Mapping[str, Any]]) -> int:
    return sum(group["n"] for group in groups)

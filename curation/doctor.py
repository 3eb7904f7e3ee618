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
    "confirmed": Need(_ROWS, ""),
    "task": Need(("preference_of_two",), "curate import LOG --revise --manifest FILE"),
    "budget": Need(("preference_of_two",), _ANNOTATE),
    "outcome": Need(("selection_bias",), _ANNOTATE),
    "strata": Need((), _ANNOTATE),
    "environment": Need((), _ANNOTATE),
    "stop": Need((), _ANNOTATE),
}
"""The facts, in the order in which they are best brought."""

_OF_CALLS = ("tools", "diagnosis", "replay", "confirmed")
_NOTE = (
    "not_kept_from counts the attempts that no missing fact keeps from a use. That is no row yet: a build judges each "
    "decision, and may refuse them all."
)
_GAPS = """
WITH live AS (
    SELECT a.trajectory_id AS id, t.task, t.calls, a.tools, t.budget, a.outcome, a.strata, a.environment, a.stop
    FROM attempts a JOIN trajectories t ON t.id = a.trajectory_id WHERE NOT a.erased
), limited AS (
    SELECT trajectory FROM effective_annotations WHERE starts_with(field, 'budget.') AND value IS NOT NULL
), replayed AS (
    SELECT trajectory, bool_or(result = 'passed') AS confirmed, bool_or(match = 'different') AS contradicted
    FROM effective_verifications WHERE layer = 'execution' GROUP BY trajectory
), examined AS (
    SELECT trajectory FROM verifications WHERE layer = 'syntax'
)
SELECT calls = 0 AS calls, calls > 0 AND tools IS NULL AS tools,
    calls > 0 AND id NOT IN (SELECT trajectory FROM examined) AS diagnosis,
    calls > 0 AND confirmed IS NULL AS replay, calls > 0 AND NOT coalesce(confirmed, true) AS confirmed,
    coalesce(contradicted, false) AS contradicted, task IS NULL AS task,
    budget IS NULL AND id NOT IN (SELECT trajectory FROM limited) AS budget, outcome = 'unknown' AS outcome,
    cardinality(strata) = 0 AS strata, environment IS NULL AS environment,
    coalesce(stop, 'unknown') = 'unknown' AS stop, count(*) AS n
FROM live LEFT JOIN replayed ON trajectory = id GROUP BY ALL
"""


class Lack(msgspec.Struct):
    """A fact: of how many attempts it is known and missing; of attempts without calls, what is about calls is neither.

    ``replay`` is that calls were executed again, ``confirmed`` that an answer was the recorded one: of what was not
    replayed that is neither; ``why`` counts those of which none was, contradicted or not to be compared.
    ``keeps_from`` are the uses that each attempt without it is kept from. ``alone`` are the attempts that lack nothing
    else for one of them. ``command`` brings it; none where nothing can.
    """

    known: int
    missing: int
    keeps_from: tuple[str, ...]
    alone: int
    why: tuple[str, ...]
    command: str


class DoctorResult(msgspec.Struct):
    """The live attempts of a store, how many of them no missing fact keeps from each use, and what is missing.

    ``note`` says in words what the second does not promise.
    """

    attempts: int
    not_kept_from: dict[str, int]
    note: str
    facts: dict[str, Lack]


def examine(store: Store) -> DoctorResult:
    """What is known and missing of a store's live attempts."""
    groups = store.sql(_GAPS).to_pylist()
    free = {use: _count(group for group in groups if not _lacking(group, use)) for use in USES}
    return DoctorResult(_count(groups), free, _NOTE, {fact: _lack(groups, fact) for fact in NEEDS})


def _lack(groups: list[dict[str, Any]], fact: str) -> Lack:
    need = NEEDS[fact]
    without = [group for group in groups if group[fact]]
    known = _count(group for group in groups if not group[fact] and not _says_nothing(group, fact))
    alone = _count(group for group in without if any(_lacking(group, use) == [fact] for use in need.uses))
    why = _why(without) if fact == "confirmed" else ()
    return Lack(known, _count(without), need.uses, alone, why, need.command if without else "")


def _says_nothing(group: Mapping[str, Any], fact: str) -> bool:
    """Whether there is nothing that the fact could be about."""
    return (fact in _OF_CALLS and group["calls"]) or (fact == "confirmed" and group["replay"])


def _why(groups: list[dict[str, Any]]) -> tuple[str, ...]:
    contradicted = _count(group for group in groups if group["contradicted"])
    counts = {"contradicted": contradicted, "cannot be compared": _count(groups) - contradicted}
    return tuple(f"{count:,} {words}" for words, count in counts.items() if count)


def _lacking(group: Mapping[str, Any], use: str) -> list[str]:
    """The facts that the attempts of a group lack for a use."""
    return [fact for fact, need in NEEDS.items() if use in need.uses and group[fact]]


def _count(groups: Iterable[Mapping[str, Any]]) -> int:
    return sum(group["n"] for group in groups)

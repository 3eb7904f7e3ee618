"""The siblings of wrong decisions in a store: decisions of other attempts of the same task, at equal information."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from curation.jobs.cases import read_known
from curation.siblings import Sibling
from curation.store import Store

MAX_SIBLINGS = 16  # looked at for one decision


class Place(NamedTuple):
    """A decision of another attempt, and whether its attempt was told something that this one was not."""

    trajectory: str
    message: int
    saw_more: bool


def find_siblings(store: Store, identities: Sequence[str]) -> Mapping[tuple[str, int], tuple[Place, ...]]:
    """For each decision of these attempts with a finding against a call, its siblings among them.

    They are of the same task with the same parameters (which open the start state), were offered the same tools, and
    did something else. Attempts that passed their task come first, then by id.
    """
    found: dict[tuple[str, int], list[Place]] = {}
    for row in store.sql(_SIBLINGS, [list(identities), MAX_SIBLINGS]).to_pylist():
        place = Place(row["sibling"], row["at"], bool(row["saw_more"]))
        found.setdefault((row["trajectory"], row["message"]), []).append(place)
    return {decision: tuple(siblings) for decision, siblings in found.items()}


def read_siblings(store: Store, environment: str, siblings: Sequence[Place]) -> Iterator[Sibling]:
    """The siblings with all that is known of their attempts, in order."""
    read = read_known(store, [place.trajectory for place in siblings], environment)
    for place, known in zip(siblings, read, strict=True):
        yield Sibling(known.case, place.message, known.findings, place.saw_more)


_SIBLINGS = """
    WITH told AS (
        SELECT trajectory, list(DISTINCT value ORDER BY value) AS words FROM (
            SELECT trajectory, value FROM effective_annotations
            WHERE field IN ('notes', 'attempt.informed_by') AND value IS NOT NULL
            UNION ALL
            SELECT id, from_json(record, '{"conditions": {"notes": "VARCHAR"}}').conditions.notes AS value
            FROM trajectories WHERE value IS NOT NULL
        ) WHERE trajectory IN (SELECT unnest($1)) GROUP BY trajectory
    ), steps AS MATERIALIZED (
        SELECT t.trajectory, t.d.message AS message, t.d.information AS information, t.d.action AS action,
            a.task_key, a.tools, a.outcome, coalesce(w.words, []) AS words
        FROM (SELECT id AS trajectory, unnest(decisions) AS d FROM trajectories WHERE id IN (SELECT unnest($1))) t
        JOIN attempts a ON a.trajectory_id = t.trajectory LEFT JOIN told w ON w.trajectory = t.trajectory
        WHERE len(t.d.tools) > 0 AND NOT t.d.partial
    ), wrong AS (
        SELECT DISTINCT trajectory, message FROM effective_findings
        WHERE call IS NOT NULL AND label <> 'undetermined' AND trajectory IN (SELECT unnest($1))
    )
    SELECT w.trajectory, w.message, s.trajectory AS sibling, s.message AS at,
        NOT list_has_all(w.words, s.words) AS saw_more
    FROM wrong JOIN steps w USING (trajectory, message)
    JOIN steps s ON s.task_key = w.task_key AND s.information = w.information
    WHERE s.trajectory <> w.trajectory AND s.action <> w.action AND s.tools IS NOT DISTINCT FROM w.tools
    QUALIFY row_number() OVER (PARTITION BY w.trajectory, w.message
        ORDER BY s.outcome = 'success' DESC, s.trajectory, s.message) <= $2
    ORDER BY w.trajectory, w.message, s.outcome = 'success' DESC, s.trajectory, s.message
"""

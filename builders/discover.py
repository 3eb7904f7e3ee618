"""Which decisions a build looks at: one SQL query a kind over the store, giving self-contained lines.

A line carries the records, the statements that hold and the facts of the attempt it counts on; an attempt without a
candidate gives one line that says why. Lines come sorted by task, attempt and decision.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from builders.candidate import FAULTS
from builders.held_out import SPLITS, HeldOut
from curation.diagnosis.evidence import ERRORS
from curation.store import Store
from curation.store.views import verified
from schemas.selection import Kind

PARTNERS = 4
"""How many chosen sides one rejected decision is offered, at most."""

LINES_PER_BATCH = 256

NO_EVIDENCE = ("budget_stop", "omission")
"""Labels that say something about a run and nothing against the decision they stand at."""


def discover(store: Store, kind: Kind, held_out: HeldOut, partners: int = PARTNERS) -> Iterator[pa.RecordBatch]:
    """The lines of a kind. No row may come from what is held out."""
    query = f"WITH RECURSIVE {_COMMON}, {_CANDIDATES[kind]}, {_LINES}"
    return store.stream(query, {**_options(held_out), "partners": partners}, LINES_PER_BATCH)


class Totals(NamedTuple):
    """How many attempts and tasks a store has, and how many of them are held out; of tasks also how many are kept."""

    attempts: int
    tasks: int
    tasks_kept: int
    held_out_attempts: int
    held_out_tasks: int


def count_attempts(store: Store, held_out: HeldOut, kept: Sequence[str]) -> Totals:
    """Count the live attempts; ``kept`` are those of which a decision is.

    An attempt is held out by its split, its task, its group or its text, a task where all its attempts are. Where
    statements dispute the split of an attempt, one that names a held-out split is enough.
    """
    query = f"""
        WITH {_OPTIONS}, {_LIVE}, tasks AS (
            SELECT count(*) AS attempts, count(test) AS held, bool_or(attempt_id IN (SELECT unnest($kept))) AS kept
            FROM tested GROUP BY task_key
        )
        SELECT coalesce(sum(attempts), 0)::INTEGER, count(*), count(*) FILTER (kept),
            coalesce(sum(held), 0)::INTEGER, count(*) FILTER (held = attempts) FROM tasks
    """
    (row,) = (
        row
        for batch in store.stream(query, {**_options(held_out), "partners": 0, "kept": list(kept)}, 1)
        for row in batch.to_pylist()
    )
    return Totals(*row.values())


def _options(held_out: HeldOut) -> dict[str, Any]:
    return {"held_out": list(held_out.splits), "twins": msgspec.to_builtins(held_out.twins)}


def _listed(words: frozenset[str] | tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in sorted(words))


_OPTIONS = """
    options AS (
        SELECT $held_out::VARCHAR[] AS held_out, $partners AS partners,
            $twins::STRUCT(root VARCHAR, task VARCHAR)[] AS twins
    )
"""

_LIVE = f"""
    said_held AS MATERIALIZED (
        SELECT DISTINCT trajectory FROM ({SPLITS})
        WHERE list_contains((SELECT held_out FROM options), value)
    ), hidden AS MATERIALIZED (
        SELECT trajectory, list(field[8:]) AS strata FROM effective_annotations
        WHERE starts_with(field, 'strata.')
            AND list_contains(from_json(record, '{{"reads": ["VARCHAR"]}}').reads, 'hidden_answer')
        GROUP BY trajectory
    ), live AS MATERIALIZED (
        SELECT trajectory_id AS root, attempt_id, task_key, calls, outcome, tools, namespace, task, attempt,
            map_from_entries(list_filter(map_entries(a.strata),
                lambda entry: NOT list_contains(coalesce(h.strata, []), entry.key))) AS strata,
            "group", trajectory_id IN (SELECT trajectory FROM said_held) AS held
        FROM attempts a LEFT JOIN hidden h ON h.trajectory = a.trajectory_id
    ), twins AS MATERIALIZED (
        SELECT twin.root AS root, twin.task AS twin FROM (SELECT unnest(twins) AS twin FROM options)
    ), tested AS MATERIALIZED (
        SELECT live.*, w.twin, count(*) OVER (PARTITION BY task_key) AS attempts,
            CASE WHEN held THEN 'split'
                WHEN task_key IN (SELECT task_key FROM live WHERE held) THEN 'task'
                WHEN "group" IN (SELECT "group" FROM live WHERE held) THEN 'group'
                WHEN w.twin = '' THEN 'group' WHEN w.twin IS NOT NULL THEN 'text' END AS test
        FROM live LEFT JOIN twins w ON w.root = live.root
    )
"""

# ``lineage`` walks from every fork to the attempt at its root; ``wrong`` is the decision of its parent that a fork
# answers for, ``place`` the decision of the attempt that it counts on.
_COMMON = f"""
    {_OPTIONS}, lineage AS (
        SELECT id, id AS root, attempt_id, NULL::INTEGER AS wrong, NULL::INTEGER AS place
        FROM trajectories WHERE attempt_id IS NOT NULL
        UNION ALL
        SELECT id, root, attempt_id, wrong, least(place, wrong) FROM (
            SELECT t.id, l.root, l.attempt_id, l.place, CASE t.fork_kind WHEN 'clean' THEN t.branch_point
                ELSE list_max([d.message FOR d IN t.decisions IF d.message < t.branch_point AND len(d.tools) > 0])
                END AS wrong
            FROM trajectories t JOIN lineage l ON t.parent = l.id
        )
    ), checks AS MATERIALIZED (
        SELECT trajectory, message, layer, result, status, reason, id, {verified("record")}
        FROM effective_verifications
    ), faults AS MATERIALIZED (
        SELECT trajectory, message, label, id, {verified("record")} FROM effective_findings
        WHERE label <> 'undetermined'
    ), replayed AS MATERIALIZED (
        SELECT DISTINCT trajectory FROM checks WHERE layer = 'execution'
    ), {_LIVE}, against AS MATERIALIZED (
        SELECT trajectory, message FROM faults WHERE label NOT IN ({_listed(NO_EVIDENCE)})
        UNION
        SELECT trajectory, message FROM checks
        WHERE message IS NOT NULL AND (result = 'failed' OR reason = 'environment_fault')
    ), errors AS MATERIALIZED (
        SELECT trajectory, message FROM checks WHERE status IN ({_listed(ERRORS | FAULTS)})
    )
"""

_STEPS = """
    steps AS MATERIALIZED (
        SELECT trajectory, d.message AS message, d.context AS context, d.action AS action, d.partial AS partial,
            len(d.tools) > 0 AS acts
        FROM (SELECT id AS trajectory, unnest(decisions) AS d FROM trajectories
            WHERE attempt_id IS NOT NULL OR fork_kind = 'clean')
    )
"""

# A candidate: ``chosen`` is the trajectory whose decisions ``targets`` would be trained, ``rejected`` the one that
# holds the wrong decision, ``message`` the decision of the attempt ``root`` that a line counts on (else the targets').
_FIRST_ACTION = """
    candidates AS (
        SELECT l.root, NULL::INTEGER AS message, l.root AS chosen, NULL::VARCHAR AS rejected, l.root AS other,
            [{message: d.message, context: d.context, partial: d.partial, wrong: NULL::INTEGER}
                FOR d IN t.decisions IF len(d.tools) > 0] AS targets
        FROM live l JOIN replayed r ON r.trajectory = l.root JOIN trajectories t ON t.id = l.root WHERE l.calls > 0
        UNION ALL
        SELECT l.root, l.place, t.id, t.parent, l.root,
            [{message: d.message, context: d.context, partial: d.partial, wrong: t.branch_point}
                FOR d IN t.decisions IF d.message = t.branch_point]
        FROM trajectories t JOIN lineage l ON l.id = t.id WHERE t.fork_kind = 'clean'
    ), missing AS (
        SELECT root, CASE calls WHEN 0 THEN 'no_call' ELSE 'not_replayed' END AS why
        FROM live WHERE root NOT IN (SELECT root FROM candidates)
    )
"""

_RECOVERY = f"""
    {_STEPS}, wrong AS MATERIALIZED (
        SELECT DISTINCT trajectory, message FROM (SELECT * FROM against UNION ALL SELECT * FROM errors)
    ), turns AS (
        SELECT *, lag(message) OVER (PARTITION BY trajectory ORDER BY message) AS before FROM steps
        WHERE trajectory IN (SELECT trajectory FROM wrong)
    ), candidates AS (
        SELECT l.root, NULL::INTEGER AS message, l.root AS chosen, NULL::VARCHAR AS rejected, l.root AS other,
            list({{message: t.message, context: t.context, partial: t.partial, wrong: t.before}} ORDER BY t.message)
                AS targets
        FROM live l JOIN turns t ON t.trajectory = l.root
        JOIN wrong w ON w.trajectory = l.root AND w.message = t.before
        JOIN steps s ON s.trajectory = l.root AND s.message = t.before
        WHERE t.acts AND s.acts GROUP BY l.root
        UNION ALL
        SELECT l.root, l.place, t.id, t.parent, l.root,
            [{{message: d.message, context: d.context, partial: d.partial, wrong: l.wrong}}
                FOR d IN t.decisions IF d.message = t.branch_point]
        FROM trajectories t JOIN lineage l ON l.id = t.id WHERE t.fork_kind = 'recovery'
    ), missing AS (
        SELECT root, CASE WHEN calls = 0 THEN 'no_call' WHEN root IN (SELECT trajectory FROM wrong) THEN 'no_recovery'
            WHEN root IN (SELECT trajectory FROM replayed) THEN 'nothing_went_wrong' ELSE 'not_replayed' END AS why
        FROM live WHERE root NOT IN (SELECT root FROM candidates)
    )
"""

# Per task and context the first partners of each action, and of those twice as many as are wanted: at least as many as
# are wanted then have another action than any one decision, and no step is quadratic in the decisions of a context.
_PREFERENCE = f"""
    {_STEPS}, executed AS (
        SELECT trajectory, message FROM checks WHERE layer = 'execution'
        GROUP BY ALL HAVING bool_and(result = 'passed')
    ), judged AS MATERIALIZED (
        SELECT l.root, l.task_key, l.outcome, s.*, r.parent, r.branch_point, a.message IS NOT NULL AS evidence,
            a.message IS NULL AND x.message IS NOT NULL AS fit
        FROM steps s JOIN lineage g ON g.id = s.trajectory JOIN live l ON l.root = g.root
        JOIN (SELECT id, parent, branch_point FROM trajectories) r ON r.id = s.trajectory
        LEFT JOIN against a ON a.trajectory = s.trajectory AND a.message = s.message
        LEFT JOIN executed x ON x.trajectory = s.trajectory AND x.message = s.message
        WHERE s.acts AND (r.parent IS NULL OR s.message = r.branch_point)
    ), alike AS (
        SELECT task_key, context FROM judged GROUP BY ALL
        HAVING count(DISTINCT action) > 1 AND count(DISTINCT root) > 1
            AND (bool_or(evidence) OR count(DISTINCT outcome) > 1)
    ), offered AS (
        SELECT *, row_number() OVER (PARTITION BY task_key, context, action ORDER BY fit DESC, trajectory) AS within
        FROM judged SEMI JOIN alike USING (task_key, context)
    ), partners AS MATERIALIZED (
        SELECT * FROM offered WHERE within <= (SELECT partners FROM options)
        QUALIFY row_number() OVER (PARTITION BY task_key, context ORDER BY fit DESC, trajectory)
            <= 2 * (SELECT partners FROM options)
    ), pairs AS (
        SELECT u.root, u.message, p.trajectory AS chosen, u.trajectory AS rejected, p.root AS other,
            p.context, p.partial OR u.partial AS partial
        FROM judged u JOIN partners p ON p.task_key = u.task_key AND p.context = u.context
        WHERE u.parent IS NULL AND p.action <> u.action AND p.trajectory <> u.trajectory
            AND NOT coalesce(p.parent = u.trajectory, false)
            AND (u.evidence OR (u.outcome = 'failure' AND p.outcome = 'success' AND p.parent IS NULL))
        QUALIFY row_number() OVER (PARTITION BY u.trajectory, u.message ORDER BY p.fit DESC, p.trajectory)
            <= CASE WHEN u.evidence THEN (SELECT partners FROM options) ELSE 1 END
    ), candidates AS (
        SELECT root, message, chosen, rejected, other,
            [{{message: message, context: context, partial: partial, wrong: message}}] AS targets
        FROM pairs
        UNION ALL
        SELECT l.root, l.place, t.id, t.parent, l.root,
            [{{message: d.message, context: d.context, partial: d.partial, wrong: t.branch_point}}
                FOR d IN t.decisions IF d.message = t.branch_point]
        FROM trajectories t JOIN lineage l ON l.id = t.id WHERE t.fork_kind = 'clean'
    ), missing AS (
        SELECT root, CASE WHEN calls = 0 THEN 'no_call'
            WHEN root IN (SELECT root FROM judged WHERE evidence AND parent IS NULL) THEN 'no_partner'
            WHEN root IN (SELECT trajectory FROM replayed) THEN 'nothing_went_wrong' ELSE 'not_replayed' END AS why
        FROM live WHERE root NOT IN (SELECT root FROM candidates)
    )
"""

_CANDIDATES: dict[Kind, str] = {"first_action": _FIRST_ACTION, "recovery": _RECOVERY, "preference": _PREFERENCE}

# ``held`` are the findings that hold of a trajectory: a fork shares its parent's messages before the branch point.
_LINES = f"""
    used AS MATERIALIZED (
        SELECT chosen AS id FROM candidates UNION SELECT rejected FROM candidates WHERE rejected IS NOT NULL
    ), ancestry AS (
        SELECT DISTINCT chosen, rejected, chosen AS at FROM candidates
        UNION ALL
        SELECT a.chosen, a.rejected, t.parent FROM ancestry a
        JOIN trajectories t ON t.id = a.at WHERE t.parent IS NOT NULL
    ), ancestors_of AS (
        SELECT a.chosen, a.rejected, json_group_object(t.id, t.record)::VARCHAR AS ancestors
        FROM ancestry a JOIN trajectories t ON t.id = a.at
        WHERE a.at <> a.chosen AND a.at <> a.rejected GROUP BY ALL
    ), right_side AS (
        SELECT id, record FROM trajectories WHERE id IN (SELECT chosen FROM candidates)
    ), wrong_side AS (
        SELECT id, record FROM trajectories WHERE id IN (SELECT rejected FROM candidates)
    ), held AS (
        SELECT trajectory, message, id, record FROM faults
        UNION ALL
        SELECT t.id, h.message, h.id, h.record FROM trajectories t
        JOIN held h ON t.parent = h.trajectory AND h.message < t.branch_point
    ), findings_of AS (
        SELECT trajectory, '[' || string_agg(record, ',' ORDER BY id) || ']' AS findings
        FROM held WHERE trajectory IN (SELECT id FROM used) GROUP BY trajectory
    ), checks_of AS (
        SELECT trajectory, '[' || string_agg(record, ',' ORDER BY id) || ']' AS checks
        FROM checks WHERE trajectory IN (SELECT id FROM used) GROUP BY trajectory
    ), limits AS (
        SELECT trajectory,
            map_from_entries(list({{k: field[8:], v: value}}) FILTER (starts_with(field, 'budget.'))) AS budget,
            max(value) FILTER (field = 'notes') AS notes,
            max(value) FILTER (field = 'attempt.informed_by') AS informed_by
        FROM effective_annotations
        WHERE value IS NOT NULL AND (starts_with(field, 'budget.') OR field IN ('notes', 'attempt.informed_by'))
        GROUP BY trajectory
    ), facts AS (
        SELECT t.root, t.task_key, t.tools, to_json({{
            namespace: t.namespace, task: t.task, index: t.attempt, attempts: t.attempts, test: t.test, twin: t.twin,
            outcome: t.outcome, tools: t.tools, informed_by: l.informed_by, strata: t.strata, notes: l.notes,
            budget: coalesce(l.budget, MAP {{}}::MAP(VARCHAR, VARCHAR))
        }})::VARCHAR AS facts
        FROM tested t LEFT JOIN limits l ON l.trajectory = t.root
        WHERE t.root IN (SELECT root FROM candidates UNION SELECT other FROM candidates)
    ), lines AS (
        SELECT NULL::VARCHAR AS why, * FROM candidates
        UNION ALL BY NAME
        SELECT why, root FROM missing
    )
    SELECT n.why, g.attempt_id AS attempt, n.root, n.message, to_json(n.targets)::VARCHAR AS targets,
        f.facts, CASE WHEN n.other <> n.root THEN o.facts END AS other_facts,
        n.chosen, c.record AS chosen_record, cf.findings AS chosen_findings, cc.checks AS chosen_checks,
        n.rejected, r.record AS rejected_record, rf.findings AS rejected_findings, rc.checks AS rejected_checks,
        x.ancestors, decode(b.bytes) AS tools
    FROM lines n
    JOIN (SELECT id, attempt_id FROM trajectories) g ON g.id = n.root
    LEFT JOIN facts f ON f.root = n.root
    LEFT JOIN facts o ON o.root = n.other
    LEFT JOIN right_side c ON c.id = n.chosen
    LEFT JOIN wrong_side r ON r.id = n.rejected
    LEFT JOIN findings_of cf ON cf.trajectory = n.chosen
    LEFT JOIN findings_of rf ON rf.trajectory = n.rejected
    LEFT JOIN checks_of cc ON cc.trajectory = n.chosen
    LEFT JOIN checks_of rc ON rc.trajectory = n.rejected
    LEFT JOIN ancestors_of x ON x.chosen = n.chosen AND x.rejected = n.rejected
    LEFT JOIN (SELECT id, {verified("bytes")} FROM objects WHERE id IN (SELECT tools FROM facts)) b ON b.id = f.tools
    ORDER BY f.task_key, n.root, n.message NULLS FIRST, n.chosen, n.rejected
"""

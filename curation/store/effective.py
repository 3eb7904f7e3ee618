"""Which statement holds: the one place that decides, as SQL views.

A superseded statement holds no more. Of the rest the author kinds rank human > environment > log > side_file > rule for
outcomes and checks, human > side_file > log > rule for other facts; where the best kind contradicts itself, nothing
holds and the value is unknown. Who says that a result or a stop is unknown tells nothing, so that what anybody else
does tell holds. A model's own word (model, sibling, self_report) never holds. A rule that does not know whether a step
is right (what it measured there is about a check) says nothing of the step.

An erased attempt counts in the view of attempts as its tombstone says.
"""

CHECK_RANK = "['human', 'environment', 'log', 'side_file', 'rule']"
FACT_RANK = "['human', 'side_file', 'log', 'rule']"


_UNSAID = "author_kind = 'rule' AND layer = 'step' AND result = 'unknown'"


def _standing(table: str, value: str, rank: str, untold: str, unsaid: str = "false") -> str:
    """What is not superseded, with its author's rank from 1, whether it tells nothing, and its value to compare."""
    return f"""
    CREATE TEMP VIEW standing_{table} AS
    SELECT *, list_position({rank}, author_kind) AS rank, {untold} AS untold, {value} AS told
    FROM {table}
    WHERE list_contains({rank}, author_kind) AND NOT ({unsaid})
      AND id NOT IN (SELECT unnest(supersedes) FROM {table})
      AND trajectory IN (SELECT id FROM trajectories)
    """


def _effective(table: str, about: str) -> str:
    return f"""
    CREATE TEMP VIEW effective_{table} AS
    WITH best AS (
        SELECT * FROM standing_{table}
        QUALIFY dense_rank() OVER (PARTITION BY {about} ORDER BY untold, rank) = 1
    )
    SELECT * EXCLUDE (rank, untold, told) FROM best
    QUALIFY count(DISTINCT told) OVER (PARTITION BY {about}) = 1
        AND row_number() OVER (PARTITION BY {about}, told ORDER BY id) = 1
    """


VIEWS: tuple[str, ...] = (
    _standing(
        "annotations", "coalesce(value, '')", FACT_RANK, "(field = 'stop' AND value IS NOT DISTINCT FROM 'unknown')"
    ),
    _effective("annotations", "trajectory, field"),
    _standing("verifications", "result", CHECK_RANK, "(result = 'unknown')", _UNSAID),
    _effective("verifications", "trajectory, message, call, layer"),
    """
    CREATE TEMP VIEW effective_findings AS
    SELECT * FROM findings
    WHERE author_kind NOT IN ('model', 'sibling', 'self_report') AND detail <> 'withdrawn'
      AND id NOT IN (SELECT unnest(supersedes) FROM findings)
      AND trajectory IN (SELECT id FROM trajectories)
    """,
    """
    CREATE TEMP VIEW revised AS
    SELECT value AS id, trajectory AS later FROM annotations
    WHERE field = 'revises' AND value IS NOT NULL
      AND id NOT IN (SELECT unnest(supersedes) FROM annotations)
      AND trajectory IN (SELECT id FROM trajectories)
    """,
    """
    CREATE TEMP VIEW attempts AS
    WITH facts AS (
        SELECT trajectory,
            max(value) FILTER (field = 'stop') AS stop,
            max(value) FILTER (field = 'split') AS split,
            max(value) FILTER (field = 'group') AS "group",
            max(value) FILTER (field = 'environment') AS environment,
            max(value) FILTER (field = 'tools') AS tools,
            max(value) FILTER (field = 'attempt.kind') AS attempt_kind,
            max(value) FILTER (field = 'attempt.allocation') AS allocation,
            map_from_entries(
                list({k: field[8:], v: value} ORDER BY field)
                FILTER (starts_with(field, 'strata.') AND value IS NOT NULL)
            ) AS strata
        FROM effective_annotations GROUP BY trajectory
    ), outcomes AS (
        SELECT trajectory, author_kind AS outcome_by, score,
            CASE result WHEN 'passed' THEN 'success' WHEN 'failed' THEN 'failure' WHEN 'partial' THEN 'partial'
                ELSE 'unknown' END AS outcome
        FROM effective_verifications WHERE layer = 'task' AND message IS NULL
    ), faults AS (
        SELECT trajectory FROM effective_findings WHERE label = 'environment'
        UNION SELECT trajectory FROM effective_verifications WHERE reason = 'environment_fault'
        UNION SELECT trajectory FROM effective_annotations WHERE field = 'stop' AND value = 'provider_error'
    )
    SELECT t.attempt_id, t.id AS trajectory_id, coalesce(t.task_key, t.attempt_id) AS task_key,
        t.namespace, t.task, t.variant, t.run, t.attempt, t.model, t.agent,
        coalesce(f.environment, t.environment) AS environment, coalesce(t.tools, f.tools) AS tools,
        t.seed, t.messages, t.calls, coalesce(o.outcome, 'unknown') AS outcome, o.outcome_by, o.score,
        f.stop, f.split, f."group", t.id IN (SELECT trajectory FROM faults) AS fault,
        coalesce(f.strata, MAP {}::MAP(VARCHAR, VARCHAR)) AS strata, f.attempt_kind, f.allocation, false AS erased
    FROM trajectories t
    LEFT JOIN facts f ON f.trajectory = t.id
    LEFT JOIN outcomes o ON o.trajectory = t.id
    WHERE t.attempt_id IS NOT NULL AND t.id NOT IN (SELECT id FROM revised)
    UNION ALL BY NAME
    SELECT attempt_id, erased AS trajectory_id, coalesce(task_key, attempt_id) AS task_key,
        namespace, task, variant, NULL::VARCHAR AS run, attempt, model, agent, environment, tools,
        NULL::VARCHAR AS seed, messages, calls, outcome, outcome_by, score, stop, split, "group", fault,
        map_from_entries(strata) AS strata, attempt_kind, allocation, true AS erased
    FROM (SELECT *, id IN (SELECT unnest(supersedes) FROM tombstones) AS outdated FROM tombstones)
    WHERE attempt_id IS NOT NULL
        AND attempt_id NOT IN (SELECT attempt_id FROM trajectories WHERE attempt_id IS NOT NULL)
    QUALIFY row_number() OVER (PARTITION BY attempt_id ORDER BY outdated, id) = 1
    """,
)

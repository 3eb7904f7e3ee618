"""Replaying a store's attempts in one environment."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from curation.clocks import NO_CLOCKS, Clocks
from curation.jobs.cases import PLACED, UNNAMED, attempt_ids, clocks_of, places, version_inferred
from curation.jobs.drift import is_different, with_drift_named
from curation.jobs.withdrawing import withdraw_checks
from curation.match import EQUAL
from curation.replay import CHECKED, REPLAYED_OUTCOME, Replayed, replay
from curation.store import Batch, Store
from curation.store.supersede import superseding
from curation.worlds import World, open_worlds
from environments.blobs import MemoryBlobs
from environments.protocol import Controls
from schemas.objects import tools_object
from schemas.statements import Annotation, Statement, Verification
from schemas.trajectory import Author, Trajectory

_CHUNK = 400
PROCESSES = 2
OFFERED = Author("rule", "replay.offered", "1")

LOGGED = """SELECT trajectory, any_value(result) AS result FROM (
        SELECT trajectory, result FROM verifications
        WHERE layer = 'task' AND message IS NULL AND author_kind IN ('log', 'side_file')
          AND id NOT IN (SELECT unnest(supersedes) FROM verifications)
        QUALIFY rank() OVER (PARTITION BY trajectory ORDER BY author_kind) = 1
    ) GROUP BY trajectory HAVING count(DISTINCT result) = 1 AND any_value(result) IN ('passed', 'failed')"""
"""The outcomes that logs and side files give, one a trajectory: a log's before a side file's."""


class ReplayResult(msgspec.Struct):
    """How the logged answers compare with the executed ones, by call; and outcomes with the task's own check, by run.

    ``reasons`` counts the calls that are unverifiable or not run, and those that differ with a cause that is seen;
    ``settled_by`` calls that this environment could say nothing of, by the environment whose word on them stands;
    ``passed_over`` the attempts of other environments. ``outcomes_differ`` are named in ``differing``.
    ``outcomes_unverified`` of both are compared only: a call of the run is not confirmed, or its environment's version
    was inferred (``ungraded``), and what chose a version is not verified by it.
    """

    calls: int
    equal_bytes: int
    equal_normalised: int
    equal_semantic: int
    different: int
    unverifiable: int
    not_run: int
    reasons: dict[str, int]
    settled_by: dict[str, int]
    runs: int
    passed_over: int
    outcomes_agree: int
    outcomes_differ: int
    differing: list[str]
    outcomes_unverified: int
    ungraded: int


def replay_attempts(store: Store, environment: str, controls: Controls | None = None) -> ReplayResult:
    """Execute the calls of every attempt of this environment (see ``places``), and say what matched.

    An attempt that names no environment, of which a call is confirmed and none contradicted, is from now on one of
    this environment, by rule. Replaying again writes only what comes out differently; what another environment
    executed before is superseded, and where an answer is contradicted now, so is what one said of the task. Raises
    UnknownEnvironmentError, UsageError.
    """
    found = places(store, environment)
    authors = [_replay_in(store, name, identities, controls) for name, identities in found.items()]
    return _count(store, [identity for identities in found.values() for identity in identities], authors)


def _replay_in(store: Store, environment: str, identities: Sequence[str], controls: Controls | None) -> str:
    with open_worlds(environment, controls, processes=PROCESSES) as worlds, store.batch() as batch:
        differing: list[Verification] = []
        for start in range(0, len(identities), _CHUNK):
            records = list(store.trajectories(identities[start : start + _CHUNK]))
            inferred = version_inferred(store, [identity for identity, _ in records])
            done = execute(records, worlds, clocks_of(store, [identity for identity, _ in records]))
            verified = (item for replayed in done for item in replayed.verifications)
            found = [item for item in verified if item.layer != "task" or item.trajectory not in inferred]
            differing += filter(is_different, found)
            said: list[Statement] = [item for item in found if not is_different(item)]
            said.extend(_placed(store, found, environment))
            said.extend(replayed.outcome for replayed in done if replayed.outcome is not None)
            said.extend(_offered(batch, records, found, worlds[0]))
            contradicted = sorted({item.trajectory for item in found if is_different(item)})
            withdrawn = withdraw_checks(store, contradicted, CHECKED, "contradicted_record")
            for statement in (*superseding(store, said), *withdrawn):
                batch.add_statement(statement)
        author = worlds[0].spec.id
        for statement in superseding(store, with_drift_named(store, differing, identities, [author])):
            batch.add_statement(statement)
        store.write(batch)
        return author


def execute(
    records: Sequence[tuple[str, Trajectory]], worlds: Sequence[World], clocks: Mapping[str, Clocks]
) -> list[Replayed]:
    """What executing records again says, in their order, each in one of the worlds, all at the same time."""

    def run(number: int) -> list[Replayed]:
        blobs = MemoryBlobs()
        mine = records[number :: len(worlds)]
        return [
            replay(identity, record, worlds[number], blobs, clocks.get(identity, NO_CLOCKS))
            for identity, record in mine
        ]

    with ThreadPoolExecutor(len(worlds)) as pool:
        parts = list(pool.map(run, range(len(worlds))))
    return [parts[place % len(worlds)][place // len(worlds)] for place in range(len(records))]


def _placed(store: Store, found: Sequence[Verification], environment: str) -> Iterator[Annotation]:
    """The environment of each attempt that names none and that this replay confirms."""
    matches: dict[str, set[str]] = defaultdict(set)
    for item in found:
        if item.execution is not None and item.execution.match is not None:
            matches[item.trajectory].add(item.execution.match)
    confirmed = [identity for identity, met in matches.items() if met & EQUAL and "different" not in met]
    rows = store.sql(
        f"SELECT trajectory_id FROM attempts a WHERE {UNNAMED} AND trajectory_id IN (SELECT unnest(?))",
        [confirmed],
    )
    for identity in rows["trajectory_id"].to_pylist():
        yield Annotation(identity, "environment", environment, PLACED, ("observation", "state"))


def _offered(
    batch: Batch, records: Sequence[tuple[str, Trajectory]], found: Iterable[Verification], world: World
) -> Iterator[Annotation]:
    """The tools of the environment for the runs that it confirms, where the log lists none and all were offered."""
    confirmed = {item.trajectory for item in found if item.execution is not None and item.execution.match in EQUAL}
    pattern = world.spec.offers
    mine = [
        (identity, record)
        for identity, record in records
        if record.conditions.tools is None and pattern is not None and pattern.fullmatch(record.conditions.agent or "")
    ]
    mine = [(identity, record) for identity, record in mine if identity in confirmed]
    if not mine:
        return
    with world.open(mine[0][1].task, MemoryBlobs()) as session:
        tools = tools_object([{"type": "function", "function": tool} for tool in session.tools()])
    batch.add_object(tools)
    for identity, _ in mine:
        yield Annotation(identity, "tools", tools.id, OFFERED, ("schema",))


def _count(store: Store, identities: list[str], authors: list[str]) -> ReplayResult:
    mine = "trajectory IN (SELECT unnest(?)) AND author_kind = 'environment' AND author_name IN (SELECT unnest(?))"
    matches = store.sql(
        f"""SELECT match, count(*) AS n FROM effective_verifications
            WHERE {mine} AND layer = 'execution' GROUP BY match""",
        [identities, authors],
    ).to_pylist()
    reasons = store.sql(
        f"""SELECT reason, count(*) AS n FROM effective_verifications
            WHERE {mine} AND layer = 'execution' AND reason IS NOT NULL GROUP BY reason ORDER BY reason""",
        [identities, authors],
    ).to_pylist()
    settled = store.sql(
        """SELECT author_name, count(*) AS n FROM effective_verifications
           WHERE trajectory IN (SELECT unnest(?)) AND author_kind = 'environment'
             AND author_name NOT IN (SELECT unnest(?)) AND layer = 'execution' GROUP BY ALL ORDER BY ALL""",
        [identities, authors],
    ).to_pylist()
    outcomes = store.sql(
        f"""WITH logged AS (
                {LOGGED}
            ), checked AS (
                SELECT trajectory, value AS result FROM effective_annotations
                WHERE trajectory IN (SELECT unnest(?)) AND field = '{REPLAYED_OUTCOME}'
            )
            SELECT count(*) FILTER (l.result = c.result) AS agree,
                count(*) FILTER (l.result <> c.result) AS differ,
                coalesce(list(trajectory ORDER BY trajectory) FILTER (l.result <> c.result), []) AS differing,
                count(*) FILTER (trajectory NOT IN (
                    SELECT trajectory FROM effective_verifications
                    WHERE layer = 'task' AND message IS NULL AND author_kind = 'environment')) AS unverified
            FROM logged l JOIN checked c USING (trajectory)""",
        [identities],
    ).to_pylist()[0]
    counts = {row["match"]: row["n"] for row in matches}
    return ReplayResult(
        calls=sum(counts.values()),
        equal_bytes=counts.get("equal_bytes", 0),
        equal_normalised=counts.get("equal_normalised", 0),
        equal_semantic=counts.get("equal_semantic", 0),
        different=counts.get("different", 0),
        unverifiable=counts.get("unverifiable", 0),
        not_run=counts.get("not_run", 0),
        reasons={row["reason"]: row["n"] for row in reasons},
        settled_by={row["author_name"]: row["n"] for row in settled},
        runs=len(identities),
        passed_over=len(attempt_ids(store)) - len(identities),
        outcomes_agree=outcomes["agree"],
        outcomes_differ=outcomes["differ"],
        differing=outcomes["differing"],
        outcomes_unverified=outcomes["unverified"],
        ungraded=len(version_inferred(store, identities)),
    )

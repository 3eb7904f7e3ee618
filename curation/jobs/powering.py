"""Measuring what an environment's checks are worth, at the calls of attempts that are known to be right."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import msgspec
from msgspec import Raw

from curation.clocks import Clocks
from curation.diagnosis.evidence import confirmed
from curation.jobs.cases import places, read_known, version_inferred
from curation.jobs.mutating import score_mutations
from curation.jobs.placebos import Measured, read_measured, read_rates, rename_placebos
from curation.mutation import Score
from curation.power import CHECKS, Values, order, statements, values_of, wrong_calls
from curation.probe import Probed, probe
from curation.shares import wilson
from curation.store import Store
from curation.store.supersede import superseding
from curation.worlds import World, open_worlds
from environments.blobs import MemoryBlobs
from environments.protocol import Controls, Effect
from schemas.statements import Power
from schemas.trajectory import ToolCall, Trajectory

_PROCESSES = 2
_CHECKS: tuple[str, ...] = CHECKS

Tools = Mapping[str, Raw]


class Share(msgspec.Struct, frozen=True):
    """Of the wrong calls of a tool, how many a check passes too; the rate with its Wilson interval of 95 %.

    ``check_read`` is what a step or task check has read, where that is told apart.
    """

    check: str
    tool: str
    effect: str
    check_read: str
    wrong: int
    passed: int
    rate: float
    low: float
    high: float


class PowerResult(msgspec.Struct):
    """How many of the wrong calls each check passes, in all that is measured of this environment.

    ``known_right`` attempts passed their task by the environment's own check and have no finding; ``not_known_right``
    counts the others by reason. Of the ``calls`` of the right ones, ``probed`` were tried now with ``wrong_calls``.
    ``unprobed`` counts calls and wrong calls by reason. ``forks`` is how many checks of forks name another rate than
    before. ``by_effect`` tells apart what a tool does and what the check has read, ``by_tool`` the tools as well.
    ``mutations``: of the ``answers`` that a replay confirmed, altered on purpose, how many each comparator or rule
    would still call equal.
    """

    attempts: int
    known_right: int
    not_known_right: dict[str, int]
    calls: int
    probed: int
    wrong_calls: int
    unprobed: dict[str, int]
    forks: int
    totals: list[Share]
    by_effect: list[Share]
    by_tool: list[Share]
    answers: int
    mutations: list[Score]


class _Right(NamedTuple):
    """A call that is known to be right, its attempt with its times, and the wrong calls made of it."""

    identity: str
    trajectory: Trajectory
    clocks: Clocks
    call: ToolCall
    wrong: tuple[ToolCall, ...]


class _Asked(NamedTuple):
    """How many wrong calls a right one is tried with, how many right ones of a world at most, in an order by seed."""

    values: int
    limit: int | None
    seed: int


def measure_power(
    store: Store,
    environment: str,
    controls: Controls | None = None,
    *,
    values: int = 3,
    limit: int | None = None,
    seed: int = 0,
) -> PowerResult:
    """Execute wrong calls in the place of right ones, and count which checks they pass (``curation.power.CHECKS``).

    Each right call is tried with at most ``values`` wrong ones, ``limit`` right ones in each world, in an order that
    ``seed`` sets. The counts stand with the verifications; the step and task checks of forks name their rate from then
    on. Raises UnknownEnvironmentError, UsageError.
    """
    result = PowerResult(0, 0, {}, 0, 0, 0, {}, 0, [], [], [], 0, [])
    unprobed: Counter[str] = Counter()
    doubtful: Counter[str] = Counter()
    measured: list[tuple[Effect, Measured]] = []
    for name, identities in places(store, environment).items():
        result.attempts += len(identities)
        with open_worlds(name, controls, processes=_PROCESSES) as worlds:
            spec = worlds[0].spec
            wanting = _wanting(store, identities)
            doubtful.update(reason for reason in wanting.values() if reason is not None)
            known = sorted(identity for identity, reason in wanting.items() if reason is None)
            _measure_in(store, name, identities, known, worlds, _Asked(values, limit, seed), result, unprobed)
        with store.batch() as batch:
            result.forks += rename_placebos(store, batch, spec, read_rates(store, spec))
            store.write(batch)
        measured.extend((spec.effects.get(item.power.tool, "read"), item) for item in read_measured(store, spec))
    result.not_known_right = dict(sorted(doubtful.items()))
    result.unprobed = dict(sorted((+unprobed).items()))
    result.totals = list(_shares((power, "", "", "") for _, (power, _) in measured))
    result.by_effect = list(_shares((item.power, "", effect, _read(item)) for effect, item in measured))
    result.by_tool = list(_shares((item.power, item.power.tool, effect, "") for effect, item in measured))
    mutated = score_mutations(store, environment)
    result.answers, result.mutations = mutated.answers, mutated.scores
    return result


def _measure_in(
    store: Store,
    environment: str,
    identities: Sequence[str],
    known: Sequence[str],
    worlds: Sequence[World],
    asked: _Asked,
    result: PowerResult,
    unprobed: Counter[str],
) -> None:
    if not known:
        return
    values = values_of(
        call
        for _, record in store.trajectories(identities)
        for message in record.messages
        for call in message.tool_calls
    )
    found = list(_right_calls(store, known, environment, values, worlds[0], asked))
    chosen = [right for right in found if right.wrong]
    unprobed["no_other_value"] += len(found) - len(chosen)
    chosen.sort(key=lambda right: order(str(asked.seed), right.identity, right.call.uid))
    if asked.limit is not None:
        unprobed["over_limit"] += len(chosen[asked.limit :])
    done = _probe_apart(chosen[: asked.limit], worlds)
    made = [
        item for identity, probed in done.items() for item in statements(identity, probed.probes, worlds[0].spec.name)
    ]
    with store.batch() as batch:
        for statement in superseding(store, made):
            batch.add_statement(statement)
        store.write(batch)
    for probed in done.values():
        unprobed.update(probed.unprobed)
    result.known_right += len(known)
    result.calls += len(found)
    result.probed += len({(item.trajectory, item.call) for item in made})
    result.wrong_calls += sum(len(probed.probes) for probed in done.values())


def _wanting(store: Store, identities: Sequence[str]) -> dict[str, str | None]:
    """Why each attempt is not known to be right; None of those that passed by the environment's check, without finding.

    Reasons are codes of NOT_KNOWN_RIGHT.
    """
    mine = "author_kind = 'environment' AND trajectory IN (SELECT unnest($1))"
    rows = store.sql(
        f"""WITH checked AS (
                SELECT trajectory, bool_or(result = 'passed') AS passed FROM effective_verifications
                WHERE layer = 'task' AND message IS NULL AND {mine} GROUP BY trajectory
            ), executed AS (
                SELECT trajectory, bool_and(result = 'passed') AS confirmed FROM effective_verifications
                WHERE layer = 'execution' AND {mine} GROUP BY trajectory
            )
            SELECT id, CASE
                WHEN passed AND id IN (SELECT trajectory FROM effective_findings WHERE label <> 'undetermined')
                    THEN 'finding'
                WHEN passed THEN NULL
                WHEN passed IS NOT NULL THEN 'not_passed'
                WHEN confirmed IS NULL AND calls > 0 THEN 'not_replayed'
                WHEN NOT confirmed THEN 'not_confirmed'
                WHEN id IN (SELECT unnest($2)) THEN 'version_inferred'
                ELSE 'no_verdict' END AS reason
            FROM trajectories LEFT JOIN checked ON checked.trajectory = id
            LEFT JOIN executed ON executed.trajectory = id WHERE id IN (SELECT unnest($1))""",
        [list(identities), sorted(version_inferred(store, identities))],
    )
    return dict(zip(rows["id"].to_pylist(), rows["reason"].to_pylist(), strict=True))


def _right_calls(
    store: Store, identities: Sequence[str], environment: str, values: Values, world: World, asked: _Asked
) -> Iterator[_Right]:
    """The calls whose answers are confirmed and no errors, with their wrong ones."""
    tools: Tools | None = None
    for known in read_known(store, identities, environment):
        case = known.case
        if tools is None:
            with world.open(case.trajectory.task, MemoryBlobs()) as session:
                tools = {tool.name: tool.parameters for tool in session.tools()}
        right = {
            item.call
            for item in case.verifications
            if item.execution is not None and confirmed(item.execution) and item.execution.status in (None, "ok")
        }
        for message in case.trajectory.messages:
            for call in message.tool_calls:
                if call.uid in right:
                    seed = f"{asked.seed}/{case.trajectory_id}/{call.uid}"
                    wrong = wrong_calls(call, values, tools.get(call.name), asked.values, seed)
                    yield _Right(case.trajectory_id, case.trajectory, case.clocks, call, wrong)


def _probe_apart(chosen: Sequence[_Right], worlds: Sequence[World]) -> dict[str, Probed]:
    runs = {right.identity: right for right in chosen}
    wrong: dict[str, dict[str, tuple[ToolCall, ...]]] = {identity: {} for identity in runs}
    for right in chosen:
        wrong[right.identity][right.call.uid] = right.wrong
    every = sorted(runs)

    def run(number: int) -> list[tuple[str, Probed]]:
        return [
            (
                identity,
                probe(runs[identity].trajectory, wrong[identity], worlds[number], MemoryBlobs(), runs[identity].clocks),
            )
            for identity in every[number :: len(worlds)]
        ]

    with ThreadPoolExecutor(len(worlds)) as pool:
        return dict(item for part in pool.map(run, range(len(worlds))) for item in part)


def _read(measured: Measured) -> str:
    """What a step or task check had read; the other two read what was answered and changed, whatever the world."""
    return ", ".join(measured.reads) if measured.power.check in ("step", "task") else ""


def _shares(counted: Iterable[tuple[Power, str, str, str]]) -> Iterator[Share]:
    """The counts together by check, tool, effect and what was read."""
    sums: dict[tuple[int, str, str, str], list[int]] = defaultdict(lambda: [0, 0])
    for power, tool, effect, read in counted:
        count = sums[_CHECKS.index(power.check), tool, effect, read]
        count[0] += power.wrong
        count[1] += power.passed
    for (check, tool, effect, read), (wrong, passed) in sorted(sums.items()):
        yield Share(CHECKS[check], tool, effect, read, wrong, passed, passed / wrong, *wilson(passed, wrong))

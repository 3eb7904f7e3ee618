"""Which version of an environment recorded the runs of a store, where their logs do not say.

All attempts of one run name have one version. Half of a run's tasks choose it: every version executes them, and the one
with the most agreements (answers confirmed, outcomes that its task checks give as logged) is taken, of equal ones the
newest. The tasks of the other half say how far to believe that.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec

from curation.errors import UsageError
from curation.jobs.cases import INFERRED, PLACED, UNNAMED, VERSION_INFERRED, clocks_of, places
from curation.jobs.drift import is_different, with_drift_named
from curation.jobs.replaying import LOGGED, PROCESSES, execute
from curation.jobs.withdrawing import standing, withdraw_checks
from curation.match import EQUAL
from curation.replay import Replayed
from curation.store import Store
from curation.store.supersede import superseding
from curation.worlds import open_worlds
from environments.catalogue import members, versions
from environments.protocol import Controls
from schemas.canonical import digest, encode
from schemas.reasons import VERSIONS, sentence_of
from schemas.statements import Annotation, Statement, Verification
from schemas.trajectory import Reads

_READS: tuple[Reads, ...] = ("observation", "state", "hidden_answer")


class VersionScore(msgspec.Struct):
    """How tasks of a run come out in one version: ``confirmed`` of the answers to ``calls``, and ``agree`` of the
    ``outcomes`` that are both logged and checked.
    """

    run: str | None
    version: str
    calls: int = 0
    confirmed: int = 0
    outcomes: int = 0
    agree: int = 0


class RunVersion(msgspec.Struct):
    """The version chosen for a run, null where ``why`` none could be; ``tied`` are the others that are just as good.

    ``choosing`` and ``held_out`` count attempts, ``calls`` to ``agree`` those of the ``held_out``, in the version
    chosen. ``placed`` attempts are from now on of that version, by rule.
    """

    run: str | None
    version: str | None
    why: str
    tied: list[str]
    choosing: int
    held_out: int
    calls: int
    confirmed: int
    outcomes: int
    agree: int
    placed: int


class VersionResult(msgspec.Struct):
    """What a search for versions found; ``scores`` are of the tasks that choose.

    ``recorded``: every attempt names its version, so nothing was written. ``withdrawn`` counts task checks of attempts
    and their forks, written before, that hold no more: nobody's word says that theirs is the right version.
    """

    environment: str
    seed: int
    recorded: bool
    withdrawn: int
    runs: list[RunVersion]
    scores: list[VersionScore]


class _Attempt(msgspec.Struct):
    id: str
    run: str | None
    task: str
    world: str
    named: bool


class _Run(msgspec.Struct):
    name: str | None
    choosing: list[_Attempt]
    held_out: list[_Attempt]


Found = Mapping[tuple[str, str], Replayed]  # by version and attempt


def find_versions(store: Store, environment: str, seed: int = 0, controls: Controls | None = None) -> VersionResult:
    """Choose the version of every run that does not record it, and say so of its attempts, by rule.

    Their answers are then verified in that version. Their outcomes are not: what chose a version is not verified by it.
    Where every attempt records its version, all are searched and nothing is written. Raises UnknownEnvironmentError,
    and UsageError for an environment without versions and for a store without attempts of it.
    """
    known = versions(environment)
    if not known or "@" in environment:
        raise UsageError(f"{environment!r} leaves no version open: name a family of worlds alone, as in agentdojo")
    attempts = _attempts(store, environment)
    recorded = all(attempt.named for attempt in attempts)
    runs = _runs([attempt for attempt in attempts if recorded or not attempt.named], seed)
    logged = {row["trajectory"]: row["result"] for row in store.sql(LOGGED).to_pylist()}
    searched = [run for run in runs if run.held_out]
    found = _execute(
        store, [(version, attempt) for version in known for run in searched for attempt in run.choosing], controls
    )
    scores = {
        run.name: [_score(run.name, version, run.choosing, found, logged) for version in known] for run in searched
    }
    best = {run.name: _best(scores.get(run.name, ())) for run in runs}
    found |= _execute(
        store, [(best[run.name][-1], attempt) for run in runs if best[run.name] for attempt in run.held_out], controls
    )
    return VersionResult(
        environment,
        seed,
        recorded,
        withdrawn=0 if recorded else _write(store, runs, best, found),
        runs=[_line(run, best[run.name], found, logged, recorded=recorded) for run in runs],
        scores=[score for of_run in scores.values() for score in of_run],
    )


def _attempts(store: Store, environment: str) -> list[_Attempt]:
    """The attempts of all worlds of the family, each with its world's name without a version."""
    worlds = {
        identity: name.rpartition("@")[0]
        for name, identities in places(store, environment).items()
        for identity in identities
    }
    rows = store.sql(
        f"""SELECT trajectory_id AS id, run, coalesce(namespace, '') AS namespace, coalesce(task, attempt_id) AS task,
                NOT ({UNNAMED} OR {VERSION_INFERRED}) AS named
            FROM attempts a WHERE trajectory_id IN (SELECT unnest(?))
            ORDER BY run, namespace, task, variant, attempt, attempt_id""",
        [list(worlds)],
    )
    return [
        _Attempt(row["id"], row["run"], f"{row['namespace']}/{row['task']}", worlds[row["id"]], row["named"])
        for row in rows.to_pylist()
    ]


def _runs(attempts: Iterable[_Attempt], seed: int) -> list[_Run]:
    """The attempts by run, those of one task and all its variants in the same half."""
    by_run: dict[str | None, list[_Attempt]] = defaultdict(list)
    for attempt in attempts:
        by_run[attempt.run].append(attempt)
    runs = []
    for name, mine in by_run.items():
        tasks = sorted({attempt.task for attempt in mine}, key=lambda task: digest(encode([seed, task])))
        first = set(tasks[: (len(tasks) + 1) // 2])
        runs.append(_Run(name, [a for a in mine if a.task in first], [a for a in mine if a.task not in first]))
    return runs


def _execute(
    store: Store, wanted: Iterable[tuple[str, _Attempt]], controls: Controls | None
) -> dict[tuple[str, str], Replayed]:
    """What attempts give in versions of their worlds; each version of a world in a process, some at the same time."""
    tried: dict[tuple[str, str], list[str]] = defaultdict(list)
    for version, attempt in wanted:
        tried[version, attempt.world].append(attempt.id)
    every = sorted({identity for identities in tried.values() for identity in identities})
    records, clocks = dict(store.trajectories(every)), clocks_of(store, every)

    def run(place: tuple[str, str]) -> dict[tuple[str, str], Replayed]:
        version, world = place
        (name,) = members(f"{world}@{version}")
        with open_worlds(name, controls, processes=1) as worlds:
            done = execute([(identity, records[identity]) for identity in tried[place]], worlds, clocks)
            return {(version, identity): replayed for identity, replayed in zip(tried[place], done, strict=True)}

    with ThreadPoolExecutor(PROCESSES) as pool:
        return {key: replayed for part in pool.map(run, tried) for key, replayed in part.items()}


def _score(
    run: str | None, version: str, attempts: Iterable[_Attempt], found: Found, logged: Mapping[str, str]
) -> VersionScore:
    score = VersionScore(run, version)
    for attempt in attempts:
        replayed = found.get((version, attempt.id), Replayed(()))
        matches = [item.execution.match for item in replayed.verifications if item.execution is not None]
        score.calls += len(matches)
        score.confirmed += sum(match in EQUAL for match in matches)
        if replayed.outcome is not None and attempt.id in logged:
            score.outcomes += 1
            score.agree += replayed.outcome.value == logged[attempt.id]
    return score


def _best(scores: Sequence[VersionScore]) -> list[str]:
    """The versions with the most agreements, oldest first; none where nothing agrees in any."""
    most = max((score.confirmed + score.agree for score in scores), default=0)
    return [score.version for score in scores if score.confirmed + score.agree == most > 0]


def _line(run: _Run, best: list[str], found: Found, logged: Mapping[str, str], *, recorded: bool) -> RunVersion:
    version = best[-1] if best else None
    code = "" if version else "nothing_agrees" if run.held_out else "one_task"
    score = _score(run.name, version or "", run.held_out, found, logged)
    return RunVersion(
        run=run.name,
        version=version,
        why=f"{code}: {sentence_of(VERSIONS, code)}" if code else "",
        tied=best[:-1],
        choosing=len(run.choosing),
        held_out=len(run.held_out),
        calls=score.calls,
        confirmed=score.confirmed,
        outcomes=score.outcomes,
        agree=score.agree,
        placed=0 if recorded or version is None else len(run.choosing) + len(run.held_out),
    )


def _write(store: Store, runs: Iterable[_Run], best: Mapping[str | None, list[str]], found: Found) -> int:
    """The versions of all attempts and what executing them confirmed, and how many earlier task checks hold no more."""
    said: list[Statement] = []
    executed: list[Verification] = []
    placed: list[str] = []
    for run in runs:
        for version in best[run.name][-1:]:
            for attempt in (*run.choosing, *run.held_out):
                world = f"{attempt.world}@{version}"
                placed.append(attempt.id)
                said.append(Annotation(attempt.id, "environment", world, INFERRED, _READS))
                replayed = found.get((version, attempt.id), Replayed(()))
                executed.extend(item for item in replayed.verifications if item.execution is not None)
    guesses = standing(store, "annotations", f"field = 'environment' AND author_name = '{PLACED.name}'", placed)
    graded = [*placed, *_forks(store, placed)]
    withdrawn = list(withdraw_checks(store, graded, INFERRED, "version_inferred"))
    confirmed = [item for item in executed if not is_different(item)]
    authors = {item.author.name for item in executed}
    named = with_drift_named(store, filter(is_different, executed), placed, authors)
    with store.batch() as batch:
        for statement in superseding(store, [*said, *confirmed, *named]):
            batch.add_statement(_replacing(statement, guesses))
        for statement in withdrawn:
            batch.add_statement(statement)
        store.write(batch)
    return sum(len(item.supersedes) for item in withdrawn)


def _forks(store: Store, identities: Sequence[str]) -> list[str]:
    """The forks of attempts, and the forks of those."""
    rows = store.sql(
        """WITH RECURSIVE forks AS (
               SELECT id FROM trajectories WHERE parent IN (SELECT unnest(?))
               UNION
               SELECT t.id FROM trajectories t JOIN forks f ON t.parent = f.id
           )
           SELECT id FROM forks""",
        [list(identities)],
    )
    found: list[str] = rows["id"].to_pylist()
    return found


def _replacing(statement: Statement, guesses: Mapping[str, list[str]]) -> Statement:
    """A version takes the place of the environment that an earlier replay was merely run in."""
    if not isinstance(statement, Annotation) or statement.trajectory not in guesses:
        return statement
    return msgspec.structs.replace(statement, supersedes=(*statement.supersedes, *guesses[statement.trajectory]))

"""The report on a selection: what share of every stratum a rule or a build keeps, and what is missing afterwards."""

from collections.abc import Iterable
from typing import Literal

import msgspec
import polars as pl

from curation.errors import UsageError
from curation.masking import masked_struct
from reports.attempts import DEFAULT_RULE, Queryable, find_strata, read_attempts, rule_of_build
from reports.notes import Facts, Note, RuleFrom, notes_on
from reports.strata import Row, Stratification, count_all, count_stratum

NAMED_TASKS = 100


class Step(msgspec.Struct, frozen=True):
    """A step of the funnel: what attempts have to be to pass it, and how many of those before it do."""

    step: str
    attempts: int


class TaskCount(msgspec.Struct, frozen=True):
    """How many tasks have exactly that many successful attempts."""

    successes: int
    tasks: int


class Vanished(msgspec.Struct, frozen=True):
    """A task of which nothing is kept, and what was spent on it."""

    task: str
    attempts: int
    successes: int


class SelectionBias(msgspec.Struct, frozen=True):
    """What a selection did. Counts are attempts unless they say tasks; shares lie in [0, 1], None is undefined.

    ``undecided`` attempts are those for which the rule gives no answer; they are not kept. ``vanished`` names at most
    100 of the ``tasks_vanished`` tasks of which nothing is kept, the most attempts first. ``kept_without_success`` are
    kept attempts that do not pass the funnel: another outcome, or a fault.
    """

    unit: Literal["attempt"]
    rule: str
    rule_from: RuleFrom
    build: str | None
    total: int
    kept: int
    undecided: int
    tasks: int
    tasks_kept: int
    tasks_vanished: int
    attempts_without_task: int
    overall: Row
    funnel: tuple[Step, ...]
    kept_without_success: int
    successes_per_task: tuple[TaskCount, ...]
    largest_task_share: float | None
    vanished: tuple[Vanished, ...]
    strata: tuple[Stratification, ...]
    notes: tuple[Note, ...]


def selection_bias(
    store: Queryable, *, keep: str | None = None, build: str | None = None, by: Iterable[str] | None = None
) -> SelectionBias:
    """What a selection keeps of the attempts of a store, in all and by stratum.

    ``keep`` is boolean SQL over the view ``attempts`` (``outcome = 'success'`` where neither it nor ``build`` is
    given); ``build`` the id of a build, whose kept decisions keep their attempts. ``by`` names strata (see
    reports.attempts.find_strata); None takes every declared one.

    Raises UsageError for a rule that is no boolean expression, an unknown stratum, or both a rule and a build;
    NotFoundError for an unknown build. Secrets that a log uses as names, or a rule quotes, are masked.
    """
    if keep is not None and build is not None:
        raise UsageError(f"both a rule {keep!r} and a build {build!r} say what is kept; give one of them")
    strata = find_strata(store, by)
    rule = rule_of_build(store, build) if build is not None else DEFAULT_RULE if keep is None else keep
    attempts = read_attempts(store, rule, strata)
    overall = count_all(attempts)
    tables = tuple(
        count_stratum(attempts, f"v{index}", stratum.name, stratum.source) for index, stratum in enumerate(strata)
    )
    tasks, funnel = _count_tasks(attempts), _funnel(attempts)
    rule_from: RuleFrom = "build" if build is not None else "default" if keep is None else "keep"
    undecided = attempts["kept"].null_count()
    unnamed = int((~attempts["named"]).sum())
    outside = overall.kept - funnel[-1].attempts
    report = SelectionBias(
        unit="attempt",
        rule=rule,
        rule_from=rule_from,
        build=build,
        total=overall.attempts,
        kept=overall.kept,
        undecided=undecided,
        tasks=overall.tasks,
        tasks_kept=overall.tasks_kept,
        tasks_vanished=overall.tasks - overall.tasks_kept,
        attempts_without_task=unnamed,
        overall=overall,
        funnel=funnel,
        kept_without_success=outside,
        successes_per_task=_successes_per_task(tasks),
        largest_task_share=tasks.select(pl.max("kept")).item() / overall.kept if overall.kept else None,
        vanished=_vanished(tasks),
        strata=tables,
        notes=notes_on(Facts(rule_from, overall, tables, undecided, unnamed, outside)),
    )
    return masked_struct(report)


def _funnel(attempts: pl.DataFrame) -> tuple[Step, ...]:
    steps = (
        ("attempts", pl.lit(True)),
        ("verdict known, no fault", (pl.col("outcome") != "unknown") & ~pl.col("fault")),
        ("success", pl.col("outcome") == "success"),
        ("of these successes, kept", pl.col("kept")),
    )
    passed = []
    for name, condition in steps:
        attempts = attempts.filter(condition)
        passed.append(Step(name, attempts.height))
    return tuple(passed)


def _count_tasks(attempts: pl.DataFrame) -> pl.DataFrame:
    return attempts.group_by("task").agg(
        label=pl.col("label").first(),
        attempts=pl.len().cast(pl.Int64),
        successes=(pl.col("outcome") == "success").sum().cast(pl.Int64),
        kept=pl.col("kept").fill_null(False).sum().cast(pl.Int64),
    )


def _successes_per_task(tasks: pl.DataFrame) -> tuple[TaskCount, ...]:
    counted = tasks.group_by("successes").agg(tasks=pl.len()).sort("successes")
    return tuple(TaskCount(row["successes"], row["tasks"]) for row in counted.to_dicts())


def _vanished(tasks: pl.DataFrame) -> tuple[Vanished, ...]:
    gone = tasks.filter(pl.col("kept") == 0).sort(
        -pl.col("attempts"), pl.col("label").str.len_chars(), pl.col("label"), pl.col("task")
    )
    return tuple(Vanished(row["label"], row["attempts"], row["successes"]) for row in gone.head(NAMED_TASKS).to_dicts())

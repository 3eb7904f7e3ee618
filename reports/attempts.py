"""The attempts a report counts: one narrow table, read in one query, with what the rule keeps and each stratum's value.

One read means that every number of a report speaks of the same moment of the store.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import duckdb
import polars as pl
import pyarrow as pa
from duckdb import SQLExpression

from curation.errors import NotFoundError, UsageError

DEFAULT_RULE = "outcome = 'success'"

_STRATA = "strata."
_ATTEMPTS = "attempts."


class Queryable(Protocol):
    """What answers SQL over the view ``attempts`` and the table ``selections``: a store."""

    def sql(self, query: str, params: Sequence[Any] | None = None) -> pa.Table:
        """The result of one query."""


class Stratum(NamedTuple):
    """A way to divide attempts: its name as asked for, in full, and the SQL that gives an attempt's value as text."""

    name: str
    source: str
    sql: str


def find_strata(store: Queryable, names: Iterable[str] | None) -> tuple[Stratum, ...]:
    """The strata of those names, each once; all declared ``strata.*`` names where no names are given.

    A name is a ``strata.*`` name or a column of ``attempts``, with or without the prefix ``strata.`` or ``attempts.``.
    Raises UsageError for a name that is neither, and for a bare one that is both.
    """
    columns = {field.name for field in attempts_schema(store) if not pa.types.is_nested(field.type)}
    declared = store.sql("SELECT DISTINCT unnest(map_keys(strata)) AS name FROM attempts ORDER BY name")["name"]
    labels = dict.fromkeys(declared.to_pylist())
    every = (f"{_STRATA}{label}" if label in columns else label for label in labels)
    wanted = every if names is None else names
    found: dict[str, Stratum] = {}
    for name in wanted:
        stratum = _find_stratum(name, columns, labels)
        found.setdefault(stratum.source, stratum)
    return tuple(found.values())


def rule_of_build(store: Queryable, build: str) -> str:
    """The rule that keeps what a build kept: attempts with a kept selection in it.

    Raises NotFoundError where the store holds no selections of that build.
    """
    known = store.sql("SELECT DISTINCT build FROM selections ORDER BY build")["build"].to_pylist()
    if build not in known:
        raise NotFoundError(f"no build {build!r} in the selections of this store; known: {', '.join(known) or 'none'}")
    return f"attempt_id IN (SELECT attempt FROM selections WHERE kept AND build = {_text(build)})"


def read_attempts(store: Queryable, rule: str, strata: Sequence[Stratum]) -> pl.DataFrame:
    """One row per attempt: ``task``, ``label``, ``outcome``, ``fault``, ``kept`` (null where the rule gives no answer),
    ``named`` (whether the log says which task it was), and the strata's values as ``v0``, ``v1``, ... in their order
    (null where the attempt has none).

    Raises UsageError where the rule is not one boolean expression over the columns of ``attempts``.
    """
    _check_rule(store, rule)
    values = "".join(f", {stratum.sql} AS v{index}" for index, stratum in enumerate(strata))
    query = f"""
        SELECT task_key AS task, concat_ws('/', namespace, task, variant) AS label, task IS NOT NULL AS named,
            outcome, fault, ({rule}\n) AS kept{values}
        FROM attempts
    """
    try:
        return pl.DataFrame(store.sql(query))
    except (duckdb.Error, UsageError) as error:
        raise UsageError(_complaint(store, rule, str(error.__cause__ or error))) from error


def attempts_schema(store: Queryable) -> pa.Schema:
    """The columns of the view ``attempts``."""
    return store.sql("SELECT * FROM attempts LIMIT 0").schema


def _find_stratum(name: str, columns: set[str], labels: dict[str, None]) -> Stratum:
    label, column = name.removeprefix(_STRATA), name.removeprefix(_ATTEMPTS)
    is_label, is_column = label in labels, column in columns
    if is_label and is_column:
        raise UsageError(
            f"stratum {name!r} is declared and a column too: write '{_STRATA}{name}' or '{_ATTEMPTS}{name}'"
        )
    if is_label:
        return Stratum(name, f"{_STRATA}{label}", f"strata[{_text(label)}]")
    if is_column:
        return Stratum(name, column, f"CAST({_identifier(column)} AS VARCHAR)")
    known = ", ".join([*(f"{_STRATA}{label}" for label in labels), *sorted(columns)])
    raise UsageError(f"unknown stratum {name!r}; known: {known}")


def _check_rule(store: Queryable, rule: str) -> None:
    try:
        SQLExpression(rule)
        bound = store.sql(f"SELECT ({rule}\n) AS kept FROM attempts WHERE ({rule}\n) LIMIT 0")
        moved = store.sql(f"SELECT count(*) AS n FROM attempts WHERE ({rule}\n) IS DISTINCT FROM ({rule}\n)")
    except (duckdb.Error, UsageError) as error:
        raise UsageError(_complaint(store, rule, str(error.__cause__ or error))) from error
    if bound.schema.types != [pa.bool_()]:
        kinds = ", ".join(str(kind) for kind in bound.schema.types)
        raise UsageError(_complaint(store, rule, f"it gives {kinds}, not true or false"))
    if moved["n"][0].as_py():
        why = "it gives another answer each time, so that no number could be computed again"
        raise UsageError(_complaint(store, rule, why))


def _complaint(store: Queryable, rule: str, why: str) -> str:
    columns, cause = ", ".join(attempts_schema(store).names), " ".join(why.split())
    return f"rule {rule!r} is no boolean SQL expression over attempts: {cause}; columns of attempts: {columns}"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'

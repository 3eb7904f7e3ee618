"""A DuckDB table with the columns of the view ``attempts``, and attempts to put into it."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

COLUMNS = """
    attempt_id VARCHAR, trajectory_id VARCHAR, task_key VARCHAR, namespace VARCHAR, task VARCHAR, variant VARCHAR,
    run VARCHAR, attempt INTEGER, model VARCHAR, messages INTEGER, outcome VARCHAR, fault BOOLEAN,
    strata MAP(VARCHAR, VARCHAR)
"""


class Try(NamedTuple):
    """One attempt: its task, how it ended, and the strata it is in."""

    task: str
    outcome: str = "failure"
    fault: bool = False
    strata: Mapping[str, str] = MappingProxyType({})
    model: str | None = "m"
    attempt: int = 0


class Attempts:
    """Answers SQL over a table of attempts and one of selections."""

    def __init__(self, tries: Iterable[Try] = (), kept: Iterable[tuple[str, int, bool]] = ()) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"CREATE TABLE attempts ({COLUMNS})")
        self._connection.execute("CREATE TABLE selections (build VARCHAR, kind VARCHAR, attempt VARCHAR, kept BOOLEAN)")
        rows = [_row(index, item) for index, item in enumerate(tries)]
        if rows:
            self._connection.executemany(f"INSERT INTO attempts VALUES ({', '.join('?' * 13)})", rows)
        for build, index, keep in kept:
            self._connection.execute(
                "INSERT INTO selections VALUES (?, 'first_action', ?, ?)", [build, f"a{index}", keep]
            )

    def sql(self, query: str, params: Sequence[Any] | None = None) -> pa.Table:
        """The result of one query."""
        return self._connection.sql(query, params=list(params or ())).to_arrow_table()


def _row(index: int, item: Try) -> tuple[Any, ...]:
    identity = f"a{index}"
    task = ("t" + item.task, "world", item.task, None, None, item.attempt)
    return (identity, identity, *task, item.model, 3, item.outcome, item.fault, dict(item.strata))


def seed() -> list[Try]:
    """100 tasks, one attempt each: 50 easy with 45 successes, 50 hard with 10."""
    return [
        Try(f"{level}-{number}", "success" if number < solved else "failure", strata={"difficulty": level})
        for level, solved in (("easy", 45), ("hard", 10))
        for number in range(50)
    ]

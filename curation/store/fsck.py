"""Reading everything again: hashes, files, history and links."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
from deltalake import DeltaTable

from curation.errors import StoreError
from curation.store import files
from curation.store.tables import TABLES
from schemas.canonical import digest

_KEPT = frozenset(("CREATE TABLE", "WRITE"))


class Problem(NamedTuple):
    """One thing that is not as it should be: an id or a file, its table, and what is wrong."""

    id: str
    table: str
    problem: str


class Checked(NamedTuple):
    """How many rows were read and hashed, and what was wrong."""

    rows: int
    problems: list[Problem]


def check(uri: str) -> Checked:
    """Read every row of every table of a store and check it against its name, its log and what it refers to.

    Nothing is repaired. A table whose newest log entry is torn is read at the last version that can be read.
    """
    rows = 0
    problems: list[Problem] = []
    seen: dict[str, set[str]] = {}
    links: list[tuple[str, str, str, str]] = []
    for table in TABLES:
        ids = seen.setdefault(table, set())
        try:
            delta, torn = _open(uri, table)
        except StoreError as error:
            problems.append(Problem(table, table, str(error)))
            continue
        problems.extend(Problem(entry, table, "torn log entry: its commit is not readable") for entry in torn)
        problems.extend(_history(delta, table))
        for path in files.data_files(delta):
            try:
                for identity, data, refers in _rows(uri, table, path):
                    rows += 1
                    if digest(data) != identity:
                        problems.append(Problem(identity, table, f"id_mismatch: its bytes are those of {digest(data)}"))
                    if identity in ids:
                        problems.append(Problem(identity, table, "the same id stands in two rows"))
                    ids.add(identity)
                    links.extend((identity, table, target, wanted) for target, wanted in refers)
            except (OSError, ValueError) as error:
                problems.append(Problem(path, table, f"torn or missing file: {error}"))
    bad = {problem.id for problem in problems}
    for identity, table, target, wanted in links:
        if wanted not in seen[target]:
            problems.append(Problem(identity, table, f"refers to {wanted} that is not in {target}"))
        elif wanted in bad and target == "trajectories" and table == "trajectories":
            problems.append(Problem(identity, table, f"is a fork of {wanted}, which is bad"))
    return Checked(rows, problems)


def _open(uri: str, table: str) -> tuple[DeltaTable, list[str]]:
    try:
        return files.open_table(uri, table), []
    except StoreError:
        log = Path(uri, table, "_delta_log")
        if not files.is_local(uri) or not log.is_dir():
            raise
        entries = sorted(log.glob("[0-9]*.json"), reverse=True)
        for entry in entries:
            version = int(entry.stem) - 1
            if version < 0:
                break
            try:
                return DeltaTable(f"{uri}/{table}", version=version), [e.name for e in entries if int(e.stem) > version]
            except Exception:  # noqa: S112 - any failure means: look further back
                continue
        raise


def _history(table: DeltaTable, name: str) -> Iterator[Problem]:
    for entry in table.history():
        operation = entry.get("operation", "?")
        if operation not in _KEPT or entry.get("operationParameters", {}).get("mode") == "Overwrite":
            yield Problem(
                f"version {entry.get('version')}", name, f"the table was changed by {operation}, not appended to"
            )


def _rows(uri: str, table: str, path: str) -> Iterator[tuple[str, bytes, list[tuple[str, str]]]]:
    content = "bytes" if table == "objects" else "record"
    links = _LINKS.get(table, {})
    with files.storage(uri, table).open_input_file(path) as source:
        parquet = pq.ParquetFile(source)
        for batch in parquet.iter_batches(batch_size=1_000, columns=["id", content, *links]):
            for row in batch.to_pylist():
                data = row[content]
                refers = [(target, row[column]) for column, target in links.items() if row[column] is not None]
                yield row["id"], data if isinstance(data, bytes) else data.encode(), refers


_LINKS: dict[str, dict[str, str]] = {
    "sightings": {"raw": "objects"},
    "trajectories": {"tools": "objects", "parent": "trajectories"},
}
"""Columns that name a row of another table which must be there. Statements may come before their trajectory."""

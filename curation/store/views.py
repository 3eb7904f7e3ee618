"""The DuckDB face of a store: the eight tables and the views over them.

Which statement holds is decided in ``curation.store.effective`` alone; here stand the tables and their connection.
"""

import re
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

import duckdb
from deltalake import DeltaTable

from curation.store.effective import VIEWS
from curation.store.files import data_files, is_local
from curation.store.tables import TABLES

MISMATCH = "id_mismatch"
Settings = Mapping[str, str | bool | int | float | list[str]]
DEFAULT: Settings = {"threads": 2}


def connect(
    uri: str,
    tables: Mapping[str, DeltaTable],
    torn: Mapping[str, Sequence[str]],
    *,
    verify: bool,
    settings: Settings = DEFAULT,
) -> duckdb.DuckDBPyConnection:
    """A connection that can read this store and nothing else, with every table and view defined.

    Files named in ``torn`` are left out of the views. With ``verify``, a query that reads content which is not what its
    id names fails with ``id_mismatch``; one that reads other columns alone costs nothing more.
    """
    connection = duckdb.connect(config=dict(settings))
    for name, table in tables.items():
        attach(connection, uri, name, table, torn.get(name, ()), verify=verify)
    for statement in VIEWS:
        connection.execute(statement)
    if is_local(uri):
        folder = Path(uri).resolve()
        allowed = ", ".join(_literal(f"{form}/") for form in (folder, _verbatim(folder)))
        connection.execute(f"SET allowed_directories = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def attach(
    connection: duckdb.DuckDBPyConnection,
    uri: str,
    name: str,
    table: DeltaTable,
    without: Container[str] = (),
    *,
    verify: bool = False,
) -> None:
    """Define a view over a table's data files, but for those named in ``without``."""
    paths = [path for path in data_files(table) if path not in without]
    if paths and is_local(uri):
        listed = ", ".join(_literal(_verbatim(Path(uri, name, path).resolve())) for path in paths)
        source = f"read_parquet([{listed}])"
    else:
        source = f"{name}_files"
        connection.register(source, table.to_pyarrow_dataset() if paths else TABLES[name].empty_table())
    content = "bytes" if name == "objects" else "record"
    columns = f"* REPLACE ({verified(content)})" if verify else "*"
    connection.execute(f"CREATE TEMP VIEW {name} AS SELECT {columns} FROM {source}")


def verified(content: str) -> str:
    """A column whose bytes are those that the row's id names; a query that reads others fails with ``id_mismatch``."""
    mismatch = f"error('{MISMATCH}: the content of ' || id || ' is not what its id names')"
    return f"CASE WHEN sha256({content}) = id THEN {content} ELSE {mismatch} END AS {content}"


def _verbatim(path: Path) -> str:
    """A path that DuckDB does not take for a pattern."""
    return re.sub(r"([\[*?])", r"[\1]", str(path))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

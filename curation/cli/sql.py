"""``curate sql``: one query over the store's tables and views."""

from collections.abc import Iterable
from typing import Annotated

import typer

from curation.cli.options import JsonOption, MaxBytesOption, SecondsOption, StoreOption


def sql(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="One SELECT in DuckDB's dialect.")],
    seconds: SecondsOption = None,
    max_bytes: MaxBytesOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Query the store in SQL.

    Its tables are trajectories, objects, sightings, annotations, findings, verifications, selections and tombstones.
    The views attempts, effective_annotations, effective_findings and effective_verifications say what holds. A column
    whose name is taken gets a number. What it prints is as stored: secrets are not masked.
    """
    import msgspec

    from curation.cli.memory import bounded_memory
    from curation.cli.options import open_store, read_bounds
    from curation.cli.output import finish

    class QueryResult(msgspec.Struct):
        columns: list[str]
        rows: list[dict[str, object]]

    columns: list[str] = []
    rows: list[dict[str, object]] = []
    with bounded_memory():
        for batch in open_store(store).ask(query, read_bounds(seconds, max_bytes)):
            columns = _distinct(batch.schema.names)
            rows += batch.rename_columns(columns).to_pylist(maps_as_pydicts="lossy")
    finish(QueryResult(columns, rows), as_json=as_json, whole=True, as_stored=True)


def _distinct(names: Iterable[str]) -> list[str]:
    """The names in their order, those that were there before with the first free number: ``a``, ``a_1``."""
    listed = list(names)
    found: dict[str, None] = {}
    for name in listed:
        free, number = name, 0
        while free in found or (number and free in listed):
            number += 1
            free = f"{name}_{number}"
        found[free] = None
    return list(found)

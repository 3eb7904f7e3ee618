"""``curate sql``: one query over the store's tables and views."""

from collections.abc import Iterable
from typing import Annotated

import typer

from curation.cli.options import JsonOption, StoreOption


def sql(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="One SELECT in DuckDB's dialect.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Query the store in SQL.

    Its tables are trajectories, objects, sightings, annotations, findings, verifications, selections and tombstones.
    The views attempts, effective_annotations, effective_findings and effective_verifications say what holds. A column
    whose name is taken gets a number.
    """
    import msgspec

    from curation.cli.options import open_store
    from curation.cli.output import finish

    class QueryResult(msgspec.Struct):
        columns: list[str]
        rows: list[dict[str, object]]

    table = open_store(store).sql(query)
    columns = _distinct(table.column_names)
    rows = table.rename_columns(columns).to_pylist(maps_as_pydicts="lossy")
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

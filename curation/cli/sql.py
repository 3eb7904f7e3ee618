"""``curate sql``: one query over the store's tables and views."""

from typing import Annotated

import typer

from curation.cli.options import JsonOption, StoreOption


def sql(
    query: Annotated[str, typer.Argument(help="One SELECT in DuckDB's dialect.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Query the tables trajectories, objects, sightings, annotations, findings, verifications and selections.

    The views attempts, effective_annotations, effective_findings and effective_verifications say what holds.
    """
    import msgspec

    from curation.cli.options import open_store
    from curation.cli.output import finish

    class QueryResult(msgspec.Struct):
        columns: list[str]
        rows: list[dict[str, object]]

    table = open_store(store).sql(query)
    rows = table.to_pylist(maps_as_pydicts="lossy")
    finish(QueryResult(table.column_names, rows), as_json=as_json)

"""``curate annotate``: late facts of attempts that are in the store, from a file or a query."""

from pathlib import Path
from typing import Annotated

import typer

from curation.cli.options import JsonOption, MaxBytesOption, SecondsOption, StoreOption


def annotate(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Side file: JSON Lines, CSV or Parquet.", exists=True, dir_okay=False),
    ] = None,
    query: Annotated[
        str | None,
        typer.Option("--sql", metavar="QUERY", help="Instead of FILE: SELECT id AS key, … FROM 'x.parquet' (DuckDB)."),
    ] = None,
    key: Annotated[
        str,
        typer.Option(
            metavar="POINTER",
            help="What a line's key is: a JSON pointer into the log's records, file:line, run or attempt_id.",
        ),
    ] = "/id",
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="COLUMN=KEY",
            help="A column that has another name than its key; COLUMN= leaves it out, *= all others.",
        ),
    ] = None,
    outcome: Annotated[str | None, typer.Option(metavar="COLUMN", help="The column that holds the outcome.")] = None,
    verifier: Annotated[str, typer.Option(metavar="NAME@VERSION", help="Who found out the outcomes.")] = "",
    template: Annotated[
        Path | None,
        typer.Option(metavar="NEW", help="Write an empty side file instead (.csv, else JSON Lines): what is missing."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Match and count; write nothing.")] = False,
    seconds: SecondsOption = None,
    max_bytes: MaxBytesOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say more, or better, of attempts that were imported.

    Outcomes, strata, split, environment, stop and what else a side file may say. Records and attempts stay as they are.
    What a line does not mention stays as it was said before.

    Of outcomes holds the word of a person, then of an environment, the log, a side file, a rule; of other facts of a
    person, then of a side file, the log, a rule; who says unknown hides nobody. What is overruled so is counted.
    """
    from contextlib import nullcontext

    from curation.annotate import annotate as apply
    from curation.blank_side_file import write_blank
    from curation.cli.memory import bounded_memory
    from curation.cli.options import open_store, read_bounds
    from curation.cli.output import finish
    from curation.errors import UsageError
    from curation.importers.side_columns import SideLines, read_columns
    from curation.importers.side_rows import rows_of, rows_of_query

    if [file, query, template].count(None) != 2:
        raise UsageError("one source is wanted: a FILE, an --sql query, or a --template to be written")
    if verifier and not all(verifier.partition("@")):
        raise UsageError(f"--verifier {verifier!r} is no NAME@VERSION, as in swebench@2.1")
    if template is not None:
        if columns or outcome or verifier or dry_run:
            raise UsageError("--template reads nothing: it goes with --key alone")
        finish(write_blank(open_store(store), template, key), as_json=as_json)
        return
    rows = rows_of(file) if file is not None else rows_of_query(query or "")
    bounded = rows._replace(bounds=read_bounds(seconds, max_bytes))
    lines = SideLines(bounded, read_columns(columns or (), outcome))
    with nullcontext() if query is None else bounded_memory():
        result = apply(open_store(store), lines, key, verifier=verifier, dry_run=dry_run)
    finish(result, as_json=as_json, wrong=result.unmatched > 0)

"""``curate annotate``: a side file over attempts that are in the store."""

from pathlib import Path
from typing import Annotated

import typer

from curation.cli.options import JsonOption, StoreOption


def annotate(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Side file: one JSON object a line.", exists=True, dir_okay=False)
    ],
    key: Annotated[
        str, typer.Option(metavar="POINTER", help="JSON pointer into the log's records: where a line's key stands.")
    ] = "/id",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Match and count; write nothing.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say more, or better, of attempts that were imported.

    Outcomes, strata, split, environment, stop and what else a side file may say. Records and attempts stay as they are.
    What a line does not mention stays as it was said before.
    """
    from curation.annotate import annotate as apply
    from curation.cli.options import open_store
    from curation.cli.output import finish

    result = apply(open_store(store), file, key, dry_run=dry_run)
    finish(result, as_json=as_json, wrong=result.unmatched > 0)

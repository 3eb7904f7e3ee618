"""``curate build``: training rows."""

from pathlib import Path
from typing import Annotated

import typer

from curation.cli.options import JsonOption, StoreOption


def build(
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new folder, or one that an earlier build wrote.")],
    kinds: Annotated[
        list[str] | None, typer.Argument(metavar="[KIND]...", help="first_action, recovery, preference; default all.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Build rows that trainers load unchanged; every decision is kept or refused with all the checks it failed."""
    from builders.build import build as build_rows
    from curation.cli.options import open_store
    from curation.cli.output import finish

    finish(build_rows(open_store(store), kinds or None, out), as_json=as_json)

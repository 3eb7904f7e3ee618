"""``curate forget``: erasure."""

from pathlib import Path
from typing import Annotated

import typer

from curation.cli.options import JsonOption, StoreOption


def forget(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="ID", help="Attempts, trajectories, forks or objects; with --key, its values."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY",
            help="What is given are values of it: a JSON pointer into the log, file:line, run, attempt_id.",
        ),
    ] = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it is kept, so name nobody.")] = "",
    by: Annotated[str, typer.Option(metavar="NAME", help="Who erases; it is kept.")] = "",
    build: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A folder that a build wrote: mark what in it is to be built again."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Erase; without it nothing is changed, only told.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Erase an attempt's bytes for good; it still counts.

    Its record, raw lines, blobs, forks and what was said of it go, and a tombstone stays. Without --yes this only says
    what would go. Cut off, it is ended by running it again.
    """
    from builders.output import mark_erased
    from curation.cli.options import open_store
    from curation.cli.output import finish
    from curation.errors import UsageError
    from curation.forget import Rebuild
    from curation.forget import forget as apply

    if not names and not yes:
        raise UsageError("name what is to be erased; or give --yes alone, which ends an erasure that was cut off")
    result = apply(open_store(store), names or [], key=key, reason=reason, by=by, dry_run=not yes)
    rows = {(item.build, item.kind): item.samples for item in result.builds}
    result.rebuild = [Rebuild(str(folder), **mark_erased(folder, rows, write=yes)) for folder in build or ()]
    finish(result, as_json=as_json, wrong=bool(result.unread))

"""``curate export``: records as files of another format."""

from pathlib import Path
from typing import Annotated

import typer

from curation.cli.options import JsonOption, StoreOption


def export(
    format_: Annotated[str, typer.Argument(metavar="FORMAT", help="atif or openai-chat.")],
    identities: Annotated[
        list[str], typer.Argument(metavar="ID", help="Trajectories or attempts, by their ids or as a log calls them.")
    ],
    out: Annotated[Path, typer.Option(file_okay=False, help="The folder to write into.")],
    allow_secret: Annotated[
        list[str] | None,
        typer.Option(metavar="DIGEST", help="A secret that is not masked, by its digest or the first 8 digits."),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write trajectories as ATIF (a file each) or as chats (one file), with what is known beside them.

    Both can be imported again: what persons, environments and side files said is then the log's own word, with their
    names, and checks of decisions are not read. Secrets are masked, in the records and in what is known beside them.
    """
    from curation.cli.options import open_store
    from curation.cli.output import finish
    from curation.jobs.exporting import export_trajectories

    finish(export_trajectories(open_store(store), identities, format_, out, allow_secret or ()), as_json=as_json)

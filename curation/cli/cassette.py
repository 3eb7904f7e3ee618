"""``curate environment cassette``: what a store's calls were answered, kept for when their world is gone."""

from pathlib import Path
from typing import Annotated

import typer

from curation.cli.options import JsonOption, StoreOption


def cassette(
    out: Annotated[Path, typer.Option(dir_okay=False, metavar="FILE", help="Where to: a JSON Lines file.")],
    identities: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ID",
            help="Trajectories or attempts, by their ids or as a log calls them. [default: all attempts]",
            show_default=False,
        ),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write recorded answers as an environment.

    It is cassette:FILE, gives them back and executes nothing. Replay in it never confirms an answer, and no fork starts
    from it. An older cassette is written over, any other file stays as it is.
    """
    from curation.cli.options import open_store
    from curation.cli.output import finish
    from curation.jobs.recording import record_cassette
    from curation.store.lookup import resolve_trajectory

    opened = open_store(store)
    named = [resolve_trajectory(opened, identity) for identity in identities or ()]
    finish(record_cassette(opened, out, named or None), as_json=as_json)

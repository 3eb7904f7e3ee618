"""``curate init``: an empty store."""

from typing import Annotated

import typer

from curation.cli.options import FOLDER, JsonOption


def init(
    store: Annotated[
        str | None, typer.Option("--store", metavar="URI", help=f"Where to; by default {FOLDER} in this folder.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Create an empty store in this folder, or at --store URI."""
    import msgspec

    from curation.cli.output import finish
    from curation.store import Store

    class Initialised(msgspec.Struct):
        store: str

    uri = store or FOLDER
    Store.create(uri)
    finish(Initialised(uri), as_json=as_json)

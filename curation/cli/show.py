"""``curate show``: what the store knows about an id."""

from typing import Annotated

import typer

from curation.cli.options import JsonOption, StoreOption


def show(
    identity: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="Anything the store has an id for, or a run's name."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Without an id: how many attempts to list.")] = 50,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one thing with all that hangs on it (ids may be shortened), or list the attempts.

    A row prints its chain down to the log line, an attempt its findings, checks, forks and every refusal.
    """
    from curation.cli.options import open_store
    from curation.cli.output import finish
    from curation.show import list_attempts
    from curation.show import show as view
    from curation.store.lookup import resolve

    opened = open_store(store)
    finish(
        list_attempts(opened, limit) if identity is None else view(opened, resolve(opened, identity)), as_json=as_json
    )

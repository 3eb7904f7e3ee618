"""``curate diagnose``: the earliest confirmable deviation of every attempt."""

from typing import Annotated

import typer

from curation.cli.options import JsonOption, StoreOption


def diagnose(
    environment: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose declarations count; by default the one that replayed.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find by rule what went wrong at which decision.

    Every finding points at its evidence. What stopped an attempt is kept apart from what went wrong.
    """
    from curation.cli.options import open_store
    from curation.cli.output import finish
    from curation.jobs.diagnosing import diagnose_attempts

    finish(diagnose_attempts(open_store(store), environment), as_json=as_json)

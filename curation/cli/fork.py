"""``curate fork``: both forks of one decision, with a call that a person gives."""

from typing import Annotated

import typer

from curation.cli.options import EnvironmentOption, JsonOption, StoreOption


def fork(
    identity: Annotated[str, typer.Argument(metavar="ID", help="The trajectory or attempt.")],
    at: Annotated[int, typer.Option(min=0, metavar="MESSAGE", help="The index of the wrong decision's message.")],
    call: Annotated[
        list[str],
        typer.Option(
            metavar="JSON",
            help='The right call: {"name": ..., "arguments": {...}}. What takes the mistake\'s effect back comes '
            "before it, each call with a --call of its own: the clean fork holds only the last call; the recovery "
            "executes all in order, and its row trains the first.",
        ),
    ],
    environment: EnvironmentOption,
    author: Annotated[str, typer.Option(help="Who proposes the call.")] = "command line",
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Execute a corrected call before and after a wrong decision, and store both forks with what was answered.

    The correction is also its author's word that the decision was wrong: a finding. The author is taken to have read
    the whole log, the error included. Exit code 1 where a fork is refused.
    """
    from curation.cli.options import open_store
    from curation.cli.output import finish
    from curation.jobs.forking import fork_attempt
    from curation.proposals import read_calls
    from curation.store.lookup import resolve_trajectory

    opened = open_store(store)
    proposal = read_calls(resolve_trajectory(opened, identity), at, call, author)
    result = fork_attempt(opened, environment, proposal)
    finish(result, as_json=as_json, wrong=not all(line.verified for line in result.forks))

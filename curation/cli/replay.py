"""``curate replay``: are the logged answers the real ones?"""

from typing import Annotated

import typer

from curation.cli.options import ControlOption, EnvironmentOption, JsonOption, StoreOption


def replay(
    environment: EnvironmentOption,
    find_version: Annotated[
        bool,
        typer.Option("--find-version", help="Choose the version of runs that do not record it, on half of the tasks."),
    ] = False,
    seed: Annotated[int, typer.Option(help="With --find-version: which half of the tasks chooses.")] = 0,
    control: ControlOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Execute the logged calls again and compare their answers.

    Takes the attempts that were recorded in this environment or in none that is known. Exit code 1 where an answer is
    different, or no version could be chosen.
    """
    from curation.cli.options import open_store, read_controls
    from curation.cli.output import finish
    from curation.jobs.replaying import replay_attempts
    from curation.jobs.versions import find_versions

    if find_version:
        found = find_versions(open_store(store), environment, seed, read_controls(control))
        finish(found, as_json=as_json, wrong=any(run.version is None for run in found.runs))
    else:
        result = replay_attempts(open_store(store), environment, read_controls(control))
        finish(result, as_json=as_json, wrong=result.different > 0)

"""``curate environment power``: how many wrong calls would a check let by?"""

from typing import Annotated

import typer

from curation.cli.options import ControlOption, JsonOption, StoreOption, importable


def power(
    environment: Annotated[
        str, typer.Argument(metavar="NAME", callback=importable, help="The environment: NAME or module:attr.")
    ],
    values: Annotated[int, typer.Option(min=1, max=20, help="Wrong calls for each right one.")] = 3,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Right calls to try in each world. [default: all]")
    ] = None,
    seed: Annotated[int, typer.Option(help="Sets which calls and values are tried.")] = 0,
    control: ControlOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Count the wrong calls that pass the checks, too.

    Wrong calls are executed in the place of right ones. Right calls are those of attempts that passed their task by the
    environment's own check. One argument is swapped for a value that the same tool and argument has elsewhere, in the
    same state; then the rest of the run follows. A check that more than one in five wrong calls pass supports no
    correction from then on.
    """
    from curation.cli.options import open_store, read_controls
    from curation.cli.output import finish
    from curation.jobs.powering import measure_power

    controls = read_controls(control)
    result = measure_power(open_store(store), environment, controls, values=values, limit=limit, seed=seed)
    finish(result, as_json=as_json)

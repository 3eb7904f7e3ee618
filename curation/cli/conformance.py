"""``curate environment new`` and ``check``: a world of one's own, and whether it keeps its promises."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from curation.cli.options import ControlOption, JsonOption, StoreOption, importable


class NewWorld(msgspec.Struct):
    """Where the scaffold is, the environment's name, and what to do next."""

    path: str
    environment: str
    next: str


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the module and of the world.")],
    out: Annotated[Path, typer.Option(exists=True, file_okay=False, metavar="DIR", help="Where to.")] = Path(),
    as_json: JsonOption = False,
) -> None:
    """Write NAME.py, a small world to change.

    It works as it is: tools, a start state, effects, faults and a check of tasks. No file is ever written over.
    """
    from curation.cli.output import finish
    from environments.scaffold import write_scaffold

    path = write_scaffold(name, out)
    finish(NewWorld(str(path), f"{name}:world", f"curate environment check {name}:world"), as_json=as_json)


def check(
    environment: Annotated[
        str, typer.Argument(metavar="NAME", callback=importable, help="The environment: NAME or module:attr.")
    ],
    control: ControlOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say which promises an environment keeps.

    Calls are executed in several processes, and what was not tested does not count; the end says what may be verified
    here. Calls are the environment's own examples, some made from the schemas of its tools, and those of attempts
    recorded in it, where a store is named or found. External tools are never executed. Exit code 1 where a promise is
    broken.
    """
    from curation.cli.options import find_store, open_store, read_controls
    from curation.cli.output import finish
    from curation.errors import UsageError
    from curation.jobs.examining import examine_environment

    try:
        uri = store or find_store()
    except UsageError:  # there is none: the environment is examined without
        uri = None
    opened = None if uri is None else open_store(uri)
    result = examine_environment(environment, opened, read_controls(control), named=store is not None)
    finish(result, as_json=as_json, wrong=result.failed > 0)

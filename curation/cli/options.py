"""Options that several verbs share, and the store a command is about."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curation.errors import UsageError

if TYPE_CHECKING:
    from curation.queries import Bounds
    from curation.store import Store
    from environments.protocol import Controls

FOLDER = ".curation"

StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="URI", help=f"The store; by default {FOLDER}, found upward from this folder."),
]
SecondsOption = Annotated[
    float | None, typer.Option("--seconds", metavar="N", min=0.001, help="How long a query may take. [default: 300]")
]
MaxBytesOption = Annotated[
    int | None,
    typer.Option(
        "--max-bytes",
        metavar="N",
        min=1,
        help="How large its result may be, or each 4096 rows where it is read as it comes. [default: 64 MiB]",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def importable(name: str) -> str:
    """Let a module of the user's own be found in this folder too, after all that is installed."""
    if ":" in name and (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    return name


EnvironmentOption = Annotated[
    str,
    typer.Option(
        "--environment",
        metavar="NAME",
        help="Where calls are executed: module:attr of your own, inventory, booking, or a family's world such as "
        "agentdojo:banking@v1.2.1.",
        callback=importable,
    ),
]


ControlOption = Annotated[
    list[str] | None,
    typer.Option(
        "--control",
        metavar="NAME=VALUE",
        help="Hold something else fixed while calls execute; may be repeated. clock: an ISO time, recorded (the time "
        "that the log gives; the default) or wall. Also seed, hash_seed, locale, time_zone, folder, timeout_s, cpu_s, "
        "memory_bytes, file_bytes, max_output.",
    ),
]


def read_controls(given: Sequence[str] | None) -> "Controls":
    """Controls from NAME=VALUE pairs. Raises UsageError, and ControlError for a value that cannot be held."""
    import msgspec

    from environments.clock import RECORDED
    from environments.protocol import Controls

    held = {"clock": RECORDED}
    for pair in given or ():
        name, equals, value = pair.partition("=")
        if not equals or name not in Controls.__struct_fields__:
            raise UsageError(f"--control {pair!r} is no NAME=VALUE; names: {', '.join(Controls.__struct_fields__)}")
        held[name] = value
    try:
        return msgspec.convert(held, Controls, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"--control: {error}") from None


def read_bounds(seconds: float | None, max_bytes: int | None) -> "Bounds":
    """The bounds of a query, those that are given and else their defaults."""
    from curation.queries import Bounds

    default = Bounds()
    return Bounds(seconds or default.seconds, max_bytes or default.result_bytes)


def open_store(uri: str | None) -> "Store":
    """The store named, or the nearest one upward. Raises UsageError where there is none."""
    from curation.store import Store

    return Store.open(uri or find_store())


def find_store() -> str:
    """The nearest store folder, from this folder upward."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / FOLDER).is_dir():
            return os.path.relpath(folder / FOLDER)
    raise UsageError(f"no {FOLDER} in {str(here)!r} or above it: run `curate init`, or name one with --store")

"""``curate show``: what the store knows about an id."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from curation.cli.options import JsonOption, StoreOption

if TYPE_CHECKING:
    from curation.store import Store


def show(
    identity: Annotated[
        str | None,
        typer.Argument(
            metavar="ID",
            help="An id of anything in the store, shortened or not; or how a log calls a run: its name, or its id.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Without an id: how many attempts to list.")] = 50,
    build: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Whose decisions to show, an id or a build's folder. [default: newest]"),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="As it is stored: secrets are not masked.")] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one thing with all that hangs on it, or list attempts.

    A row prints its messages and its chain down to the log line, an attempt its findings, checks, forks and every
    refusal. Decisions are those of the newest build of each kind.
    """
    from curation.cli.options import open_store
    from curation.cli.output import finish
    from curation.show import list_attempts
    from curation.show import show as view
    from curation.store.lookup import resolve

    opened = open_store(store)
    if identity is None:
        finish(list_attempts(opened, limit), as_json=as_json, as_stored=raw)
    else:
        chosen = None if build is None else _build(opened, build)
        found = view(opened, resolve(opened, identity), chosen, as_stored=raw)
        finish(found, as_json=as_json, as_stored=raw)


def _build(store: "Store", name: str) -> str:
    """A build by its id, which may be shortened, or by the folder that it wrote."""
    from builders.output import read_build_id
    from curation.errors import NotFoundError

    prefix = read_build_id(Path(name)) if Path(name).is_dir() else name
    match store.find("selections", "build", prefix, 2):
        case [found]:
            return found
        case []:
            raise NotFoundError(f"no build of id {prefix!r} in {store.uri!r}; `curate show ID` lists those of an id")
        case _:
            raise NotFoundError(f"--build {prefix!r} is not unique; give more characters")

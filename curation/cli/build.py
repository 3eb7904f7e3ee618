"""``curate build``: training rows."""

from pathlib import Path
from typing import Annotated

import typer

from curation.cli.options import JsonOption, StoreOption
from schemas.rows import HELD_OUT, Wanted


def build(
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new folder, or one that an earlier build wrote.")],
    kinds: Annotated[
        list[str] | None, typer.Argument(metavar="KIND", help="first_action, recovery, preference; default all.")
    ] = None,
    level: Annotated[Wanted, typer.Option(help="How far a decision must be confirmed.")] = "execution",
    hold_out: Annotated[
        list[str] | None,
        typer.Option(metavar="SPLIT", help=f"A split that gives no rows; default {', '.join(HELD_OUT)}."),
    ] = None,
    allow_secret: Annotated[
        list[str] | None,
        typer.Option(metavar="DIGEST", help="A secret that is not masked, by its digest or the first 8 digits."),
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Build rows that trainers load unchanged.

    Every decision is kept, or refused with all the checks that it failed. Secrets of the logs are masked in rows.
    What hangs together with a held-out split, by task, group or the text of a task, gives no row; ends with 1 where a
    group or a text is said to be in such a split and in another.
    """
    from builders.build import build as build_rows
    from curation.cli.options import open_store
    from curation.cli.output import finish

    result = build_rows(
        open_store(store),
        kinds or None,
        out,
        level=level,
        held_out=hold_out or HELD_OUT,
        allowed_secrets=allow_secret or (),
    )
    finish(result, as_json=as_json, wrong=result.both_sides is not None and result.both_sides.in_both > 0)

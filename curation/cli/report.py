"""``curate report``: what a selection did."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from curation.cli.options import JsonOption, StoreOption

app = typer.Typer(help="Reports on what is in the store.", no_args_is_help=True)


@app.callback()
def reports() -> None:
    """Reports on what is in the store."""


@app.command("selection-bias")
def selection_bias(
    build: Annotated[
        Path | None, typer.Option(metavar="DIR", exists=True, file_okay=False, help="What a build kept.")
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="Boolean SQL over the view attempts. [default: outcome = 'success']"),
    ] = None,
    by: Annotated[
        list[str] | None, typer.Option(metavar="STRATUM", help="A strata.* name or a column of attempts; repeatable.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the report: .html, .md or .json.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what filtering keeps of every stratum.

    With intervals, the attempts spent, and what is missing afterwards.
    """
    from builders.output import read_build_id
    from curation.cli.document import print_document
    from curation.cli.options import open_store
    from curation.cli.output import finish
    from curation.errors import UsageError
    from curation.targets import refuse_target
    from reports.document import document
    from reports.markdown import markdown
    from reports.page import page
    from reports.selection_bias import SelectionBias
    from reports.selection_bias import selection_bias as measure
    from schemas.canonical import encode

    faces: dict[str, Callable[[SelectionBias], str]] = {
        ".html": page,
        ".md": markdown,
        ".json": lambda report: encode(report).decode() + "\n",
    }
    if out is not None and out.suffix not in faces:
        raise UsageError(f"--out {str(out)!r}: the ending says the format; give .html, .md or .json")
    opened = open_store(store)
    if out is not None:
        refuse_target(out, opened)
    result = measure(opened, keep=keep, build=None if build is None else read_build_id(build), by=by or None)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(faces[out.suffix](result), encoding="utf-8")
    if as_json:
        finish(result, as_json=True)
    elif sys.stdout.isatty():
        print_document(document(result))
    else:
        sys.stdout.write(markdown(result))

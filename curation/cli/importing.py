"""``curate import``: logs into the store."""

from pathlib import Path
from typing import Annotated

import typer

from curation.cli.options import JsonOption, StoreOption

_LARGE = 2 * 2**20  # bytes from which on reading in several processes saves time


def import_(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH", help="Log files, folders of them, or data sets: hf:OWNER/NAME[:SPLIT], hf:FOLDER."
        ),
    ],
    format_: Annotated[
        str, typer.Option("--format", help="auto decides by content, or a name that `curate formats` lists.")
    ] = "auto",
    manifest: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="Side file, JSON Lines, CSV or Parquet: what the log does not say."
        ),
    ] = None,
    namespace: Annotated[str | None, typer.Option(help="The namespace of tasks where the log names none.")] = None,
    run: Annotated[str | None, typer.Option(help="Import as another try of the same tasks, of this name.")] = None,
    revise: Annotated[
        bool, typer.Option("--revise", help="The same tries, read better: the new records hold.")
    ] = False,
    attempts: Annotated[
        str, typer.Option(help="log: identical rows are one try; order: each is a try of its own, numbered.")
    ] = "log",
    max_record_bytes: Annotated[int, typer.Option(min=1, help="A larger record is quarantined, unread.")] = 256 * 2**20,
    readmit: Annotated[
        bool, typer.Option("--readmit", help="Let in again what `curate forget` erased; else it is refused.")
    ] = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read logs into the store.

    What is there already is only seen again; what cannot be read is quarantined, with its place and a code. Losses are
    what the records do not hold as the log had it. Of these, and of files passed over, a person is shown the first; all
    that is quarantined is in the table sightings, the rest in --json. Exit code 1 where something is quarantined, or a
    line of the side file is about no record.
    """
    import os
    import time

    from curation.cli.import_summary import summary
    from curation.cli.options import open_store
    from curation.cli.output import finish
    from curation.errors import UsageError
    from curation.hub import find_all
    from curation.importers.side_file import SideFile
    from curation.ingest import IngestOptions, ingest
    from curation.prepared import Reading
    from curation.readers import Readers

    if attempts not in ("log", "order"):
        raise UsageError(f"--attempts {attempts!r}: give log (identical rows are one try) or order (each is its own)")
    started = time.monotonic()
    side = SideFile(manifest) if manifest else None
    sources = find_all(paths, format_)
    large = sum(source.path.stat().st_size for source in sources.files) > _LARGE
    options = IngestOptions(
        Reading(side, namespace, run),
        revise,
        number=attempts == "order",
        limit=max_record_bytes,
        readmit=readmit,
    )
    with Readers((os.cpu_count() or 1) if large else 1) as readers:
        result = ingest(open_store(store), sources, options, readers)
    result.seconds = round(time.monotonic() - started, 3)
    finish(result if as_json else summary(result), as_json=as_json, wrong=result.quarantined + result.unmatched > 0)

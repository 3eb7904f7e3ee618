"""Logs written to disk and imported through the public face."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from curation.importers.side_columns import SideLines
from curation.importers.side_file import SideFile
from curation.importers.side_rows import rows_of
from curation.ingest import IngestOptions, find_sources, ingest
from curation.prepared import Reading
from curation.store import Store
from curation.tally import IngestResult
from tests.eight import FOUND, TOOLS, UNKNOWN, look_up, say


def new_store(folder: Path, name: str = "store") -> Store:
    """An empty store."""
    return Store.create(str(folder / name))


def run(identity: str | None, sku: str = "A17", **more: Any) -> dict[str, Any]:
    """A log line: one look-up and an answer."""
    answer = FOUND if sku == "A17" else UNKNOWN
    messages = [{"role": "user", "content": "stock of A17?"}, *look_up("c1", sku, answer), say("Done.")]
    line = {"messages": messages, "tools": TOOLS, **more}
    return line if identity is None else {"id": identity, **line}


def write(path: Path, lines: Iterable[Any]) -> Path:
    """A JSON Lines file; bytes stand as they are, anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    )
    return path


def import_file(
    store: Store,
    path: Path,
    *,
    side: Path | None = None,
    namespace: str | None = None,
    run_name: str | None = None,
    revise: bool = False,
    readmit: bool = False,
    number: bool = False,
) -> IngestResult:
    """Import one file; every result adds up."""
    reading = Reading(None if side is None else SideFile(side), namespace, run_name)
    options = IngestOptions(reading, revise=revise, readmit=readmit, number=number)
    result = ingest(store, find_sources([path], "auto"), options)
    assert result.accepted + result.duplicates + result.quarantined == result.read
    assert sum(result.reasons.values()) == result.quarantined
    return result


def said(path: Path) -> SideLines:
    """The lines of a side file."""
    return SideLines(rows_of(path))


def import_lines(store: Store, folder: Path, lines: Iterable[Any], name: str = "log.jsonl", **how: Any) -> IngestResult:
    """Write lines to a file and import it."""
    return import_file(store, write(folder / name, lines), **how)


def attempts(store: Store) -> list[dict[str, Any]]:
    """The view that reports read, row by row."""
    rows: list[dict[str, Any]] = store.sql("SELECT * FROM attempts ORDER BY attempt_id, trajectory_id").to_pylist(
        maps_as_pydicts="strict"
    )
    return rows


def records(store: Store) -> dict[str, str]:
    """Every stored record by id."""
    rows = store.sql("SELECT id, record FROM trajectories")
    return dict(zip(rows["id"].to_pylist(), rows["record"].to_pylist(), strict=True))

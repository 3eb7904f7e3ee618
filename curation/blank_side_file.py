"""An empty side file for the attempts of a store: what each is called, and what is not known of it."""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from curation.attempt_index import OWN_ID, PLACE, AttemptIndex, LiveAttempt
from curation.errors import UsageError
from curation.importers.formulas import KNOWN, NOTE, escape
from curation.store import Store
from schemas.canonical import encode

_FACTS = ("outcome", "environment", "tools", "stop", "split", "group")
_NAMING = ("namespace", "task", "variant", "run", "attempt")


class BlankResult(msgspec.Struct):
    """A file with a line for each attempt of which something is missing, and of how many attempts what is."""

    file: str
    attempts: int
    lines: int
    missing: dict[str, int]


def write_blank(store: Store, path: Path, by: str = OWN_ID) -> BlankResult:
    """Write an empty side file: CSV where it is so named, else JSON Lines with ``null`` for what is missing.

    A line names its attempt by its key (``by``, see AttemptIndex), where it has none of its own by file and line; and
    says which attempt that is. In a CSV no text of a log is a formula to a spreadsheet, and a column names what is
    known, as its cells are as empty as those of what is missing. A missing ``task`` is for `curate import --revise`.
    Raises UsageError where the file is there, or where that leaves attempts untold.
    """
    index = AttemptIndex(store, by)
    gaps = {record: missing for record, missing in _gaps(store) if missing}
    names = _names(index, by)
    lines = {record: names[record] | _identity(index.attempts[record]) for record in gaps if record in names}
    told = Counter(encode(line) for line in lines.values())
    for record in gaps:
        if record not in lines or told[encode(lines[record])] > 1:
            raise UsageError(
                f"attempt {index.attempts[record].attempt} has no name of its own by --key {by}, nor by file and line: "
                "use --key attempt_id"
            )
    missing = Counter(field for fields in gaps.values() for field in fields)
    rows = [(lines[record], gaps[record]) for record in index.attempts if record in gaps]
    text = _csv(rows, missing) if path.suffix.lower() == ".csv" else _json_lines(rows)
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{str(path)!r} is there already: name a new file") from None
    return BlankResult(str(path), len(index.attempts), len(rows), dict(missing.most_common()))


def _gaps(store: Store) -> Iterator[tuple[str, list[str]]]:
    """The record of each attempt, and the side-file keys of what is not known of it."""
    rows = store.sql(
        f"""SELECT a.trajectory_id, a.task, nullif(a.outcome, 'unknown'),
                {", ".join(f'a."{name}"' for name in _FACTS[1:])}, t.budget IS NOT NULL OR t.id IN (
                    SELECT trajectory FROM effective_annotations WHERE starts_with(field, 'budget.')
                ), map_keys(a.strata)
            FROM attempts a JOIN trajectories t ON t.id = a.trajectory_id"""
    )
    held = list(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    strata = sorted({name for *_, known in held for name in known})
    for record, *facts, has_budget, known in held:
        missing = [name for name, value in zip(("task", *_FACTS), facts, strict=True) if value is None]
        missing += [] if has_budget else ["budget.steps"]
        yield record, missing + [f"strata.{name}" for name in strata if name not in known]


def _names(index: AttemptIndex, by: str) -> dict[str, dict[str, Any]]:
    """How each record is called: by its key where nothing else has that one, else by the first place it was read at."""
    names: dict[str, dict[str, Any]] = {}
    for (_, number), held in sorted(index.places.items()):
        for path, record in sorted(held):
            place = {"file": path.as_posix(), "line": number}
            names.setdefault(record, {"key": f"{path.as_posix()}:{number}"} if by == PLACE else place)
    keys: dict[str, str] = {}
    for key, records in sorted(index.keys.items()):
        if key and len(live := [record for record in records if record in index.attempts]) == 1:
            keys.setdefault(live[0], key)
    return names | {record: {"key": key} for record, key in keys.items()}


def _identity(attempt: LiveAttempt) -> dict[str, Any]:
    return {name: value for name in _NAMING if (value := attempt.identity[name]) not in (None, "")}


def _csv(rows: list[tuple[dict[str, Any], list[str]]], missing: Mapping[str, int]) -> str:
    """The lines as a table that a spreadsheet opens as text; see curation.importers.formulas."""
    named = {name: None for name in ("key", "file", "line", *_NAMING) if any(name in line for line, _ in rows)}
    facts = [name for name in missing if name not in named]
    columns = [*(named or ("key",)), *facts, KNOWN]
    cells = [{name: escape(value) for name, value in line.items()} for line, _ in rows]
    if cells != [line for line, _ in rows]:
        columns.append(NOTE)
    for row, (_, lacks) in zip(cells, rows, strict=True):
        row[KNOWN] = ", ".join(name for name in facts if name not in lacks)
    with io.StringIO(newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writeheader()
        writer.writerows(cells)
        return file.getvalue()


def _json_lines(rows: list[tuple[dict[str, Any], list[str]]]) -> str:
    return "".join(msgspec.json.encode(line | dict.fromkeys(missing)).decode() + "\n" for line, missing in rows)

"""Which rows an erasure touches, what is left of each, and the data files that hold them still.

A record, its objects and what is said of it go as a whole. Of a sighting and of a build's decision the count stays: the
sighting without names and words, the decision with the mark that what it was about is erased.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import duckdb
import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable

from curation.store import files, views
from curation.store.files import StagedFile
from curation.store.tables import TABLES, Row, record_batch, selection_row, sighting_row
from schemas.canonical import digest, encode
from schemas.objects import Sighting
from schemas.selection import Difference, Selection
from schemas.tombstones import Tombstone
from schemas.trajectory import decode

CODE = "erased"
STANDING = "NOT lifted AND id NOT IN (SELECT unnest(supersedes) FROM tombstones)"
"""Which tombstones stand, as SQL."""

_ROWS = 2_000
_NAMES: dict[str, tuple[str, ...]] = {
    "objects": ("id",),
    "sightings": ("trajectory", "raw"),
    "annotations": ("trajectory", "author_name"),
    "findings": ("trajectory", "author_name"),
    "verifications": ("trajectory", "author_name"),
    "trajectories": ("id", "parent"),
    "selections": ("trajectory", "child", "partner"),
}
"""The columns by which a row of a table is about something that may be erased."""


class Cleared(NamedTuple):
    """Data files that hold erased rows, and the staged ones that take their place."""

    replaced: tuple[str, ...] = ()
    files: tuple[StagedFile, ...] = ()


def read_erased(uri: str) -> frozenset[str]:
    """The digests of all that is erased now, by whichever process."""
    return frozenset(read_kinds(uri))


def read_kinds(uri: str) -> dict[str, str]:
    """The kind of everything that is erased now, by its digest."""
    table = files.open_table(uri, "tombstones")
    if not files.data_files(table):
        return {}
    connection = duckdb.connect(config={"threads": 2})
    views.attach(connection, uri, "tombstones", table)
    return dict(connection.execute(f"SELECT erased, kind FROM tombstones WHERE {STANDING}").fetchall())


def read_stones(uri: str, names: Collection[str]) -> dict[str, list[tuple[str, Tombstone]]]:
    """The standing tombstones of these digests, with their ids."""
    connection = duckdb.connect(config={"threads": 2})
    views.attach(connection, uri, "tombstones", files.open_table(uri, "tombstones"))
    rows = connection.execute(
        f"SELECT id, record FROM tombstones WHERE erased IN (SELECT unnest(?::VARCHAR[])) AND {STANDING} ORDER BY id",
        [sorted(names)],
    ).fetchall()
    found: dict[str, list[tuple[str, Tombstone]]] = {}
    for identity, record in rows:
        stone = msgspec.json.decode(record, type=Tombstone)
        found.setdefault(stone.erased, []).append((identity, stone))
    return found


def is_about(table: str, names: str) -> str:
    """The condition that a row of a table is about one of the digests that a query gives, as SQL."""
    return " OR ".join(f"{column} IN ({names})" for column in _NAMES[table])


def touched(table: str, rows: pa.RecordBatch, erased: frozenset[str]) -> pa.Array:
    """Which rows of a table an erasure changes, as booleans: those that are about what is erased, and do not say so."""
    values = pa.array(sorted(erased), pa.string())
    found = pa.array([False] * rows.num_rows)
    for column in _NAMES.get(table, ()):
        found = pc.or_(found, pc.is_in(rows[column], value_set=values))
    match table:
        case "sightings":
            return pc.and_(found, pc.not_equal(pc.fill_null(rows["code"], ""), CODE))
        case "selections":
            records = zip(rows["record"].to_pylist(), found.to_pylist(), strict=True)
            return pa.array([hit and _marked(record, erased) != record.encode() for record, hit in records])
        case "trajectories" if "record" in rows.schema.names:
            return pc.or_(found, pa.array([name in erased for name in _sources(rows)], pa.bool_()))
        case _:
            return found


def cleared_rows(table: str, rows: pa.RecordBatch, erased: frozenset[str], known: set[str]) -> pa.RecordBatch:
    """What is left of rows of a table: the untouched ones, then what the touched ones leave.

    ``known`` are the table's ids, to which those that are new are added: what is left is not left twice.
    """
    hit = touched(table, rows, erased)
    left: list[Row] = []
    for record in rows.filter(hit)["record"].to_pylist() if table in ("sightings", "selections") else ():
        if table == "sightings":
            left.append(sighting_row(_nameless(msgspec.json.decode(record, type=Sighting))))
        else:
            left.append(selection_row(msgspec.json.decode(_marked(record, erased), type=Selection)))
    left = [row for row in left if row["id"] not in known]
    known.update(row["id"] for row in left)
    kept = rows.filter(pc.invert(hit))
    return pa.concat_batches([kept, record_batch(table, left)]) if left else kept


def clear(uri: str, table: str, seen: DeltaTable, erased: frozenset[str]) -> Cleared:
    """Stage what is left of the data files that hold erased rows; nothing is committed."""
    held = [path for path in files.data_files(seen) if erased and holds_erased(uri, table, path, erased)]
    if not held:
        return Cleared()
    known: set[str] = set()
    for path in files.data_files(seen):
        for rows in _batches(uri, table, path, ["id"]):
            known.update(rows["id"].to_pylist())
    writer = files.Writer(uri, table)
    for path in held:
        for rows in _batches(uri, table, path, TABLES[table].names):
            kept = cleared_rows(table, rows.cast(TABLES[table]), erased, known)
            if kept.num_rows:
                writer.write(pa.Table.from_batches([kept]))
    staged = writer.close()
    if staged.rows == 0:
        files.delete(uri, table, staged.path)
        return Cleared(tuple(held))
    return Cleared(tuple(held), (staged,))


def holds_erased(uri: str, table: str, path: str, erased: frozenset[str]) -> bool:
    """Whether a file of a table holds a row that an erasure changes. Raises OSError or ValueError where it is torn."""
    return any(_names_in(uri, table, path, erased))


def names_erased(uri: str, table: str, path: str, erased: frozenset[str]) -> set[str]:
    """What of it the rows of a file are about, but for those that say they are. Raises as ``holds_erased``."""
    return set[str]().union(*_names_in(uri, table, path, erased))


def _names_in(uri: str, table: str, path: str, erased: frozenset[str]) -> Iterator[set[str]]:
    if table not in _NAMES:
        return
    more = {"sightings": ["code"], "selections": ["record"]}.get(table, [])
    if table == "trajectories" and any(
        rows["parent"].null_count < rows.num_rows for rows in _batches(uri, table, path, ["parent"])
    ):
        more = ["record"]
    for rows in _batches(uri, table, path, [*_NAMES[table], *more]):
        hit = rows.filter(touched(table, rows, erased))
        named = {name for column in _NAMES[table] for name in hit[column].to_pylist()}
        if table == "trajectories" and more:
            named.update(_sources(hit))
        yield named & erased


def sweep(uri: str, table: str, erased: frozenset[str]) -> list[str]:
    """Delete the files beside a table that hold erased rows; those that cannot be read, as one is being written.

    What was not committed, or is part of the table no more, is in no query; a process whose staged file is deleted
    holds erased rows and is refused when it commits.
    """
    unread = []
    for path in files.left_over(uri, table, files.open_table(uri, table)):
        try:
            if holds_erased(uri, table, path, erased):
                files.delete(uri, table, path)
        except FileNotFoundError:
            continue
        except (OSError, ValueError):
            unread.append(f"{table}/{path}")
    return unread


def _batches(uri: str, table: str, path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    with files.storage(uri, table).open_input_file(path) as source:
        yield from pq.ParquetFile(source).iter_batches(batch_size=_ROWS, columns=list(columns))


def _sources(rows: pa.RecordBatch) -> Iterator[str]:
    """For every trajectory the attempt that its correction was taken from; the empty text where it is none."""
    for parent, record in zip(rows["parent"].to_pylist(), rows["record"].to_pylist(), strict=True):
        yield _source(record) if parent is not None and '"sibling"' in record else ""


def _source(record: str) -> str:
    try:
        fork = decode(record).fork
    except msgspec.DecodeError:  # a damaged record names nothing
        return ""
    author = None if fork is None else fork.correction.author
    return author.name if author is not None and author.kind == "sibling" else ""


def _nameless(sighting: Sighting) -> Sighting:
    """That an item was read, by digests alone."""
    return Sighting(
        file=sighting.file,
        name=digest(encode(sighting.name)),
        place=sighting.place,
        offset=sighting.offset,
        raw=sighting.raw,
        importer=sighting.importer,
        code=CODE,
        part=None if sighting.part is None else digest(encode(sighting.part)),
    )


def _marked(record: str, erased: frozenset[str]) -> bytes:
    """A decision of a build that says which of its sides are erased, or were once, and nothing else in words."""
    selection = msgspec.json.decode(record, type=Selection)
    sides = {name: getattr(selection, name) for name in _NAMES["selections"]}
    told = {mark.field for mark in selection.detail if mark.check == CODE}
    marks = tuple(
        Difference(CODE, name, identity) for name, identity in sides.items() if identity in erased or name in told
    )
    return encode(msgspec.structs.replace(selection, detail=marks))

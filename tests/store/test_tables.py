"""The eight tables as other programs see them."""

from pathlib import Path

import duckdb
import polars as pl
from deltalake import DeltaTable

from curation.store import Store
from tests.store.stores import attempt, failing, fork_of, put

STATEMENT = {"id", "record", "trajectory", "author_kind", "author_name", "author_version", "supersedes"}
WANTED = {
    "tombstones": {"id", "record", "erased", "kind", "author_name", "reason", "lifted", "supersedes", "attempt_id"},
    "trajectories": {"id", "record", "schema_version", "attempt_id", "task", "parent", "branch_point", "decisions"},
    "objects": {"id", "kind", "bytes"},
    "sightings": {"file", "name", "place", "offset", "raw", "importer", "trajectory", "code"},
    "annotations": STATEMENT | {"field", "value"},
    "findings": STATEMENT | {"message", "label"},
    "verifications": STATEMENT | {"message", "layer", "result", "match", "reason"},
    "selections": {"build", "kind", "attempt", "trajectory", "message", "child", "kept", "sample", "failed", "partner"},
}
DECISION = {"message", "context", "information", "action", "tools", "error_seen"}


def test_there_are_eight_with_their_columns(tmp_path: Path) -> None:
    Store.create(str(tmp_path / "store"))
    assert {folder.name for folder in (tmp_path / "store").iterdir()} == WANTED.keys()
    for name, columns in WANTED.items():
        table = DeltaTable((tmp_path / "store" / name).as_posix())
        assert {field.name for field in table.schema().fields} >= columns
        assert table.metadata().configuration["delta.appendOnly"] == "true"


def test_polars_and_duckdb_read_what_the_store_reads(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    (parent,) = put(store, failing())
    (fork,) = put(store, fork_of(parent))
    put(store, attempt(1))
    table = DeltaTable((tmp_path / "store" / "trajectories").as_posix())
    query = "SELECT id, record, parent, decisions FROM {} ORDER BY id"
    ours = store.sql(query.format("trajectories")).to_pylist()
    (known,) = [row for row in ours if row["id"] == fork]
    assert (known["parent"], known["decisions"][0].keys() >= DECISION) == (parent, True)
    found = duckdb.connect().execute(query.format(f"read_parquet({table.file_uris()})")).fetchall()
    assert found == [tuple(row.values()) for row in ours]
    seen = pl.read_parquet([Path(uri) for uri in table.file_uris()]).sort("id")
    assert seen.select("id", "record", "parent", "decisions").to_dicts() == ours

"""One Delta table as files: staging Parquet beside it, committing it, and saying which files it holds.

A staged file is invisible until it is committed. Commits carry an application transaction, so that of two that look at
the same version only one lands and the other looks again.
"""

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.fs import DeltaStorageHandler
from deltalake.transaction import AddAction, RemoveAction

from curation.errors import StoreError
from curation.store.tables import TABLES

ERASURE = "erasure"
"""What a commit that takes erased rows away says in the log: how many data files it replaces."""

_APPLICATION = "put"
_LOG = "_delta_log"
_TRIES = 200
_PROPERTIES = {"delta.appendOnly": "true", "delta.checkpointInterval": "20"}


class StagedFile(NamedTuple):
    """A Parquet file beside a table that no commit names yet."""

    path: str
    rows: int


def is_table(uri: str, table: str) -> bool:
    """Whether there is a table of that name."""
    return DeltaTable.is_deltatable(f"{uri}/{table}")


def create_table(uri: str, table: str) -> None:
    """A new, empty, append-only table. Raises StoreError where there is one."""
    try:
        DeltaTable.create(f"{uri}/{table}", TABLES[table], configuration=_PROPERTIES)
    except DeltaError as error:
        raise StoreError(f"cannot create table {table!r} in {uri!r}: {error}") from error


def open_table(uri: str, table: str, version: int | None = None) -> DeltaTable:
    """A table at its newest version, or at the one named.

    Raises StoreError where there is none, its newest log entry is torn, or its log cannot be read.
    """
    if version is None and (torn := torn_entries(uri, table)):
        raise StoreError(torn_entry_words(table, torn))
    try:
        return DeltaTable(f"{uri}/{table}", version=version)
    except TableNotFoundError as error:
        raise StoreError(f"no table {table!r} in {uri!r}: only `curate init` creates one") from error
    except (DeltaError, OSError, ValueError) as error:
        words = str(error).partition("\n")[0]
        raise StoreError(
            f"the log of table {table!r} in {uri!r} cannot be read ({words}); `curate fsck` names the entry"
        ) from error


def open_whole(uri: str, table: str) -> tuple[DeltaTable, list[str]]:
    """A table at its last whole version, and the torn log entries after it, newest first. Raises StoreError."""
    torn = torn_entries(uri, table)
    whole = int(Path(torn[-1]).stem) - 1 if torn else None
    if whole == -1:
        raise StoreError(f"table {table!r} in {uri!r} has no whole log entry; restore {torn[-1]!r} from a copy")
    return open_table(uri, table, whole), torn


def torn_entries(uri: str, table: str) -> list[str]:
    """The newest log entries of a local table that are cut short, newest first; none behind a whole one."""
    return list(takewhile(lambda entry: not is_whole(uri, table, entry), reversed(log_entries(uri, table))))


def log_entries(uri: str, table: str) -> list[str]:
    """The log entries of a local table by path in its folder, oldest first."""
    if not is_local(uri):
        return []
    return [f"{_LOG}/{path.name}" for path in sorted(Path(uri, table, _LOG).glob("*.json")) if path.stem.isdigit()]


def is_whole(uri: str, table: str, entry: str) -> bool:
    """Whether a log entry was written to its end: it is JSON Lines, and one of our appends ends with its transaction.

    A cut between two lines leaves valid JSON that would silently drop files.
    """
    try:
        actions = [json.loads(line) for line in Path(uri, table, entry).read_bytes().splitlines()]
    except (OSError, ValueError):
        return False
    names = {name for action in actions for name in action}
    operation = next((action["commitInfo"].get("operation") for action in actions if "commitInfo" in action), None)
    match operation:
        case "CREATE TABLE":
            return {"protocol", "metaData"} <= names
        case "WRITE":
            return "txn" in names and not names.isdisjoint({"add", "remove"})
        case _:
            return bool(actions)


def torn_entry_words(table: str, torn: list[str]) -> str:
    """What to say of a table whose newest log entries are torn."""
    return (
        f"table {table!r} has a torn log entry {torn[0]!r}: restore it from a copy; or remove it, which takes the "
        "table back to the version before, and run the command that wrote it again"
    )


def is_local(uri: str) -> bool:
    """Whether a store lies in a folder of this machine."""
    return "://" not in uri


def data_files(table: DeltaTable) -> dict[str, int]:
    """The data files a table is made of, by path in its folder, with their sizes in bytes."""
    actions = table.get_add_actions()
    return dict(zip(actions["path"].to_pylist(), actions["size_bytes"].to_pylist(), strict=True))


def torn_files(uri: str, name: str, table: DeltaTable) -> list[str]:
    """Local data files that are missing or whose size is not what the log says."""
    if not is_local(uri):
        return []
    found = []
    for path, size in data_files(table).items():
        file = Path(uri, name, path)
        if not file.is_file() or file.stat().st_size != size:
            found.append(path)
    return found


def left_over(uri: str, name: str, table: DeltaTable) -> list[str]:
    """Files in a table's folder that it is not made of: staged and never committed, or no longer part of it.

    In a local folder that includes what a process is writing, or was writing when it was killed.
    """
    if is_local(uri):
        found = [path.name for path in Path(uri, name).iterdir() if path.is_file()]
    else:
        listed = storage(uri, name).get_file_info(pafs.FileSelector("", recursive=False))
        found = [info.base_name for info in listed if info.type == pafs.FileType.File]
    held = data_files(table)
    return sorted(path for path in found if path.startswith("part-") and path not in held)


def delete(uri: str, table: str, path: str) -> None:
    """Delete a file of a table's folder; one that is gone already is no error."""
    if is_local(uri):
        Path(uri, table, path).unlink(missing_ok=True)
    else:
        with suppress(FileNotFoundError):
            storage(uri, table).delete_file(path)


def storage(uri: str, table: str) -> pafs.FileSystem:
    """The folder of a table as a file system, wherever it lies."""
    return pafs.PyFileSystem(DeltaStorageHandler(f"{uri}/{table}"))


class Writer:
    """Stages rows of one table as one Parquet file."""

    def __init__(self, uri: str, table: str) -> None:
        self._schema = TABLES[table]
        self._path = f"part-{uuid.uuid4()}.parquet"
        self._rows = 0
        heavy = [name for name in ("record", "bytes") if name in self._schema.names]
        light = [name for name in self._schema.names if name not in (*heavy, "id", "raw", "decisions")]
        self._parquet = pq.ParquetWriter(
            self._path,
            self._schema,
            filesystem=storage(uri, table),
            compression="zstd",
            use_dictionary=light,
            write_statistics=light,
            bloom_filter_options={"id": {"ndv": 20_000, "fpp": 0.01}},
        )

    def write(self, rows: pa.Table) -> None:
        """Append rows as one row group."""
        self._parquet.write_table(rows)
        self._rows += rows.num_rows

    def close(self) -> StagedFile:
        """Finish the file and say what it holds."""
        self._parquet.close()
        return StagedFile(self._path, self._rows)


def read_staged(uri: str, table: str, file: StagedFile) -> Iterator[pa.RecordBatch]:
    """The batches of a staged file."""
    with storage(uri, table).open_input_file(file.path) as source:
        yield from pq.ParquetFile(source).iter_batches(batch_size=2_000)


def try_commit(
    uri: str, table: str, seen: DeltaTable, files: Sequence[StagedFile], replaced: Sequence[str] = ()
) -> bool:
    """Commit staged files on top of the version that was looked at; False where another commit came first.

    ``replaced`` are data files in whose place some of these stand, without what was erased: the one commit that takes
    something away. It says so in the log.
    """
    folder = storage(uri, table)
    actions: list[AddAction | RemoveAction] = []
    for file in files:
        info = folder.get_file_info(file.path)
        if info.mtime is None:
            raise FileNotFoundError(f"{table}/{file.path}")
        written = int(info.mtime.timestamp() * 1000)
        actions.append(
            AddAction(file.path, info.size, {}, written, not replaced, json.dumps({"numRecords": file.rows}))
        )
    actions.extend(RemoveAction(path, False, 0) for path in replaced)
    properties = CommitProperties(
        app_transactions=[Transaction(_APPLICATION, seen.version() + 1)],
        custom_metadata={ERASURE: len(replaced)} if replaced else None,
    )
    try:
        seen.create_write_transaction(
            actions,
            "append",
            seen.schema(),
            commit_properties=properties,
            post_commithook_properties=PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False),
        )
    except CommitFailedError:
        return False
    return True


def attempts() -> Iterator[int]:
    """Tries at a commit, with growing pauses between them. Raises StoreError after the last."""
    for number in range(_TRIES):
        yield number
        time.sleep(min(0.5, 0.01 * (number + 1)))
    raise StoreError(f"a commit lost {_TRIES} races in a row; is another process writing without pause?")

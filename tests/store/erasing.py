"""What a store's folder holds on disk, read without the store."""

from pathlib import Path

import pyarrow.parquet as pq


def files_with(folder: Path, text: str) -> list[str]:
    """The files under a folder that hold a text: in their bytes, or in the values of a Parquet file."""
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file() and _has(path, text)
    )


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Every file under a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _has(path: Path, text: str) -> bool:
    if text.encode() in path.read_bytes():
        return True
    if path.suffix != ".parquet":
        return False
    return any(text in _words(row) for row in pq.ParquetFile(path).read().to_pylist())


def _words(row: dict[str, object]) -> str:
    return repr([value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in row.values()])

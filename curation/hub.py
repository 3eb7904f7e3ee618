"""Data sets of a Hub, or of a local folder, as files to import: ``hf:OWNER/NAME``, ``hf:OWNER/NAME:SPLIT``.

Only a name that the user gives is fetched, and only files of rows; no code of a repository is ever run.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from curation.errors import UsageError
from curation.ingest import Source, Sources, find_sources

PREFIX = "hf:"

_PATTERNS = ("*.parquet", "*.arrow", "*.jsonl", "*.json")
_BESIDE = frozenset(("dataset_info.json", "dataset_dict.json", "dataset_infos.json", "state.json"))
_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def find_all(paths: Sequence[Path], format_name: str) -> Sources:
    """The files of paths and of data sets, each with its importer. Raises UsageError as ``find_sources`` does, and for
    a path where there is nothing.
    """
    named = [path.as_posix() for path in paths if path.as_posix().startswith(PREFIX)]
    logs = [path for path in paths if not path.as_posix().startswith(PREFIX)]
    if missing := [path for path in logs if not path.exists()]:
        raise UsageError(f"{missing[0]}: does not exist")
    found = [data_set_sources(name, format_name) for name in named]
    if logs:
        found.append(find_sources(logs, format_name))
    return Sources(
        tuple(source for each in found for source in each.files),
        {name: why for each in found for name, why in each.passed_over.items()},
    )


def data_set_sources(name: str, format_name: str) -> Sources:
    """The files of ``hf:OWNER/NAME[:SPLIT]``, or of ``hf:FOLDER[:SPLIT]``, with their importers.

    Files are named by the data set, not by where they are kept. Raises UsageError where there is none.
    """
    place, split = _parts(name.removeprefix(PREFIX))
    folder = Path(place) if Path(place).is_dir() else _fetch(place)
    files = [file for pattern in _PATTERNS for file in sorted(folder.rglob(pattern)) if file.name not in _BESIDE]
    chosen = [file for file in files if not split or _is_of(file.relative_to(folder).as_posix(), split)]
    if not chosen:
        of = f" of split {split!r}" if split else ""
        raise UsageError(f"{name}: no file of rows{of} ({', '.join(_PATTERNS)}) in {place}")
    found = find_sources(chosen, format_name)
    label = f"{PREFIX}{place}"
    return Sources(
        tuple(_renamed(source, f"{label}/{source.path.relative_to(folder).as_posix()}") for source in found.files),
        found.passed_over,
    )


def _parts(name: str) -> tuple[str, str]:
    place, colon, split = name.rpartition(":")
    return (place, split) if colon and "/" not in split and place else (name, "")


def _is_of(file: str, split: str) -> bool:
    """Whether a file is of a split: its path says so, as ``data/train-00000-of-00001.parquet`` does."""
    return split in re.split(r"[/._-]", file)


def _renamed(source: Source, name: str) -> Source:
    return source._replace(name=name)


def _fetch(name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise UsageError(f"hf:{name}: neither a folder nor OWNER/NAME of a data set")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, repo_type="dataset", allow_patterns=list(_PATTERNS)))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise UsageError(f"hf:{name}: cannot be fetched: {str(error).splitlines()[0]}") from None

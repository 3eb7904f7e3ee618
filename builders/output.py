"""The folder that a build writes: one file a kind, named by its digest, a card and a manifest, all proved by loading.

It is made beside its place and moved there as a whole, so that a broken build leaves what was there before.
"""

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple, Self

import msgspec

from builders.card import columns_of, render_card
from curation.errors import CurationError, UsageError
from curation.masking import masked
from schemas.named_file import read_named
from schemas.rows import RESERVED
from schemas.selection import Kind

FORMAT = "training-rows/1"
MANIFEST = "manifest.json"
ERASED = "erased"
"""The key of a manifest under which stand the files to be built again, and the samples in them that were erased."""

CARD = "README.md"


class LoadError(CurationError):
    """A row that does not come back from the loader as it was written."""


class File(NamedTuple):
    """A written file of rows: its path in the folder, its digest and its rows."""

    path: PurePosixPath
    sha256: str
    rows: int


class RowFile:
    """Writes the rows of one kind, each name once. A context manager; ``finish`` names the file by its digest."""

    def __init__(self, folder: Path, kind: Kind) -> None:
        self._folder = folder / kind
        self._kind = kind
        self._samples: set[str] = set()
        self._digest = hashlib.sha256()
        self._file: BinaryIO | None = None

    def add(self, sample: str, row: str) -> None:
        """Write a row, unless one with the same training columns is there."""
        if sample in self._samples:
            return
        if self._file is None:
            self._folder.mkdir()
            self._file = (self._folder / "rows").open("xb")
        self._samples.add(sample)
        line = row.encode() + b"\n"
        self._digest.update(line)
        self._file.write(line)

    def finish(self) -> File | None:
        """Close and name the file; None where there is no row."""
        if self._file is None:
            return None
        self._file.close()
        digest = self._digest.hexdigest()
        name = f"{self._kind}-{digest[:12]}.jsonl"
        (self._folder / "rows").rename(self._folder / name)
        return File(PurePosixPath(self._kind, name), digest, len(self._samples))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._file is not None:
            self._file.close()


def refuse_place(out: Path, inputs: Sequence[Path]) -> Path:
    """The real path of an output folder. Raises UsageError where writing there could destroy something.

    ``inputs`` are files and folders that are read; links are followed.
    """
    place = out.resolve()
    for given in inputs:
        source = given.resolve()
        if place == source or source in place.parents or place in source.parents:
            raise UsageError(f"output {str(out)!r} lies over the input {str(given)!r}; name another folder")
    if place.exists() and not place.is_dir():
        raise UsageError(f"output {str(out)!r} is a file; name a folder")
    if place.is_dir() and any(place.iterdir()):
        foreign = sorted(_files_in(place) - _written_by_us(place))
        if foreign:
            raise UsageError(
                f"output {str(out)!r} holds {foreign[0]!r}, which no build wrote; name an empty or a new folder"
            )
    return place


@contextmanager
def replacing(place: Path) -> Iterator[Path]:
    """A new folder that takes the place of ``place`` when the block ends without an error."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as held:
        fresh, old = Path(held, "new"), Path(held, "old")
        fresh.mkdir()
        yield fresh
        if place.exists():
            place.rename(old)
        fresh.rename(place)


def write_card(folder: Path, build: str, files: Mapping[Kind, File]) -> None:
    """README.md with the declared features of every file."""
    for kind in files:
        reserved = RESERVED.intersection(columns_of(kind))
        if reserved:
            raise LoadError(f"column {min(reserved)!r} of {kind} is a name that trainers give a meaning of their own")
    paths = {kind: file.path for kind, file in files.items()}
    rows = {kind: file.rows for kind, file in files.items()}
    (folder / CARD).write_text(render_card(build, paths, rows), encoding="utf-8")


def write_manifest(folder: Path, facts: Mapping[str, Any], files: Mapping[Kind, File]) -> None:
    """manifest.json: what the build read, counted and wrote."""
    written = {str(file.path): {"sha256": file.sha256, "rows": file.rows} for file in files.values()}
    _write_json(folder / MANIFEST, {"format": FORMAT, **facts, "files": written})


def read_build_id(folder: Path) -> str:
    """The id of the build whose rows a folder holds. Raises UsageError where no build wrote it."""
    try:
        manifest = json.loads(read_named(folder / MANIFEST))
        if manifest["format"] == FORMAT:
            return str(manifest["build"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise UsageError(f"no build wrote {str(folder)!r}: name the folder that `curate build --out` was given")


def mark_erased(folder: Path, rows: Mapping[tuple[str, str], Sequence[str]], *, write: bool) -> dict[str, list[str]]:
    """The data files of a build that hold erased rows, and these rows' samples; with ``write`` its manifest says so.

    ``rows`` are samples by build and kind. Raises UsageError where no build wrote the folder.
    """
    build = read_build_id(folder)
    manifest = json.loads(read_named(folder / MANIFEST))
    marked: dict[str, set[str]] = {name: set(manifest.get(ERASED, {}).get(name, ())) for name in ("files", "samples")}
    for (other, kind), samples in rows.items():
        if other == build:
            marked["samples"].update(samples)
            marked["files"].update(path for path in manifest["files"] if PurePosixPath(path).parts[0] == kind)
    found = {name: sorted(values) for name, values in marked.items()}
    if write and found["samples"]:
        _write_json(folder / MANIFEST, {**manifest, ERASED: found})
    return found


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    text = json.dumps(masked(dict(document)), indent=2, ensure_ascii=False, allow_nan=False, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def reload(folder: Path, files: Mapping[Kind, File]) -> None:
    """Load every configuration as a user does and compare it with its file. Raises LoadError with the first row."""
    if not files:
        return
    import datasets

    shown = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        for kind, file in files.items():
            with tempfile.TemporaryDirectory() as cache:
                loaded = datasets.load_dataset(str(folder), kind, split="train", cache_dir=cache)
                _compare(kind, file, loaded, folder)
    except (datasets.exceptions.DatasetsError, ValueError) as error:
        raise LoadError(f"the rows do not load: {error}") from error
    finally:
        if shown:
            datasets.enable_progress_bars()


def _compare(kind: Kind, file: File, loaded: Any, folder: Path) -> None:
    with (folder / file.path).open("rb") as lines:
        for number, line in enumerate(lines):
            back = _shown(loaded[number]) if number < len(loaded) else b"nothing"
            if back != line.rstrip(b"\n"):
                sample = json.loads(line)["sample_id"]
                raise LoadError(f"{kind} row {number} ({sample}) does not load as it was written")
    if len(loaded) != file.rows:
        raise LoadError(f"{kind}: {file.rows} rows were written, {len(loaded)} load")


def _shown(row: Mapping[str, Any]) -> bytes:
    """A row with its columns sorted and all that is in them in the order that it came in."""
    return msgspec.json.encode(dict(sorted(row.items())))


def _files_in(place: Path) -> set[str]:
    return {path.relative_to(place).as_posix() for path in place.rglob("*") if not path.is_dir() or path.is_symlink()}


def _written_by_us(place: Path) -> set[str]:
    try:
        manifest = json.loads(read_named(place / MANIFEST))
        if manifest["format"] == FORMAT:
            return {MANIFEST, CARD, *manifest["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return set()

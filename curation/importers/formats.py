"""The formats that can be read. A new one is one module beside this and one line here."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from curation.errors import UsageError
from curation.importers import openai_chat, tau_bench
from curation.importers.face import Importer

HEAD_BYTES = 1 << 18
SUFFIXES = frozenset((".json", ".jsonl", ".ndjson"))

IMPORTERS: dict[str, Importer] = {module.IMPORTER.name: module.IMPORTER for module in (openai_chat, tau_bench)}


def find(name: str) -> Importer:
    """The importer of a format. Raises UsageError that names the formats there are."""
    if name not in IMPORTERS:
        raise UsageError(f"unknown format {name!r}; known: {', '.join(IMPORTERS)}; or leave --format out")
    return IMPORTERS[name]


def detect(path: Path) -> Importer:
    """The importer whose format a file is of, by what it holds; its name is not looked at.

    Raises UsageError where no format fits or several do; OSError where the file cannot be read.
    """
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    fitting = [importer for importer in IMPORTERS.values() if importer.sniff(head)]
    match fitting:
        case [importer]:
            return importer
        case []:
            raise UsageError(f"{path}: not a log of a known format ({', '.join(IMPORTERS)}); name it with --format")
        case _:
            names = ", ".join(importer.name for importer in fitting)
            raise UsageError(f"{path}: could be any of {names}; name the format with --format")


def sources_of(paths: Iterable[Path], name: str = "auto") -> Iterator[tuple[Path, Importer]]:
    """Each log file with its importer; a folder stands for the .json, .jsonl and .ndjson files below it, by name.

    Raises UsageError for a folder without any, and like ``find`` and ``detect``.
    """
    for path in paths:
        files = _files_below(path) if path.is_dir() else [path]
        if not files:
            raise UsageError(f"{path}: no log in this folder (looked for {', '.join(sorted(SUFFIXES))})")
        for file in files:
            yield file, detect(file) if name == "auto" else find(name)


def _files_below(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.suffix in SUFFIXES and file.is_file())

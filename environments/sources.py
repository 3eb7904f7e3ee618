"""Which code a world runs, as one digest."""

import sys
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path

from schemas.canonical import digest, encode


def code_digest(*modules: str) -> str:
    """SHA-256 over the source files of imported modules: what defines a world, beside its declared version.

    Raises KeyError for a module that is not imported, ValueError for one without a source file.
    """
    return digest(encode([[name, digest(_source(name))] for name in sorted(modules)]))


def digests_under(part: Traversable, name: str = "") -> Iterator[tuple[str, str]]:
    """Name and SHA-256 of a file of a package, or of every file in a folder of it, compiled code left out."""
    name = name or part.name
    if part.is_file():
        yield name, digest(part.read_bytes())
    elif part.name != "__pycache__":
        for inner in part.iterdir():
            yield from digests_under(inner, f"{name}/{inner.name}")


def _source(name: str) -> bytes:
    path = sys.modules[name].__file__
    if path is None:
        raise ValueError(f"module {name!r} has no source file; name the module that holds the code")
    return Path(path).read_bytes()

"""Files that stand beside the one that is read and belong to it: found without leaving its folder, and carried with it.

A name that comes out of a log is hostile: it leads nowhere but to a regular file inside the folder.
"""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

MAX_NAME = 200  # characters of a name that a log gives
_WIDTH = 8  # bytes of a length


def find_beside(folder: Path, name: str) -> Path | None:
    """The regular file of that relative name inside the folder, reached through no link; None where there is none."""
    parts = PurePosixPath(name).parts
    if not parts or len(name) > MAX_NAME or "\\" in name or "\0" in name or name.startswith("/") or ".." in parts:
        return None
    path = folder
    for part in parts:
        path = path / part
        if path.is_symlink():
            return None
    return path if path.is_file() else None


def pack(files: Mapping[str, bytes]) -> bytes:
    """Files with their names as the context of a slice."""
    return b"".join(
        len(item).to_bytes(_WIDTH, "big") + item for name, data in files.items() for item in (name.encode(), data)
    )


def unpack(context: bytes) -> dict[str, bytes]:
    """What ``pack`` made."""
    items, at = [], 0
    while at < len(context):
        end = at + _WIDTH + int.from_bytes(context[at : at + _WIDTH], "big")
        items.append(context[at + _WIDTH : end])
        at = end
    return {name.decode(): data for name, data in zip(items[::2], items[1::2], strict=True)}

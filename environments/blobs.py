"""Where the bytes of snapshots are kept, by their SHA-256."""

from environments.protocol import Blobs, SnapshotError
from schemas.canonical import digest
from schemas.objects import Snapshot

MAX_IMAGE = 256 * 2**20


class MemoryBlobs:
    """Blobs for as long as this object lives."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    def get(self, name: str, /) -> bytes:
        """The bytes of that name. Raises KeyError where there are none."""
        return self._kept[name]

    def put(self, data: bytes) -> str:
        """Keep bytes and return their name."""
        name = digest(data)
        self._kept[name] = data
        return name


def image_of(snapshot: Snapshot, blobs: Blobs) -> bytes:
    """The bytes that hold a snapshot's state, or its changes, found to be those that it names.

    Raises SnapshotError where they are missing, over MAX_IMAGE, or others.
    """
    return _bytes_of(snapshot, snapshot.blob, blobs)


def base_of(snapshot: Snapshot, blobs: Blobs) -> bytes:
    """The bytes of the image that a snapshot's changes begin at, or none. Raises SnapshotError as ``image_of``."""
    return b"" if snapshot.base is None else _bytes_of(snapshot, snapshot.base, blobs)


def _bytes_of(snapshot: Snapshot, name: str, blobs: Blobs) -> bytes:
    try:
        image = blobs.get(name)
    except KeyError:
        raise SnapshotError(f"snapshot {snapshot.digest}: no bytes named {name} are kept") from None
    if len(image) > MAX_IMAGE:
        raise SnapshotError(f"snapshot {snapshot.digest}: {len(image)} bytes, over the limit of {MAX_IMAGE}")
    if digest(image) != name:
        raise SnapshotError(f"snapshot {snapshot.digest}: its bytes are {digest(image)}, not {name}")
    return image

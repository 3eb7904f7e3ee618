"""Where the bytes of snapshots are kept, by their SHA-256."""

from environments.protocol import Blobs, SnapshotError
from schemas.canonical import digest
from schemas.objects import Snapshot

MAX_IMAGE = 64 * 2**20


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
    """The bytes that hold a snapshot's state, at most 64 MiB, found to be those it names.

    Raises SnapshotError where they are missing, too many, or others.
    """
    try:
        image = blobs.get(snapshot.blob)
    except KeyError:
        raise SnapshotError(f"snapshot {snapshot.digest}: no bytes named {snapshot.blob} are kept") from None
    if len(image) > MAX_IMAGE:
        raise SnapshotError(f"snapshot {snapshot.digest}: {len(image)} bytes, over the limit of {MAX_IMAGE}")
    if digest(image) != snapshot.blob:
        raise SnapshotError(f"snapshot {snapshot.digest}: its bytes are {digest(image)}, not {snapshot.blob}")
    return image

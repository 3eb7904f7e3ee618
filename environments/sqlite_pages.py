"""What has changed in a database since an image of it, as the pages that differ: for whatever no changeset holds."""

import msgspec

from environments.blobs import MAX_IMAGE
from environments.protocol import SnapshotError
from schemas.canonical import encode
from schemas.trajectory import Record

FORM = "sqlite-pages/1"

_PAGE = 4096
_BLOCK = 16 * _PAGE


class Pages(Record, frozen=True):
    """The length of an image in bytes, and its pages that differ, by number."""

    length: int
    pages: tuple[tuple[int, bytes], ...]


def pages_of(base: bytes, image: bytes) -> bytes | None:
    """The pages of an image that differ from its base's, or None where they are more than half of them."""
    changed = []
    most = len(image) // _PAGE // 2
    for block in range(0, len(image), _BLOCK):
        if image[block : block + _BLOCK] == base[block : block + _BLOCK]:
            continue
        for start in range(block, min(block + _BLOCK, len(image)), _PAGE):
            page = image[start : start + _PAGE]
            if page != base[start : start + _PAGE]:
                changed.append((start // _PAGE, page))
        if len(changed) > most:
            return None
    return encode(Pages(len(image), tuple(changed)))


def patch(base: bytes, data: bytes) -> bytes:
    """The image of which these pages differ. Raises SnapshotError."""
    try:
        delta = msgspec.json.decode(data, type=Pages)
    except msgspec.MsgspecError as error:
        raise SnapshotError(f"the changed pages cannot be read: {error}") from None
    if not 0 <= delta.length <= MAX_IMAGE:
        raise SnapshotError(f"the changed pages make an image of {delta.length} bytes; the limit is {MAX_IMAGE}")
    image = bytearray(base[: delta.length]).ljust(delta.length, b"\x00")
    for number, page in delta.pages:
        start = number * _PAGE
        if start < 0 or start + len(page) > delta.length:
            raise SnapshotError(f"page {number} lies outside of an image of {delta.length} bytes")
        image[start : start + len(page)] = page
    return bytes(image)

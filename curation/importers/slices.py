"""A file as the slices that hold one record each, and each slice as one item.

Memory is flat in the number of records: at most one slice is held, and one over the limit is skipped unheld.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from curation.importers.face import Item, Parsed, Rejected
from schemas import canonical


class Slice(NamedTuple):
    """The exact bytes of one record in a file; ``data`` is None where they are over the size limit."""

    data: bytes | None
    place: int
    offset: int


class RefusedError(Exception):
    """A record that is not of its format's shape: a quarantine code, and words that name the path in the record."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail


Build = Callable[[Any, bytes, Slice, int], Parsed]


def read_items(slices: Iterable[Slice], limit: int, build: Build) -> Iterator[Item]:
    """One item a slice: what ``build(value, data, slice, replaced surrogates)`` makes of it, or why there is none."""
    for piece in slices:
        data = piece.data
        if data is None:
            yield Rejected(
                "too_large", f"the record is over the limit of {limit} bytes", b"", piece.place, piece.offset
            )
            continue
        try:
            value, replaced = canonical.parse(data)
            item: Item = build(value, data, piece, replaced)
        except (canonical.UnreadableError, RefusedError) as error:
            item = Rejected(error.code, error.detail, data, piece.place, piece.offset)
        yield item

"""One JSON list as slices: the exact bytes of each element, without parsing the whole file.

Only strings and brackets are looked at; whether an element is JSON is for the parser to say. What is wrong with the
list itself (it has no end, or text follows it) is one more slice, which the parser then refuses.
"""

from collections.abc import Iterator
from pathlib import Path

from curation.importers.face import MAX_RECORD_BYTES, Slice
from curation.importers.json_signs import Signs
from curation.importers.lines import BOM

_BLOCK = 1 << 20
_SPACE = b" \t\r\n"


def read_list(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """The elements of the list that a file holds, without the white space around them."""
    with path.open("rb") as file:
        start = len(BOM) if file.read(len(BOM)) == BOM else 0
        file.seek(start)
        scanner = _Scanner(limit, start)
        while block := file.read(_BLOCK):
            yield from scanner.scan(block)
        yield from scanner.finish()


class _Scanner:
    """Walks a list block by block. Inside the list and outside any element the depth is 1."""

    def __init__(self, limit: int, start: int) -> None:
        self.limit = limit
        self.position = start
        self.signs = Signs()
        self.closed = False
        self.place = 0
        self.begin(start)

    def begin(self, offset: int) -> None:
        """Start to hold what may be an element."""
        self.held: bytearray | None = bytearray()
        self.offset = offset

    def scan(self, block: bytes) -> Iterator[Slice]:
        """The elements that end in the next block of the file."""
        kept = 0
        for at in () if self.closed else self.signs.of(block):
            sign = block[at : at + 1]
            if self.signs.depth == (sign == b",") and sign in b",]":
                last = sign == b"]"
                self.hold(block[kept:at])
                yield from self.element(last=last)
                self.closed = last
            elif self.signs.depth != 1 or sign not in b"[{":
                continue
            kept = at + 1
            self.begin(self.position + kept)
            if self.closed:
                break
        self.hold(block[kept:])
        self.position += len(block)

    def finish(self) -> Iterator[Slice]:
        """What is left at the end of the file: an element that was cut, a list without an end, text after the list."""
        endless = self.signs.depth == 1 and not self.signs.in_string
        if not endless or self.held is None or self.held.strip(_SPACE):
            yield from self.element(last=True)
        if endless:
            yield Slice(b"", self.place + 1, self.position)

    def hold(self, data: bytes) -> None:
        """Keep bytes of the element, unless it is over the limit by now."""
        if self.held is not None:
            self.held += data
            if len(self.held) > self.limit:
                self.held = None

    def element(self, *, last: bool) -> Iterator[Slice]:
        """The held bytes as a slice; nothing where the list is empty or has ended."""
        if self.held is None:
            self.place += 1
            yield Slice(None, self.place, self.offset)
            return
        data = bytes(self.held)
        body = data.lstrip(_SPACE)
        if body or not (last and (self.place == 0 or self.closed)):
            self.place += 1
            yield Slice(body.rstrip(_SPACE), self.place, self.offset + len(data) - len(body))

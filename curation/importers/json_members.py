"""One JSON object as its members, of those that are lists each element: exact bytes, without parsing the whole file.

Only strings, brackets, colons and commas are looked at; whether a value is JSON is for the parser to say. What is wrong
with the object itself (it has no end, or text follows it) is one more member, without a key, which the parser refuses.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from curation.importers.face import MAX_RECORD_BYTES, Slice
from curation.importers.json_signs import Signs
from curation.importers.lines import BOM
from schemas import canonical

_BLOCK = 1 << 20
_MAX_KEY_BYTES = 1 << 16
_SPACE = b" \t\r\n"
_MEMBER, _ELEMENT = 1, 2


class Member(NamedTuple):
    """A value under a key of the object, or an element of a list there; ``key`` is None for what belongs to none.

    ``piece.place`` is the element's number in its list, from 1, and 0 for a whole value.
    """

    key: str | None
    piece: Slice


def read_members(
    path: Path, whole: Collection[str], lists: Collection[str] = (), limit: int = MAX_RECORD_BYTES
) -> Iterator[Member]:
    """The members under the keys ``whole``, and element by element the lists under the keys ``lists``.

    A value under one of ``lists`` that is no list is given whole. What is over ``limit`` bytes has no data. Members
    under other keys are passed by, never held.
    """
    with path.open("rb") as file:
        yield from split_members(file, whole, lists, limit)


def split_members(
    file: BinaryIO, whole: Collection[str], lists: Collection[str] = (), limit: int = MAX_RECORD_BYTES
) -> Iterator[Member]:
    """The same of an open file, from its beginning."""
    start = len(BOM) if file.read(len(BOM)) == BOM else 0
    file.seek(start)
    scanner = _Scanner(frozenset(whole) | frozenset(lists), frozenset(lists), limit, start)
    while block := file.read(_BLOCK):
        yield from scanner.scan(block)
    yield from scanner.finish()


class _Scanner:
    """Walks an object block by block. Inside it and outside any value the depth is 1; after it, 0 again.

    The level is how deep the commas lie that separate what is given: members, or elements of a list.
    """

    def __init__(self, wanted: frozenset[str], lists: frozenset[str], limit: int, start: int) -> None:
        self.wanted, self.lists, self.limit = wanted, lists, limit
        self.position = start
        self.signs = Signs()
        self.place = 0
        self.key: str | None = None
        self.named = self.listed = self.closed = False
        self.begin(start, held=True)

    def begin(self, offset: int, *, held: bool) -> None:
        """Start to hold what may be a key, a value or an element; without ``held``, to pass it by."""
        self.data: bytearray | None = bytearray() if held else None
        self.offset = offset
        self.untouched = True  # no bracket in it so far

    def hold(self, data: bytes) -> None:
        """Keep bytes, unless they are passed by or over the limit by now."""
        if self.data is not None:
            self.data += data
            if len(self.data) > (self.limit if self.named or self.signs.depth != 1 else _MAX_KEY_BYTES):
                self.data = None

    def scan(self, block: bytes) -> Iterator[Member]:
        """What ends in the next block of the file."""
        kept = 0
        for at in () if self.closed else self.signs.of(block):
            sign = block[at : at + 1]
            if self.ends(sign, block, kept, at):
                self.hold(block[kept:at])
                kept = at + 1
                yield from self.turn(sign, self.position + kept)
                if self.closed:
                    break
        self.hold(block[kept:])
        self.position += len(block)

    def ends(self, sign: bytes, block: bytes, kept: int, at: int) -> bool:
        """Whether a sign separates what is held from what comes next."""
        depth, level = self.signs.depth, self.signs.level
        match sign:
            case b",":
                return depth == level
            case b":":
                return depth == level == _MEMBER and not self.named
            case b"{" | b"[":
                opens = self.untouched and sign == b"[" and depth - 1 == level == _MEMBER and self.named
                self.untouched = False
                opens = opens and self.key in self.lists
                return depth == _MEMBER or (opens and not (self.data or b"").strip() + block[kept:at].strip())
            case _:
                return depth in (level - 1, _MEMBER - 1)

    def turn(self, sign: bytes, offset: int) -> Iterator[Member]:
        """Give what has ended and begin what follows. The depth is already the one behind the sign."""
        match sign:
            case b":":
                self.key, self.named, self.listed = self.read_key(), True, False
                self.begin(offset, held=self.key in self.wanted)
            case b"{" | b"[" if self.signs.depth == _MEMBER:
                self.begin(offset, held=True)
            case b"[":
                self.signs.level, self.place, self.listed = _ELEMENT, 0, True
                self.begin(offset, held=True)
            case b"," if self.signs.level == _ELEMENT:
                yield from self.element(last=False)
                self.begin(offset, held=True)
            case b"]" | b"}" if self.signs.level == _ELEMENT:
                yield from self.element(last=True)
                self.signs.level = _MEMBER
                self.begin(offset, held=False)
            case _:
                yield from self.member()
                self.key, self.named, self.listed = None, False, False
                self.closed = self.signs.depth == 0
                self.begin(offset, held=True)

    def finish(self) -> Iterator[Member]:
        """What is left at the end of the file: an object without an end, or text after it."""
        if self.closed:
            if self.data is None or self.data.strip(_SPACE):
                yield Member(None, self.piece(0))
            return
        if self.signs.level == _ELEMENT and (self.data is None or self.data.strip(_SPACE)):
            yield from self.element(last=True)
        elif self.key in self.wanted and not self.listed:
            yield Member(self.key, self.piece(0))
        yield Member(None, Slice(b"", 0, self.position))

    def read_key(self) -> str | None:
        try:
            key, _ = canonical.parse(bytes(self.data or b""))
        except canonical.UnreadableError:
            return None
        return key if isinstance(key, str) else None

    def member(self) -> Iterator[Member]:
        if self.key in self.wanted and not self.listed:
            yield Member(self.key, self.piece(0))

    def element(self, *, last: bool) -> Iterator[Member]:
        """The held element; nothing where the list is empty."""
        if last and self.place == 0 and self.data is not None and not self.data.strip(_SPACE):
            return
        self.place += 1
        yield Member(self.key, self.piece(self.place))

    def piece(self, place: int) -> Slice:
        if self.data is None:
            return Slice(None, place, self.offset)
        data = bytes(self.data)
        body = data.lstrip(_SPACE)
        return Slice(body.rstrip(_SPACE), place, self.offset + len(data) - len(body))

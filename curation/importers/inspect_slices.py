"""Where the samples of an Inspect log lie: in the members of an archive, or in the list of one JSON object.

A slice is one sample as it is written; its context is the log's header, or why there is no sample to read.
"""

from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import chain
from pathlib import Path

from curation.importers.archive import Archive, ArchiveError, Entry
from curation.importers.face import MAX_RECORD_BYTES, Slice
from curation.importers.json_members import Member, read_members, split_members
from schemas import canonical

MAX_HEADER_BYTES = 16 * 2**20
ZIP = b"PK\x03\x04"

_HEADER = ("status", "eval", "plan")
_MEMBERS = ("header.json", "_journal/start.json")


def read_slices(path: Path, limit: int = MAX_RECORD_BYTES) -> Iterator[Slice]:
    """Each sample of a log, with the log's header as its context."""
    with path.open("rb") as file:
        packed = file.read(len(ZIP)) == ZIP
    found = False
    for piece in _unpacked(path, limit) if packed else _listed(path, limit):
        found = True
        yield piece
    if not found:
        words = "the log holds no samples: log_samples was off, or it is a header alone"
        yield Slice(b"", 1, 0, _refusal("not_a_record", words))


def _listed(path: Path, limit: int) -> Iterator[Slice]:
    header = _header(_until_samples(read_members(path, _HEADER, ("samples",), limit=MAX_HEADER_BYTES)))
    last = 0
    for member in read_members(path, (), ("samples",), limit):
        piece = member.piece
        if member.key is None:
            code = "trailing_text" if piece.data else "truncated"
            yield piece._replace(place=last + 1, context=_refusal(code, "the object of the log ends otherwise"))
        elif piece.place or piece.data not in (b"null", b""):
            last = piece.place
            yield piece._replace(context=header)


def _until_samples(members: Iterable[Member]) -> Iterator[Member]:
    """The header's members; the samples come behind it in what Inspect writes, and are read only once."""
    seen = set()
    for member in members:
        if member.key == "samples" and "eval" in seen:
            return
        seen.add(member.key)
        yield member


def _unpacked(path: Path, limit: int) -> Iterator[Slice]:
    try:
        with Archive(path) as archive:
            entries = list(archive.entries())
            last = {entry.name: entry for entry in entries}
            header = _archived_header(archive, last)
            repeated = (entry for entry in entries if entry.name in _MEMBERS and last[entry.name] is not entry)
            samples = (entry for entry in entries if entry.name.startswith("samples/"))
            for place, entry in enumerate(chain(samples, repeated), 1):
                if last[entry.name] is entry:
                    yield _unpack(archive, entry, limit, place, header)
                else:
                    words = f"{entry.name!r} stands in the archive again, and the last one holds"
                    yield Slice(b"", place, entry.offset, _refusal("repeated_id", words))
    except ArchiveError as error:
        yield Slice(b"", 1, 0, _refusal("unsafe_archive", str(error)))


def _unpack(archive: Archive, entry: Entry, limit: int, place: int, header: bytes) -> Slice:
    if not entry.name.endswith(".json") or "_epoch_" not in entry.name.rpartition("/")[2]:
        words = f"{entry.name!r} is a piece of a sample: write the log with whole samples, one member each"
        return Slice(b"", place, entry.offset, _refusal("not_a_record", words))
    try:
        return Slice(archive.read(entry, limit), place, entry.offset, header)
    except ArchiveError as error:
        return Slice(b"", place, entry.offset, _refusal("unsafe_archive", str(error)))


def _archived_header(archive: Archive, entries: dict[str, Entry]) -> bytes:
    name = next((name for name in _MEMBERS if name in entries), None)
    if name is None:
        return _refusal("not_a_record", f"the archive holds neither {' nor '.join(_MEMBERS)}")
    try:
        data = archive.read(entries[name], MAX_HEADER_BYTES)
    except ArchiveError as error:
        return _refusal("unsafe_archive", str(error))
    if data is None:
        return _refusal("too_large", f"{name} is over the limit of {MAX_HEADER_BYTES} bytes")
    return _header(split_members(BytesIO(data), _HEADER))


def _header(members: Iterable[Member]) -> bytes:
    """The members of a header that say which attempts these are, as one object, each as it was written."""
    parts: dict[str, bytes] = {}
    for member in members:
        if member.key not in _HEADER:
            continue
        if member.piece.data is None:
            return _refusal("too_large", f"$.{member.key} is over the limit of {MAX_HEADER_BYTES} bytes")
        if member.key in parts:
            return _refusal("duplicate_key", f"$.{member.key} stands twice")
        parts[member.key] = member.piece.data
    return b"{%s}" % b",".join(b'"%s":%s' % (key.encode(), data) for key, data in parts.items())


def _refusal(code: str, words: str) -> bytes:
    return canonical.encode({"eval": {"task": ""}, "refused": [code, words]})

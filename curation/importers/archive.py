"""Members of a zip archive, read one at a time and never extracted: a name leads nowhere, a size is what was counted.

Stored, deflated and zstd members are read. Where a name stands twice the last one holds, as for everyone who reads by
name. Every limit is a constant here and stands in the words of what it refuses.
"""

import os
import stat
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

MAX_DIRECTORY_BYTES = 64 * 2**20  # about half a million members
MAX_RATIO = 500
MAX_SMALL_BYTES = 2**20  # up to this size no ratio is too high
MAX_NAME = 1_000

_ZSTD = 93
_ENCRYPTED = 1
_SHOWN = 80
_END = struct.Struct("<4s4H2LH")
_END64_AT = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_HEADER = struct.Struct("<4s5H3L2H")
_MAX_COMMENT = 1 << 16


class ArchiveError(Exception):
    """What is wrong with an archive or a member, and the way out."""


class Entry(NamedTuple):
    """A member that may be read: its name, and the byte of the archive where it starts."""

    name: str
    offset: int
    info: ZipInfo


class Archive:
    """An archive open for reading; close it with the block. Raises ArchiveError where it is none or over a limit."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("rb")
        try:
            size = _directory_bytes(self._file)
            if size > MAX_DIRECTORY_BYTES:
                raise ArchiveError(f"its directory takes {size} bytes, the limit is {MAX_DIRECTORY_BYTES}: split it")
            self._zip = ZipFile(self._file)
        except (BadZipFile, OSError, OverflowError, ValueError, NotImplementedError, struct.error) as error:
            self._file.close()
            raise ArchiveError(f"no whole zip archive ({error}): copy it again") from None
        except ArchiveError:
            self._file.close()
            raise

    def __enter__(self) -> "Archive":
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._file.close()

    def entries(self) -> Iterator[Entry]:
        """The members in the order of the archive's directory; of several of one name the last holds."""
        found = (Entry(info.filename, info.header_offset, info) for info in self._zip.infolist())
        return (entry for entry in found if not entry.name.endswith("/"))

    def read(self, entry: Entry, limit: int) -> bytes | None:
        """The bytes of a member, None where there are more than ``limit``. Raises ArchiveError for one that leads
        outside, is no file, is packed too tightly, in an unknown way or with a password, or is damaged.
        """
        info = entry.info
        _refuse(info)
        if info.file_size > limit or info.compress_size > limit:
            return None
        try:
            data = self._unpack_zstd(info) if info.compress_type == _ZSTD else self._unpack(info)
            if len(data) != info.file_size:
                raise BadZipFile(f"its size is not the {info.file_size} bytes that the directory says")
        except (BadZipFile, EOFError, OSError, RuntimeError, ValueError, struct.error, zlib.error) as error:
            raise ArchiveError(f"{_shown(info.filename)} is damaged ({error}): copy the archive again") from None
        return data

    def _unpack(self, info: ZipInfo) -> bytes:
        """At most one byte more than declared, however much there is."""
        with self._zip.open(info) as stream:
            return stream.read(info.file_size + 1)

    def _unpack_zstd(self, info: ZipInfo) -> bytes:
        import pyarrow as pa

        self._file.seek(info.header_offset)
        *_, name, extra = _HEADER.unpack(self._file.read(_HEADER.size))
        self._file.seek(name + extra, os.SEEK_CUR)
        packed = pa.BufferReader(self._file.read(info.compress_size))
        with pa.CompressedInputStream(packed, "zstd") as stream:
            data = bytes(stream.read(info.file_size + 1))
        if zlib.crc32(data) != info.CRC:
            raise BadZipFile("its checksum is another one")
        return data


def _refuse(info: ZipInfo) -> None:
    name, shown = info.orig_filename, _shown(info.filename)
    steps = name.replace("\\", "/").split("/")
    outside = not name or name.startswith(("/", "\\")) or ".." in steps or ":" in steps[0] or not name.isprintable()
    if outside or len(name) > MAX_NAME:
        raise ArchiveError(f"member {shown} leads outside or has no plain name of up to {MAX_NAME} characters")
    mode = info.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise ArchiveError(f"member {shown} is a link or another thing that is no file")
    if info.flag_bits & _ENCRYPTED:
        raise ArchiveError(f"member {shown} is encrypted: write the archive without a password")
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED, _ZSTD):
        raise ArchiveError(f"member {shown} is packed by method {info.compress_type}: pack it with deflate or zstd")
    if info.file_size > MAX_SMALL_BYTES and info.file_size > MAX_RATIO * max(info.compress_size, 1):
        raise ArchiveError(f"member {shown} unpacks to more than {MAX_RATIO} times its size, the limit of the ratio")


def _shown(name: str) -> str:
    return repr(name if len(name) <= _SHOWN else name[:_SHOWN] + "…")


def _directory_bytes(file: BinaryIO) -> int:
    """The size of the central directory as the end record says it, before anything of it is read."""
    size = file.seek(0, os.SEEK_END)
    start = max(0, size - _END.size - _MAX_COMMENT)
    file.seek(start)
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise BadZipFile("no end record")
    found = int(_END.unpack_from(tail, at)[5])
    before = tail[max(0, at - _END64_AT.size) : at]
    if not before.startswith(b"PK\x06\x07"):
        return found
    file.seek(_END64_AT.unpack(before)[2])
    return max(found, int(_END64.unpack(file.read(_END64.size))[8]))

"""Zip archives as tests need them, broken ones too."""

import struct
import zipfile
import zlib
from pathlib import Path

import pyarrow as pa

STORED, ZSTD = 0, 93


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    """An archive of these members, deflated, in this order."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def write_zstd(path: Path, members: dict[str, bytes]) -> Path:
    """An archive of these members, each packed by zstd."""
    sizes = {}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in members.items():
            archive.writestr(name, pa.compress(data, codec="zstd", asbytes=True))
            sizes[name] = (zlib.crc32(data), len(data))
    patched = bytearray(path.read_bytes())
    for name, (checksum, size) in sizes.items():
        for mark, method, crc, real, name_at in ((b"PK\x03\x04", 8, 14, 22, 30), (b"PK\x01\x02", 10, 16, 24, 46)):
            at = patched.index(mark)
            while patched[at + name_at : at + name_at + len(name)] != name.encode():
                at = patched.index(mark, at + 1)
            struct.pack_into("<H", patched, at + method, ZSTD)
            struct.pack_into("<L", patched, at + crc, checksum)
            struct.pack_into("<L", patched, at + real, size)
    path.write_bytes(patched)
    return path


def set_size(path: Path, size: int) -> Path:
    """The archive with another unpacked size declared for its first member."""
    data = bytearray(path.read_bytes())
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<L", data, data.index(mark) + at, size)
    path.write_bytes(data)
    return path

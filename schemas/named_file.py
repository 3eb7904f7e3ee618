"""A file that somebody names, opened at once: a pipe or a device, which may never give anything, is refused."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_named(path: Path) -> BinaryIO:
    """The regular file of that name, to be read. Raises OSError where there is none, or it is anything else."""
    return open(path, "rb", opener=_open)


def read_named(path: Path) -> bytes:
    """What the regular file of that name holds. Raises OSError as ``open_named`` does."""
    with open_named(path) as file:
        return file.read()


def _open(name: str, flags: int) -> int:
    """Open without waiting for a writer, and keep what is a regular file."""
    opened = os.open(name, flags | getattr(os, "O_NONBLOCK", 0))
    mode = os.fstat(opened).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # of a folder Python says itself that it is none
        return opened
    os.close(opened)
    raise OSError(errno.EINVAL, "not a regular file; save what it gives to a file first", name)

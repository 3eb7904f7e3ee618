"""A bound for the memory of this process while it runs a query that somebody wrote."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOM = 4 << 30
"""Bytes that the process may take more than it has: texts that a query makes are in no bound of the database's own."""


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Let what allocates over the bound fail, where the system can tell and limit what a process takes."""
    import resource

    kind = resource.RLIMIT_AS
    soft, hard = before = resource.getrlimit(kind)
    with suppress(OSError, ValueError):
        taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
        bounds = [bound for bound in (soft, hard, taken + ROOM) if bound != resource.RLIM_INFINITY]
        resource.setrlimit(kind, (min(bounds), hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, before)

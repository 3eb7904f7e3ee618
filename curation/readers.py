"""Processes that read and digest records, so that a large import uses every core."""

import gc
import multiprocessing
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

import pyarrow as pa

Given = TypeVar("Given")
Made = TypeVar("Made")


class Readers:
    """A map over chunks, in order, in this process or in several of its own.

    Enter it before a store is opened: on Linux the processes are forks, and start while there are no threads yet.
    """

    def __init__(self, processes: int = 1) -> None:
        self._processes = processes
        self._pool: ProcessPoolExecutor | None = None

    def map(self, function: Callable[[Given], Made], chunks: Iterable[Given]) -> Iterator[tuple[Given, Made]]:
        """Each chunk with what a pure function makes of it, a few under way at a time."""
        if self._pool is None:
            yield from ((chunk, function(chunk)) for chunk in chunks)
            return
        waiting: deque[tuple[Given, Future[Made]]] = deque()
        for chunk in chunks:
            waiting.append((chunk, self._pool.submit(function, chunk)))
            if len(waiting) > 2 * self._processes:
                first, future = waiting.popleft()
                yield first, future.result()
        for first, future in waiting:
            yield first, future.result()

    def __enter__(self) -> Self:
        if self._processes > 1:
            pa.array(())  # the first array loads what every reader needs: once, before they are forked
            context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
            # What is read holds no reference cycles: a collector would only look for some.
            self._pool = ProcessPoolExecutor(self._processes, context, initializer=gc.disable)
            self._pool.submit(gc.isenabled).result()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

"""A query that somebody wrote, run within bounds of time, memory and result, its rows in batches as they come."""

import threading
import time
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from curation.errors import UsageError

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

MEMORY = "2GB"
"""Memory that a connection for such queries may take; what does not fit is refused, nothing goes to a disk."""

SETTINGS: dict[str, str | bool | int | float | list[str]] = {"threads": 2, "memory_limit": MEMORY, "temp_directory": ""}
ROW_BYTES = 128
"""What a row counts for beside the bytes of its values."""

_OF_MEMORY = ("Out of Memory", "maximum total string size")


class Bounds(NamedTuple):
    """How many seconds a query may run, and how many bytes its result may have; of one that is read as it comes, each
    batch.
    """

    seconds: float = 300.0
    result_bytes: int = 64 << 20


def stream(
    connection: "duckdb.DuckDBPyConnection", query: str, rows: int, bounds: Bounds, *, as_it_comes: bool
) -> "Iterator[pa.RecordBatch]":
    """The result in batches of at most so many rows, the first of which has none.

    With ``as_it_comes`` only a batch is held, not the whole. Only the time in which the query itself runs counts.
    Raises UsageError, with the bound and the way out, for a query that is over one, duckdb.Error for one that is wrong.
    """
    import duckdb

    left, size = bounds.seconds, 0
    batches: Iterator[pa.RecordBatch] | None = None
    while True:
        started = time.monotonic()
        over = threading.Event()
        timer = threading.Timer(max(left, 0), _interrupt, (connection, over))
        timer.start()
        try:
            if batches is None:
                reader = connection.sql(query).to_arrow_reader(rows)
                batches = chain((_empty(reader.schema),), reader)
            batch = next(batches, None)
        except (duckdb.Error, OSError, MemoryError) as error:
            if over.is_set():
                raise UsageError(
                    f"the query ran for over {bounds.seconds:g} seconds: select less, or let it run longer with "
                    "--seconds N"
                ) from None
            raise _explained(error) from None
        finally:
            timer.cancel()
            timer.join()  # no thread is left that the end of the process would cut off
        left -= time.monotonic() - started
        if batch is None:
            return
        weight = batch.nbytes + ROW_BYTES * batch.num_rows
        size = weight if as_it_comes else size + weight
        if size > bounds.result_bytes:
            part = f"a part of the result ({batch.num_rows} rows)" if as_it_comes else "the result"
            raise UsageError(
                f"{part} is over {bounds.result_bytes} bytes: select less (fewer columns, a LIMIT), or take more with "
                "--max-bytes N"
            )
        yield batch


def _empty(schema: "pa.Schema") -> "pa.RecordBatch":
    import pyarrow as pa

    return pa.RecordBatch.from_pylist([], schema=schema)


def _interrupt(connection: "duckdb.DuckDBPyConnection", over: threading.Event) -> None:
    over.set()
    connection.interrupt()


def _explained(error: Exception) -> Exception:
    """An error of the query; one of memory with its bound."""
    import duckdb

    words = str(error)
    if isinstance(error, MemoryError) or any(sign in words for sign in _OF_MEMORY):
        return UsageError(
            f"the query takes over {MEMORY} of memory: select less (fewer columns, a LIMIT, shorter texts)"
        )
    return error if isinstance(error, duckdb.Error) else duckdb.IOException(words)

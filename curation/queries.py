"""A query that somebody wrote, run within bounds of time, memory and result, its rows in batches as they come."""

import threading
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
    """How many seconds a query and the reading of its result may take, and how many bytes the result may have; of one
    that is read as it comes, each batch.
    """

    seconds: float | None = 300.0
    result_bytes: int = 64 << 20


def stream(
    connection: "duckdb.DuckDBPyConnection", query: str, rows: int, bounds: Bounds, *, as_it_comes: bool
) -> "Iterator[pa.RecordBatch]":
    """The result in batches of at most so many rows, the first of which has none.

    With ``as_it_comes`` only a batch is held, not the whole. Time counts until the last batch is taken. Raises
    UsageError, with the bound and the way out, for a query that is over one, duckdb.Error for one that is wrong.
    """
    import duckdb

    over, size = threading.Event(), 0
    timer = threading.Timer(bounds.seconds or 0, _interrupt, (connection, over))
    timer.daemon = True
    if bounds.seconds is not None:
        timer.start()
    try:
        reader = connection.sql(query).to_arrow_reader(rows)
        for batch in chain((_empty(reader.schema),), reader):
            if over.is_set():
                raise _too_long(bounds)
            weight = batch.nbytes + ROW_BYTES * batch.num_rows
            size = weight if as_it_comes else size + weight
            if size > bounds.result_bytes:
                raise _too_large(bounds, batch.num_rows if as_it_comes else None)
            yield batch
    except (duckdb.Error, OSError, MemoryError) as error:
        raise (_too_long(bounds) if over.is_set() else _explained(error)) from None
    finally:
        timer.cancel()
        if timer.is_alive():
            timer.join()


def _too_long(bounds: Bounds) -> UsageError:
    return UsageError(
        f"the query ran for over {bounds.seconds:g} seconds: select less, or let it run longer with --seconds N"
    )


def _too_large(bounds: Bounds, rows: int | None) -> UsageError:
    part = "the result" if rows is None else f"a part of the result ({rows} rows)"
    return UsageError(
        f"{part} is over {bounds.result_bytes} bytes: select less (fewer columns, a LIMIT), or take more with "
        "--max-bytes N"
    )


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

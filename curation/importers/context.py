"""What stands beside a record in its log and belongs to it, as its slice carries it."""

from typing import Any, Protocol, TypeVar

import msgspec

from curation.importers.face import RefusedError
from schemas import canonical


class Context(Protocol):
    """``refused`` is the code and the words where what stands beside could not be read."""

    refused: tuple[str, str] | None


C = TypeVar("C", bound=Context)


def read_context(data: bytes, shape: type[C], place: str) -> C:
    """The context of a slice. Raises RefusedError, with the place in words, where it is not of that shape."""
    value: Any = canonical.parse(data)[0]
    try:
        context = msgspec.convert(value, shape)
    except msgspec.ValidationError as error:
        raise RefusedError("not_a_record", f"{place}: {error}") from None
    if context.refused is not None:
        raise RefusedError(*context.refused)
    return context

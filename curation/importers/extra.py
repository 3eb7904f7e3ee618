"""What a log holds and a record does not model, as the record keeps it."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from schemas.canonical import raw
from schemas.trajectory import Json


def kept(values: Mapping[str, Any]) -> Json:
    """The values as canonical JSON; nothing where there are none."""
    return raw(dict(values)) if values else UNSET


def kept_known(values: Mapping[str, Any]) -> Json:
    """The same without nulls."""
    return kept({name: value for name, value in values.items() if value is not None})

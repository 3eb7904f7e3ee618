"""What the two example worlds say alike: items in cities, ``get_stock``, faults, and wording that claims an effect."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from environments.protocol import Claim, Fault, StartError, title_of
from schemas.trajectory import Record, Task

Quantity = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]

GET_STOCK = {
    "type": "object",
    "properties": {"sku": {"type": "string"}, "city": {"type": "string"}},
    "required": ["sku"],
}

ERRORS = ("error",)
FAULTS = (
    Fault("error", "timeout", "timeout"),
    Fault("error", "service_unavailable", "service"),
    Fault("error", "internal_error", "service"),
    Fault("error", "rate_limited", "rate_limit"),
)

# Bare wording: whether a sentence denies, asks or promises it is for the reader of the claim to see.
BOOKED = Claim(
    re.compile(r"\b(?:booked|reserved)\b|已(?:经)?(?:[为帮给]您)?预[订定]|预[订定]成功", re.IGNORECASE), "book"
)
CANCELLED = Claim(re.compile(r"\bcancell?ed\b|已(?:经)?(?:[为帮给]您)?取消|取消成功", re.IGNORECASE), "cancel")

P = TypeVar("P", bound=Record)


class Item(Record, frozen=True):
    """Where a SKU lies, and how many of it."""

    city: str
    stock: Quantity


def stock_answer(items: Mapping[str, Item], sku: str, city: str | None) -> dict[str, Any]:
    """The answer of ``get_stock``: names are compared as written.

    Without a city, or with its own, the item's stock; with another city that has any item, 0 there; a city that this
    world does not know is an error, because 0 would be false where only the spelling differs.
    """
    item = items.get(sku)
    if item is None:
        return {"error": "unknown_sku", "sku": sku}
    if city is None or city == item.city:
        return {"sku": sku, "city": item.city, "stock": item.stock}
    if any(other.city == city for other in items.values()):
        return {"sku": sku, "city": city, "stock": 0}
    return {"error": "unknown_city", "city": city}


def parameters_of(task: Task, kind: type[P]) -> P:
    """A task's parameters as a world reads them; absent ones are the world's default.

    Raises StartError for a parameter that the world does not have: it would open another start state than was meant.
    """
    if isinstance(task.parameters, msgspec.UnsetType):
        return kind()
    try:
        return msgspec.json.decode(task.parameters, type=kind)
    except msgspec.MsgspecError as error:
        raise StartError(f"{title_of(task)}: its parameters open no state here: {error}") from None

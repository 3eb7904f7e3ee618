"""Inventory: a read-only world that answers how many of an item lie where.

A task's parameters may list the stock: ``{"stock": {"A17": {"city": "Hangzhou", "stock": 2}}}``; without them there is
A17 alone.
"""

from typing import Any

import msgspec

from environments.json_state import JsonState
from environments.protocol import Blobs, Controls, EnvSpec, Examples
from environments.session import ToolSession, restore
from environments.shop import BOOKED, ERRORS, FAULTS, GET_STOCK, Item, parameters_of, stock_answer
from environments.sources import code_digest
from environments.tools import Tool, Toolbox
from schemas.objects import Snapshot
from schemas.trajectory import Record, Task

Items = dict[str, Item]
Stock = JsonState[Items]


class Parameters(Record, frozen=True):
    """What a task may set."""

    stock: Items = msgspec.field(default_factory=lambda: {"A17": Item("Hangzhou", 2)})


def get_stock(state: Stock, sku: str, city: str | None = None) -> dict[str, Any]:
    """How many of an item lie where."""
    return stock_answer(state.value, sku, city)


TOOLS = Toolbox(Tool("get_stock", "Stock of one SKU", GET_STOCK, "read", get_stock))


class Inventory:
    """The environment ``inventory``.

    A call that does not parse is not answered here. ``book`` does not exist, so a claim to have booked is never true.
    """

    examples: Examples = (
        ("get_stock", {"sku": "A17"}),
        ("get_stock", {"sku": "A17", "city": "Beijing"}),
        ("get_stock", {"sku": "A18"}),
    )

    def __init__(self) -> None:
        self.spec = EnvSpec(
            id="inventory",
            version="1",
            code_digest=code_digest(
                __name__, "environments.shop", "environments.tools", "environments.session", "environments.json_state"
            ),
            determinism="pure",
            effects=TOOLS.effects,
            faults=FAULTS,
            errors=ERRORS,
            claims=(BOOKED,),
        )

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> ToolSession[Stock]:
        """A world with a task's stock, or a snapshot's. Raises StartError, SnapshotError."""
        match start:
            case Task():
                state = Stock(parameters_of(start, Parameters).stock)
            case Snapshot():
                state = restore(start, self.spec, blobs, Stock.form, lambda image: Stock.restore(image, Items))
        return ToolSession(self.spec, TOOLS, state, controls, blobs)

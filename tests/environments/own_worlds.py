"""Worlds as a user would write them, one for each kind of state."""

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import pydantic

from environments.protocol import Undo
from environments.python_state import PythonWorld
from schemas.trajectory import Message, Task, text_of


def get_stock(state: dict[str, Any], sku: str, city: str | None = None) -> dict[str, Any]:
    """Stock of one SKU

    In any city, or in one.
    """
    return {"sku": sku, "stock": state["stock"][sku], "city": city}


def book(state: dict[str, Any], sku: str, qty: int = 1) -> dict[str, Any]:
    """Take items out of stock"""
    if qty > state["stock"][sku]:
        raise ValueError("too many", qty)
    state["stock"][sku] -= qty
    state["booked"].append({"sku": sku, "qty": qty})
    return {"left": state["stock"][sku]}


def cancel(state: dict[str, Any], sku: str, qty: int = 1) -> str:
    """Give items back"""
    state["stock"][sku] += qty
    state["booked"].remove({"sku": sku, "qty": qty})
    return "given back"


def mark(state: dict[str, Any], note: Any) -> list[Any]:
    """Keep a note, at two places"""
    state["note"] = state["copy"] = note
    return [note]


def add_to_note(state: dict[str, Any], word: str) -> dict[str, Any]:
    """Lengthen the note"""
    state["note"].append(word)
    return {"note": state["note"], "copy": state["copy"]}


def break_state(state: dict[str, Any], how: Literal["object", "fault"]) -> None:
    """What no world should do"""
    if how == "fault":
        raise RuntimeError("out of order")
    state["stock"]["A17"] = object()


def mail(state: dict[str, Any], to: str) -> None:
    """Write to somebody outside"""
    raise AssertionError(f"{to} must never be written to from {state}")


def shelf(stock: int = 2, sku: str = "A17") -> dict[str, Any]:
    """A start state from a task's parameters."""
    return {"stock": {sku: stock, "B17": 4, "9": 1}, "booked": []}


def is_empty(state: dict[str, Any], task: Task, messages: Sequence[Message]) -> bool:
    """Whether all of A17 is booked, and the task is said to be done by its id."""
    return state["stock"]["A17"] == 0 and any(task.id in text_of(one.content) for one in messages if task.id)


shop = PythonWorld(
    "shop",
    shelf,
    reads=[get_stock],
    writes=[book, cancel, mark, add_to_note, break_state],
    external=[mail],
    errors=(KeyError, ValueError),
    check=is_empty,
    undo={"book": Undo("cancel", {"sku": ("arguments", "sku")})},
)


class Reading(msgspec.Struct):
    """One value of one meter."""

    meter: str
    value: float


@dataclasses.dataclass
class Meters:
    """State as a dataclass that holds structs."""

    readings: list[Reading]
    seen: set[str] = dataclasses.field(default_factory=set)


class Counter(msgspec.Struct):
    """State as a struct."""

    count: int = 0
    by_name: dict[str, tuple[int, str]] = {}


class Ticket(pydantic.BaseModel):
    """A part of a model."""

    subject: str
    open: bool = True
    tags: set[str] = {"new", "urgent", "unread", "seen by none"}


class Desk(pydantic.BaseModel):
    """State as a pydantic model."""

    tickets: dict[str, Ticket]

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def waiting(self) -> int:
        """How many are open."""
        return sum(ticket.open for ticket in self.tickets.values())


class Forgetful(pydantic.BaseModel):
    """A model that a validator fills anew whenever it is read."""

    items: list[str]

    @pydantic.model_validator(mode="after")
    def _begin(self) -> "Forgetful":
        self.items = ["first"]
        return self


def read_meter(state: Meters, reading: Reading) -> Reading:
    """Note a value"""
    state.readings.append(reading)
    state.seen.add(reading.meter)
    return reading


def count(state: Counter, name: Literal["a", "b"], by: int = 1) -> dict[str, tuple[int, str]]:
    """Count by name"""
    state.count += by
    state.by_name[name] = (state.count, name)
    return state.by_name


def close_ticket(state: Desk, number: str) -> Ticket:
    """Close a ticket"""
    state.tickets[number].open = False
    state.tickets[number].tags.add(number)
    return state.tickets[number]


def add(state: Forgetful, item: str) -> int:
    """Add an item"""
    state.items.append(item)
    return len(state.items)


meters = PythonWorld("meters", Meters([Reading("m1", 1.5)], {"m1", "m2", "m3"}), writes=[read_meter])
counter = PythonWorld("counter", Counter(), writes=[count])
desk = PythonWorld("desk", Desk(tickets={"1": Ticket(subject="a"), "2": Ticket(subject="b")}), writes=[close_ticket])
forgetful = PythonWorld("forgetful", Forgetful(items=[]), writes=[add])

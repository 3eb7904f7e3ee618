"""Booking: a stateful world in SQLite, where calls take items out of stock and leave an audit trail.

A task's parameters: ``stock`` as in inventory; ``bookings`` {sku: qty} made before the start, already out of that
stock; ``timeouts`` [n, ...], the calls (from 1) that time out without being executed; ``wanted`` {"bookings": {...}},
the bookings in the end by which a task is graded, read by nothing but the check.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from environments.protocol import (
    Blobs,
    CallResult,
    CheckResult,
    Controls,
    EnvSpec,
    Examples,
    StartError,
    Undo,
    title_of,
)
from environments.session import ToolSession, restore
from environments.shop import (
    BOOKED,
    CANCELLED,
    ERRORS,
    FAULTS,
    GET_STOCK,
    Item,
    parameters_of,
    stock_answer,
)
from environments.sources import code_digest
from environments.sqlite_state import FixedState
from environments.tools import Answer, Tool, Toolbox, conclude
from schemas.objects import Snapshot
from schemas.trajectory import Message, Record, Task, ToolCall

Positive = Annotated[int, msgspec.Meta(ge=1, le=1_000_000_000)]
Bookings = dict[str, Positive]


class Wanted(Record, frozen=True):
    """The goal of a task."""

    bookings: Bookings


class Parameters(Record, frozen=True):
    """What a task may set."""

    stock: dict[str, Item] = msgspec.field(
        default_factory=lambda: {
            "A17": Item("Hangzhou", 2),
            "B17": Item("Hangzhou", 4),
            "B18": Item("Shanghai", 3),
            "C17": Item("Beijing", 1),
        }
    )
    bookings: Bookings = {}  # noqa: RUF012 - msgspec copies a default
    timeouts: tuple[Positive, ...] = ()
    wanted: Wanted | None = None


class Ledger(FixedState):
    """Stock and bookings; an audit row for every write; time-outs still to come, in calls from now."""

    schema = """
        CREATE TABLE stock (sku TEXT PRIMARY KEY, city TEXT NOT NULL, stock INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE bookings (sku TEXT PRIMARY KEY, qty INTEGER NOT NULL) WITHOUT ROWID;
        CREATE TABLE audit (seq INTEGER PRIMARY KEY, at TEXT, tool TEXT, sku TEXT, qty INTEGER);
        CREATE TABLE timeouts (remaining INTEGER NOT NULL);
    """
    trail = frozenset(("audit", "timeouts"))
    clock = ""

    def fill(self, parameters: Parameters) -> None:
        """Set a task's start state."""
        stock = [(sku, item.city, item.stock) for sku, item in parameters.stock.items()]
        with self.connection as at:
            at.executemany("INSERT INTO stock VALUES (?, ?, ?)", stock)
            at.executemany("INSERT INTO bookings VALUES (?, ?)", parameters.bookings.items())
            at.executemany("INSERT INTO timeouts VALUES (?)", [(number,) for number in sorted(parameters.timeouts)])

    def items(self) -> dict[str, Item]:
        """The stock by SKU."""
        rows = self.connection.execute("SELECT sku, city, stock FROM stock ORDER BY sku")
        return {sku: Item(city, stock) for sku, city, stock in rows}

    def bookings(self) -> dict[str, int]:
        """The bookings by SKU."""
        return dict(self.connection.execute("SELECT sku, qty FROM bookings ORDER BY sku").fetchall())

    def move(self, tool: str, sku: str, qty: int) -> None:
        """Take ``qty`` (negative: give back) out of stock into the bookings, with its audit row, all or nothing."""
        booked = self.bookings().get(sku, 0) + qty
        with self.connection as at:
            at.execute("UPDATE stock SET stock = stock - ? WHERE sku = ?", (qty, sku))
            at.execute("DELETE FROM bookings WHERE sku = ?", (sku,))
            if booked:
                at.execute("INSERT INTO bookings VALUES (?, ?)", (sku, booked))
            at.execute("INSERT INTO audit (at, tool, sku, qty) VALUES (?, ?, ?, ?)", (self.clock, tool, sku, abs(qty)))

    def is_timeout_due(self) -> bool:
        """Whether the call that is now made times out; each call brings the next time-out nearer."""
        with self.connection as at:
            at.execute("UPDATE timeouts SET remaining = remaining - 1")
            return at.execute("DELETE FROM timeouts WHERE remaining <= 0").rowcount > 0


def get_stock(ledger: Ledger, sku: str, city: str | None = None) -> dict[str, Any]:
    """How many of an item lie where."""
    return stock_answer(ledger.items(), sku, city)


def book(ledger: Ledger, sku: str, qty: int) -> dict[str, Any]:
    """Take items out of stock; a second booking of a SKU adds to the first."""
    item = ledger.items().get(sku)
    if item is None:
        return {"error": "unknown_sku", "sku": sku}
    if qty > item.stock:
        return {"error": "out_of_stock", "sku": sku, "stock": item.stock}
    ledger.move("book", sku, int(qty))
    return {"status": "booked", "sku": sku, "qty": int(qty), "stock": item.stock - int(qty)}


def cancel(ledger: Ledger, sku: str) -> dict[str, Any]:
    """Give back all that is booked of a SKU."""
    qty = ledger.bookings().get(sku)
    if qty is None:
        return {"error": "no_booking", "sku": sku}
    ledger.move("cancel", sku, -qty)
    return {"status": "cancelled", "sku": sku, "qty": qty, "stock": ledger.items()[sku].stock}


def list_bookings(ledger: Ledger) -> dict[str, Any]:
    """What is booked, by SKU."""
    return {"bookings": [{"sku": sku, "qty": qty} for sku, qty in ledger.bookings().items()]}


def _arguments(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_SKU = {"type": "string"}
TOOLS = Toolbox(
    Tool("get_stock", "Stock of one SKU", GET_STOCK, "read", get_stock),
    Tool("book", "Book items of one SKU", _arguments(sku=_SKU, qty={"type": "integer", "minimum": 1}), "write", book),
    Tool("cancel", "Cancel what is booked of one SKU", _arguments(sku=_SKU), "write", cancel),
    Tool("list_bookings", "All bookings", _arguments(), "read", list_bookings),
)


class BookingSession(ToolSession[Ledger]):
    """A world of bookings, graded by its goal; its audit rows have the time of their call."""

    def call(self, batch: Sequence[ToolCall], at: str | None = None) -> tuple[CallResult, ...]:
        """Execute calls in order, at the time that the controls give them."""
        self.state.clock = self.clock.tell(at)
        return super().call(batch, at)

    def answer(self, call: ToolCall) -> Answer:
        """What a call is answered: a declared time-out where one is due, else what its tool says."""
        if self.state.is_timeout_due():
            return conclude({"error": "timeout"}, self.spec)
        return super().answer(call)

    def check(self, task: Task, messages: Sequence[Message] = ()) -> CheckResult:
        """Whether the bookings are those that the task wants; unknown where it does not say."""
        wanted = parameters_of(task, Parameters).wanted
        if wanted is None:
            return CheckResult("unknown", "the task wants no particular bookings", reads=())
        met = self.state.bookings() == wanted.bookings
        detail = "the bookings are the wanted ones" if met else "the bookings are not the wanted ones"
        return CheckResult("passed" if met else "failed", detail, reads=("state", "hidden_answer"))


class Booking:
    """The environment ``booking``.

    It answers calls that do not parse, as a service behind an HTTP interface does, so that recovery from a format
    error can be executed here (and, as inventory does not, only here).
    """

    examples: Examples = (
        ("get_stock", {"sku": "A17"}),
        ("book", {"sku": "A17", "qty": 1}),
        ("book", {"sku": "B17", "qty": 9}),
        ("list_bookings", {}),
        ("cancel", {"sku": "A17"}),
    )

    def __init__(self) -> None:
        self.spec = EnvSpec(
            id="booking",
            version="1",
            code_digest=code_digest(
                __name__, "environments.shop", "environments.tools", "environments.session", "environments.sqlite_state"
            ),
            determinism="pure",
            effects=TOOLS.effects,
            faults=FAULTS,
            errors=ERRORS,
            claims=(BOOKED, CANCELLED),
            undo={
                "book": Undo("cancel", {"sku": ("arguments", "sku")}),
                "cancel": Undo("book", {"sku": ("arguments", "sku"), "qty": ("answer", "qty")}),
            },
            answers_malformed=True,
        )

    def open(self, start: Task | Snapshot, controls: Controls, blobs: Blobs) -> BookingSession:
        """A world at a task's start state, or at a snapshot. Raises StartError, SnapshotError."""
        match start:
            case Task():
                parameters = parameters_of(start, Parameters)
                unknown = sorted(parameters.bookings.keys() - parameters.stock.keys())
                if unknown:
                    raise StartError(f"{title_of(start)}: {unknown[0]!r} is booked but not in stock; list it there")
                ledger = Ledger()
                ledger.fill(parameters)
            case Snapshot():
                ledger = restore(start, self.spec, blobs, Ledger.form, Ledger.restore)
        return BookingSession(self.spec, TOOLS, ledger, controls, blobs)

"""Whatever is called, snapshotted, forked and restored in whatever order: every earlier snapshot opens with its digest,
and no world sees what happens in another.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, precondition, rule

from environments.blobs import MemoryBlobs
from environments.booking import Booking
from environments.protocol import Controls, Environment, Session
from environments.python_state import PythonWorld
from schemas.objects import Snapshot
from schemas.trajectory import Task, ToolCall
from tests.environments.calls import call
from tests.environments.orders import shop, write_large


def push(stack: dict[str, Any], item: int) -> dict[str, Any]:
    """Put an item on the stack"""
    stack["items"].append(item)
    return {"height": len(stack["items"])}


def pop(stack: dict[str, Any]) -> dict[str, Any]:
    """Take the topmost item"""
    stack["taken"] += 1
    return {"item": stack["items"].pop()}


STACK = PythonWorld("stack", {"items": [1], "taken": 0}, writes=[push, pop], errors=(IndexError,))
ORDERS = [
    *(call("put_order", order=order, item="desk", qty=qty) for order in ("o1", "o8") for qty in (1, 2)),
    *(call("cancel_order", order=order) for order in ("o1", "o2", "o8")),
    call("rename_order", order="o2", name="o3"),
    call("swap_orders", one="o1", other="o3"),
    call("note", order="o1", text="soon"),
    call("visit", page="home"),
    call("add_table", name="more"),
    call("tidy"),
    call("tally"),
    call("overdraw", order="o3"),
    call("get_order", order="o1"),
]


class AnyOrder(RuleBasedStateMachine):
    """Worlds of one environment, each in the state that it was last seen in."""

    environment: ClassVar[Environment]
    calls: ClassVar[Sequence[ToolCall]]

    worlds = Bundle("worlds")
    snapshots = Bundle("snapshots")

    def __init__(self) -> None:
        super().__init__()
        self.blobs = MemoryBlobs()
        self.open: dict[int, tuple[Session, str]] = {}
        self.taken: list[Snapshot] = []

    def _enter(self, start: Task | Snapshot) -> int:
        session = self.environment.open(start, Controls(), self.blobs)
        self.open[len(self.open)] = session, session.state_digest()
        return len(self.open) - 1

    @initialize(target=worlds)
    def begin(self) -> int:
        """Open a world at the start."""
        return self._enter(Task())

    @rule(world=worlds, number=st.integers(0, 100))
    def call(self, world: int, number: int) -> None:
        """Make a call."""
        session, digest = self.open[world]
        (result,) = session.call([self.calls[number % len(self.calls)]])
        assert result.state_before == digest
        assert result.state_after == session.state_digest()
        self.open[world] = session, session.state_digest()

    @rule(target=snapshots, world=worlds)
    def snapshot(self, world: int) -> Snapshot:
        """Take a snapshot."""
        session, digest = self.open[world]
        taken = session.snapshot()
        assert taken.digest == digest == session.state_digest()
        self.taken.append(taken)
        return taken

    @rule(target=worlds, snapshot=snapshots)
    def fork(self, snapshot: Snapshot) -> int:
        """Open a snapshot beside what is open."""
        world = self._enter(snapshot)
        assert self.open[world][1] == snapshot.digest
        return world

    @rule(target=worlds, snapshot=snapshots, number=st.integers(0, 100))
    def fork_twice(self, snapshot: Snapshot, number: int) -> Any:
        """Two forks of one snapshot answer alike."""
        forks = [self._enter(snapshot) for _ in range(2)]
        answers = [self.open[world][0].call([self.calls[number % len(self.calls)]]) for world in forks]
        assert answers[0] == answers[1]
        for world in forks:
            session, _ = self.open[world]
            self.open[world] = session, session.state_digest()
        return multiple(*forks)

    @precondition(lambda self: self.taken)
    @rule()
    def restore_all(self) -> None:
        """Every snapshot so far opens, and every world is where it was."""
        for snapshot in self.taken:
            with self.environment.open(snapshot, Controls(), self.blobs) as restored:
                assert restored.state_digest() == snapshot.digest
        for session, digest in self.open.values():
            assert session.state_digest() == digest

    def teardown(self) -> None:
        """Look at all of it once more."""
        self.restore_all()
        for session, _ in self.open.values():
            session.close()


class BookingInAnyOrder(AnyOrder):
    """Over booking."""

    environment = Booking()
    calls = (
        *(call("book", sku=sku, qty=qty) for sku in ("A17", "B17") for qty in (1, 2)),
        *(call("cancel", sku=sku) for sku in ("A17", "B17")),
        call("list_bookings"),
        call("get_stock", sku="A18"),
    )


class OrdersInAnyOrder(AnyOrder):
    """Over a small database, whose snapshots are whole."""

    environment = shop()
    calls = ORDERS


class ManyOrdersInAnyOrder(AnyOrder):
    """Over a large database, whose snapshots are what has changed."""

    calls = ORDERS


class StackInAnyOrder(AnyOrder):
    """Over plain Python."""

    environment = STACK
    calls = (call("push", item=1), call("push", item=2), call("pop"), call("pop", item=3))


@pytest.fixture(scope="module", autouse=True)
def _large(tmp_path_factory: pytest.TempPathFactory) -> None:
    ManyOrdersInAnyOrder.environment = shop(write_large(tmp_path_factory.mktemp("large") / "shop.db"))


TestBooking = BookingInAnyOrder.TestCase
TestOrders = OrdersInAnyOrder.TestCase
TestManyOrders = ManyOrdersInAnyOrder.TestCase
TestStack = StackInAnyOrder.TestCase
TestBooking.settings = TestOrders.settings = TestStack.settings = settings(max_examples=40, stateful_step_count=30)
TestManyOrders.settings = settings(max_examples=15, stateful_step_count=20)

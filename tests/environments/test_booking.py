import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environments.blobs import MemoryBlobs
from environments.booking import Booking, BookingSession
from environments.protocol import Controls, StartError
from schemas.objects import Snapshot
from schemas.trajectory import Task, ToolCall
from tests.environments.calls import call, task, unparsable

BOOKING = Booking()


def open_booking(start: Task | Snapshot | None = None, blobs: MemoryBlobs | None = None) -> BookingSession:
    return BOOKING.open(Task() if start is None else start, Controls(), blobs or MemoryBlobs())


def answer(world: BookingSession, asked: ToolCall) -> str:
    return world.call([asked])[0].raw


def test_a_booking_takes_stock_and_a_cancellation_gives_it_back() -> None:
    world = open_booking()
    assert answer(world, call("book", sku="B18", qty=2)) == '{"status":"booked","sku":"B18","qty":2,"stock":1}'
    assert answer(world, call("get_stock", sku="B18")) == '{"sku":"B18","city":"Shanghai","stock":1}'
    assert answer(world, call("book", sku="B18", qty=1)) == '{"status":"booked","sku":"B18","qty":1,"stock":0}'
    assert answer(world, call("list_bookings")) == '{"bookings":[{"sku":"B18","qty":3}]}'
    assert answer(world, call("cancel", sku="B18")) == '{"status":"cancelled","sku":"B18","qty":3,"stock":3}'
    assert answer(world, call("list_bookings")) == '{"bookings":[]}'


@pytest.mark.parametrize(
    ("asked", "status", "text"),
    [
        (call("book", sku="A17", qty=3), "tool_error", '{"error":"out_of_stock","sku":"A17","stock":2}'),
        (call("book", sku="A17", qty=10**400), "tool_error", '{"error":"out_of_stock","sku":"A17","stock":2}'),
        (call("book", sku="A18", qty=1), "tool_error", '{"error":"unknown_sku","sku":"A18"}'),
        (call("cancel", sku="A17"), "tool_error", '{"error":"no_booking","sku":"A17"}'),
        (call("book", sku="A17", qty=0), "schema_error", '{"error":"bad_arguments","at":"/qty","rule":"minimum"}'),
        (call("book", sku="A17", qty="1"), "schema_error", '{"error":"bad_arguments","at":"/qty","rule":"type"}'),
        (call("book", sku="A17", qty=True), "schema_error", '{"error":"bad_arguments","at":"/qty","rule":"type"}'),
        (call("book", sku="A17"), "schema_error", '{"error":"bad_arguments","at":"/qty","rule":"required"}'),
        (
            call("book", sku="A17", qty=1, city="Hangzhou"),
            "schema_error",
            '{"error":"bad_arguments","at":"","rule":"additionalProperties"}',
        ),
        (unparsable("book", "book(A17"), "schema_error", '{"error":"bad_arguments","at":"","rule":"json"}'),
    ],
)
def test_a_write_that_is_refused_leaves_no_trace(asked: ToolCall, status: str, text: str) -> None:
    (result,) = open_booking().call([asked])
    assert (result.status, result.raw) == (status, text)
    assert result.state_after == result.state_before


def test_a_cancelled_mistake_leaves_an_audit_trail_and_nothing_else() -> None:
    clean, mended = open_booking(), open_booking()
    clean.call([call("book", sku="B17", qty=1)])
    mended.call([call("book", sku="B18", qty=1)])
    mended.call([call("cancel", sku="B18"), call("book", sku="B17", qty=1)])
    assert mended.settled_digest() == clean.settled_digest()
    assert mended.state_digest() != clean.state_digest()


def test_both_bookings_remain_where_the_mistake_is_not_cancelled() -> None:
    clean, mended = open_booking(), open_booking()
    clean.call([call("book", sku="B17", qty=1)])
    mended.call([call("book", sku="B18", qty=1), call("book", sku="B17", qty=1)])
    assert mended.settled_digest() != clean.settled_digest()


@pytest.mark.parametrize(
    ("before", "write", "undo"),
    [
        ((), call("book", sku="B18", qty=2), {"sku": "B18"}),
        ((call("book", sku="B18", qty=2),), call("cancel", sku="B18"), {"sku": "B18", "qty": 2}),
    ],
)
def test_a_declared_undo_takes_the_write_back(
    before: tuple[ToolCall, ...], write: ToolCall, undo: dict[str, object]
) -> None:
    world = open_booking()
    world.call(before)
    settled = world.settled_digest()
    (result,) = world.call([write])
    assert world.settled_digest() != settled
    declared = BOOKING.spec.undo[write.name]
    assert set(declared.arguments) == set(undo)
    world.call([call(declared.tool, **undo)])
    assert result.status == "ok"
    assert world.settled_digest() == settled


def test_an_undo_is_no_undo_where_more_was_booked_before() -> None:
    world = open_booking(task(stock={"B18": {"city": "Shanghai", "stock": 3}}, bookings={"B18": 1}))
    settled = world.settled_digest()
    world.call([call("book", sku="B18", qty=1), call("cancel", sku="B18")])
    assert world.settled_digest() != settled


def test_reads_change_nothing() -> None:
    world = open_booking()
    results = world.call([call("get_stock", sku="A17"), call("list_bookings"), call("get_stock", sku="zz")])
    assert len({digest for result in results for digest in (result.state_before, result.state_after)}) == 1


def test_a_planned_time_out_answers_without_executing() -> None:
    blobs = MemoryBlobs()
    world = open_booking(task(stock={"A17": {"city": "Hangzhou", "stock": 2}}, timeouts=[2, 3]), blobs)
    looked = world.call([call("get_stock", sku="A17")])[0]
    fork = open_booking(world.snapshot(), blobs)
    for branch in (world, fork):
        lost, again, done = branch.call([call("book", sku="A17", qty=1)] * 3)
        assert looked.status == "ok"
        assert (lost.status, lost.raw) == (again.status, again.raw) == ("environment_fault", '{"error":"timeout"}')
        assert done.raw == '{"status":"booked","sku":"A17","qty":1,"stock":1}'
    assert world.state_digest() == fork.state_digest()


@pytest.mark.parametrize(
    ("calls", "result"),
    [
        ([call("book", sku="B17", qty=1)], "passed"),
        ([], "failed"),
        ([call("book", sku="B18", qty=1), call("book", sku="B17", qty=1)], "failed"),
        ([call("book", sku="B18", qty=1), call("cancel", sku="B18"), call("book", sku="B17", qty=1)], "passed"),
    ],
)
def test_a_task_is_graded_by_its_final_bookings(calls: list[ToolCall], result: str) -> None:
    wanted = task(wanted={"bookings": {"B17": 1}})
    world = open_booking(wanted)
    world.call(calls)
    graded = world.check(wanted)
    assert (graded.result, graded.reads) == (result, ("state", "hidden_answer"))
    assert "B17" not in graded.detail


def test_without_a_goal_nothing_is_known() -> None:
    assert open_booking().check(Task()).result == "unknown"


def test_the_goal_is_no_part_of_the_state() -> None:
    assert open_booking(task(wanted={"bookings": {"B17": 1}})).state_digest() == open_booking().state_digest()


def test_a_start_that_books_what_there_is_not_is_refused() -> None:
    with pytest.raises(StartError, match="'Z9' is booked but not in stock"):
        open_booking(task(bookings={"Z9": 1}))


SKUS = st.sampled_from(["A17", "B17", "B18", "Z9"])
STEPS = st.one_of(
    st.tuples(st.just("book"), SKUS, st.integers(1, 3)),
    st.tuples(st.just("cancel"), SKUS, st.just(0)),
    st.tuples(st.just("save"), SKUS, st.just(0)),
    st.tuples(st.just("restore"), SKUS, st.just(0)),
)
STOCK = {"A17": 2, "B17": 4, "B18": 3}


@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_any_sequence_of_calls_and_restores_agrees_with_plain_counting(steps: list[tuple[str, str, int]]) -> None:
    blobs = MemoryBlobs()
    world = open_booking(task(stock={sku: {"city": "Hangzhou", "stock": n} for sku, n in STOCK.items()}), blobs)
    booked: dict[str, int] = {}
    saved = world.snapshot(), dict(booked)
    for step, sku, qty in steps:
        match step:
            case "save":
                saved = world.snapshot(), dict(booked)
            case "restore":
                world.close()
                world, booked = open_booking(saved[0], blobs), dict(saved[1])
                assert world.state_digest() == saved[0].digest
            case "book":
                possible = booked.get(sku, 0) + qty <= STOCK.get(sku, -1)
                assert (world.call([call("book", sku=sku, qty=qty)])[0].status == "ok") is possible
                if possible:
                    booked[sku] = booked.get(sku, 0) + qty
            case "cancel":
                assert (world.call([call("cancel", sku=sku)])[0].status == "ok") is (sku in booked)
                booked.pop(sku, None)
        assert world.state.bookings() == dict(sorted(booked.items()))
        assert {s: item.stock + booked.get(s, 0) for s, item in world.state.items().items()} == STOCK
    world.close()

"""What every world must do, in this process and in a worker."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import msgspec
import pytest
from msgspec.structs import replace

from environments.blobs import MAX_IMAGE, MemoryBlobs
from environments.catalogue import find
from environments.protocol import Controls, Session, SnapshotError, StartError, fault_of
from environments.worker import Worker
from schemas.objects import Snapshot
from schemas.trajectory import Task, ToolCall
from tests.eight import records
from tests.environments.calls import call, task, unparsable

Opener = Callable[[Task | Snapshot, MemoryBlobs], Session]
WORLDS = ["inventory", "booking"]
MOVES = [
    call("get_stock", sku="A17"),
    call("book", sku="A17", qty=1),
    call("get_stock", sku="A18"),
    call("get_stock", sku="A17", city="Hangzhou"),
    call("list_bookings"),
    call("cancel", sku="A17"),
]


@pytest.fixture(scope="module", params=[(name, where) for name in WORLDS for where in ("here", "worker")])
def opener(request: pytest.FixtureRequest) -> Iterator[Opener]:
    name, where = request.param
    if where == "here":
        yield lambda start, blobs: find(name).open(start, Controls(), blobs)
    else:
        with Worker(name) as worker:
            yield worker.open


@pytest.fixture
def blobs() -> MemoryBlobs:
    return MemoryBlobs()


def test_a_snapshot_restores_to_the_same_digest_and_the_same_answers(opener: Opener, blobs: MemoryBlobs) -> None:
    with opener(Task(), blobs) as world:
        world.call(MOVES[:3])
        snapshot = world.snapshot()
        assert snapshot.digest == world.state_digest()
        expected = world.call(MOVES[3:])
    with opener(snapshot, blobs) as fork:
        assert fork.state_digest() == snapshot.digest
        assert fork.snapshot() == snapshot
        assert fork.call(MOVES[3:]) == expected


def test_a_fork_leaves_its_parent_as_it_is(opener: Opener, blobs: MemoryBlobs) -> None:
    with opener(Task(), blobs) as parent:
        before = parent.state_digest()
        with opener(parent.snapshot(), blobs) as fork:
            fork.call(MOVES[:3])
        assert parent.state_digest() == before


def test_digests_around_calls_form_a_chain(opener: Opener, blobs: MemoryBlobs) -> None:
    with opener(Task(), blobs) as world:
        first = world.state_digest()
        results = world.call(MOVES)
        assert [result.state_before for result in results] == [first, *(result.state_after for result in results)][:-1]
        assert results[-1].state_after == world.state_digest()


@pytest.mark.parametrize(
    "tamper",
    [
        lambda snapshot: replace(snapshot, digest=snapshot.digest[:-1] + ("0" if snapshot.digest[-1] != "0" else "1")),
        lambda snapshot: replace(snapshot, environment="elsewhere"),
        lambda snapshot: replace(snapshot, version="0"),
        lambda snapshot: replace(snapshot, form="pickle"),
        lambda snapshot: replace(snapshot, blob="0" * 64),
    ],
)
def test_a_snapshot_that_says_another_thing_than_its_bytes_is_refused(
    opener: Opener, blobs: MemoryBlobs, tamper: Callable[[Snapshot], Snapshot]
) -> None:
    with opener(Task(), blobs) as world:
        snapshot = world.snapshot()
    with pytest.raises(SnapshotError):
        opener(tamper(snapshot), blobs)
    opener(snapshot, blobs).close()


@pytest.mark.parametrize(
    "image", [b"", b"{}", b'{"A17":{"city":"Hangzhou","stock":-1}}', b"SQLite format 3\x00" + bytes(4000), bytes(100)]
)
def test_an_image_that_is_no_state_of_this_world_is_refused(opener: Opener, blobs: MemoryBlobs, image: bytes) -> None:
    with opener(Task(), blobs) as world:
        snapshot = world.snapshot()
    with pytest.raises(SnapshotError):
        opener(replace(snapshot, blob=blobs.put(image)), blobs)


def test_an_image_over_the_limit_is_refused_unread(opener: Opener, blobs: MemoryBlobs) -> None:
    with opener(Task(), blobs) as world:
        snapshot = world.snapshot()
    with pytest.raises(SnapshotError, match="over the limit"):
        opener(replace(snapshot, blob=blobs.put(bytes(MAX_IMAGE + 1))), blobs)


def test_blobs_that_give_other_bytes_are_noticed(opener: Opener, blobs: MemoryBlobs) -> None:
    class Liar(MemoryBlobs):
        def get(self, name: str, /) -> bytes:
            return super().get(name) + b" "

    liar = Liar()
    with opener(Task(), liar) as world:
        snapshot = world.snapshot()
    with pytest.raises(SnapshotError, match="its bytes are"):
        opener(snapshot, liar)


@pytest.mark.parametrize("parameters", [b"7", b'{"stok":{}}', b'{"stock":{"A17":{"city":"Hangzhou","stock":-1}}}'])
def test_parameters_that_open_no_state_are_a_start_error(opener: Opener, blobs: MemoryBlobs, parameters: bytes) -> None:
    with pytest.raises(StartError, match="'t7'"):
        opener(Task(id="t7", parameters=msgspec.Raw(parameters)), blobs)


@pytest.mark.parametrize(
    ("asked", "status", "answer"),
    [
        (call("get_stock", sku="A17"), "ok", '{"sku":"A17","city":"Hangzhou","stock":2}'),
        (call("get_stock", sku="A17", city="Hangzhou"), "ok", '{"sku":"A17","city":"Hangzhou","stock":2}'),
        (call("get_stock", sku="A17", city="北京"), "ok", '{"sku":"A17","city":"北京","stock":0}'),
        (call("get_stock", sku="A17", city="杭州"), "tool_error", '{"error":"unknown_city","city":"杭州"}'),
        (call("get_stock", sku="A18"), "tool_error", '{"error":"unknown_sku","sku":"A18"}'),
        (call("check_stock", sku="A17"), "unknown_tool", '{"error":"unknown_tool","tool":"check_stock"}'),
        (call("get_stock"), "schema_error", '{"error":"bad_arguments","at":"/sku","rule":"required"}'),
        (call("get_stock", sku=17), "schema_error", '{"error":"bad_arguments","at":"/sku","rule":"type"}'),
    ],
)
def test_a_call_is_answered_and_nothing_else_is_changed(
    opener: Opener, blobs: MemoryBlobs, asked: ToolCall, status: str, answer: str
) -> None:
    start = task(stock={"A17": {"city": "Hangzhou", "stock": 2}, "D1": {"city": "北京", "stock": 1}})
    with opener(start, blobs) as world:
        (result,) = world.call([asked])
    assert (result.status, result.raw) == (status, answer)
    assert result.state_after == result.state_before is not None


def test_a_closed_world_refuses(opener: Opener, blobs: MemoryBlobs) -> None:
    world = opener(Task(), blobs)
    world.close()
    world.close()
    assert [result.status for result in world.call(MOVES)] == ["refused"] * len(MOVES)
    with pytest.raises(SnapshotError):
        world.snapshot()


@pytest.mark.parametrize("name", WORLDS)
def test_two_hash_seeds_give_equal_answers_and_digests(name: str, blobs: MemoryBlobs) -> None:
    seen = []
    for seed in (0, 1):
        with Worker(name, Controls(hash_seed=seed)) as worker, worker.open(Task(), blobs) as world:
            seen.append((world.call(MOVES), world.state_digest(), world.settled_digest(), world.snapshot()))
    assert seen[0] == seen[1]


def recorded() -> Iterator[tuple[str, ToolCall, str]]:
    """Run, call and logged answer of the shared records."""
    for record in records():
        for asked, told in pairwise(record["messages"]):
            for one in asked.get("tool_calls", ()):
                arguments = msgspec.json.decode(one["function"]["arguments"])
                yield record["id"], call(one["function"]["name"], **arguments), told["content"]


def test_a_recorded_answer_is_reproduced_exactly_where_it_is_real(opener: Opener, blobs: MemoryBlobs) -> None:
    with opener(Task(), blobs) as world:
        differing = {run for run, asked, answer in recorded() if world.call([asked])[0].raw != answer}
    assert differing == {"pasted_old_error", "pasted_result", "timeout"}


def test_the_recorded_time_out_is_a_declared_fault() -> None:
    spec = find("inventory").spec
    faults = {run for run, _, answer in recorded() if fault_of(spec, msgspec.json.decode(answer)) is not None}
    assert faults == {"timeout"}


def test_only_booking_answers_a_call_that_does_not_parse(blobs: MemoryBlobs) -> None:
    torn = unparsable("get_stock", '{"sku": "A17"')
    answers = {name: find(name).open(Task(), Controls(), blobs).call([torn])[0] for name in WORLDS}
    assert (answers["inventory"].status, answers["inventory"].raw) == ("refused", "")
    assert answers["booking"].status == "schema_error"
    assert answers["booking"].raw == '{"error":"bad_arguments","at":"","rule":"json"}'
    assert {name: find(name).spec.answers_malformed for name in WORLDS} == {"inventory": False, "booking": True}


def test_tools_are_offered_with_their_schema(opener: Opener, blobs: MemoryBlobs) -> None:
    with opener(Task(), blobs) as world:
        tool = world.tools()[0]
    assert (tool.name, tool.description) == ("get_stock", "Stock of one SKU")
    assert msgspec.json.decode(tool.parameters) == {
        "type": "object",
        "properties": {"sku": {"type": "string"}, "city": {"type": "string"}},
        "required": ["sku"],
    }

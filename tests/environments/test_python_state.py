"""Worlds made of a start state and plain functions."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pydantic
import pytest

from environments.blobs import MemoryBlobs
from environments.catalogue import find
from environments.protocol import Controls, Session, SnapshotError, StartError
from environments.python_state import PythonState, PythonWorld
from environments.tools import Tool
from environments.worker import Worker
from schemas.canonical import raw
from schemas.objects import Snapshot
from schemas.trajectory import Message, Task, ToolCall
from tests.environments import own_worlds
from tests.environments.calls import call, task

Opener = Callable[[Task | Snapshot, MemoryBlobs], Session]
MOVES = {
    "shop": [
        call("book", sku="A17"),
        call("get_stock", sku="X"),
        call("book", sku="B17", qty=3),
        call("cancel", sku="A17"),
    ],
    "meters": [call("read_meter", reading={"meter": f"m{number}", "value": number / 2}) for number in range(9)],
    "counter": [call("count", name="b"), call("count", name="a", by=2), call("count", name="b")],
    "desk": [call("close_ticket", number="2"), call("close_ticket", number="1")],
}


@pytest.fixture
def blobs() -> MemoryBlobs:
    return MemoryBlobs()


@pytest.fixture(params=["here", "worker"])
def shop(request: pytest.FixtureRequest) -> Iterator[Opener]:
    if request.param == "here":
        yield lambda start, blobs: own_worlds.shop.open(start, Controls(), blobs)
    else:
        with Worker("tests.environments.own_worlds:shop") as worker:
            yield worker.open


@pytest.mark.parametrize("name", list(MOVES))
def test_each_kind_of_state_forks_and_acts_alike_in_both(name: str, blobs: MemoryBlobs) -> None:
    world, moves = getattr(own_worlds, name), MOVES[name]
    with world.open(Task(), Controls(), blobs) as parent:
        for at, move in enumerate(moves):
            snapshot = parent.snapshot()
            assert snapshot.digest == parent.state_digest()
            with world.open(snapshot, Controls(), blobs) as fork:
                assert fork.state.value == parent.state.value
                assert fork.snapshot().digest == snapshot.digest
                expected = fork.call(moves[at:])
            assert parent.call([move])[0] == expected[0]
        assert parent.state_digest() == expected[-1].state_after


@pytest.mark.parametrize("name", ["meters", "desk"])
def test_two_hash_seeds_give_one_digest(name: str, blobs: MemoryBlobs) -> None:
    seen = []
    for seed in (0, 1):
        with (
            Worker(f"tests.environments.own_worlds:{name}", Controls(hash_seed=seed)) as worker,
            worker.open(Task(), blobs) as world,
        ):
            states = [result.state_after for result in world.call(MOVES[name])]
            snapshot = world.snapshot()
            with worker.open(snapshot, blobs) as fork:
                seen.append((*states, snapshot.digest, fork.state_digest()))
    assert seen[0] == seen[1]


def test_what_a_model_writes_in_a_manner_of_its_own_stays() -> None:
    class Own(pydantic.BaseModel):
        names: set[str]

        @pydantic.field_serializer("names")
        def _write(self, names: set[str]) -> list[str]:
            return ["these", *sorted(names)]

    assert PythonState(Own(names={"b", "a"})).image() == b'{"names":["these","a","b"]}'


def test_no_call_reaches_the_start_state_of_a_module(blobs: MemoryBlobs) -> None:
    with own_worlds.desk.open(Task(), Controls(), blobs) as world:
        before = world.state_digest()
        world.call(MOVES["desk"])
        assert world.state_digest() != before
    with own_worlds.desk.open(Task(), Controls(), blobs) as world:
        assert world.state_digest() == before


@pytest.mark.parametrize(
    ("asked", "status", "answer"),
    [
        (call("get_stock", sku="A17"), "ok", '{"sku":"A17","stock":2,"city":null}'),
        (call("book", sku="A17", qty=2), "ok", '{"left":0}'),
        (call("get_stock", sku="X"), "tool_error", '{"error":"KeyError","message":"X"}'),
        (call("book", sku="A17", qty=3), "tool_error", """{"error":"ValueError","message":"('too many', 3)"}"""),
        (call("book", qty=1), "schema_error", '{"error":"bad_arguments","at":"/sku","rule":"required"}'),
        (call("book", sku="A17", qty="1"), "schema_error", '{"error":"bad_arguments","at":"/qty","rule":"type"}'),
        (call("book", sku="A17", qty=1.0), "schema_error", '{"error":"bad_arguments","at":"/qty","rule":"type"}'),
        (
            call("book", sku="A17", of=1),
            "schema_error",
            '{"error":"bad_arguments","at":"","rule":"additionalProperties"}',
        ),
        (call("mark", note="n"), "ok", '["n"]'),
        (call("sell", sku="A17"), "unknown_tool", '{"error":"unknown_tool","tool":"sell"}'),
        (call("mail", to="a"), "refused", ""),
    ],
)
def test_a_call_is_answered(shop: Opener, blobs: MemoryBlobs, asked: ToolCall, status: str, answer: str) -> None:
    with shop(Task(), blobs) as world:
        (result,) = world.call([asked])
        assert (result.status, result.raw) == (status, answer)
        assert world.snapshot().digest == world.state_digest()


def test_a_text_is_answered_as_it_is_and_an_external_tool_not_at_all(shop: Opener, blobs: MemoryBlobs) -> None:
    with shop(Task(), blobs) as world:
        _, back, sent, stock = world.call(
            [call("book", sku="A17"), call("cancel", sku="A17"), call("mail", to="a"), call("get_stock", sku="A17")]
        )
    assert back.raw == "given back"
    assert "external" in sent.detail
    assert stock.state_before == back.state_after


def test_an_exception_that_is_not_declared_is_a_fault(blobs: MemoryBlobs) -> None:
    for how, why in (("fault", "RuntimeError: out of order"), ("object", "object")):
        with Worker("tests.environments.own_worlds:shop") as worker, worker.open(Task(), blobs) as world:
            broken, after = world.call([call("break_state", how=how), call("get_stock", sku="A17")])
            assert (broken.status, broken.state_after, after.status) == ("environment_fault", None, "refused")
            assert why in broken.detail
            with pytest.raises(SnapshotError):
                world.snapshot()


def test_a_list_at_two_places_is_two_lists_in_parent_and_fork(shop: Opener, blobs: MemoryBlobs) -> None:
    with shop(Task(), blobs) as parent:
        parent.call([call("mark", note=["a"])])
        with shop(parent.snapshot(), blobs) as fork:
            assert fork.call([call("add_to_note", word="b")]) == parent.call([call("add_to_note", word="b")])


def keep_oddities(state: dict[str, Any]) -> None:
    state["at"] = {"pair": (1, 2), "none": float("nan")}


def test_what_json_does_not_have_is_as_a_fork_has_it_at_once(blobs: MemoryBlobs) -> None:
    world = PythonWorld("odd", {}, tools=[Tool("keep", "", {"type": "object"}, "write", keep_oddities)])
    with world.open(Task(), Controls(), blobs) as parent:
        parent.call([call("keep")])
        assert parent.state.value == {"at": {"pair": [1, 2], "none": None}}
        with world.open(parent.snapshot(), Controls(), blobs) as fork:
            assert fork.state.value == parent.state.value


def keep_numbered(state: dict[Any, Any]) -> None:
    state[7] = "seven"


def test_a_state_that_has_no_json_is_a_fault_of_the_world(blobs: MemoryBlobs) -> None:
    world = PythonWorld("odd", {}, tools=[Tool("keep", "", {"type": "object"}, "write", keep_numbered)])
    with world.open(Task(), Controls(), blobs) as session, pytest.raises(SnapshotError, match="str keys"):
        session.call([call("keep")])


@pytest.mark.parametrize(
    ("start", "place"),
    [
        ({"a": {"b": (1, 2)}}, "/a/b"),
        ({"a": [{}, {7: "x"}]}, "/a/1"),
        ({"a": {1, 2}}, "/a"),
        ({"a": float("inf")}, "/a"),
        ({"a": b"bytes"}, "/a"),
        ({"a": object()}, "no JSON"),
        ({"a": "\ud800"}, "no JSON"),
        (own_worlds.Forgetful(items=[]).model_copy(update={"items": []}), "/items"),
    ],
)
def test_a_start_state_that_its_json_changes_is_refused_with_the_place(
    start: Any, place: str, blobs: MemoryBlobs
) -> None:
    with pytest.raises(StartError, match=place):
        PythonWorld("odd", start).open(Task(id="t"), Controls(), blobs)


def test_a_model_that_forgets_what_calls_did_is_a_fault(blobs: MemoryBlobs) -> None:
    with (
        own_worlds.forgetful.open(Task(), Controls(), blobs) as world,
        pytest.raises(SnapshotError, match="/items does not survive"),
    ):
        world.call([call("add", item="second")])


@pytest.mark.parametrize("image", [b"", b"7", b"[]", b'{"readings":[{"meter":1,"value":2}]}', b'{"readings":{}}'])
def test_an_image_of_another_type_is_refused(image: bytes, blobs: MemoryBlobs) -> None:
    with own_worlds.meters.open(Task(), Controls(), blobs) as world:
        snapshot = world.snapshot()
    with pytest.raises(SnapshotError):
        own_worlds.meters.open(msgspec.structs.replace(snapshot, blob=blobs.put(image)), Controls(), blobs)


def test_parameters_of_a_task_make_its_start(shop: Opener, blobs: MemoryBlobs) -> None:
    with shop(task(stock=7, sku="Z1"), blobs) as world:
        assert world.call([call("get_stock", sku="Z1")])[0].raw == '{"sku":"Z1","stock":7,"city":null}'
    for wrong in ({"stock": "7"}, {"stok": 7}, [7]):
        with pytest.raises(StartError, match="'t'"):
            shop(Task(id="t", parameters=raw(wrong)), blobs)
    with pytest.raises(StartError, match=r"^a task without an id: .*takes no parameters"):
        own_worlds.desk.open(Task(parameters=raw({"stock": 7})), Controls(), blobs)


def test_the_world_grades_its_tasks(shop: Opener, blobs: MemoryBlobs) -> None:
    done = [Message("assistant", "t is done")]
    with shop(Task(), blobs) as world:
        assert world.check(Task(id="t"), done).result == "failed"
        world.call([call("book", sku="A17", qty=2)])
        assert world.check(Task(id="t"), done).result == "passed"
        assert world.check(Task(id="t"), done).reads == ("state", "hidden_answer")
    with shop(task(sku="A18"), blobs) as world:
        assert world.check(Task(id="t"), done).result == "unknown"
    with own_worlds.desk.open(Task(), Controls(), blobs) as desk:
        assert desk.check(Task(id="t")).result == "unknown"


def test_tools_say_what_their_hints_and_docstrings_say(blobs: MemoryBlobs) -> None:
    with own_worlds.shop.open(Task(), Controls(), blobs) as world:
        tools = {tool.name: tool for tool in world.tools()}
    assert tools["get_stock"].description == "Stock of one SKU"
    assert msgspec.json.decode(tools["book"].parameters) == {
        "type": "object",
        "properties": {"sku": {"type": "string"}, "qty": {"type": "integer", "default": 1}},
        "required": ["sku"],
        "additionalProperties": False,
    }
    with own_worlds.meters.open(Task(), Controls(), blobs) as world:
        (read_meter,) = world.tools()
    schema = msgspec.json.decode(read_meter.parameters)
    assert schema["properties"]["reading"] == {"$ref": "#/$defs/Reading"}
    assert schema["$defs"]["Reading"]["required"] == ["meter", "value"]
    assert own_worlds.shop.spec.effects == {
        "get_stock": "read",
        "book": "write",
        "cancel": "write",
        "mark": "write",
        "add_to_note": "write",
        "break_state": "write",
        "mail": "external",
    }


def test_a_world_is_found_by_its_module_and_names_its_own_code() -> None:
    assert find("tests.environments.own_worlds:shop").spec.name == "shop@1"
    assert own_worlds.shop.spec.code_digest == own_worlds.desk.spec.code_digest
    assert own_worlds.shop.spec.code_digest != PythonWorld("other", {}).spec.code_digest


def test_what_cannot_be_a_tool_or_a_start_is_refused_where_it_is_declared() -> None:
    def untyped(state: dict[str, Any], sku) -> None:  # type: ignore[no-untyped-def]
        """No hint"""

    def greedy(state: dict[str, Any], *skus: str) -> None:
        """Any number"""

    def start(stock: int):  # type: ignore[no-untyped-def]
        return {"stock": stock}

    for function in (untyped, greedy):
        with pytest.raises(TypeError, match=f"{function.__name__}: parameter .*sku"):
            PythonWorld("odd", {}, reads=[function])
    with pytest.raises(TypeError, match="two tools are named 'get_stock'"):
        PythonWorld("odd", {}, reads=[own_worlds.get_stock], writes=[own_worlds.book, own_worlds.get_stock])
    with pytest.raises(TypeError, match="start needs a return hint"):
        PythonWorld("odd", start)

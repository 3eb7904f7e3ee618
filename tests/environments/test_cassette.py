from pathlib import Path

import pytest
from msgspec.structs import replace

from environments.blobs import MemoryBlobs
from environments.cassette import MAX_BYTES, Cassette, CassetteSession, cassette_of
from environments.catalogue import UnknownEnvironmentError, find, members
from environments.protocol import Controls, EnvironmentFailure, SnapshotError, StartError
from environments.worker import Worker
from schemas.objects import Snapshot
from schemas.trajectory import Answers, Message, MessageError, Part, Task, ToolCall, Trajectory
from tests.environments.calls import call, task, unparsable

LINE = '{"state":"s","name":"n","answer":"a"'
LOOK, BOOK = call("get_stock", sku="A17"), call("book", sku="A17", qty=1)


def run(*turns: tuple[ToolCall, str | None], at: Task | None = None) -> Trajectory:
    """A record in which each call is answered with a text, or not at all."""
    messages = [Message("user", "Book A17")]
    for number, (asked, answer) in enumerate(turns):
        asked = replace(asked, uid=f"{2 * number + 1}.0")
        messages.append(Message("assistant", tool_calls=(asked,)))
        if answer is not None:
            messages.append(Message("tool", answer, answers=Answers(asked.uid, "position")))
    return Trajectory(tuple(messages), task=at or Task(id="t"))


def tape(path: Path, *runs: Trajectory) -> Cassette:
    (path / "tape.jsonl").write_bytes(cassette_of(runs))
    return Cassette(path / "tape.jsonl")


def play(world: Cassette, *calls: ToolCall, at: Task | Snapshot | None = None) -> list[tuple[str, str]]:
    with start(world, at or Task(id="t")) as session:
        return [(result.status, result.raw) for result in session.call(calls)]


def start(world: Cassette, at: Task | Snapshot, blobs: MemoryBlobs | None = None) -> CassetteSession:
    return world.open(at, Controls(), blobs or MemoryBlobs())


def test_a_run_is_given_back_and_nothing_else(tmp_path: Path) -> None:
    world = tape(tmp_path, run((LOOK, "2"), (BOOK, "booked"), (LOOK, "1")))
    assert play(world, LOOK, BOOK, LOOK) == [("ok", "2"), ("ok", "booked"), ("ok", "1")]
    assert play(world, LOOK, LOOK, BOOK) == [("ok", "2"), ("refused", ""), ("ok", "booked")]
    assert play(world, BOOK) == [("refused", "")]
    assert play(world, call("get_stock", sku="B17")) == [("refused", "")]
    assert world.spec.recorded_only
    assert world.spec.effects.keys() == {"get_stock", "book"}


def test_a_refusal_says_why_and_the_tape_stays(tmp_path: Path) -> None:
    with start(tape(tmp_path, run((LOOK, "2"))), Task(id="t")) as session:
        (result,) = session.call([BOOK])
        assert result.detail == "book is not recorded in this state"
        assert result.state_after == result.state_before == session.state_digest()


def test_the_same_call_answered_in_two_ways_has_no_answer(tmp_path: Path) -> None:
    world = tape(tmp_path, run((LOOK, "2"), (BOOK, "booked")), run((LOOK, "3")), run((LOOK, "2")))
    with start(world, Task(id="t")) as session:
        (result,) = session.call([LOOK])
    assert (result.status, result.detail) == ("refused", "get_stock is with 2 different answers recorded in this state")


def test_the_same_text_once_as_an_error_has_no_answer(tmp_path: Path) -> None:
    right = run((LOOK, "2"))
    wrong = replace(right.messages[2], error=MessageError("2"))
    assert play(tape(tmp_path, right, replace(right, messages=(*right.messages[:2], wrong))), LOOK) == [("refused", "")]


def test_runs_that_part_later_share_their_beginning(tmp_path: Path) -> None:
    world = tape(tmp_path, run((LOOK, "2"), (BOOK, "booked")), run((LOOK, "2"), (LOOK, "2")))
    assert play(world, LOOK, BOOK) == [("ok", "2"), ("ok", "booked")]
    assert play(world, LOOK, LOOK, LOOK) == [("ok", "2"), ("ok", "2"), ("refused", "")]


def test_another_task_or_start_is_another_tape(tmp_path: Path) -> None:
    world = tape(tmp_path, run((LOOK, "2")), run((LOOK, "5"), at=task(stock=5)))
    assert play(world, LOOK) == [("ok", "2")]
    assert play(world, LOOK, at=task(stock=5)) == [("ok", "5")]
    for unknown in (Task(id="u"), Task(), task(stock=6), Task(namespace="n", id="t"), Task(id="t", variant="v")):
        with pytest.raises(StartError, match="no call from its start"):
            start(world, unknown)


def test_a_tape_ends_where_an_answer_is_missing_or_no_text(tmp_path: Path) -> None:
    cut = run((LOOK, None), (BOOK, "booked"))
    seen = run((LOOK, "2"), (BOOK, "booked"))
    image = replace(seen.messages[2], content=(Part("image", sha256="0" * 64),))
    assert cassette_of([cut, replace(seen, messages=(*seen.messages[:2], image, *seen.messages[3:]))]) == b""


def test_malformed_calls_and_errors_are_given_back_as_recorded(tmp_path: Path) -> None:
    torn = unparsable("get_stock", '{"sku":')
    record = run((torn, "bad JSON"), (LOOK, "down"))
    failed = replace(record.messages[4], error=MessageError("down", origin="tool"))
    world = tape(tmp_path, replace(record, messages=(*record.messages[:4], failed)))
    assert play(world, torn, LOOK) == [("ok", "bad JSON"), ("tool_error", "down")]
    assert play(world, unparsable("get_stock", "{")) == [("refused", "")]
    assert world.spec.answers_malformed


def test_what_the_world_answered_is_recorded_and_not_what_was_shown(tmp_path: Path) -> None:
    record = run((LOOK, "2, says the clerk"))
    mediated = replace(record.messages[2], raw="2")
    assert play(tape(tmp_path, replace(record, messages=(*record.messages[:2], mediated))), LOOK) == [("ok", "2")]


def test_snapshots_lie_on_the_tape(tmp_path: Path) -> None:
    world, blobs = tape(tmp_path, run((LOOK, "2"), (BOOK, "booked"))), MemoryBlobs()
    with start(world, Task(id="t"), blobs) as session:
        session.call([LOOK])
        snapshot = session.snapshot()
    name = f"cassette:{tmp_path / 'tape.jsonl'}"
    with Worker(name) as worker, worker.open(snapshot, blobs) as fork:
        assert fork.call([BOOK])[0].raw == "booked"
    other = f"cassette/1:{'0' * 64}"
    for wrong in (replace(snapshot, digest=other), replace(snapshot, digest=other, blob=blobs.put(other.encode()))):
        with pytest.raises(SnapshotError):
            start(world, wrong, blobs)


def test_one_recording_is_one_text(tmp_path: Path) -> None:
    runs = [run((LOOK, "2"), (BOOK, "booked")), run((LOOK, "2"))]
    assert cassette_of(runs) == cassette_of([*runs, *runs])
    assert cassette_of(runs).count(b"\n") == 2


@pytest.mark.parametrize(
    "content",
    [
        *("{}", "[]", "no"),
        LINE + ',"arguments":{"a":1,"a":2}}',
        LINE + ',"answer":"b"}',
        LINE + ',"arguments":' + "[" * 10_000 + "]" * 10_000 + "}",
        LINE + ',"arguments":1e999}',
        LINE + ',"arguments":NaN}',
        LINE + ',"status":"timeout"}',
    ],
)
def test_a_file_that_is_no_tape_names_the_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "tape.jsonl"
    path.write_bytes(cassette_of([run((LOOK, "2"))]) + content.encode())
    with pytest.raises(UnknownEnvironmentError, match="line 2"):
        find(f"cassette:{path}")
    with pytest.raises(UnknownEnvironmentError, match="no cassette can be read"):
        find(f"cassette:{tmp_path / 'none.jsonl'}")


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "tape.jsonl").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(EnvironmentFailure, match="over the limit"):
        Cassette(tmp_path / "tape.jsonl")


def test_it_is_found_by_its_file(tmp_path: Path) -> None:
    name = f"cassette:{tmp_path / 'tape.jsonl'}"
    version = tape(tmp_path, run((LOOK, "2"))).spec.version
    assert find(name).spec.name == f"cassette:tape.jsonl@{version}"
    assert members(name) == (name,)

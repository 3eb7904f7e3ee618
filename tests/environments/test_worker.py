import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from environments.blobs import MemoryBlobs
from environments.catalogue import UnknownEnvironmentError
from environments.protocol import Controls, SnapshotError, StartError
from environments.worker import RemoteSession, Worker
from schemas.trajectory import Task
from tests.environments.calls import call

ROUGH = "tests.environments.rough:Rough"
QUICK = Controls(timeout_s=1.0, max_output=1000)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(ROUGH, QUICK) as worker:
        yield worker


def start(worker: Worker) -> RemoteSession:
    return worker.open(Task(), MemoryBlobs())


def test_a_call_that_hangs_is_a_time_out_and_the_rest_is_not_executed(worker: Worker) -> None:
    world = start(worker)
    before = time.monotonic()
    counted, hung, rest = world.call([call("count"), call("hang"), call("count")])
    assert time.monotonic() - before < 10
    assert (counted.status, counted.raw) == ("ok", "1")
    assert (hung.status, hung.raw, hung.state_before, hung.state_after) == ("timeout", "", counted.state_after, None)
    assert (rest.status, rest.raw, rest.state_after) == ("refused", "", None)
    assert "within 1 s" in hung.detail
    for question in (world.state_digest, world.settled_digest, world.snapshot, world.tools):
        with pytest.raises(SnapshotError, match="within 1 s"):
            question()
    assert world.check(Task()).result == "unknown"
    world.close()


def test_the_next_open_after_a_time_out_is_a_fresh_process(worker: Worker) -> None:
    lost = start(worker)
    lost.call([call("hang")])
    fresh = start(worker)
    assert fresh.call([call("count")])[0].raw == "1"
    assert lost.call([call("count")])[0].status == "refused"


@pytest.mark.parametrize(
    ("tool", "why"),
    [
        ("leave", "process is gone"),
        ("leave_politely", "SystemExit: 0"),
        ("stumble", "ZeroDivisionError"),
        ("refuse", "no business"),
        ("hoard", "MemoryError"),
    ],
)
def test_a_world_that_breaks_is_a_fault_of_the_environment(worker: Worker, tool: str, why: str) -> None:
    world = start(worker)
    broken, rest = world.call([call(tool), call("count")])
    assert (broken.status, broken.raw, broken.state_after) == ("environment_fault", "", None)
    assert broken.state_before is not None
    assert why in broken.detail
    assert rest.status == "refused"
    assert start(worker).call([call("count")])[0].raw == "1"


@pytest.mark.parametrize("ending", ["return", "stumble", "exit"])
def test_a_child_that_a_tool_forks_never_answers(worker: Worker, ending: str) -> None:
    world = start(worker)
    forked, *rest = world.call([call("fork", ending=ending), *[call("count")] * 5])
    assert forked.raw.startswith("parent of ")
    child = int(forked.raw.rpartition(" ")[2])
    for _ in range(100):
        if not is_running(child):
            break
        time.sleep(0.05)
    rest += world.call([call("count")] * 5)
    assert [result.raw for result in rest] == [str(number) for number in range(1, 11)]


def test_an_exception_takes_its_own_world_only(worker: Worker) -> None:
    one, other = start(worker), start(worker)
    one.call([call("stumble")])
    assert other.call([call("count")])[0].raw == "1"


def test_a_flood_is_cut_and_says_so(worker: Worker) -> None:
    flood, after = start(worker).call([call("flood"), call("count")])
    assert (len(flood.raw), flood.truncated, flood.status) == (1000, True, "ok")
    assert (after.raw, after.truncated) == ("1", False)


def test_what_a_world_prints_never_reaches_the_line(worker: Worker) -> None:
    said, after = start(worker).call([call("chatter"), call("count")])
    assert (said.raw, after.raw) == ("said", "1")


def test_what_a_world_sees_of_its_surroundings_is_set(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    with Worker(ROUGH, QUICK) as fresh:
        seen = start(fresh).call([call("surroundings")])[0].raw
    assert seen == '{"names":["LC_ALL","PYTHONHASHSEED","PYTHONPATH","TMPDIR","TZ"],"zone":"UTC","encoding":"utf-8"}'


def test_two_hash_seeds_are_two_orders(worker: Worker) -> None:
    orders = set()
    for seed in (0, 1, 2):
        with Worker(ROUGH, Controls(hash_seed=seed)) as seeded:
            orders.add(start(seeded).call([call("scatter")])[0].raw)
    with Worker(ROUGH, Controls(hash_seed=0)) as again:
        assert start(again).call([call("scatter")])[0].raw in orders
    assert len(orders) > 1


def test_closing_ends_what_a_world_started(worker: Worker) -> None:
    with Worker(ROUGH, QUICK) as own:
        child = int(start(own).call([call("detach")])[0].raw)
        os.kill(child, 0)
    for _ in range(100):
        if not is_running(child):
            break
        time.sleep(0.05)
    assert not is_running(child)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path("/proc", str(pid), "stat")  # a killed orphan may wait as a zombie for whoever reaps here
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def test_an_interrupted_call_ends_its_process(worker: Worker) -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    world = start(worker)
    former = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            world.call([call("hang")])
    finally:
        signal.signal(signal.SIGALRM, former)
    assert world.call([call("count")])[0].status == "refused"
    assert start(worker).call([call("count")])[0].raw == "1"


@pytest.mark.parametrize(("task", "why"), [("crash", "process is gone"), ("stumble", "ZeroDivisionError: no start")])
def test_a_world_that_breaks_while_it_opens_is_a_start_error(worker: Worker, task: str, why: str) -> None:
    with pytest.raises(StartError, match=why):
        worker.open(Task(id=task), MemoryBlobs())
    assert start(worker).call([call("count")])[0].raw == "1"


def test_a_world_that_hangs_while_it_opens_is_a_start_error() -> None:
    with Worker(ROUGH, QUICK, patience_s=3.0) as own, pytest.raises(StartError, match="no reply to Open within 3 s"):
        own.open(Task(id="hang"), MemoryBlobs())


def test_a_name_that_leads_nowhere_says_so() -> None:
    with Worker("shop") as nowhere, pytest.raises(UnknownEnvironmentError, match=r"known: .*booking.*inventory"):
        start(nowhere)


def test_a_module_that_breaks_while_it_is_imported_is_no_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_world.py").write_text("raise RuntimeError('half a world')\n")
    monkeypatch.syspath_prepend(tmp_path)
    cause = pytest.raises(UnknownEnvironmentError, match="RuntimeError: half a world")
    with Worker("broken_world:World") as broken, cause:
        start(broken)


def test_a_closed_session_refuses(worker: Worker) -> None:
    with start(worker) as world:
        world.call([call("count")])
    world.close()
    assert world.call([call("count")])[0].status == "refused"
    with pytest.raises(SnapshotError, match="closed"):
        world.snapshot()


def test_a_closed_worker_opens_again(worker: Worker) -> None:
    with Worker(ROUGH, QUICK) as own:
        world = start(own)
        own.close()
        assert world.call([call("count")])[0].detail == "the worker is closed"
        assert start(own).call([call("count")])[0].raw == "1"

import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from environments.blobs import MemoryBlobs
from environments.chance import Chance
from environments.clock import FIXED_CLOCK
from environments.protocol import ControlError, Controls
from environments.worker import RemoteSession, Worker
from schemas.trajectory import Task
from tests.environments.calls import call
from tests.environments.test_worker import is_running

NAME = "tests.environments.surrounded:Surrounded"


@contextmanager
def world(**controls: Any) -> Iterator[RemoteSession]:
    with Worker(NAME, Controls(**controls)) as worker, worker.open(Task(), MemoryBlobs()) as session:
        yield session


def ask(session: RemoteSession, tool: str, at: str | None = None, **arguments: Any) -> Any:
    [result] = session.call([call(tool, **arguments)], at)
    assert result.status == "ok", result
    return json.loads(result.raw)


def test_a_fixed_clock_stands_still_in_everything_a_world_does() -> None:
    with world(clock="2024-05-15T12:30:00.250000+00:00") as session:
        seen = "2024-05-15T12:30:00.250000"
        assert ask(session, "now") == [seen, 1715776200.25, "2024-05-15", "12:30:00 +0000"]
        assert ask(session, "loaded") == ask(session, "opened") == [session.check(Task()).detail] == [seen]
        assert ask(session, "nap")


def test_a_result_says_which_time_its_call_was_given() -> None:
    with world() as session:
        [result] = session.call([call("now")], "2020-01-01T00:00:00+00:00")
        assert result.clock == FIXED_CLOCK


def test_the_recorded_clock_is_that_of_the_call_or_the_last_one_known() -> None:
    with world(clock="recorded", time_zone="Asia/Shanghai") as session:
        told = [None, "2024-05-15T12:30:00Z", None, "yesterday", "2024-05-15 21:00", "9999-99-99"]
        results = [session.call([call("now")], at)[0] for at in told]
        assert [result.clock for result in results] == [
            FIXED_CLOCK,
            *["2024-05-15T12:30:00+00:00"] * 3,
            *["2024-05-15T21:00:00+08:00"] * 2,
        ]
        assert [json.loads(result.raw)[0] for result in results] == [
            "2026-01-01T08:00:00",
            *["2024-05-15T20:30:00"] * 3,
            *["2024-05-15T21:00:00"] * 2,
        ]
        assert session.check(Task()).detail == "2024-05-15T21:00:00"


def test_worlds_of_one_process_have_clocks_of_their_own() -> None:
    with Worker(NAME, Controls(clock="recorded")) as worker:
        one, other = (worker.open(Task(), MemoryBlobs()) for _ in range(2))
        ask(one, "now", "2024-05-15T12:30:00Z")
        assert ask(other, "now")[0] == "2026-01-01T00:00:00"
        assert ask(one, "now")[0] == "2024-05-15T12:30:00"


def test_the_wall_clock_goes_on_and_is_nobody_s_claim() -> None:
    with world(clock="wall") as session:
        before = datetime.now(UTC)
        [result] = session.call([call("now")])
        assert before.timestamp() <= json.loads(result.raw)[1] <= time.time()
        assert result.clock is None
        assert not ask(session, "nap")


@pytest.mark.parametrize("clock", ["1969-12-31T23:00:00+00:00", "2200-02-28T00:00:00+00:00"])
def test_a_clock_may_stand_far_away(clock: str) -> None:
    with world(clock=clock) as session:
        assert ask(session, "now")[0] == clock.removesuffix("+00:00")


def test_the_time_zone_is_that_of_a_naive_clock_and_of_the_world() -> None:
    with world(clock="2024-07-01T09:00:00", time_zone="Europe/Berlin") as session:
        assert ask(session, "now") == ["2024-07-01T09:00:00", 1719817200.0, "2024-07-01", "09:00:00 +0200"]


@pytest.mark.parametrize("tool", ["draw", "draw_numpy"])
def test_chance_starts_at_the_seed_in_each_world_and_goes_its_own_way(tool: str) -> None:
    with Worker(NAME, Controls(seed=7)) as worker:
        ask(worker.open(Task(), MemoryBlobs()), "draw_numpy")  # numpy is imported from here on
        alone = worker.open(Task(), MemoryBlobs())
        expected = [ask(alone, tool) for _ in range(3)]
        one, other = (worker.open(Task(), MemoryBlobs()) for _ in range(2))
        assert [(ask(one, tool), ask(other, tool)) for _ in range(3)] == [(value, value) for value in expected]
    assert len(set(expected)) == 3
    with world(seed=8) as session:
        assert ask(session, "draw") not in expected


def test_numpy_has_its_seed_from_the_call_after_that_which_imports_it() -> None:
    drawn = []
    for _ in range(2):
        with world(seed=7) as session:
            drawn.append([ask(session, "draw_numpy") for _ in range(3)][1:])
    assert drawn[0] == drawn[1]


def test_the_chance_of_a_closed_world_is_forgotten() -> None:
    chance, first = Chance(7), []
    for number in (1, 1, 2):
        chance.turn_to(number)
        first.append(random.random())
        chance.forget(number)
    assert len(set(first)) == 1


def test_a_world_works_in_a_new_folder_that_goes_with_its_process() -> None:
    with world() as session:
        where, holds, temporary = ask(session, "folder")
        assert (where, holds) == (temporary, [])
        assert Path(where) != Path.cwd()
        ask(session, "leave_file")
        assert Path(where, "left").exists()
    assert not Path(where).exists()


def test_a_world_works_in_the_folder_that_is_given_and_leaves_it(tmp_path: Path) -> None:
    with world(folder=str(tmp_path)) as session:
        assert ask(session, "folder")[0] == str(tmp_path)
        ask(session, "leave_file")
    assert (tmp_path / "left").exists()


def test_a_module_in_the_current_folder_is_found_and_may_read_beside_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here_world.py").write_text(
        "from pathlib import Path\n"
        "from tests.environments.surrounded import Surrounded\n"
        "assert Path('data').read_text() == 'known'\n"
        "world = Surrounded()\n"
    )
    (tmp_path / "data").write_text("known")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    with Worker("here_world:world") as worker, worker.open(Task(), MemoryBlobs()) as session:
        assert ask(session, "folder")[0] != str(tmp_path)


def test_limits_end_what_goes_beyond_them() -> None:
    limits = {"memory_bytes": 64 * 2**20, "file_bytes": 1000, "cpu_s": 0, "timeout_s": 1.0}
    with world(**limits) as session:
        assert ask(session, "hoard", size=16 * 2**20) == 16 * 2**20
        assert ask(session, "leave_file", size=1000) == 1000
        assert "MemoryError" in session.call([call("hoard", size=80 * 2**20)])[0].detail
    with world(**limits) as session:
        assert "File too large" in session.call([call("leave_file", size=1001)])[0].detail


def test_processor_time_is_bounded_where_nobody_waits() -> None:
    with world(cpu_s=0, timeout_s=1.0) as session:
        checked = session.check(Task(id="endless"))  # for a minute, if nothing ended it
        assert checked.result == "unknown"
        assert "process is gone" in checked.detail


def test_processor_time_is_that_of_each_call() -> None:
    with world(cpu_s=0, timeout_s=1.5) as session:
        assert all(ask(session, "work") for _ in range(8))


@pytest.mark.parametrize("ending", ["closed", "timed out"])
def test_a_daemon_that_left_for_a_session_of_its_own_is_ended_too(ending: str) -> None:
    with world(timeout_s=3.0) as session:
        daemon = int(ask(session, "escape"))
        assert is_running(daemon)
        if ending == "timed out":
            assert session.call([call("hang")])[0].status == "timeout"
            assert not is_running(daemon)
            assert session.call([call("now")])[0].status == "refused"
    assert not is_running(daemon)


@pytest.mark.parametrize(
    ("control", "value"),
    [
        ("clock", "tomorrow"),
        ("clock", ""),
        ("clock", "2024-13-01T00:00:00"),
        ("clock", "0001-01-01T00:00:00+14:00"),
        ("time_zone", "Mars/Olympus"),
        ("time_zone", "../etc/passwd"),
        ("time_zone", "Europe"),
        ("time_zone", ""),
        ("seed", -1),
        ("hash_seed", 2**32),
        ("timeout_s", 0.0),
        ("timeout_s", float("nan")),
        ("timeout_s", float("inf")),
        ("cpu_s", -1),
        ("memory_bytes", 0),
        ("file_bytes", -1),
        ("max_output", 0),
    ],
)
def test_a_control_that_cannot_be_held_names_itself_and_the_way_out(control: str, value: Any) -> None:
    with pytest.raises(ControlError, match="give ") as refused:
        Controls(**{control: value})
    assert f"control {control}={value!r}" in str(refused.value)


@pytest.mark.parametrize(
    ("control", "value", "way_out"), [("locale", "tlh_QO.UTF-8", "locale -a"), ("folder", "no/such", "make it")]
)
def test_a_control_that_this_machine_does_not_have_is_refused_on_opening(
    control: str, value: Any, way_out: str
) -> None:
    with Worker(NAME, Controls(**{control: value})) as worker, pytest.raises(ControlError, match=way_out) as refused:
        worker.open(Task(), MemoryBlobs())
    assert f"control {control}={value!r}" in str(refused.value)


def test_the_audit_of_bookings_has_the_time_of_the_call() -> None:
    digests = []
    for clock in (FIXED_CLOCK, FIXED_CLOCK, "2024-05-15T12:30:00+00:00"):
        with Worker("booking", Controls(clock=clock)) as worker, worker.open(Task(), MemoryBlobs()) as session:
            session.call([call("book", sku="A17", qty=1)])
            digests.append((session.state_digest(), session.settled_digest()))
    assert digests[0] == digests[1]
    assert digests[0][0] != digests[2][0]
    assert digests[0][1] == digests[2][1]

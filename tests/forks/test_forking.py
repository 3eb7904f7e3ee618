"""Forks of stored attempts: from which state they start, what a policy adds to them, and what counts them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from curation.continuation import Players
from curation.jobs.cases import INFERRED
from curation.jobs.diagnosing import diagnose_attempts
from curation.jobs.forking import ForkResult, fork_attempt
from curation.jobs.replaying import replay_attempts
from curation.policies.policy import Call as Made
from curation.policies.policy import Policy
from curation.proposals import read_calls
from curation.show import TrajectoryView, show
from curation.store.lookup import resolve
from reports.attempts import DEFAULT_RULE, read_attempts
from schemas.canonical import raw
from schemas.statements import Annotation
from schemas.trajectory import Attempt, Budget, Task
from tests.builders.desk import Desk
from tests.builders.test_booking import TOOLS, calls
from tests.cli.test_store_verbs import refused, result
from tests.eight import lines
from tests.forks.test_continuation import STOCK, WANTED, script
from tests.records import Call

DATED = "tests.forks.limited:Dated"
BOOK_A17: Call = ("book", {"sku": "A17", "qty": 1})
STOCK_B18: Call = ("get_stock", {"sku": "B18"})
B17: Call = ("book", {"sku": "B17", "qty": 1})
B18: Call = ("book", {"sku": "B18", "qty": 1})
BOOKED_A17 = {"status": "booked", "sku": "A17", "qty": 1, "stock": 1}
BOOKED_B18 = {"status": "booked", "sku": "B18", "qty": 1, "stock": 2}
SEEN_B18 = {"sku": "B18", "city": "Shanghai", "stock": 3}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def fork(
    desk: Desk, environment: str, attempt: str, at: int, call: Call, policy: Callable[[], Policy] | None = None
) -> ForkResult:
    proposal = read_calls(attempt, at, [json.dumps({"name": call[0], "arguments": call[1]})], "Ada")
    return fork_attempt(desk.store, environment, proposal, None if policy is None else Players(policy))


# D4: a fork after a side effect, in a world whose start cannot be opened any more


@pytest.fixture
def after_effect(desk: Desk, tmp_path: Path) -> tuple[str, Path]:
    """A replayed attempt that books, then looks up the wrong item; and the file without which nothing starts."""
    kept = tmp_path / "kept"
    kept.touch()
    attempt = desk.attempt("Book one A17. Stock of B17?", BOOK_A17, BOOKED_A17, STOCK_B18, SEEN_B18, confirm=False)
    moved = replace(desk.records[attempt], task=Task("desk", "dated", variant=str(kept)), attempt=Attempt("dated", 0))
    identity = desk.add(moved)
    desk.annotate(identity, "environment", "booking")
    desk.flush()
    replay_attempts(desk.store, DATED)
    return identity, kept


STOCK_B17: Call = ("get_stock", {"sku": "B17"})


def test_without_any_state_to_open_effects_refuse_the_fork(desk: Desk, after_effect: tuple[str, Path]) -> None:
    attempt, kept = after_effect
    kept.unlink()
    for line in fork(desk, DATED, attempt, 3, STOCK_B17).forks:
        assert (line.refused, line.detail) == ("effects_since_checkpoint", "book")


@pytest.mark.parametrize(
    ("earlier", "replayed"),
    [
        ((1, ("book", {"sku": "B17", "qty": 1})), 1),  # its clean fork left the state before the booking
        ((3, ("get_stock", {"sku": "C17"})), 0),  # and this one the state after it
    ],
)
def test_what_an_earlier_fork_left_opens_the_world_again(
    earlier: tuple[int, Call], replayed: int, desk: Desk, after_effect: tuple[str, Path]
) -> None:
    attempt, kept = after_effect
    at, call = earlier
    first = fork(desk, DATED, attempt, at, call).forks[0]
    assert first.verified
    kept.unlink()
    clean = fork(desk, DATED, attempt, 3, STOCK_B17).forks[0]
    assert clean.id is not None
    made = desk.store.trajectory(clean.id)
    assert made.fork is not None
    assert made.fork.restore.replayed == replayed
    assert [call.name for message in made.messages for call in message.tool_calls] == ["book", "get_stock"]
    checks = desk.store.sql(
        "SELECT call, result FROM effective_verifications WHERE trajectory = ? AND layer = 'execution' ORDER BY call",
        [clean.id],
    )
    assert checks.to_pylist() == [{"call": "1.0", "result": "passed"}, {"call": "3.0", "result": "passed"}]


# Going on


@pytest.fixture
def misbooked(desk: Desk) -> str:
    attempt = desk.attempt("Book 1 B17 please.", B18, BOOKED_B18, "Booked.", tools=TOOLS, confirm=False)
    wanted = replace(desk.records[attempt], task=Task("desk", "wanted", parameters=raw(WANTED)))
    identity = desk.add(wanted)
    desk.flush()
    replay_attempts(desk.store, "booking")
    return identity


def test_both_forks_go_on_as_forks_of_their_own(desk: Desk, misbooked: str) -> None:
    done = fork(desk, "booking", misbooked, 1, B17, script(STOCK, "Booked."))
    assert [line.verified for line in done.forks] == [True, True]
    assert [(line.decisions, line.ended, line.task) for line in done.continued] == [(2, "final", "passed")] * 2
    assert len({*(line.id for line in done.forks), *(line.id for line in done.continued)}) == 4
    for line in done.continued:
        assert line.id is not None
        view = show(desk.store, resolve(desk.store, line.id))
        assert isinstance(view, TrajectoryView)
        assert (view.fork_of, view.continued_by, view.corrected_by) == (
            misbooked,
            "scripted@1",
            "human Ada (read: request, schema, observation)",
        )
        assert (view.facts["continuation"].partition(":")[0], view.facts["stop"]) == ("final", "completed")
        assert any(check.informative for check in view.checks) == (line.kind == "clean")


def test_a_check_of_the_task_in_an_inferred_version_is_told_and_verifies_nothing(desk: Desk, misbooked: str) -> None:
    desk.say(Annotation(misbooked, "environment", "booking", INFERRED))
    desk.flush()
    done = fork(desk, "booking", misbooked, 1, B17, script(STOCK, "Booked."))
    assert [line.task for line in done.continued] == ["passed"] * 2
    identities = [*(line.id for line in done.forks), *(line.id for line in done.continued)]
    checks = desk.store.sql(
        """SELECT DISTINCT layer FROM verifications WHERE trajectory IN (SELECT unnest(?))
           AND author_kind = 'environment' ORDER BY layer""",
        [identities],
    )
    assert checks["layer"].to_pylist() == ["execution", "step"]
    for line in done.continued:
        view = show(desk.store, resolve(desk.store, line.id or ""))
        assert isinstance(view, TrajectoryView)
        assert view.facts["replay.outcome"] == "passed"


def test_forks_that_go_on_are_no_attempts(desk: Desk, misbooked: str) -> None:
    counted = [read_attempts(desk.store, DEFAULT_RULE, ())["kept"].to_list()]
    done = fork(desk, "booking", misbooked, 1, B17, script("Booked."))
    assert [line.task for line in done.continued] == ["passed", "passed"]
    counted.append(read_attempts(desk.store, DEFAULT_RULE, ())["kept"].to_list())
    assert counted[0] == counted[1]
    assert True not in counted[0]


@pytest.mark.parametrize("later", ["Booked.", Made("cancel", {"sku": "A17"})])
def test_the_row_of_the_corrected_call_stays_whatever_the_policy_does(later: Any, desk: Desk, misbooked: str) -> None:
    fork(desk, "booking", misbooked, 1, B17, script(later))
    diagnose_attempts(desk.store)
    built = desk.build("first_action", "recovery", "preference")
    for kind, kept in (("first_action", 2), ("recovery", 2)):
        assert (built.kinds[kind].kept, built.kinds[kind].rows) == (kept, 1)
    (first,) = map(json.loads, desk.rows("first_action"))
    assert calls(first, "completion") == [B17]
    (recovery,) = map(json.loads, desk.rows("recovery"))
    assert calls(recovery, "completion") == [("cancel", {"sku": "B18"})]


def test_a_whole_fork_that_passes_its_task_is_confirmed_up_to_the_task(desk: Desk, misbooked: str) -> None:
    fork(desk, "booking", misbooked, 1, B17)
    assert desk.build("first_action", level="task").kinds["first_action"].rows == 0
    fork(desk, "booking", misbooked, 1, B17, script("Booked."))
    assert desk.build("first_action", level="task").kinds["first_action"].rows == 1
    (row,) = [row for row in map(json.loads, desk.rows("first_action")) if row["level"] == "task"]
    assert row["informative"] is True


def test_a_budget_of_a_side_file_bounds_the_policy(desk: Desk) -> None:
    attempt = desk.attempt("Book 1 B17 please.", B18, BOOKED_B18, tools=TOOLS, budget=Budget(steps=9), confirm=False)
    desk.annotate(attempt, "budget.steps", 3)
    desk.flush()
    replay_attempts(desk.store, "booking")
    clean, _ = fork(desk, "booking", attempt, 1, B17, script(*[STOCK] * 5)).continued
    assert (clean.decisions, clean.ended, clean.budget) == (2, "budget", "2 of 3 steps left")


# On the command line


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "eight.jsonl").write_bytes(lines())
    result(tmp_path, "init")
    result(tmp_path, "import", "eight.jsonl")
    result(tmp_path, "replay", "--environment", "inventory", code=1)
    (tmp_path / "turns.json").write_text(json.dumps(["There are 2.", "Good-bye."]))
    (tmp_path / "asks.json").write_text(json.dumps(["Sure?", "Never asked."]))
    (tmp_path / "mine.py").write_text(
        "from curation.policies.policy import Response\n\n\n"
        "class Mine:\n    name, version = 'mine', '3'\n\n"
        "    def respond(self, messages, tools):\n        return Response(f'{len(messages)} messages')\n"
    )
    return tmp_path


RIGHT = ("fork", "fail_A18", "--at", "1", "--call", '{"name": "get_stock", "arguments": {"sku": "A17"}}')
WHERE = ("--environment", "inventory")


def test_a_policy_and_a_script_for_the_user_are_named_on_the_command_line(folder: Path) -> None:
    going = ("--policy", "scripted:turns.json", "--user", "scripted", "--user-file", "asks.json")
    done = result(folder, *RIGHT, *WHERE, *going)
    clean, recovery = done["continued"]
    assert (clean["kind"], clean["decisions"], clean["ended"]) == ("clean", 2, "budget_unknown")
    assert clean["way_out"].endswith("Give the budget in a side file.")
    shown = result(folder, "show", clean["id"])
    assert [line["text"] for line in shown["messages"]][3:] == ["There are 2.", "Sure?", "Good-bye."]
    assert result(folder, "show", "fail_A18")["attempt"] is not None
    assert len(result(folder, "show", "fail_A18")["forks"]) == 4
    assert recovery["policy"] == clean["policy"]
    mine = result(folder, *RIGHT, *WHERE, "--policy", "mine:Mine")["continued"]
    assert [(line["policy"], line["ended"]) for line in mine] == [("mine@3", "final")] * 2


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--policy", "mine:Nobody"), "mine:Nobody"),
        (("--policy", "scripted:nowhere.json"), "nowhere.json"),
        (("--policy", "mine:Mine", "--user", "scripted"), "--user-file"),
        (("--policy", "mine:Mine", "--user-policy", "mine:Mine"), "--user policy"),
        (("--user", "policy", "--user-policy", "mine:Mine"), "--policy"),
    ],
)
def test_what_cannot_go_on_is_refused_before_anything_is_executed(
    options: tuple[str, ...], named: str, folder: Path
) -> None:
    assert named in refused(folder, *RIGHT, *WHERE, *options)
    assert result(folder, "show", "fail_A18")["forks"] == []

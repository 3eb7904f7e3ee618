"""A policy goes on after the corrected call: what it may spend, who answers it, what stops it, and what is stored."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from curation.continuation import Continued, Players, continue_fork
from curation.diagnosis.evidence import Case
from curation.errors import UsageError
from curation.fork import Forked
from curation.policies.catalogue import find_policy
from curation.policies.policy import Call as Made
from curation.policies.policy import Policy, Response
from curation.policies.scripted import Scripted, from_file
from curation.proposals import Proposal
from curation.repair import fork_both
from curation.worlds import World, open_worlds
from environments.blobs import MemoryBlobs
from schemas.canonical import raw
from schemas.reasons import CONTINUATION
from schemas.trajectory import Author, Budget, Conditions, Trajectory, Usage, text_of, trajectory_id
from tests.forks.players import Broken, Curious, Echo, Leaves, Once, Restless
from tests.forks.test_undo import LOOK, REQUEST, RIGHT, SENT_WRONG, WRONG
from tests.records import Call, record

Worlds = tuple[World, ...]
Replayed = Callable[[Trajectory, Worlds], Case]
Propose = Callable[..., Proposal]
Going = tuple[Forked, Continued]

B17: Call = ("book", {"sku": "B17", "qty": 1})
B18: Call = ("book", {"sku": "B18", "qty": 1})
BOOKED_B18 = {"status": "booked", "sku": "B18", "qty": 1, "stock": 2}
MALFORMED = '{"error":"bad_arguments","at":"","rule":"json"}'
WANTED = {"wanted": {"bookings": {"B17": 1}}}
ATTEMPT = record("Book one B17 please.", B18, BOOKED_B18, "Done.", parameters=WANTED)
STOCK = Made("get_stock", {"sku": "B17"})


def script(*turns: Response | str | Made) -> Callable[[], Policy]:
    """A policy that takes these turns: texts, single calls, or whole responses."""
    made = [
        turn if isinstance(turn, Response) else Response(turn) if isinstance(turn, str) else Response(calls=(turn,))
        for turn in turns
    ]
    return lambda: Scripted(made, "1")


@pytest.fixture
def go_on(booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose) -> Callable[..., Going]:
    """The clean fork of an attempt at its first call, and what came of going on after it."""

    def build(
        policy: Callable[[], Policy],
        user: Callable[[], Policy] | None = None,
        *,
        attempt: Trajectory = ATTEMPT,
        right: Call = B17,
        at: int = 1,
        worlds: Worlds = booking,
        case: Callable[[Case], Case] = lambda case: case,
    ) -> Going:
        known = case(replayed(attempt, worlds))
        proposal = propose(known, at, right, by=Author("human", "ada"))
        clean, _ = fork_both(known, proposal, worlds, blobs)
        assert clean.fork is not None
        assert clean.refusal is None
        return clean.fork, continue_fork(known, clean.fork, Players(policy, user), worlds, blobs)

    return build


GoOn = Callable[..., Going]


def added(going: Going) -> list[str]:
    """The texts and calls of what was added to the fork."""
    plain, done = going
    if done.fork is None:
        return []
    assert done.fork.trajectory.messages[: len(plain.trajectory.messages)] == plain.trajectory.messages
    return [
        ", ".join(call.name for call in message.tool_calls) or text_of(message.content)
        for message in done.fork.trajectory.messages[len(plain.trajectory.messages) :]
    ]


def test_its_calls_are_answered_by_the_fork_s_own_world(go_on: GoOn) -> None:
    going = go_on(script(STOCK, "Booked; 3 are left."))
    plain, done = going
    assert added(going) == ["get_stock", '{"sku":"B17","city":"Hangzhou","stock":3}', "Booked; 3 are left."]
    assert (done.ending.code, done.decisions) == ("final", 2)
    assert done.fork is not None
    assert done.fork.id == trajectory_id(done.fork.trajectory) != plain.id
    before, after = plain.trajectory.fork, done.fork.trajectory.fork
    assert before is not None is not after
    assert (before.continued_by, after) == (None, replace(before, continued_by="scripted@1"))
    assert {item.trajectory for item in done.fork.verifications} == {done.fork.id}
    ran = next(item for item in done.fork.verifications if item.call == "3.0")
    assert ran.execution is not None
    assert (ran.result, ran.execution.runs, ran.execution.agreed) == ("passed", 2, 2)


def test_a_policy_is_shown_what_a_model_sees_and_nothing_is_checked_after_its_error(go_on: GoOn) -> None:
    first, *rest = ATTEMPT.messages
    noted = replace(ATTEMPT, messages=(replace(first, extra=raw({"solution": "B17"})), *rest))
    going = go_on(Curious, attempt=noted)
    assert added(going)[:1] == ["list_bookings"]
    _, done = going
    assert (done.ending.code, done.checked) == ("policy_error", None)
    assert done.fork is not None
    assert done.fork.trajectory.messages[3].content is None
    assert {item.layer for item in done.fork.verifications} == {"execution", "step"}


@pytest.mark.parametrize(("turns", "result"), [(("Done.",), "passed"), ((Made("cancel", {"sku": "B17"}),), "failed")])
def test_the_task_is_checked_in_the_end_of_it(turns: Any, result: str, go_on: GoOn) -> None:
    plain, done = go_on(script(*turns))
    assert [item.layer for item in plain.verifications] == ["execution", "step"]
    assert done.fork is not None
    checks = [item for item in done.fork.verifications if item.layer == "task"]
    assert [(item.result, item.message, item.author.kind) for item in checks] == [(result, None, "environment")]


def test_a_task_without_a_check_stays_unknown(go_on: GoOn) -> None:
    _, done = go_on(script("Done."), attempt=replace(ATTEMPT, task=record("x").task))
    assert done.fork is not None
    assert {item.layer for item in done.fork.verifications} == {"execution"}


def test_what_it_cost_and_which_model_it_was_are_on_the_record(go_on: GoOn) -> None:
    attempt = replace(ATTEMPT, conditions=Conditions(model="gpt-x", budget=Budget(steps=4)))
    _, done = go_on(Restless, attempt=attempt)
    assert done.fork is not None
    assert done.fork.trajectory.usage == Usage(30, 15, 0.75)
    assert (done.fork.trajectory.conditions.model, done.decisions) == ("clockwork-1", 3)
    _, silent = go_on(script("Done."), attempt=attempt)
    assert silent.fork is not None
    assert (silent.fork.trajectory.usage, silent.fork.trajectory.conditions.model) == (None, None)


# The parent's budget


@pytest.mark.parametrize(
    ("budget", "usage", "decisions", "limit"),
    [
        (Budget(steps=4), None, 3, "steps"),
        (Budget(steps=1), None, 0, "steps"),
        (Budget(steps=9, calls=3), None, 2, "calls"),
        (Budget(steps=9, tokens=100), Usage(40, 10), 3, "tokens"),
        (Budget(steps=9, cost=1), Usage(cost=0.25), 3, "cost"),
        (Budget(steps=9, tokens=100), None, 2, "decisions"),  # what the parent used is not known: it took two decisions
        (Budget(calls=9), None, 2, "decisions"),
        (None, None, 2, "decisions"),
    ],
)
def test_it_gets_what_the_parent_s_budget_leaves(
    budget: Budget | None, usage: Usage | None, decisions: int, limit: str, go_on: GoOn
) -> None:
    attempt = replace(ATTEMPT, conditions=Conditions(budget=budget), usage=usage)
    _, done = go_on(Restless, attempt=attempt)
    code = "budget_unknown" if limit == "decisions" else "budget"
    assert (done.decisions, done.ending.code, done.ending.detail.partition(":")[0]) == (decisions, code, limit)
    assert (done.fork is None) == (decisions == 0)


def test_a_budget_of_a_side_file_counts_before_the_record_s(go_on: GoOn) -> None:
    attempt = replace(ATTEMPT, conditions=Conditions(budget=Budget(steps=9)))
    _, done = go_on(Restless, attempt=attempt, case=lambda case: case._replace(budget=Budget(steps=3)))
    assert done.decisions == 2


def test_tokens_that_the_policy_does_not_count_leave_as_many_decisions_as_the_parent_took(go_on: GoOn) -> None:
    attempt = replace(ATTEMPT, conditions=Conditions(budget=Budget(steps=9, tokens=100)), usage=Usage(1, 1))
    _, done = go_on(script(*[STOCK] * 8), attempt=attempt)
    assert (done.decisions, done.ending.code) == (2, "budget_unknown")


def test_all_calls_made_leave_a_last_text(go_on: GoOn) -> None:
    attempt = replace(ATTEMPT, conditions=Conditions(budget=Budget(steps=9, calls=1)))
    assert added(go_on(script("Done."), attempt=attempt)) == ["Done."]


# A person's turn


def test_nobody_speaks_for_the_user_unless_somebody_is_named(go_on: GoOn) -> None:
    going = go_on(script("Done?", "Never said."))
    assert (added(going), going[1].ending.code) == (["Done?"], "final")


def test_a_script_or_a_policy_speaks_for_the_user(go_on: GoOn) -> None:
    attempt = replace(ATTEMPT, conditions=Conditions(budget=Budget(steps=9)))
    scripted = go_on(script("Done?", "Bye."), script("Yes."), attempt=attempt)
    assert (added(scripted), scripted[1].ending.code) == (["Done?", "Yes.", "Bye."], "user_ended")
    by_policy = go_on(script("Done?", Made("list_bookings", {}), "One B17."), Once, attempt=attempt)
    assert added(by_policy)[:3] == ["Done?", "And what is booked?", "list_bookings"]
    assert by_policy[1].fork is not None
    said = by_policy[1].fork.trajectory.messages[4]
    assert (said.role, said.actor) == ("user", "once@1")
    assert "Done." not in added(by_policy)  # what the log's agent or user said later is not there


# What stops it


@pytest.mark.parametrize(
    ("turns", "code", "texts"),
    [
        ((Broken,), "policy_error", []),
        ((Leaves,), "policy_error", []),
        ((Made("get_stock", {"sku": float("nan")}),), "policy_error", []),
        ((), "silent", []),
        ((Made("list_it", {}), "Well."), "final", ["list_it", '{"error":"unknown_tool","tool":"list_it"}', "Well."]),
        ((Made("book", '{"sku"'), "Well."), "final", ["book", MALFORMED, "Well."]),
    ],
)
def test_what_a_policy_does_is_answered_or_ends_it(turns: Any, code: str, texts: list[str], go_on: GoOn) -> None:
    going = go_on(turns[0] if turns in ((Broken,), (Leaves,)) else script(*turns))
    assert (going[1].ending.code, added(going)) == (code, texts)
    assert code in CONTINUATION


def test_a_time_out_ends_it_before_the_call(go_on: GoOn) -> None:
    attempt = record("Book one B17.", B18, BOOKED_B18, "Done.", parameters={"timeouts": [3]})
    going = go_on(script(STOCK, STOCK, "Never said."), attempt=attempt)
    assert (going[1].ending.code, len(added(going))) == ("environment_fault", 2)
    assert going[1].ending.detail == "call 5.0: environment_fault"


@pytest.mark.parametrize(
    ("world", "turn", "code"),
    [
        ("limited:Unsteady", Made(*LOOK), "disagreement"),
        ("limited:Replayed", Made("find", "{"), "not_answered"),
    ],
)
def test_what_the_worlds_do_not_answer_alike_is_not_in_the_fork(world: str, turn: Made, code: str, go_on: GoOn) -> None:
    attempt = record(REQUEST, WRONG, SENT_WRONG)
    with open_worlds(f"tests.forks.{world}") as worlds:
        going = go_on(script(turn, "Never said."), attempt=attempt, right=RIGHT, worlds=worlds)
    assert (going[1].ending.code, going[1].fork) == (code, None)


def test_in_a_world_that_only_goes_forward_nothing_more_is_done(
    blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    with open_worlds("tests.forks.limited:Forward") as worlds:
        known = replayed(record(REQUEST, ("find", {"order": "O-1"}), {"error": "unknown_order"}), worlds)
        _, recovery = fork_both(known, propose(known, 1, LOOK, by=Author("human", "ada")), worlds, blobs)
        assert recovery.fork is not None
        done = continue_fork(known, recovery.fork, Players(script(Made(*RIGHT))), worlds, blobs)
    assert (done.ending.code, done.fork) == ("forward_only", None)


# Policies by name


def test_policies_are_found_by_name(tmp_path: Path, go_on: GoOn) -> None:
    file = tmp_path / "turns.json"
    turns = [{"calls": [{"name": "get_stock", "arguments": {"sku": "B17"}}], "usage": {"prompt_tokens": 7}}, "Done."]
    file.write_text(json.dumps(turns))
    going = go_on(lambda: find_policy(f"scripted:{file}"))
    assert added(going)[::2] == ["get_stock", "Done."]
    assert going[1].fork is not None
    assert going[1].fork.trajectory.usage == Usage(7)
    echo = find_policy("tests.forks.players:Echo")
    assert isinstance(echo, Echo)
    assert added(go_on(lambda: echo)) == [
        'book, cancel, get_stock, list_bookings: {"status":"booked","sku":"B17","qty":1,"stock":3}'
    ]


@pytest.mark.parametrize(
    "name", ["restless", "tests.forks.players:Nobody", "tests.forks.players:Nameless", "scripted:nowhere.json"]
)
def test_what_is_no_policy_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=name.removeprefix("scripted:")):
        find_policy(name)


@pytest.mark.parametrize("text", ["{}", '[{"calls": [{}]}]', "[1]", '["x"'])
def test_a_script_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "turns.json").write_text(text)
    with pytest.raises(UsageError, match=r"turns\.json"):
        from_file(tmp_path / "turns.json")

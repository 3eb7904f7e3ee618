"""Where no snapshot exists: what is done instead, what is said of it, and when nothing is forked."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

from curation.diagnosis.evidence import Case
from curation.fork import Forked
from curation.proposals import Proposal
from curation.repair import Result, fork_both
from curation.worlds import World, open_worlds
from environments.blobs import MemoryBlobs
from schemas.canonical import raw
from schemas.trajectory import Author, Restore, Task, Trajectory, text_of
from tests.forks.test_undo import LOOK, REQUEST, RIGHT, SENT_RIGHT, SENT_WRONG, WRONG
from tests.records import Call, record

Worlds = tuple[World, ...]
Replayed = Callable[[Trajectory, Worlds], Case]
Propose = Callable[..., Proposal]
Forks = tuple[Result, Result]
Fork = Callable[..., tuple[Forks, Case, Worlds]]

KIEL = {"order": "O-1004", "city": "Kiel"}
UNKNOWN = {"error": "unknown_order"}
LOOK_NOWHERE: Call = ("find", {"order": "O-1"})


@pytest.fixture
def fork(blobs: MemoryBlobs, replayed: Replayed, propose: Propose) -> Iterator[Fork]:
    """Both forks of a record at one message, by a person's word, in a world of that name."""
    with ExitStack() as stack:

        def build(name: str, attempt: Trajectory, *calls: Call, at: int = 3) -> tuple[Forks, Case, Worlds]:
            worlds = stack.enter_context(open_worlds(f"tests.forks.limited:{name}"))
            case = replayed(attempt, worlds)
            proposal = propose(case, at, *(calls or (RIGHT,)), by=Author("human", "ada"))
            if not attempt.messages[at].tool_calls:
                proposal = proposal._replace(call=None)
            return fork_both(case, proposal, worlds, blobs), case, worlds

        yield build


MISSENT = record(REQUEST, LOOK, KIEL, WRONG, SENT_WRONG, "Done.")


def made(result: Result) -> Forked:
    assert result.refusal is None
    assert result.fork is not None
    return result.fork


def restored(result: Result) -> Restore:
    fork = made(result).trajectory.fork
    assert fork is not None
    return fork.restore


def code(result: Result) -> str | None:
    return None if result.refusal is None else result.refusal.code


@pytest.mark.parametrize("name", ["Replayed", "Limited"])
def test_the_prefix_is_executed_again_from_the_start_in_every_world(name: str, fork: Fork) -> None:
    (clean, recovery), _, worlds = fork(name, MISSENT)
    assert restored(clean) == Restore("replayed_prefix", worlds[0].spec.name, None, 1)
    assert restored(recovery) == Restore("replayed_prefix", worlds[0].spec.name, None, 2)
    for result, calls in ((clean, ["1.0", "3.0"]), (recovery, ["1.0", "3.0", "5.0", "7.0"])):
        done = made(result)
        assert done.objects == ()
        assert [(item.call, item.result) for item in done.verifications] == [(call, "passed") for call in calls]
    assert made(clean).settled == made(recovery).settled


def test_a_prefix_that_another_process_answers_otherwise_refuses_the_fork(fork: Fork) -> None:
    attempt = record(REQUEST, WRONG, SENT_WRONG, LOOK, KIEL, RIGHT, SENT_RIGHT)
    messages = list(attempt.messages)
    messages[4] = msgspec.structs.replace(messages[4], content='{"order":"O-1004","city":"Hamburg"} 0')
    unsteady = msgspec.structs.replace(attempt, messages=tuple(messages))
    (clean, recovery), case, _ = fork("Unsteady", unsteady, WRONG, at=5)
    assert [item.result for item in case.verifications] == ["passed"] * 3
    assert (code(clean), code(recovery)) == ("unconfirmed_prefix", "unconfirmed_prefix")


def test_a_fault_on_the_way_is_the_environment_s_and_nothing_is_tried_again(fork: Fork) -> None:
    (clean, recovery), _, _ = fork("Down", MISSENT)
    for result in (clean, recovery):
        assert result.refusal is not None
        assert result.refusal.code == "environment_fault"
        assert result.refusal.detail.startswith("call 1.0")


def test_calls_take_the_wrong_one_back_until_the_state_is_the_one_before(fork: Fork) -> None:
    (clean, recovery), case, worlds = fork("Compensated", MISSENT)
    assert restored(clean) == Restore("compensation", worlds[0].spec.name, None, 1)
    assert restored(recovery) == Restore("replayed_prefix", worlds[0].spec.name, None, 2)
    done = made(clean)
    assert [text_of(message.content) for message in done.trajectory.messages if message.role == "tool"] == [
        json.dumps(answer, separators=(",", ":")) for answer in (KIEL, SENT_RIGHT)
    ]
    assert "3.0" in {item.call for item in done.verifications}
    before = next(item.execution for item in case.verifications if item.call == "3.0")
    target = next(item.execution for item in done.verifications if item.call == "3.0")
    assert before is not None is not target
    assert target.state_before == before.state_before


def test_a_trail_of_the_calls_that_took_back_is_no_difference(fork: Fork) -> None:
    booked = {"status": "booked", "sku": "B18", "qty": 1, "stock": 2}
    attempt = record("Book one B17.", ("book", {"sku": "B18", "qty": 1}), booked)
    (clean, recovery), _, _ = fork("Trailed", attempt, ("book", {"sku": "B17", "qty": 1}), at=1)
    assert restored(clean).kind == "compensation"
    assert made(clean).settled == made(recovery).settled
    (target,) = made(clean).verifications
    assert target.execution is not None
    assert target.execution.informative is None


@pytest.mark.parametrize("name", ["Misled", "Bare"])
def test_a_state_that_does_not_come_back_is_compensated_unequal(name: str, fork: Fork) -> None:
    (clean, _), _, _ = fork(name, MISSENT)
    assert code(clean) == "compensated_unequal"


def test_a_wrong_call_that_changed_nothing_needs_no_call_that_takes_it_back(fork: Fork) -> None:
    (clean, _), _, _ = fork("Bare", record(REQUEST, LOOK_NOWHERE, UNKNOWN), at=1)
    assert restored(clean).kind == "compensation"


def test_a_world_that_only_goes_forward_has_recoveries_alone(fork: Fork) -> None:
    (clean, recovery), _, worlds = fork("Forward", record(REQUEST, LOOK, KIEL, LOOK_NOWHERE, UNKNOWN))
    assert code(clean) == "forward_only"
    assert restored(recovery) == Restore("none", worlds[0].spec.name, None, 2)


def live(file: Path, *turns: object) -> Trajectory:
    file.write_text(json.dumps({"O-1003": "Berlin", "O-1004": "Kiel"}))
    attempt = record(REQUEST, *turns)  # type: ignore[arg-type]
    return msgspec.structs.replace(attempt, task=Task(parameters=raw({"file": str(file)})))


def test_a_world_that_goes_on_is_not_checked(fork: Fork) -> None:
    """The same task's check accepts the recovery where the world is one of our own."""
    attempt = record(REQUEST, LOOK, KIEL, LOOK_NOWHERE, UNKNOWN)
    attempt = msgspec.structs.replace(attempt, task=Task(id="Kiel", variant="tool"))
    looked: Call = ("find", {"order": "O-1004", "part": "city"})
    for name, layers in (("Forward", ["execution"]), ("Replayed", ["execution", "step"])):
        (_, recovery), _, _ = fork(name, attempt, looked)
        assert sorted({item.layer for item in made(recovery).verifications}) == layers


def test_a_check_that_could_not_tell_before_does_not_say_that_the_correction_made_it_pass(fork: Fork) -> None:
    attempt = record(REQUEST, LOOK, KIEL, LOOK_NOWHERE, UNKNOWN)
    attempt = msgspec.structs.replace(attempt, task=Task("unsure", "Kiel", "tool"))
    (_, recovery), _, _ = fork("Replayed", attempt, ("find", {"order": "O-1004", "part": "city"}))
    assert {item.layer for item in made(recovery).verifications} == {"execution"}


def test_in_the_present_state_nothing_of_the_record_is_done_twice(tmp_path: Path, fork: Fork) -> None:
    attempt = live(tmp_path / "depot.json", WRONG, SENT_WRONG, LOOK_NOWHERE, UNKNOWN)
    (_, recovery), _, _ = fork("Live", attempt, LOOK)
    assert restored(recovery).replayed == 0
    assert text_of(made(recovery).trajectory.messages[-1].content) == '{"order":"O-1004","city":"Hamburg"}'
    assert json.loads((tmp_path / "depot.json").read_text())["O-1004"] == "Hamburg"


def test_a_present_state_that_moved_on_is_no_state_of_the_record(tmp_path: Path, fork: Fork) -> None:
    attempt = live(tmp_path / "depot.json", WRONG, SENT_WRONG, RIGHT, SENT_RIGHT, LOOK_NOWHERE, UNKNOWN)
    (_, recovery), _, _ = fork("Live", attempt, LOOK, at=1)
    assert code(recovery) == "no_checkpoint"


def test_recorded_answers_confirm_no_new_call(fork: Fork) -> None:
    (clean, recovery), _, _ = fork("Recorded", MISSENT)
    assert (code(clean), code(recovery)) == ("recorded_only", "recorded_only")


def test_a_new_call_that_reaches_outside_is_not_made(fork: Fork) -> None:
    (clean, recovery), _, _ = fork("Outward", record(REQUEST, LOOK_NOWHERE, UNKNOWN), at=1)
    assert (code(clean), code(recovery)) == ("external_effect", "external_effect")


# What the check of a task reads


@pytest.mark.parametrize(("role", "accepted"), [("tool", True), ("assistant", False)])
def test_the_check_reads_the_messages_of_the_fork(role: str, accepted: bool, fork: Fork) -> None:
    """Of the corrected call's answer it says something, of a last text that is not there it does not pass."""
    attempt = msgspec.structs.replace(MISSENT, task=Task(id="Hamburg", variant=role))
    (clean, _), _, _ = fork("Replayed", attempt)
    done = made(clean)
    assert done.accepted == accepted
    checks = [(item.layer, item.message, item.detail) for item in done.verifications if item.layer != "execution"]
    assert checks == ([("step", 3, "5 messages")] if accepted else [])


# Whether the wrong call would have been answered otherwise


def informative(result: Result) -> list[bool | None]:
    return [item.execution.informative for item in made(result).verifications if item.execution is not None][-1:]


def test_a_correction_is_informative_where_the_wrong_call_is_answered_otherwise(fork: Fork) -> None:
    (clean, recovery), _, _ = fork("Replayed", record(REQUEST, LOOK_NOWHERE, UNKNOWN), LOOK, at=1)
    assert (informative(clean), informative(recovery)) == ([True], [True])


def test_a_correction_that_is_answered_alike_proves_nothing(fork: Fork) -> None:
    same: Call = ("find", {"order": "O-1004", "part": "city"})
    (clean, recovery), _, _ = fork("Replayed", record(REQUEST, LOOK, KIEL), same, at=1)
    assert (informative(clean), informative(recovery)) == ([False], [False])


def test_a_trail_of_calls_does_not_tell_two_calls_apart(fork: Fork) -> None:
    asked = record(REQUEST, ("get_stock", {"sku": "A17"}), {"noted": True})
    (clean, _), _, _ = fork("Watched", asked, ("get_stock", {"sku": "B17"}), at=1)
    assert informative(clean) == [None]


def test_nothing_is_known_where_the_wrong_call_ran_in_another_state(fork: Fork) -> None:
    (clean, recovery), _, _ = fork("Trailed", record(
        "Book one B17.", ("book", {"sku": "B18", "qty": 1}), {"status": "booked", "sku": "B18", "qty": 1, "stock": 2},
        "Done."), ("book", {"sku": "B17", "qty": 1}), at=1)  # fmt: skip
    assert (informative(clean), informative(recovery)) == ([None], [None])
    (text, refused), _, _ = fork("Replayed", record(REQUEST, "Done."), RIGHT, at=1)
    assert (informative(text), code(refused)) == ([None], "no_call")

from collections.abc import Callable

import msgspec
import pytest

from curation.diagnosis.evidence import Case
from curation.fork import Forked, execute, refuse_effect
from curation.fork_plan import Plan, Refusal, plan, refuse_wrong_fork
from curation.proposals import Proposal, ProposedCall
from curation.repair import Result, fork_both
from curation.worlds import World, open_worlds
from environments.blobs import MemoryBlobs
from environments.protocol import Controls, Effect
from schemas.canonical import encode, raw
from schemas.objects import Snapshot
from schemas.statements import Verification
from schemas.trajectory import Author, Message, Task, ToolCall, Trajectory, text_of
from tests.records import A17, A18, BAD, EIGHT, OK, REQUEST, call, record

Worlds = tuple[World, ...]
Replayed = Callable[[Trajectory, Worlds], Case]
Propose = Callable[..., Proposal]

PERSON = Author("human", "ada")
B17 = ("book", {"sku": "B17", "qty": 1})
B18 = ("book", {"sku": "B18", "qty": 1})
BOOKED_B18 = {"status": "booked", "sku": "B18", "qty": 1, "stock": 2}
BOOKED_A17 = {"status": "booked", "sku": "A17", "qty": 1, "stock": 1}
FEW_A17 = {"error": "out_of_stock", "sku": "A17", "stock": 2}
WANTED_B17 = {"wanted": {"bookings": {"B17": 1}}}


def made(result: Result) -> Forked:
    assert result.refusal is None
    assert result.fork is not None
    return result.fork


def refused(result: Result | Plan | Forked | Refusal) -> str:
    refusal = result.refusal if isinstance(result, Result) else result
    assert isinstance(refusal, Refusal)
    return refusal.code


def actions(trajectory: Trajectory) -> list[tuple[str, str]]:
    return [(item.name, item.arguments_text) for message in trajectory.messages for item in message.tool_calls]


def layers(found: tuple[Verification, ...]) -> list[tuple[str, str | None, str]]:
    return [(item.layer, item.call, item.result) for item in found]


# One failure, two forks


def test_a_read_only_failure_gives_a_clean_fork_and_a_recovery(
    inventory: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    case = replayed(EIGHT["fail_A18"], inventory)
    clean, recovery = map(made, fork_both(case, propose(case, 1, A17), inventory, blobs))

    assert [text_of(message.content) for message in clean.trajectory.messages[2:]] == [msgspec.json.encode(OK).decode()]
    assert actions(clean.trajectory) == [("get_stock", '{"sku":"A17"}')]
    written = encode(clean.trajectory).decode()
    assert "A18" not in written
    assert "unknown_sku" not in written

    assert recovery.trajectory.messages[:3] == case.trajectory.messages[:3]
    assert actions(recovery.trajectory)[1:] == [("get_stock", '{"sku":"A17"}')]
    assert layers(recovery.verifications) == [("execution", "1.0", "passed"), ("execution", "3.0", "passed")]
    executed = recovery.verifications[-1].execution
    assert executed is not None
    assert (executed.runs, executed.agreed, executed.match) == (2, 2, None)
    for fork, kind, point in ((clean, "clean", 1), (recovery, "recovery", 3)):
        assert fork.trajectory.fork is not None
        assert (fork.trajectory.fork.kind, fork.trajectory.fork.branch_point) == (kind, point)
        assert fork.trajectory.fork.parent == case.trajectory_id
        assert fork.trajectory.attempt is None


def test_the_snapshot_of_a_fork_is_stored_by_its_digest_and_opens(
    booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    case = replayed(record("Book one B17.", B18, BOOKED_B18), booking)
    _, recovery = fork_both(case, propose(case, 1, B17), booking, blobs)
    fork = made(recovery)
    assert fork.trajectory.fork is not None
    snapshot, image = fork.objects
    assert (snapshot.kind, image.kind) == ("snapshot", "blob")
    assert fork.trajectory.fork.restore.snapshot == snapshot.id
    kept = MemoryBlobs()
    assert kept.put(image.bytes) == image.id
    with booking[1].open(msgspec.json.decode(snapshot.bytes, type=Snapshot), kept) as session:
        (answer,) = session.call((call(0, 0, "list_bookings", {}),))
    assert answer.raw == '{"bookings":[{"sku":"B18","qty":1}]}'


def test_a_local_fix_is_executed_and_no_more(
    inventory: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    case = replayed(EIGHT["fail_A18"], inventory)
    for result in fork_both(case, propose(case, 1, A17), inventory, blobs):
        assert {item.layer for item in made(result).verifications} == {"execution"}


# What is kept of the corrected message


def test_reasoning_goes_and_text_stays_only_without_a_replaced_value(
    inventory: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    wrong = call(1, 0, *A18)
    texts = ("I look up a18.", "Looking up item A-18 now.", "Ａ 18 it is")
    for text, kept in (*((text, None) for text in texts), ("I look that up.", "I look that up.")):
        decision = Message("assistant", text, reasoning="The user wants A18.", tool_calls=(wrong,))
        attempt = record(REQUEST, A18, BAD)
        messages = (attempt.messages[0], decision, attempt.messages[2])
        case = replayed(msgspec.structs.replace(attempt, messages=messages), inventory)
        clean, _ = fork_both(case, propose(case, 1, A17), inventory, blobs)
        corrected = made(clean).trajectory.messages[1]
        assert (corrected.content, corrected.reasoning) == (kept, None)


@pytest.mark.parametrize("right", [{"sku": "A17", "qty": 2}, {"sku": "A17"}])
def test_words_for_a_replaced_number_go_with_the_text(
    booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose, right: dict[str, object]
) -> None:
    attempt = record("Book 2 of A17.", ("book", {"sku": "A17", "qty": 50}), FEW_A17)
    decision = msgspec.structs.replace(attempt.messages[1], content="I will book fifty of them.")
    messages = (attempt.messages[0], decision, attempt.messages[2])
    case = replayed(msgspec.structs.replace(attempt, messages=messages), booking)
    made_plan = plan("clean", case, propose(case, 1, ("book", right)), booking[0].spec, {0: case.trajectory.task})
    assert isinstance(made_plan, Plan)
    assert made_plan.turns[0].content is None


def test_two_values_that_change_places_are_both_replaced(
    inventory: Worlds, replayed: Replayed, propose: Propose
) -> None:
    wrong, right = {"sku": "A17", "city": "B17"}, {"sku": "B17", "city": "A17"}
    attempt = record("B17 or A17?", ("get_stock", wrong))
    decision = msgspec.structs.replace(attempt.messages[1], content="First A17.")
    messages = (attempt.messages[0], decision)
    case = replayed(msgspec.structs.replace(attempt, messages=messages), inventory)
    spec, start = inventory[0].spec, {0: case.trajectory.task}
    made_plan = plan("clean", case, propose(case, 1, ("get_stock", right)), spec, start)
    assert isinstance(made_plan, Plan)
    assert made_plan.turns[0].content is None


def test_the_name_of_a_replaced_tool_takes_the_text_with_it(
    booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    attempt = record("Stock of A17?", ("book", {"sku": "A17", "qty": 1}), BOOKED_A17)
    decision = msgspec.structs.replace(attempt.messages[1], content="I book it.")
    case = replayed(
        msgspec.structs.replace(attempt, messages=(attempt.messages[0], decision, attempt.messages[2])), booking
    )
    clean, _ = fork_both(case, propose(case, 1, A17), booking, blobs)
    assert made(clean).trajectory.messages[1].content is None


def test_right_calls_beside_the_wrong_one_are_kept_and_executed_again_in_order(
    booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    stock = ("get_stock", {"sku": "B17"})
    seen = {"sku": "B17", "city": "Hangzhou", "stock": 4}
    case = replayed(record("Book one B17 and tell its stock.", [B18, stock], BOOKED_B18, seen), booking)
    clean, recovery = map(made, fork_both(case, propose(case, 1, B17), booking, blobs))
    assert actions(clean.trajectory) == [("book", '{"qty":1,"sku":"B17"}'), ("get_stock", '{"sku": "B17"}')]
    assert '"stock":3' in text_of(clean.trajectory.messages[-1].content)
    assert [name for name, _ in actions(recovery.trajectory)[2:]] == ["cancel", "book"]


# D1, D2, D9 and others that are refused


@pytest.mark.parametrize("name", ["pasted_old_error", "pasted_result"])
def test_a_contradicted_record_is_never_forked(
    inventory: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose, name: str
) -> None:
    case = replayed(EIGHT[name], inventory)
    for result in fork_both(
        case, propose(case, 1, ("get_stock", {"sku": "A17", "city": "Hangzhou"})), inventory, blobs
    ):
        assert refused(result) == "contradicted_record"


def test_an_environment_fault_is_not_repaired(
    inventory: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    case = replayed(EIGHT["timeout"], inventory)
    for result in fork_both(case, propose(case, 1, A18, by=PERSON), inventory, blobs):
        assert refused(result) == "environment_fault"


def test_executed_is_not_right(inventory: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose) -> None:
    item = {"city": "Hangzhou", "stock": 2}
    answer = {"sku": "C17", "city": "Hangzhou", "stock": 2}
    attempt = record(
        REQUEST, ("get_stock", {"sku": "C17"}), answer, parameters={"stock": {"A17": item, "B17": item, "C17": item}}
    )
    case = replayed(attempt, inventory)
    other = ("get_stock", {"sku": "B17"})
    for result in fork_both(case, propose(case, 1, other), inventory, blobs):
        assert refused(result) == "not_derivable"
    for result in fork_both(case, propose(case, 1, other, by=PERSON), inventory, blobs):
        assert {item.layer for item in made(result).verifications} == {"execution"}


def test_a_proposal_that_follows_from_the_error_alone_gives_only_a_recovery(
    inventory: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    attempt = record("How many are left?", A18, BAD)
    case = replayed(attempt, inventory)
    clean, recovery = fork_both(case, propose(case, 1, ("get_stock", {"sku": "unknown_sku"})), inventory, blobs)
    assert refused(clean) == "not_derivable"
    assert made(recovery).trajectory.messages[3].role == "assistant"


def test_a_malformed_call_has_a_recovery_only_where_the_environment_answered_it(
    inventory: Worlds, booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    answer = {"error": "bad_arguments", "at": "", "rule": "json"}
    attempt = record(REQUEST, ("get_stock", '{"sku": "A17"'), answer)
    case = replayed(attempt, inventory)
    clean, recovery = fork_both(case, propose(case, 1, A17), inventory, blobs)
    assert actions(made(clean).trajectory) == [("get_stock", '{"sku":"A17"}')]
    assert refused(recovery) == "not_answered_here"
    case = replayed(attempt, booking)
    _, recovery = fork_both(case, propose(case, 1, A17), booking, blobs)
    assert made(recovery).trajectory.messages[:3] == attempt.messages


def test_a_recovery_that_the_log_holds_is_not_made_again(
    inventory: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    case = replayed(EIGHT["recovered"], inventory)
    clean, recovery = fork_both(case, propose(case, 1, A17), inventory, blobs)
    assert made(clean).trajectory.messages[0] == case.trajectory.messages[0]
    assert refused(recovery) == "recovered_in_log"


def test_text_instead_of_a_call_can_be_corrected_but_nothing_answered_it(
    inventory: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    case = replayed(EIGHT["bad_json"], inventory)
    proposal = Proposal(case.trajectory_id, 1, None, (ProposedCall(A17[0], raw(A17[1])),), PERSON, ("request",))
    clean, recovery = fork_both(case, proposal, inventory, blobs)
    assert made(clean).trajectory.messages[1].content is None
    assert refused(recovery) == "no_call"


@pytest.mark.parametrize(
    ("action", "code"),
    [(A18, "same_call"), (("no_such_tool", {"sku": "A17"}), "invalid_call"), (("get_stock", {}), "invalid_call")],
)
def test_a_proposal_that_the_world_does_not_take_is_refused(
    inventory: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose, action: ToolCall, code: str
) -> None:
    case = replayed(EIGHT["fail_A18"], inventory)
    clean, _ = fork_both(case, propose(case, 1, action), inventory, blobs)
    assert refused(clean) == code


def test_a_revised_record_is_not_forked(
    inventory: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    case = replayed(EIGHT["fail_A18"], inventory)
    for result in fork_both(case, propose(case, 1, A17), inventory, blobs, revised=True):
        assert refused(result) == "parent_revised"


# D4: a fork after a side effect


@pytest.fixture
def after_effect(booking: Worlds, replayed: Replayed) -> Case:
    wrong = {"sku": "B18", "city": "Shanghai", "stock": 3}
    return replayed(
        record("Book one A17 and tell me the stock of B17.", ("book", {"sku": "A17", "qty": 1}), BOOKED_A17,
               ("get_stock", {"sku": "B18"}), wrong, "Booked; 3 left."),
        booking,
    )  # fmt: skip


STOCK_B17 = ("get_stock", {"sku": "B17"})


def test_without_a_state_to_open_effects_refuse_the_fork(
    booking: Worlds, blobs: MemoryBlobs, after_effect: Case, propose: Propose
) -> None:
    for result in fork_both(after_effect, propose(after_effect, 3, STOCK_B17), booking, blobs, checkpoints={}):
        assert result.refusal == Refusal("effects_since_checkpoint", "book")


def test_from_before_the_effect_it_is_executed_and_confirmed_again(
    booking: Worlds, blobs: MemoryBlobs, after_effect: Case, propose: Propose
) -> None:
    proposal = propose(after_effect, 3, STOCK_B17)
    with booking[0].open(after_effect.trajectory.task, blobs) as session:
        before = session.snapshot()
    clean = made(fork_both(after_effect, proposal, booking, blobs, checkpoints={1: before})[0])
    assert clean.trajectory.fork is not None
    assert (clean.trajectory.fork.restore.kind, clean.trajectory.fork.restore.replayed) == ("replayed_prefix", 1)
    assert layers(clean.verifications)[0] == ("execution", "1.0", "passed")
    assert "A17" in bookings_at(clean, booking)


def test_an_answer_that_is_not_confirmed_on_the_way_refuses_the_fork(
    booking: Worlds, blobs: MemoryBlobs, after_effect: Case, propose: Propose
) -> None:
    messages = list(after_effect.trajectory.messages)
    messages[2] = msgspec.structs.replace(messages[2], content='{"status":"booked"}')
    edited = msgspec.structs.replace(after_effect.trajectory, messages=tuple(messages))
    about_wrong = tuple(item for item in after_effect.verifications if item.call == "3.0")
    case = Case("edited", edited, verifications=about_wrong)
    for result in fork_both(case, propose(case, 3, STOCK_B17), booking, blobs):
        assert refused(result) == "unconfirmed_prefix"


def test_from_after_the_effect_it_is_there_and_not_made_again(
    booking: Worlds, blobs: MemoryBlobs, after_effect: Case, propose: Propose
) -> None:
    with booking[0].open(after_effect.trajectory.task, blobs) as session:
        session.call(after_effect.trajectory.messages[1].tool_calls)
        after = session.snapshot()
    clean = made(
        fork_both(after_effect, propose(after_effect, 3, STOCK_B17), booking, blobs, checkpoints={3: after})[0]
    )
    assert clean.trajectory.fork is not None
    assert (clean.trajectory.fork.restore.kind, clean.trajectory.fork.restore.replayed) == ("snapshot", 0)
    assert layers(clean.verifications) == [("execution", "1.0", "passed"), ("execution", "3.0", "passed")]
    assert bookings_at(clean, booking) == '{"bookings":[{"sku":"A17","qty":1}]}'


def test_a_record_that_was_never_replayed_is_not_forked(
    booking: Worlds, blobs: MemoryBlobs, after_effect: Case, propose: Propose
) -> None:
    """Its answers may be pasted: neither the wrong call's nor, where nothing executes it, an earlier one's is known."""
    proposal = propose(after_effect, 3, STOCK_B17)
    for result in fork_both(after_effect._replace(verifications=()), proposal, booking, blobs):
        assert result.refusal == Refusal("not_replayed", "call 3.0")
    with booking[0].open(after_effect.trajectory.task, blobs) as session:
        session.call(after_effect.trajectory.messages[1].tool_calls)
        later = session.snapshot()
    about_wrong = tuple(item for item in after_effect.verifications if item.call == "3.0")
    case = after_effect._replace(verifications=about_wrong)
    clean, _ = fork_both(case, proposal, booking, blobs, checkpoints={3: later})
    assert clean.refusal == Refusal("not_replayed", "call 1.0")
    made(fork_both(case, proposal, booking, blobs)[0])


def test_a_later_checkpoint_is_not_used(
    booking: Worlds, blobs: MemoryBlobs, after_effect: Case, propose: Propose
) -> None:
    task = after_effect.trajectory.task
    proposal = propose(after_effect, 3, STOCK_B17)
    clean, _ = fork_both(after_effect, proposal, booking, blobs, checkpoints={0: task, 5: task})
    assert bookings_at(made(clean), booking) == '{"bookings":[{"sku":"A17","qty":1}]}'


def test_a_check_that_passes_before_the_new_call_says_nothing_of_it(
    booking: Worlds, blobs: MemoryBlobs, after_effect: Case, replayed: Replayed, propose: Propose
) -> None:
    task = Task(parameters=raw({"wanted": {"bookings": {"A17": 1}}}))
    case = replayed(msgspec.structs.replace(after_effect.trajectory, task=task), booking)
    assert [item.result for item in case.verifications if item.layer == "task"] == ["passed"]
    clean = made(fork_both(case, propose(case, 3, STOCK_B17), booking, blobs)[0])
    assert not clean.accepted
    assert {item.layer for item in clean.verifications} == {"execution"}


def bookings_at(fork: Forked, worlds: Worlds) -> str:
    kept = MemoryBlobs()
    snapshot, image = fork.objects
    kept.put(image.bytes)
    with worlds[0].open(msgspec.json.decode(snapshot.bytes, type=Snapshot), kept) as session:
        (answer,) = session.call((call(0, 0, "list_bookings", {}),))
    return answer.raw


# D8: the mistake left something behind


@pytest.mark.parametrize("parameters", [None, WANTED_B17])
def test_a_recovery_takes_the_effect_back_first(
    booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose, parameters: dict[str, object] | None
) -> None:
    case = replayed(record("Book one B17 please.", B18, BOOKED_B18, "Done.", parameters=parameters), booking)
    clean, recovery = map(made, fork_both(case, propose(case, 1, B17), booking, blobs))
    assert actions(clean.trajectory) == [("book", '{"qty":1,"sku":"B17"}')]
    assert actions(recovery.trajectory)[1:] == [("cancel", '{"sku":"B18"}'), ("book", '{"qty":1,"sku":"B17"}')]
    assert recovery.trajectory.messages[:3] == case.trajectory.messages[:3]
    assert recovery.settled == clean.settled
    read = [fork.trajectory.fork.correction.reads for fork in (clean, recovery) if fork.trajectory.fork]
    assert read == [("request",), ("request", "observation")]
    assert (clean.accepted, recovery.accepted) == (parameters is not None, parameters is not None)
    step = [item for item in recovery.verifications if item.layer == "step"]
    assert [(item.message, item.result, item.reads) for item in step] == (
        [(5, "passed", ("state", "hidden_answer"))] if parameters else []
    )


@pytest.mark.parametrize("parameters", [None, WANTED_B17])
def test_the_right_call_alone_repairs_nothing(
    booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose, parameters: dict[str, object] | None
) -> None:
    without_undo = tuple(world._replace(spec=world.spec._replace(undo={})) for world in booking)
    case = replayed(record("Book one B17 please.", B18, BOOKED_B18, parameters=parameters), booking)
    clean, recovery = fork_both(case, propose(case, 1, B17), without_undo, blobs)
    assert made(clean).settled is not None
    assert refused(recovery) == "effect_not_undone"
    assert (recovery.executed, recovery.fork) == (True, None)


@pytest.mark.parametrize("effects", [{}, {"book": "read", "cancel": "read"}])
def test_what_the_states_show_decides_whether_a_mistake_wrote(
    booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose, effects: dict[str, Effect]
) -> None:
    worlds = tuple(world._replace(spec=world.spec._replace(effects=effects, undo={})) for world in booking)
    case = replayed(record("Book one B17 please.", B18, BOOKED_B18), worlds)
    proposal = propose(case, 1, B17)
    assert refused(fork_both(case, proposal, worlds, blobs)[1]) == "effect_not_undone"
    (done,) = case.verifications
    assert done.execution is not None
    failed = msgspec.structs.replace(done.execution, status="tool_error")
    told = case._replace(verifications=(msgspec.structs.replace(done, execution=failed),))
    made_plan = plan("recovery", told, proposal, worlds[0].spec, {0: case.trajectory.task})
    assert isinstance(made_plan, Plan)
    assert made_plan.mistake_wrote


def test_a_recovery_that_changes_more_than_the_right_call_is_refused(
    booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    missing = {"error": "unknown_sku", "sku": "A18"}
    case = replayed(record("Stock of A17?", A18, missing), booking)
    more = ("book", {"sku": "B17", "qty": 1})
    clean, recovery = fork_both(case, propose(case, 1, more, A17, by=PERSON), booking, blobs)
    assert actions(made(clean).trajectory) == [("get_stock", '{"sku":"A17"}')]
    assert refused(recovery) == "effect_not_undone"
    made_plan = plan(
        "recovery", case, propose(case, 1, more, A17, by=PERSON), booking[0].spec, {0: case.trajectory.task}
    )
    assert isinstance(made_plan, Plan)
    done = execute(made_plan, booking, blobs)
    assert isinstance(done, Forked)
    alone = refuse_effect(made_plan, done, None)
    assert alone is not None
    assert alone.code == "effect_not_undone"


def test_a_person_may_propose_the_calls_that_take_it_back(
    booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    without_undo = tuple(world._replace(spec=world.spec._replace(undo={})) for world in booking)
    case = replayed(record("Book one B17 please.", B18, BOOKED_B18), booking)
    cancel = ("cancel", {"sku": "B18"})
    both = fork_both(case, propose(case, 1, cancel, B17, by=PERSON), without_undo, blobs)
    assert [actions(made(result).trajectory)[-1][0] for result in both] == ["book", "book"]
    useless = ("cancel", {"sku": "C17"})
    both = fork_both(case, propose(case, 1, useless, B17, by=PERSON), without_undo, blobs)
    assert refused(both[1]) == "effect_not_undone"


def test_a_write_that_failed_leaves_nothing_to_take_back(
    booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    unknown = ("book", {"sku": "B19", "qty": 1})
    for parameters in (
        {},
        {"timeouts": [9]},
    ):  # a time-out to come moves nearer: the state changes, the bookings do not
        attempt = record("Book one B17.", unknown, {"error": "unknown_sku", "sku": "B19"}, parameters=parameters)
        case = replayed(attempt, booking)
        _, recovery = fork_both(case, propose(case, 1, B17), booking, blobs)
        assert [name for name, _ in actions(made(recovery).trajectory)] == ["book", "book"]


def test_an_answer_from_the_other_fork_is_refused(
    booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    case = replayed(record("Book one B17 please.", B18, BOOKED_B18), booking)
    clean, recovery = map(made, fork_both(case, propose(case, 1, B17), booking, blobs))
    for fork in (clean, recovery):
        assert refuse_wrong_fork(fork.trajectory, fork.verifications, case.verifications) is None
    target = next(item for item in clean.verifications if item.call == "1.0")
    borrowed = msgspec.structs.replace(target, trajectory=recovery.id, message=3, call="3.0")
    found = refuse_wrong_fork(recovery.trajectory, (borrowed,), case.verifications)
    assert found is not None
    assert found.code == "wrong_fork"


def test_without_a_clean_fork_only_the_task_s_check_accepts_a_recovery(
    booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    for parameters, accepted in ((WANTED_B17, True), (None, False)):
        case = replayed(record("Book one B17 please.", B18, BOOKED_B18, parameters=parameters), booking)
        made_plan = plan("recovery", case, propose(case, 1, B17), booking[0].spec, {0: case.trajectory.task})
        assert isinstance(made_plan, Plan)
        recovery = execute(made_plan, booking, blobs)
        assert isinstance(recovery, Forked)
        assert (refuse_effect(made_plan, recovery, None) is None) == accepted


# New calls that are not answered


def test_a_new_call_that_meets_a_fault_gives_no_fork(
    booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    case = replayed(record("Book one B17 please.", B18, BOOKED_B18, parameters={"timeouts": [2]}), booking)
    clean, recovery = fork_both(case, propose(case, 1, B17), booking, blobs)
    assert actions(made(clean).trajectory) == [("book", '{"qty":1,"sku":"B17"}')]
    assert refused(recovery) == "environment_fault"


def test_a_new_answer_that_is_cut_gives_no_fork(blobs: MemoryBlobs, replayed: Replayed, propose: Propose) -> None:
    with open_worlds("inventory", Controls(max_output=40)) as worlds:
        case = replayed(EIGHT["fail_A18"], worlds)
        for result in fork_both(case, propose(case, 1, A17), worlds, blobs):
            assert refused(result) == "answer_truncated"


def test_a_wrong_call_that_was_never_answered_has_a_clean_fork_alone(
    inventory: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    case = replayed(record(REQUEST, A18), inventory)
    clean, recovery = fork_both(case, propose(case, 1, A17), inventory, blobs)
    assert made(clean).trajectory.messages[0] == case.trajectory.messages[0]
    assert refused(recovery) == "no_answer"


# D5: a flaky reply


@pytest.mark.parametrize(("world", "flaw"), [("Flaky", "2 of 3"), ("Hashed", "1 of 3")])
def test_an_answer_that_another_process_does_not_give_fails(
    blobs: MemoryBlobs, replayed: Replayed, propose: Propose, world: str, flaw: str
) -> None:
    with open_worlds(f"tests.forks.flaky:{world}") as worlds:
        case = replayed(EIGHT["fail_A18"], worlds)
        for result in fork_both(case, propose(case, 1, A17), worlds, blobs):
            assert result.refusal == Refusal("flaky", flaw)
            assert result.fork is not None
            failed = result.fork.verifications[-1]
            assert (failed.layer, failed.result, failed.detail) == ("execution", "failed", f"flaky {flaw}")


def test_a_plan_is_pure_and_its_execution_the_same_again(
    booking: Worlds, blobs: MemoryBlobs, replayed: Replayed, propose: Propose
) -> None:
    case = replayed(record("Book one B17 please.", B18, BOOKED_B18), booking)
    proposal = propose(case, 1, B17)
    start = {0: case.trajectory.task}
    first, second = (plan("recovery", case, proposal, booking[0].spec, start) for _ in range(2))
    assert first == second
    assert isinstance(first, Plan)
    assert execute(first, booking, blobs) == execute(first, booking[::-1], blobs)

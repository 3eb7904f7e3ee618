"""Whatever was called before: a fork holds its parent's path and only answers that its own world gives."""

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.diagnosis.evidence import Case
from curation.proposals import Proposal, ProposedCall
from curation.repair import fork_both
from curation.replay import replay
from curation.worlds import World
from environments.blobs import MemoryBlobs
from schemas.canonical import digest, raw
from schemas.digests import decisions_of
from schemas.trajectory import Author, Trajectory, text_of, trajectory_id
from tests.records import call, record

SKUS = st.sampled_from(["A17", "B17", "B18", "C17", "D99"])
CALLS: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    st.tuples(st.just("get_stock"), st.fixed_dictionaries({"sku": SKUS})),
    st.tuples(st.just("book"), st.fixed_dictionaries({"sku": SKUS, "qty": st.integers(1, 3)})),
    st.tuples(st.just("cancel"), st.fixed_dictionaries({"sku": SKUS})),
    st.tuples(st.just("list_bookings"), st.just({})),
)
BATCHES = st.lists(st.lists(CALLS, min_size=1, max_size=3), min_size=1, max_size=4)


def recorded(batches: list[list[tuple[str, dict[str, Any]]]], world: World, blobs: MemoryBlobs) -> Trajectory:
    """An attempt whose answers are the world's own."""
    turns: list[Any] = ["Do what is to be done with A17, B17, B18 and C17."]
    with world.open(record("start").task, blobs) as session:
        for batch in batches:
            calls = [call(len(turns), at, *item) for at, item in enumerate(batch)]
            turns.extend([batch, *(json.loads(result.raw) for result in session.call(calls))])
    return record(*turns)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=BATCHES, right=CALLS, data=st.data())
def test_a_fork_holds_the_whole_path(
    booking: tuple[World, ...],
    batches: list[list[tuple[str, dict[str, Any]]]],
    right: tuple[str, dict[str, Any]],
    data: st.DataObject,
) -> None:
    blobs = MemoryBlobs()
    parent = recorded(batches, booking[0], blobs)
    identity = trajectory_id(parent)
    verifications = replay(identity, parent, booking[0], blobs).verifications
    assert {item.result for item in verifications} == {"passed"}
    case = Case(identity, parent, verifications=verifications, spec=booking[0].spec)
    decision = data.draw(st.sampled_from([at for at, message in enumerate(parent.messages) if message.tool_calls]))
    wrong = data.draw(st.sampled_from(parent.messages[decision].tool_calls))
    made = ProposedCall(right[0], raw(right[1]))
    proposal = Proposal(identity, decision, wrong.uid, (made,), Author("human", "ada"), ("request",))
    for result in fork_both(case, proposal, booking, blobs):
        if result.fork is None:
            assert result.refusal is not None
            assert result.refusal.code in ("same_call", "recovered_in_log", "effect_not_undone")
            continue
        fork = result.fork.trajectory
        assert fork.fork is not None
        point = fork.fork.branch_point
        assert fork.messages[:point] == parent.messages[:point]
        assert decisions_of(fork)[0].context == decisions_of(parent)[0].context
        executed = {item.call: item.execution for item in result.fork.verifications if item.execution}
        assert executed.keys() == {item.uid for message in fork.messages for item in message.tool_calls}
        for message in fork.messages:
            execution = executed.get(message.answers.uid) if message.answers else None
            assert execution is None or execution.answer == digest(text_of(message.content).encode())
        again = replay(result.fork.id, fork, booking[1], blobs).verifications
        assert {item.result for item in again} == {"passed"}

from collections.abc import Callable

import msgspec
import pytest

from curation.diagnosis.diagnose import diagnose
from curation.diagnosis.evidence import Case
from curation.proposals import Proposal, ProposedCall
from curation.repair import Repaired, repair
from curation.worlds import World
from environments.blobs import MemoryBlobs
from schemas.canonical import encode, raw
from schemas.levels import level_of
from schemas.objects import ToolSpec
from schemas.reasons import REPAIR
from schemas.statements import Annotation, Finding, Verification
from schemas.trajectory import Author, Reads, Trajectory
from tests.records import A17, A18, EIGHT, record

Worlds = tuple[World, ...]
Replayed = Callable[[Trajectory, Worlds], Case]

GET_STOCK = ToolSpec(
    "get_stock",
    "Stock of one SKU",
    raw(
        {
            "type": "object",
            "properties": {"sku": {"type": "string"}, "city": {"type": "string"}},
            "required": ["sku"],
        }
    ),
)
FAILED = {"fail_A18", "pasted_old_error", "pasted_result", "timeout", "misread", "bad_json"}


@pytest.fixture
def repaired(inventory: Worlds, blobs: MemoryBlobs, replayed: Replayed) -> Callable[..., Repaired]:
    """One of the eight after replay, diagnosis and repair."""

    def build(name: str, *proposals: Proposal) -> Repaired:
        case = replayed(EIGHT[name], inventory)._replace(tools=(GET_STOCK,))
        case = case._replace(outcome="failure" if name in FAILED else "success")
        diagnosis = diagnose(case)
        case = case._replace(verifications=(*case.verifications, *diagnosis.verifications))
        return repair(case, diagnosis.findings, inventory, blobs, proposals=proposals)

    return build


def facts(done: Repaired) -> dict[str, object]:
    return {item.field: item.value for item in done.statements if isinstance(item, Annotation)}


@pytest.mark.parametrize(
    ("name", "clean", "recovery"),
    [
        ("fail_A18", "forked", "forked"),
        ("recovered", "forked", "recovered_in_log: message 3"),
        ("timeout", "environment_fault", "environment_fault"),
        ("bad_json", "no_proposal", "no_proposal"),
    ],
)
def test_what_comes_of_a_wrong_decision_is_a_fact_about_it(
    repaired: Callable[..., Repaired], name: str, clean: str, recovery: str
) -> None:
    found = facts(repaired(name))
    assert (found["repair.1.clean"], found["repair.1.recovery"]) == (clean, recovery)


@pytest.mark.parametrize("name", EIGHT)
def test_the_eight_add_up(repaired: Callable[..., Repaired], name: str) -> None:
    done = repaired(name)
    assert done.verified + done.refused.total() == 2 * done.failures
    assert done.refused.keys() <= REPAIR.keys()
    forks = {"fail_A18": ["clean", "recovery"], "recovered": ["clean"]}.get(name, [])
    assert [item.trajectory.fork and item.trajectory.fork.kind for item in done.forks] == forks
    assert (done.verified, done.executed) == (len(forks), len(forks))


def test_a_contradicted_record_gives_nothing_to_repair(repaired: Callable[..., Repaired]) -> None:
    for name in ("pasted_old_error", "pasted_result"):
        assert repaired(name).failures == 0


def test_forks_are_diagnosed_like_any_record(repaired: Callable[..., Repaired]) -> None:
    done = repaired("fail_A18")
    clean, recovery = done.forks
    found = [item for item in done.statements if isinstance(item, Finding)]
    assert [(item.trajectory, item.message, item.label) for item in found] == [(recovery.id, 1, "argument")]
    for fork, message in ((clean, 1), (recovery, 3)):
        layers = {
            item.layer: item.result
            for item in done.statements
            if isinstance(item, Verification) and (item.trajectory, item.message) == (fork.id, message)
        }
        assert level_of(layers) == "execution"


def test_the_rule_read_only_the_prefix_and_a_person_may_have_read_more(repaired: Callable[..., Repaired]) -> None:
    by_rule = repaired("fail_A18")
    identity = next(item.trajectory for item in by_rule.statements if isinstance(item, Annotation))
    seen: tuple[Reads, ...] = ("request", "schema", "observation")
    call = ProposedCall(A17[0], raw(A17[1]))
    person = Proposal(identity, 1, "1.0", (call,), Author("human", "ada"), seen)
    by_person = repaired("fail_A18", person)
    reads = [
        [fork.trajectory.fork.correction.reads for fork in done.forks if fork.trajectory.fork]
        for done in (by_rule, by_person)
    ]
    assert reads == [[("request", "schema")] * 2, [seen] * 2]
    assert {fork.id for fork in by_rule.forks}.isdisjoint(fork.id for fork in by_person.forks)


def test_of_several_proposals_for_a_decision_a_refusal_is_not_hidden_by_a_fork(
    repaired: Callable[..., Repaired],
) -> None:
    identity = next(item.trajectory for item in repaired("fail_A18").statements if isinstance(item, Annotation))
    same, right = (
        Proposal(identity, 1, "1.0", (ProposedCall(name, raw(arguments)),), Author("human", "ada"), ("request",))
        for name, arguments in (A18, A17)
    )
    for proposals in ((same, right), (right, same)):
        done = repaired("fail_A18", *proposals)
        assert (done.failures, done.proposed, done.verified, done.refused["same_call"]) == (1, 1, 2, 2)
        assert facts(done)["repair.1.clean"] == "same_call: call 1.0"


def test_a_success_is_repaired_at_its_finding_too(booking: Worlds, blobs: MemoryBlobs, replayed: Replayed) -> None:
    wrong = {"sku": "B18", "city": "Shanghai", "stock": 3}
    right = {"sku": "B17", "city": "Hangzhou", "stock": 4}
    attempt = record(
        "Stock of B17?", ("get_stock", {"sku": "B18"}), wrong, "Let me look again.", "?",
        ("get_stock", {"sku": "B17"}), right, "There are 4.",
    )  # fmt: skip
    messages = list(attempt.messages)
    messages[4] = msgspec.structs.replace(messages[4], role="user")
    case = replayed(msgspec.structs.replace(attempt, messages=tuple(messages)), booking)
    case = case._replace(tools=(GET_STOCK,), outcome="success")
    done = repair(case, diagnose(case).findings, booking, blobs)
    assert facts(done) == {"repair.1.clean": "forked", "repair.1.recovery": "forked"}


def test_repairing_twice_gives_the_same_forks_and_statements(repaired: Callable[..., Repaired]) -> None:
    first, second = repaired("fail_A18"), repaired("fail_A18")
    assert [encode(item) for item in first.statements] == [encode(item) for item in second.statements]
    assert [fork.id for fork in first.forks] == [fork.id for fork in second.forks]

"""Corrections out of other attempts of the same task: which are proposed, and what comes of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from builders.build import build
from curation.diagnosis.evidence import Case
from curation.jobs.repairing import RepairResult, repair_attempts
from curation.jobs.replaying import replay_attempts
from curation.proposals import Proposal
from curation.siblings import Sibling, propose_from
from curation.store import Store
from schemas.statements import Annotation, Execution, Finding, Verification
from schemas.trajectory import Author, decode
from tests.ingest.logs import import_lines, new_store
from tests.jobs.booked import TOOLS, Call, book, lines, look, replayed
from tests.records import record

EITHER = "Book 1 B17 or B18, whichever lies in Shanghai."
UNNAMED = "Book one item that lies in Shanghai."


def fetched(store: Store, run: str) -> str:
    identity: str = store.sql("SELECT trajectory_id AS t FROM attempts WHERE run = ?", [run])["t"][0].as_py()
    return identity


def object_to(store: Store, run: str, message: int = 1) -> None:
    """A person's finding against the call of a decision."""
    batch = store.batch()
    batch.add_statement(
        Finding(fetched(store, run), message, "argument", Author("human", "Ada"), "wrong_value", f"{message}.0")
    )
    store.write(batch)


def repaired(
    folder: Path, request: str, *calls: Sequence[Call], wanted: Sequence[dict[str, int]] = ({"B18": 1},), **how: Any
) -> tuple[Store, RepairResult]:
    """The first run is found wrong at its last call; the others are its siblings, of the last wanted bookings."""
    every = [wanted[0], *[wanted[-1]] * (len(calls) - 1)]
    runs = [(f"run {at}", request, want, made) for at, (want, made) in enumerate(zip(every, calls, strict=True))]
    store = replayed(folder, runs)
    object_to(store, "run 0", 2 * len(calls[0]) - 1)
    return store, repair_attempts(store, "booking", **how)


def rows(out: Path, kind: str) -> list[dict[str, Any]]:
    return [json.loads(line) for file in out.glob(f"{kind}/*.jsonl") for line in file.read_bytes().splitlines()]


def test_what_a_sibling_did_at_equal_information_is_executed_and_makes_rows(tmp_path: Path) -> None:
    store, result = repaired(tmp_path, EITHER, [book("B17")], [book("B18")])
    assert (result.failures, result.proposed, result.executed, result.verified) == (1, 1, 2, 2)
    counted = result.authors["sibling"]
    assert (counted.proposed, counted.verified, counted.at_step, counted.at_task, counted.refused) == (1, 2, 2, 0, {})
    build(store, None, tmp_path / "rows")
    (pair,), (recovery,) = (rows(tmp_path / "rows", kind) for kind in ("preference", "recovery"))
    assert (pair["correction_source"], pair["level"]) == ("sibling", "step")
    assert recovery["correction_source"] == "sibling"


def test_the_fork_names_the_sibling_and_that_it_read_the_request_alone(tmp_path: Path) -> None:
    store, _ = repaired(tmp_path, EITHER, [book("B17")], [book("B18")])
    rows = store.sql("SELECT id FROM trajectories WHERE parent IS NOT NULL AND fork_kind = 'clean'")
    fork = store.trajectory(rows["id"][0].as_py()).fork
    assert fork is not None
    assert fork.correction.author == Author("sibling", fetched(store, "run 1"), "1")
    assert fork.correction.reads == ("request", "schema")


@pytest.mark.parametrize("others", [["B18", "C17"], ["C17", "B18"]])
def test_one_that_passed_its_task_is_preferred(tmp_path: Path, others: list[str]) -> None:
    store, _ = repaired(tmp_path, EITHER, [book("B17")], *([book(sku)] for sku in others))
    (record,) = store.sql("SELECT record FROM trajectories WHERE fork_kind = 'clean'")["record"].to_pylist()
    (call,) = decode(record).messages[1].tool_calls
    assert json.loads(call.arguments_text) == {"sku": "B18", "qty": 1}


def test_without_siblings_nothing_is_proposed(tmp_path: Path) -> None:
    _, result = repaired(tmp_path, EITHER, [book("B17")], [book("B18")], siblings=False)
    assert (result.proposed, result.refused, result.authors) == (0, {"no_proposal": 2}, {})


def test_another_start_or_other_information_makes_no_sibling(tmp_path: Path) -> None:
    other_start = repaired(tmp_path / "start", EITHER, [book("B17")], [book("B18")], wanted=({"B18": 1}, {"B18": 2}))
    knew_more = repaired(tmp_path / "more", EITHER, [book("B17")], [look("B18"), book("B18")])
    assert other_start[1].proposed == 0
    assert knew_more[1].authors["sibling"].proposed == 1, "its first decision was taken at equal information"
    knew_less = repaired(tmp_path / "less", EITHER, [look("B17"), book("B17")], [book("B18")])
    assert knew_less[1].proposed == 0


def test_a_siblings_call_is_refused_like_any_other(tmp_path: Path) -> None:
    _, result = repaired(tmp_path, UNNAMED, [book("B17")], [book("B18")])
    assert result.authors["sibling"].refused == {"not_derivable": 2}
    assert (result.proposed, result.verified) == (1, 0)


def test_a_siblings_call_that_failed_or_was_found_wrong_is_none(tmp_path: Path) -> None:
    _, failed = repaired(tmp_path / "failed", EITHER, [book("B17")], [book("B18", 9)])
    assert "sibling" not in failed.authors
    runs = [("run 0", EITHER, {"B18": 1}, [book("B17")]), ("run 1", EITHER, {"B18": 1}, [book("B18")])]
    store = replayed(tmp_path / "found", runs)
    object_to(store, "run 0")
    object_to(store, "run 1")
    assert repair_attempts(store, "booking").authors == {}


def test_a_sibling_that_was_told_more_makes_no_pair(tmp_path: Path) -> None:
    store = replayed(
        tmp_path, [("run 0", EITHER, {"B18": 1}, [book("B17")]), ("run 1", EITHER, {"B18": 1}, [book("B18")])]
    )
    object_to(store, "run 0")
    batch = store.batch()
    told = Annotation(fetched(store, "run 1"), "attempt.informed_by", "a hint", Author("human", "Ada"))
    batch.add_statement(told)
    store.write(batch)
    assert repair_attempts(store, "booking").authors["sibling"].verified == 2
    (record,) = store.sql("SELECT record FROM trajectories WHERE fork_kind = 'clean'")["record"].to_pylist()
    fork = decode(record).fork
    assert fork is not None
    assert fork.correction.reads == ("request", "schema", "observation")
    refused = build(store, None, tmp_path / "rows").kinds["preference"].refused
    assert refused["corrector_saw_more"] == 1
    assert rows(tmp_path / "rows", "preference") == []


def test_an_attempt_that_was_offered_other_tools_is_no_sibling(tmp_path: Path) -> None:
    both = [(f"run {at}", EITHER, {"B18": 1}, [book(sku)]) for at, sku in enumerate(("B17", "B18"))]
    mine, theirs = lines(both)
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [mine, {**theirs, "tools": TOOLS[1:]}])
    replay_attempts(store, "booking")
    object_to(store, "run 0")
    assert repair_attempts(store, "booking").proposed == 0


CONFIRMED = Execution("booking@1", match="equal_bytes", status="ok")
DIFFERENT = Execution("booking@1", match="different", status="ok")
CITY = {"sku": "B18", "city": "Shanghai", "stock": 3}


@pytest.mark.parametrize(
    ("mine", "theirs", "proposed"),
    [
        ([book("B17"), look("A17")], [book("B18"), look("A17")], True),
        ([book("B17")], [look("B18"), book("B18")], False),
        ([book("B17"), look("A17")], [book("B18")], False),
    ],
)
def test_two_decisions_have_to_differ_in_the_wrong_call_alone(
    mine: list[Call], theirs: list[Call], proposed: bool
) -> None:
    assert (offered(mine, theirs, CONFIRMED) is not None) == proposed


@pytest.mark.parametrize("ran", [Execution("booking@1", match="equal_bytes", status="tool_error"), DIFFERENT])
def test_a_call_that_failed_or_is_not_confirmed_stands_for_none(ran: Execution) -> None:
    assert offered([book("B17")], [book("B18")], ran) is None


def offered(mine: list[Call], theirs: list[Call], execution: Execution) -> Proposal | None:
    """What is proposed for the first call of a decision by one in which every call was executed so."""
    wrong, right = (record(EITHER, [*calls], *[CITY] * len(calls)) for calls in (mine, theirs))
    finding = Finding("t" * 64, 1, "argument", Author("human", "Ada"), call="1.0")
    ran = tuple(
        Verification(
            "s" * 64, "execution", "passed", Author("environment", "booking"), 1, call.uid, execution=execution
        )
        for call in right.messages[1].tool_calls
    )
    sibling = Sibling(Case("s" * 64, right, verifications=ran), 1)
    return propose_from(Case("t" * 64, wrong), finding, [sibling])

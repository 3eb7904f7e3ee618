"""The eight records from the log to rows that load."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from builders.build import BuildResult, build
from curation.ingest import IngestOptions, find_sources, ingest
from curation.jobs.diagnosing import diagnose_attempts
from curation.jobs.repairing import repair_attempts
from curation.jobs.replaying import replay_attempts
from curation.proposals import ProposalLine
from curation.store import Store
from schemas.selection import KINDS, Kind
from tests.eight import UNKNOWN, lines, records

NAMES = [record["id"] for record in records()]


class Built(NamedTuple):
    """A store with the eight, replayed, diagnosed and repaired, and what was built from it."""

    store: Store
    out: Path
    result: BuildResult

    def rows(self, kind: Kind) -> list[dict[str, Any]]:
        files = self.result.kinds[kind].files
        return [json.loads(line) for name in files for line in (self.out / name).read_bytes().splitlines()]

    def selections(self, kind: Kind) -> list[dict[str, Any]]:
        """The selections of a kind, each with the name of its record."""
        found: list[dict[str, Any]] = self.store.sql(
            "SELECT c.*, s.place FROM selections c JOIN sightings s USING (trajectory) WHERE kind = ? ORDER BY c.id",
            [kind],
        ).to_pylist()
        return [{**line, "name": NAMES[line["place"] - 1]} for line in found]


def pipeline(folder: Path, proposals: tuple[ProposalLine, ...] = ()) -> Built:
    log = folder / "eight.jsonl"
    log.write_bytes(lines())
    store = Store.create(str(folder / "store"))
    ingest(store, find_sources([log], "auto"), IngestOptions())
    replay_attempts(store, "inventory")
    diagnose_attempts(store)
    repair_attempts(store, "inventory", proposals)
    return Built(store, folder / "out", build(store, None, folder / "out"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return pipeline(tmp_path_factory.mktemp("eight"))


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("first_action", {"fail_A18", "first_ok", "recovered", "misread"}),
        ("recovery", {"fail_A18", "recovered"}),
        ("preference", {"fail_A18", "recovered"}),
    ],
)
def test_what_is_kept_of_the_eight(kind: Kind, names: set[str], built: Built) -> None:
    kept = [line["name"] for line in built.selections(kind) if line["kept"]]
    assert sorted(kept) == sorted(names)
    assert (built.result.kinds[kind].kept, built.result.kinds[kind].rows) == (len(names), 1)


@pytest.mark.parametrize("kind", KINDS)
def test_selections_add_up(kind: Kind, built: Built) -> None:
    counted, lines = built.result.kinds[kind], built.selections(kind)
    assert {line["name"] for line in lines} == set(NAMES)
    assert counted.candidates == counted.kept + sum(counted.refused.values())
    assert len(lines) == counted.candidates + sum(counted.without_candidate.values())
    assert sum(line["kept"] for line in lines) == counted.kept
    assert {line["sample"] for line in lines if line["kept"]} == {row["sample_id"] for row in built.rows(kind)}
    for line in lines:
        assert line["kept"] != bool(line["failed"])


def test_a_contradicted_record_gives_no_row_and_an_environment_fault_no_negative(built: Built) -> None:
    for kind in KINDS:
        for line in built.selections(kind):
            if line["name"] in ("pasted_old_error", "pasted_result", "timeout", "bad_json"):
                assert not line["kept"]
    refused = {line["name"]: line["failed"] for line in built.selections("first_action") if not line["kept"]}
    assert refused["pasted_old_error"][0] == refused["pasted_result"][0] == "contradicted_record"
    assert refused["bad_json"] == ["no_candidate:no_call"]


def test_the_first_action_row_holds_no_trace_of_the_error(built: Built) -> None:
    (row,) = built.rows("first_action")
    text = json.dumps(row, ensure_ascii=False)
    assert "A18" not in text
    assert "unknown_sku" not in text
    assert [call["function"] for call in row["completion"][0]["tool_calls"]] == [
        {"name": "get_stock", "arguments": {"sku": "A17"}}
    ]
    assert [message["role"] for message in row["prompt"]] == ["user"]


def test_the_recovery_row_trains_the_corrected_call_alone_and_comes_from_its_own_execution(built: Built) -> None:
    (row,) = built.rows("recovery")
    wrong, answer = row["prompt"][-2:]
    assert wrong["tool_calls"][0]["function"]["arguments"] == {"sku": "A18"}
    assert (answer["content"], answer["tool_call_id"]) == (UNKNOWN, wrong["tool_calls"][0]["id"])
    (target,) = row["completion"]
    assert [call["function"]["arguments"] for call in target["tool_calls"]] == [{"sku": "A17"}]
    assert (row["kind"], row["fork_kind"], row["branch_point"], row["message"]) == ("recovery", "recovery", 3, 3)
    (clean,) = built.rows("first_action")
    assert row["trajectory_id"] != clean["trajectory_id"]
    assert row["parent_trajectory_id"] == clean["parent_trajectory_id"]


def test_a_row_is_confirmed_up_to_execution_and_never_as_a_task(built: Built) -> None:
    for kind in KINDS:
        assert [(row["level"], row["evidence"]) for row in built.rows(kind)] == [("execution", "environment")]


def test_the_pair_differs_in_the_action_alone(built: Built) -> None:
    (row,) = built.rows("preference")
    (chosen,), (rejected,) = row["chosen"], row["rejected"]
    assert chosen["tool_calls"][0]["id"] == rejected["tool_calls"][0]["id"]
    assert [side["tool_calls"][0]["function"]["arguments"]["sku"] for side in (chosen, rejected)] == ["A17", "A18"]
    assert (row["pair_grade"], row["rejected_trajectory_id"]) == ("own_fork", row["parent_trajectory_id"])


def test_a_correction_by_someone_who_read_the_error_is_no_side_of_a_pair(tmp_path: Path) -> None:
    plain = pipeline(tmp_path)
    parent = next(line["trajectory"] for line in plain.selections("preference") if line["name"] == "fail_A18")
    proposal = {
        "trajectory": parent,
        "message": 1,
        "call": "1.0",
        "calls": [{"name": "get_stock", "arguments": {"sku": "A17"}}],
        "author": "Ada",
        "reads": ["request", "schema", "observation"],
    }
    repair_attempts(plain.store, "inventory", [msgspec.convert(proposal, ProposalLine)])
    again = plain._replace(result=build(plain.store, None, plain.out))
    refused = again.store.sql(
        "SELECT failed FROM selections WHERE build = ? AND list_contains(failed, 'corrector_saw_more')",
        [again.result.build],
    ).to_pylist()
    assert refused == [{"failed": ["corrector_saw_more"]}]
    assert again.result.kinds["recovery"].kept == plain.result.kinds["recovery"].kept + 1

"""Whether a replay would notice forged answers, and what its comparisons are worth."""

import json
from pathlib import Path
from typing import Any

import pytest

from curation.jobs.mutating import score_mutations
from curation.jobs.replaying import replay_attempts
from curation.jobs.tampering import tamper
from curation.store import Store
from tests.ingest.logs import import_file, import_lines, new_store


def look(identity: str, *answers: tuple[str, dict[str, Any] | str]) -> dict[str, Any]:
    """An attempt that looks up one item after another."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "How many are there?"}]
    for number, (sku, answer) in enumerate(answers):
        function = {"name": "get_stock", "arguments": json.dumps({"sku": sku})}
        content = answer if isinstance(answer, str) else json.dumps(answer, separators=(",", ":"))
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [{"id": f"c{number}", "function": function}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": content},
        ]
    return {"id": identity, "messages": [*messages, {"role": "assistant", "content": "Done."}]}


def unknown(sku: str) -> dict[str, Any]:
    return {"error": "unknown_sku", "sku": sku}


A17 = {"sku": "A17", "city": "Hangzhou", "stock": 2}


@pytest.mark.parametrize("world", ["inventory", "booking"])
def test_every_pasted_answer_is_caught_of_the_same_run_or_of_another(world: str, tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(
        store,
        tmp_path,
        [
            look("two", ("A17", A17), ("X1", unknown("X1"))),
            look("one", ("A17", A17)),
            look("fault", ("A17", A17), ("A17", {"error": "timeout"})),
        ],
    )
    before = store.sql("SELECT count(*) AS n FROM verifications").to_pylist()
    result = tamper(store, world)
    assert (result.calls, result.alone, result.same_answer) == (5, 0, 0)
    assert (result.pasted, result.caught, result.called_equal, result.unknown) == (5, 5, 0, 0)
    assert store.sql("SELECT count(*) AS n FROM verifications").to_pylist() == before


def test_what_cannot_be_told_apart_is_counted(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    bad = {"error": "bad_arguments", "at": "/sku", "rule": "required"}
    lines = [look("alone", ("A17", A17))]
    import_lines(store, tmp_path, lines)
    assert tamper(store, "inventory").alone == 1
    alike = [{"id": "alike", **look("", ("", bad), ("", bad))}]
    for number, message in enumerate(item for item in alike[0]["messages"] if item.get("tool_calls")):
        message["tool_calls"][0]["function"]["arguments"] = json.dumps({"item": number})
    other = new_store(tmp_path, "other")
    import_lines(other, tmp_path, alike, "alike.jsonl")
    result = tamper(other, "inventory")
    assert (result.calls, result.same_answer, result.pasted) == (2, 2, 0)


def test_pasted_answers_that_a_rule_forgives_are_not_called_caught(tmp_path: Path) -> None:
    """The same answer, written otherwise for the sibling: nothing differs but the spacing."""
    store = new_store(tmp_path)
    lines = [look("a", ("X1", unknown("X1"))), look("b", ("X2", json.dumps(unknown("X1"))))]
    import_lines(store, tmp_path, lines)
    result = tamper(store, "inventory")
    assert (result.pasted, result.caught, result.called_equal) == (2, 1, 1)


def test_scores_are_over_the_answers_that_a_replay_confirmed(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    lines = [
        look("two", ("A17", A17), ("X1", unknown("X1"))),
        look("spaced", ("A17", json.dumps(A17))),
        look("forged", ("X2", A17)),
    ]
    import_lines(store, tmp_path, lines)
    assert score_mutations(store, "inventory").answers == 0
    assert replay_attempts(store, "inventory").different == 1
    result = score_mutations(store, "inventory")
    assert result.answers == 3
    scores = {(item.comparator, item.alteration): (item.altered, item.called_equal) for item in result.scores}
    assert {name for name, _ in scores} == {"equal_bytes", "json@1"}
    assert scores["equal_bytes", "success_claimed"] == (3, 0)
    assert scores["equal_bytes", "pasted"] == (6, 0)
    assert scores["json@1", "pasted"] == (6, 2)


def test_forged_answers_in_real_logs_are_caught(logs: Path, tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    runs = logs / "agentdojo" / "runs" / "claude-3-7-sonnet-20250219" / "slack"
    for number in range(6):
        import_file(store, runs / f"user_task_{number}" / "none" / "none.json")
    result = tamper(store, "agentdojo@v1.2.1")
    assert result.calls == result.alone + result.same_answer + result.pasted
    assert result.pasted > 0
    assert (result.caught, result.called_equal, result.unknown) == (result.pasted, 0, 0)

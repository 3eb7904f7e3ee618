"""When the calls of a log were made: told beside the record, and given to the world that executes them again."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from curation.clocks import CLOCKS, MAX_TIMES, NO_CLOCKS, Clocks, iso_time, logged_time, read_clocks, write_clocks
from curation.jobs.forking import fork_attempt
from curation.jobs.replaying import replay_attempts
from curation.proposals import Proposal, ProposedCall
from curation.show import TrajectoryView, show
from curation.store import Store
from curation.store.lookup import Named
from environments.clock import FIXED_CLOCK
from environments.protocol import Controls
from schemas.canonical import raw
from schemas.trajectory import Author
from tests.ingest.logs import attempts, import_lines, new_store, records

RESTLESS = "tests.replay.restless:restless"
FIRST, SECOND = "2024-06-01T10:20:30.250000+00:00", "2024-06-02T08:00:00+00:00"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"timestamp": "2024-05-15T15:00:00Z"}, "2024-05-15T15:00:00+00:00"),
        ({"created_at": "2024-05-15 15:00"}, "2024-05-15T15:00:00"),
        ({"created": 1715785200}, "2024-05-15T15:00:00+00:00"),
        ({"time": 1715785200500}, "2024-05-15T15:00:00.500000+00:00"),
        ({"timestamp": "yesterday", "created": 1715785200.5}, "2024-05-15T15:00:00.500000+00:00"),
        ({"timestamp": 12}, None),
        ({"timestamp": True}, None),
        ({"timestamp": {"at": 1}}, None),
        ({"timestamp": "2" * 5000}, None),
        ({"duration": 1715785200}, None),
    ],
)
def test_the_time_of_an_entry(entry: dict[str, Any], expected: str | None) -> None:
    assert logged_time(entry) == expected
    assert iso_time(expected) == expected


def test_a_time_holds_until_the_next_one() -> None:
    clocks = read_clocks(write_clocks({3: FIRST, 11: SECOND}))
    assert [clocks.at(message) for message in (0, 2, 3, 10, 11, 500)] == [None, None, FIRST, FIRST, SECOND, SECOND]
    for value in (None, "", "[]", "no", '{"a":"b"}', '{"1":2}'):
        assert read_clocks(value) == NO_CLOCKS
    assert read_clocks(write_clocks(dict.fromkeys(range(MAX_TIMES + 5), FIRST))).messages == tuple(range(MAX_TIMES))


def sends(*times: str | None, texts: Sequence[str] = ("hello", "again"), **more: Any) -> dict[str, Any]:
    """A run that sends texts, each answered with the time at which the log says that it was sent."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Send it."}]
    for number, (at, text) in enumerate(zip(times, texts, strict=False)):
        function = {"name": "send", "arguments": json.dumps({"text": text})}
        made = {"role": "assistant", "content": None, "tool_calls": [{"id": f"c{number}", "function": function}]}
        sent = shown(at or more.get("created_at"))
        answer = {"text": text, "drafted": "2024-05-15 15:00:00", "sent": sent}
        messages.append(made if at is None else {**made, "timestamp": at})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": compact(answer)})
    return {"id": "a", "messages": [*messages, {"role": "assistant", "content": "Done."}], **more}


def shown(at: str | None) -> str:
    return (at or FIXED_CLOCK).replace("T", " ").removesuffix("+00:00")


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def stored(folder: Path, line: dict[str, Any]) -> Store:
    store = new_store(folder)
    assert import_lines(store, folder, [line]).accepted == 1
    return store


def rules(store: Store) -> list[Any]:
    rows = store.sql("SELECT record FROM effective_verifications WHERE layer = 'execution' ORDER BY message")
    return [json.loads(record)["execution"].get("rules") for record in rows["record"].to_pylist()]


@pytest.mark.parametrize(
    "line", [sends(FIRST, SECOND), sends(None, SECOND, created_at=FIRST), sends(None, None, created_at=FIRST)]
)
def test_answers_that_hold_the_time_of_their_call_are_equal_in_every_byte(tmp_path: Path, line: dict[str, Any]) -> None:
    store = stored(tmp_path, line)
    fixed = replay_attempts(store, RESTLESS, Controls())
    assert (fixed.equal_bytes, fixed.equal_normalised) == (0, 2)
    assert rules(store) == [["clock@1"], ["clock@1"]]
    recorded = replay_attempts(store, RESTLESS)
    assert (recorded.calls, recorded.equal_bytes) == (2, 2)


def test_another_time_than_the_logged_one_is_no_equal_answer(tmp_path: Path) -> None:
    line = sends(FIRST, SECOND)
    line["messages"][3]["timestamp"] = FIRST
    result = replay_attempts(stored(tmp_path, line), RESTLESS)
    assert (result.equal_bytes, result.equal_normalised) == (1, 1)


def test_calls_of_one_message_are_made_at_one_time_in_every_order(tmp_path: Path) -> None:
    line = sends(FIRST)
    _, made, sent, _ = line["messages"]
    made["tool_calls"].append({"id": "s", "function": {"name": "steps", "arguments": "{}"}})
    line["messages"].insert(2, {"role": "tool", "tool_call_id": "s", "content": '["open","close"]'})
    assert line["messages"][3] is sent
    result = replay_attempts(stored(tmp_path, line), RESTLESS)
    assert (result.equal_bytes, result.reasons) == (2, {})


def test_a_new_call_is_made_when_the_wrong_one_was(tmp_path: Path) -> None:
    store = stored(tmp_path, sends(FIRST, SECOND))
    assert replay_attempts(store, RESTLESS).equal_bytes == 2
    (identity,) = records(store)
    corrected = ProposedCall("send", raw({"text": "good-bye"}))
    proposal = Proposal(identity, 3, "3.0", (corrected,), Author("human", "ann"), ("request",))
    made = fork_attempt(store, RESTLESS, proposal)
    answers = {line.kind: store.trajectory(line.id).messages[-1].content for line in made.forks if line.id is not None}
    assert answers["clean"] == compact({"text": "good-bye", "drafted": "2024-05-15 15:00:00", "sent": shown(SECOND)})


def test_times_are_a_fact_beside_the_record_and_no_stratum(tmp_path: Path) -> None:
    timeless = sends(FIRST, SECOND)
    for message in timeless["messages"]:
        message.pop("timestamp", None)
    store, plain = stored(tmp_path, sends(FIRST, SECOND)), new_store(tmp_path, "plain")
    import_lines(plain, tmp_path, [timeless])
    assert records(store) == records(plain)
    assert attempts(store) == attempts(plain)
    (fact,) = store.sql("SELECT author_kind, value FROM annotations WHERE field = ?", [CLOCKS]).to_pylist()
    assert fact == {"author_kind": "log", "value": compact({"1": FIRST, "3": SECOND})}
    assert not plain.sql("SELECT id FROM annotations WHERE field = ?", [CLOCKS]).num_rows


def test_the_same_attempt_at_another_time_is_the_same_attempt(tmp_path: Path) -> None:
    store = stored(tmp_path, sends(FIRST, FIRST))
    again = sends(FIRST, FIRST)
    again["messages"][1]["timestamp"] = SECOND
    for revise, known in ((False, []), (True, [Clocks((1, 3), (SECOND, FIRST))])):
        read = import_lines(store, tmp_path, [again], name="again.jsonl", revise=revise)
        assert (read.accepted, read.duplicates) == (0, 1)
        said = store.sql("SELECT value FROM effective_annotations WHERE field = ?", [CLOCKS])["value"].to_pylist()
        assert list(map(read_clocks, said)) == known, "what two logs say otherwise is disputed until a revision"


def test_a_run_without_a_call_or_a_time_says_nothing(tmp_path: Path) -> None:
    silent = {"id": "a", "created_at": FIRST, "messages": [{"role": "user", "content": "Hello?", "timestamp": FIRST}]}
    store = stored(tmp_path, silent)
    import_lines(store, tmp_path, [sends("yesterday", id="b")], name="other.jsonl")
    assert not store.sql("SELECT id FROM annotations WHERE field = ?", [CLOCKS]).num_rows


def test_of_a_run_with_very_many_times_the_first_are_kept(tmp_path: Path) -> None:
    count = MAX_TIMES + 1
    store = new_store(tmp_path)
    found = import_lines(store, tmp_path, [sends(*([FIRST] * count), texts=["x"] * count)])
    assert found.warnings == {"clocks_cut": 1}
    (identity,) = records(store)
    view = show(store, Named("trajectory", identity))
    assert isinstance(view, TrajectoryView)
    assert view.facts[CLOCKS].startswith(f'{{"1":"{FIRST}",')
    assert len(view.facts[CLOCKS]) == 500

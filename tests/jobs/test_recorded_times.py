"""Jobs that execute logged calls, right ones or wrong ones in their place, do so at their logged times."""

import json
from typing import Any

import pytest

from curation.jobs.powering import measure_power
from curation.jobs.replaying import replay_attempts
from curation.store import Store
from tests.ingest.logs import import_lines, new_store
from tests.jobs.dated import DAYS

WORLD = "tests.jobs.dated:world"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A run that wrote one note on each of two days."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Two notes."}]
    for day in DAYS:
        function = {"name": "note", "arguments": json.dumps({"text": f"It is {day}."})}
        call = {"id": day, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call], "timestamp": f"{day}T12:00:00Z"})
        messages.append({"role": "tool", "tool_call_id": day, "content": day})
    folder = tmp_path_factory.mktemp("dated")
    store = new_store(folder)
    import_lines(store, folder, [{"id": "a", "messages": messages, "outcome": True}])
    return store


def test_answers_and_outcome_are_those_of_the_logged_days(store: Store) -> None:
    replayed = replay_attempts(store, WORLD)
    assert (replayed.equal_bytes, replayed.outcomes_agree, replayed.outcomes_unverified) == (2, 1, 0)


def test_wrong_calls_are_made_when_the_right_ones_were(store: Store) -> None:
    replay_attempts(store, WORLD)
    result = measure_power(store, WORLD)
    assert (result.known_right, result.probed, result.wrong_calls, result.unprobed) == (1, 2, 2, {})
    assert {share.check: share.rate for share in result.totals}["task"] == 1, "it counts the days, whatever is noted"

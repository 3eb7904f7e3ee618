"""Which attempts an environment replays, and what a replay in another one changes."""

from pathlib import Path
from typing import Any

import pytest

from curation.errors import UsageError
from curation.jobs.replaying import replay_attempts
from curation.store import Store
from tests.ingest.logs import import_lines, new_store, run


def environments(store: Store) -> dict[str, str | None]:
    rows = store.sql("SELECT run, environment FROM attempts ORDER BY run")
    return dict(zip(rows["run"].to_pylist(), rows["environment"].to_pylist(), strict=True))


def elsewhere(identity: str) -> dict[str, Any]:
    """An attempt whose calls are of no tool of our worlds."""
    line = run(identity)
    line["messages"][1]["tool_calls"][0]["function"]["name"] = "search_web"
    return line


@pytest.mark.parametrize("name", ["inventory", "inventory@1", "environments.inventory:Inventory"])
def test_an_attempt_names_its_environment_by_id_version_or_address(name: str, tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a", environment=name), run("b", environment="shop@1")])
    address = name if ":" in name else "inventory"
    assert replay_attempts(store, address).runs == 1


def test_an_attempt_that_names_none_is_replayed_where_its_tools_are(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("ours"), elsewhere("theirs")])
    result = replay_attempts(store, "inventory")
    assert (result.runs, result.passed_over) == (1, 1)
    assert environments(store) == {"ours": "inventory", "theirs": None}
    (fact,) = store.sql("SELECT author_kind, author_name FROM annotations WHERE field = 'environment'").to_pylist()
    assert fact == {"author_kind": "rule", "author_name": "replay.confirmed"}


def test_a_contradicted_attempt_is_not_placed(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    line = run("pasted")
    line["messages"][2]["content"] = '{"error":"unknown_sku","sku":"A18"}'
    import_lines(store, tmp_path, [line])
    assert replay_attempts(store, "inventory").different == 1
    assert environments(store) == {"pasted": None}


def test_no_attempt_of_an_environment_is_a_refusal_that_names_those_there_are(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    silent = run("c")
    silent["messages"] = [silent["messages"][0], silent["messages"][-1]]
    import_lines(store, tmp_path, [run("a", environment="shop@1"), elsewhere("b"), silent])
    with pytest.raises(UsageError, match=r"environments that attempts name: shop@1"):
        replay_attempts(store, "inventory")


def test_a_later_replay_in_another_environment_takes_the_place_of_the_first(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    import_lines(store, tmp_path, [run("a")])
    executed_in = "SELECT author_name FROM effective_verifications WHERE layer = 'execution'"
    for world in ("booking", "inventory"):
        assert replay_attempts(store, world).equal_bytes == 1, "both worlds hold two A17"
        assert store.sql(executed_in)["author_name"].to_pylist() == [world]
        assert environments(store) == {"a": world}

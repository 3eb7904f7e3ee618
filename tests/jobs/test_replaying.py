"""Which attempts an environment replays, and what a replay in another one changes."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from curation.errors import UsageError
from curation.jobs.replaying import replay_attempts
from curation.store import Store
from curation.store.supersede import superseding
from schemas.statements import Verification
from schemas.trajectory import Author
from tests.ingest.logs import import_lines, new_store, run
from tests.jobs.booked import book, lines, look


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


WANTED = {"B17": 1}
MOVED = "tests.jobs.moved:moved"
LOOKED = [("one", "Is there B17? Book 1.", WANTED, [look("B17"), book("B17")])]


def outcomes(store: Store) -> list[tuple[str, str | None]]:
    rows = store.sql("SELECT outcome, outcome_by FROM attempts ORDER BY run").to_pylist()
    return [(row["outcome"], row["outcome_by"]) for row in rows]


def size(store: Store) -> int:
    """How many statements were ever written."""
    tables = ("annotations", "findings", "verifications")
    return sum(store.sql(f"SELECT count(*) AS n FROM {table}")["n"][0].as_py() for table in tables)


def unnamed(store: Store, folder: Path, runs: Any) -> None:
    import_lines(store, folder, [{**line, "environment": None} for line in lines(runs)])


def test_a_contradiction_elsewhere_takes_back_what_was_said_of_the_task_until_it_is_confirmed_again(
    tmp_path: Path,
) -> None:
    store = new_store(tmp_path)
    unnamed(store, tmp_path, LOOKED)
    for _ in range(2):
        for world, expected in (("booking", ("success", "environment")), (MOVED, ("unknown", "rule"))):
            replay_attempts(store, world)
            assert outcomes(store) == [expected]
            written = size(store)
            replay_attempts(store, world)
            assert size(store) == written, "the same replay again says nothing new"


def test_answers_that_differ_alike_are_named_so(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    again = [("two", "Is there B17? Book it.", WANTED, [look("B17"), book("B17")])]
    unnamed(store, tmp_path, [*LOOKED, *again])
    assert replay_attempts(store, MOVED).reasons == {"recorded_alike": 2}


def test_what_was_different_before_and_is_confirmed_now_holds_no_more(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    unnamed(store, tmp_path, LOOKED)
    replay_attempts(store, "booking")
    (record,) = store.sql("SELECT record FROM verifications WHERE call = '1.0'")["record"].to_pylist()
    found = msgspec.json.decode(record, type=Verification)
    assert found.execution is not None
    differed = replace(found.execution, match="different", reason="recorded_alike")
    batch = store.batch()
    for item in superseding(store, [replace(found, result="failed", execution=differed)]):
        batch.add_statement(item)
    store.write(batch)
    assert replay_attempts(store, "booking").different == 0
    rows = store.sql("SELECT match FROM effective_verifications WHERE call = '1.0'")["match"].to_pylist()
    assert rows == ["equal_bytes"]


def test_of_two_words_on_one_outcome_the_log_s_counts_once(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    unnamed(store, tmp_path, LOOKED)
    (identity,) = store.sql("SELECT trajectory_id AS t FROM attempts")["t"].to_pylist()
    batch = store.batch()
    batch.add_statement(Verification(identity, "task", "passed", Author("log", "harness")))
    batch.add_statement(Verification(identity, "task", "failed", Author("side_file", "people")))
    store.write(batch)
    result = replay_attempts(store, "booking")
    assert (result.outcomes_agree, result.outcomes_differ) == (1, 0)

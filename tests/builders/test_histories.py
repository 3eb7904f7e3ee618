"""A run whose beginning is not in its log trains nothing that rests on it."""

from pathlib import Path

from builders.build import build
from schemas.canonical import digest
from schemas.statements import Execution, Verification
from schemas.trajectory import Author, answers_of, text_of
from tests.importers.session import model, result, use, user
from tests.ingest.logs import attempts, import_lines, new_store


def refusals(folder: Path, parent: str | None) -> list[set[str]]:
    """By run, why the decisions of a session give no row, whose second request names a line as its parent; each call
    was executed and answered as logged.
    """
    asked = [user("u1", None), model("a1", "u1", use("c1", sku="A18")), result("r1", "a1", "c1")]
    again = [user("u2", parent), model("a2", "u2", use("c2", sku="A17")), result("r2", "a2", "c2")]
    store = new_store(folder)
    imported = import_lines(store, folder, [*asked, *again], "session.jsonl")
    assert imported.losses.records.get("dangling_parent", 0) == (parent == "ghost")
    ids = [row["trajectory_id"] for row in sorted(attempts(store), key=lambda row: row["run"])]
    with store.batch() as batch:
        for identity in ids:
            record = store.trajectory(identity)
            for uid, place in answers_of(record).items():
                told = digest(text_of(record.messages[place].content).encode())
                ran = Execution("inventory@1", "c0de", match="equal_bytes", status="ok", answer=told)
                author = Author("environment", "inventory@1")
                at = int(uid.partition(".")[0])
                batch.add_statement(Verification(identity, "execution", "passed", author, at, uid, execution=ran))
        store.write(batch)
    build(store, ["first_action"], folder / "out")
    rows = store.sql("SELECT trajectory, failed FROM selections WHERE kind = 'first_action'").to_pylist()
    return [{code for row in rows if row["trajectory"] == identity for code in row["failed"] or ()} for identity in ids]


def test_a_fragment_behind_a_parent_that_was_never_written_is_refused(tmp_path: Path) -> None:
    whole, fragment = refusals(tmp_path, "ghost")
    assert "history_incomplete" not in whole
    assert "history_incomplete" in fragment


def test_where_the_parent_is_there_the_run_is_whole(tmp_path: Path) -> None:
    (whole,) = refusals(tmp_path, "r1")
    assert "history_incomplete" not in whole

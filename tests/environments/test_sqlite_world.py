import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from environments.blobs import MemoryBlobs
from environments.protocol import Controls, SnapshotError, StartError
from environments.sqlite_delta import FORM as DELTA
from environments.sqlite_delta import Delta
from environments.sqlite_image import connect
from environments.sqlite_pages import FORM as PAGES
from environments.sqlite_state import FORM as IMAGE
from environments.sqlite_state import SqliteState
from environments.sqlite_world import SqliteSession, SqliteWorld
from environments.tools import Tool
from environments.worker import Worker
from schemas.objects import Snapshot
from schemas.trajectory import Task, ToolCall
from tests.environments.calls import call, task
from tests.environments.orders import SCRIPT, shop, write_large

WRITES = [
    call("put_order", order="o2", item="desk", qty=7),
    call("put_order", order="o9", item="bed"),
    call("cancel_order", order="o1"),
    call("rename_order", order="o3", name="o9"),
    call("swap_orders", one="o2", other="o9"),
    call("note", order="o2", text="soon"),
    call("tally"),
    call("tidy"),
    call("overdraw", order="o2"),
]
SQL = {"type": "object", "properties": {"sql": {"type": "string"}}}
WRITE = Tool("write", "", SQL, "write", lambda db, sql: db.execute(sql) and None)
UNPLACED = [
    call("visit", page="home"),
    call("put_label", name="old", colour="green"),
    call("put_label", name="blank", colour="white"),
    call("add_table", name="more"),
]


@pytest.fixture
def blobs() -> MemoryBlobs:
    return MemoryBlobs()


@pytest.fixture(scope="module")
def large_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_large(tmp_path_factory.mktemp("large") / "shop.db")


@pytest.fixture(scope="module")
def large(large_file: Path) -> SqliteWorld:
    return shop(large_file)


def start(world: SqliteWorld, blobs: MemoryBlobs, at: Task | Snapshot = Task()) -> SqliteSession:  # noqa: B008
    return world.open(at, Controls(), blobs)


def answers(session: SqliteSession, *calls: ToolCall) -> list[str]:
    return [result.raw for result in session.call(calls)]


def test_functions_on_a_connection_are_tools(blobs: MemoryBlobs) -> None:
    with start(shop(), blobs) as session:
        results = session.call(
            [
                call("get_order", order="o3"),
                call("get_order", order="o4"),
                call("put_order", order="o4", item="rug", qty=2),
                call("get_order", order="o4"),
                call("put_order", order="o4"),
                call("overdraw", order="o4"),
            ]
        )
    assert [(result.status, result.raw) for result in results[:5]] == [
        ("ok", '{"item":"chair","qty":4}'),
        ("tool_error", '{"error":"unknown_order"}'),
        ("ok", '{"put":"o4"}'),
        ("ok", '{"item":"rug","qty":2}'),
        ("schema_error", '{"error":"bad_arguments","at":"/item","rule":"required"}'),
    ]
    assert results[5].status == "tool_error"
    assert "CHECK constraint" in results[5].raw
    assert results[0].state_after == results[1].state_after != results[2].state_after
    assert results[3].state_after == results[4].state_after
    assert {tool.name: shop().spec.effects[tool.name] for tool in session.tools()}["get_order"] == "read"


def test_a_user_may_give_a_file_in_wal_mode_that_is_still_written(tmp_path: Path, blobs: MemoryBlobs) -> None:
    path = tmp_path / "shop.db"
    writer = sqlite3.connect(path)
    writer.executescript(SCRIPT.read_text())
    with start(shop(path), blobs) as plain:
        expected = plain.state_digest()
    writer.execute("PRAGMA journal_mode = WAL")
    with start(shop(path), blobs) as written_ahead:
        assert written_ahead.state_digest() == expected
    writer.execute("INSERT INTO orders VALUES ('o7', 'pan', 1)")
    writer.commit()
    with start(shop(path), blobs) as later:
        assert answers(later, call("get_order", order="o7")) == ['{"item":"pan","qty":1}']
        later.call([call("cancel_order", order="o7")])
    assert writer.execute("SELECT count(*) FROM orders").fetchone() == (4,)
    writer.close()


def test_a_script_and_the_file_it_makes_are_one_start(tmp_path: Path, blobs: MemoryBlobs) -> None:
    with sqlite3.connect(tmp_path / "shop.db") as db:
        db.executescript(SCRIPT.read_text())
    db.close()
    digests = {start(shop(path), blobs).state_digest() for path in (SCRIPT, tmp_path / "shop.db")}
    assert len(digests) == 1


def test_a_task_names_one_of_the_declared_starts_and_never_a_path(tmp_path: Path, blobs: MemoryBlobs) -> None:
    empty = tmp_path / "empty.sql"
    empty.write_text("CREATE TABLE orders (id TEXT PRIMARY KEY, item TEXT, qty INTEGER)")
    world = shop(starts={"empty": empty})
    assert answers(start(world, blobs, task(start="empty")), call("get_order", order="o1")) == [
        '{"error":"unknown_order"}'
    ]
    for wrong in ("full", str(empty), "../orders.sql"):
        with pytest.raises(StartError, match="it has: empty"):
            start(world, blobs, task(start=wrong))
    with pytest.raises(StartError, match="'t'"):
        start(world, blobs, task(path=str(empty)))


@pytest.mark.parametrize("content", [b"SELEKT 1", b"\xff\xfe", b"SQLite format 3\x00" + b"\xff" * 2000])
def test_a_start_that_is_no_database_says_which_file(tmp_path: Path, blobs: MemoryBlobs, content: bytes) -> None:
    (tmp_path / "shop.db").write_bytes(content)
    with pytest.raises(StartError, match=r"shop\.db"):
        start(shop(tmp_path / "shop.db"), blobs)
    with pytest.raises(StartError, match=r"none\.db"):
        start(shop(tmp_path / "none.db"), blobs)


def test_what_is_open_when_a_tool_ends_is_committed_and_when_it_falls_rolled_back(blobs: MemoryBlobs) -> None:
    with start(shop(), blobs) as session:
        before = session.state_digest()
        with pytest.raises(RuntimeError, match="fell"):
            session.call([call("stumble")])
        assert session.state_digest() == before
        assert session.call([call("overdraw", order="o1")])[0].status == "tool_error"
        assert session.state_digest() == before
        session.call([call("cancel_order", order="o1")])
        assert not session.state.connection.in_transaction
        assert session.state_digest() != before


def test_a_prepared_connection_keeps_what_was_prepared(blobs: MemoryBlobs) -> None:
    def prepare(db: sqlite3.Connection) -> None:
        db.execute("PRAGMA foreign_keys = ON")
        db.row_factory = sqlite3.Row

    unknown = call("note", order="nobody", text="?")
    with start(shop(), blobs) as session:
        snapshot = session.snapshot()
        assert answers(session, unknown) == ['{"number":2}']
    for at in (Task(), snapshot):
        with start(shop(prepare=prepare), blobs, at) as session:
            assert "FOREIGN KEY" in answers(session, unknown)[0]


def collate_backwards(db: sqlite3.Connection) -> None:
    db.create_collation("backwards", lambda one, other: (one < other) - (one > other))


def test_a_collation_of_the_user_s_own_is_there_wherever_the_database_is_read(
    large_file: Path, tmp_path: Path, blobs: MemoryBlobs
) -> None:
    path = tmp_path / "shop.db"
    shutil.copyfile(large_file, path)
    with closing(sqlite3.connect(path)) as db:
        collate_backwards(db)
        db.execute("CREATE TABLE ranks (name TEXT COLLATE backwards PRIMARY KEY) WITHOUT ROWID")
        db.execute("INSERT INTO ranks VALUES ('a'), ('b')")
        db.commit()
    with start(shop(path, prepare=collate_backwards), blobs) as session:
        session.call(WRITES[:2])
        snapshot, digest = session.snapshot(), session.state_digest()
    with start(shop(path, prepare=collate_backwards), blobs, snapshot) as fork:
        assert fork.state_digest() == digest
        assert fork.state.connection.read("SELECT name FROM ranks ORDER BY name") == [("b",), ("a",)]


def test_a_check_looks_at_the_state_and_leaves_it(blobs: MemoryBlobs) -> None:
    with start(shop(), blobs) as session:
        assert session.check(Task(id="t")).result == "failed"
        session.call([call("cancel_order", order="o1")])
        before = session.state_digest()
        assert session.check(Task(id="t")).result == "passed"
        assert session.state_digest() == before
        assert answers(session, call("get_order", order="o2")) == ['{"item":"lamp","qty":2}']


def test_the_trail_is_left_out_where_worlds_are_compared(blobs: MemoryBlobs) -> None:
    with start(shop(), blobs) as session:
        before, settled = session.state_digest(), session.settled_digest()
        session.call([call("put_order", order="o2", item="lamp", qty=2)])
        assert session.state_digest() != before
        assert session.settled_digest() == settled


@settings(max_examples=25)
@given(st.lists(st.sampled_from([*WRITES, *WRITES, *UNPLACED]), max_size=8))
def test_a_large_state_restores_from_what_has_changed(
    large: SqliteWorld, large_file: Path, calls: list[ToolCall]
) -> None:
    blobs = MemoryBlobs()
    with start(large, blobs) as session:
        snapshots = [session.snapshot()]
        for one in calls:
            session.call([one])
            snapshots.append(session.snapshot())
        digest, listed = session.state_digest(), answers(session, call("list_all"))
    assert snapshots[-1].digest == digest
    for world in (large, shop(large_file)):
        with start(world, blobs, snapshots[-1]) as restored:
            assert answers(restored, call("list_all")) == listed
            assert restored.snapshot() == snapshots[-1] or snapshots[-1].base is None
            assert restored.state_digest() == digest


def test_only_what_a_changeset_can_hold_is_kept_as_one(large: SqliteWorld, blobs: MemoryBlobs) -> None:
    with start(large, blobs) as session:
        forms = [(session.snapshot().form, bool(session.snapshot().base))]
        for calls in (WRITES[:6], UNPLACED[:1], WRITES[:1], UNPLACED[3:], WRITES[1:2]):
            session.call(calls)
            taken = session.snapshot()
            forms.append((taken.form, taken.base is not None))
            assert len(blobs.get(taken.blob)) < (2_000 if taken.form == DELTA else 100_000)
    assert forms == [(DELTA, True), (DELTA, True), (PAGES, True), (PAGES, True), (PAGES, True), (PAGES, True)]


@pytest.mark.parametrize("call_", UNPLACED)
def test_rows_that_no_key_places_are_never_kept_as_a_changeset(
    large: SqliteWorld, blobs: MemoryBlobs, call_: ToolCall
) -> None:
    with start(large, blobs) as session:
        session.call([call_])
        assert session.snapshot().form == PAGES


def lengthen_notes(db: sqlite3.Connection) -> None:
    db.execute(
        "CREATE TEMP TRIGGER lengthen AFTER INSERT ON notes"
        " BEGIN UPDATE notes SET text = text || '!' WHERE number = new.number; END"
    )


def test_what_prepared_triggers_write_is_in_a_snapshot(large_file: Path, blobs: MemoryBlobs) -> None:
    world = shop(large_file, prepare=lengthen_notes, tools=[WRITE])
    assert is_restored(world, blobs, "INSERT INTO notes VALUES (7, 'o2', 'soon')") == PAGES


def test_figures_of_the_planner_are_never_kept_as_a_changeset(
    large_file: Path, tmp_path: Path, blobs: MemoryBlobs
) -> None:
    analyzed = tmp_path / "analyzed.db"
    shutil.copyfile(large_file, analyzed)
    with closing(sqlite3.connect(analyzed)) as db:
        db.execute("ANALYZE")
    assert is_restored(shop(analyzed, tools=[WRITE]), blobs, "DELETE FROM labels", "ANALYZE") == PAGES


def is_restored(world: SqliteWorld, blobs: MemoryBlobs, *writes: str) -> str:
    """The form of a snapshot after some SQL, once it is known to restore."""
    with start(world, blobs) as session:
        session.call([call("write", sql=sql) for sql in writes])
        snapshot = session.snapshot()
        with start(world, blobs, snapshot) as fork:
            assert fork.state_digest() == session.state_digest()
            assert answers(fork, call("list_all")) == answers(session, call("list_all"))
    return snapshot.form


def check_keys(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA foreign_keys = ON")


def test_a_changeset_restores_beside_foreign_keys_and_leaves_them_on(large_file: Path, blobs: MemoryBlobs) -> None:
    world = shop(large_file, prepare=check_keys, tools=[WRITE])
    assert is_restored(world, blobs, "UPDATE orders SET qty = 9 WHERE id = 'o1'") == DELTA
    with start(world, blobs) as session:
        session.call(WRITES[:1])
        with start(world, blobs, session.snapshot()) as fork:
            assert "FOREIGN KEY" in answers(fork, call("note", order="nobody", text="?"))[0]


def test_numbers_that_were_given_may_be_forgotten(large_file: Path, blobs: MemoryBlobs) -> None:
    world = shop(large_file, tools=[WRITE])
    assert is_restored(world, blobs, "UPDATE orders SET qty = 9", "DELETE FROM sqlite_sequence") == DELTA


def test_changes_are_counted_from_the_last_whole_image(large_file: Path, blobs: MemoryBlobs) -> None:
    world = shop(large_file, tools=[WRITE])
    with start(world, blobs) as session:
        session.call([call("write", sql="UPDATE ballast SET x = randomblob(1000)")])
        whole = session.snapshot()
        session.call(WRITES[:1])
        changed = session.snapshot()
    assert (whole.form, changed.form, changed.base) == (IMAGE, DELTA, whole.blob)
    with start(world, blobs, changed) as fork:
        assert fork.state_digest() == changed.digest


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"length": 2**60}, "the limit is"),
        ({"length": -1}, "the limit is"),
        ({"pages": [[-1, "AAAA"]]}, "lies outside"),
        ({"pages": [[2**40, "AAAA"]]}, "lies outside"),
        ({"pages": [["1", "AAAA"]]}, "cannot be read"),
    ],
)
def test_pages_that_make_no_image_are_refused(
    large: SqliteWorld, blobs: MemoryBlobs, changes: dict[str, object], why: str
) -> None:
    with start(large, blobs) as session:
        session.call(UNPLACED[:1])
        snapshot = session.snapshot()
    with pytest.raises(SnapshotError, match=why):
        start(large, blobs, delta_with(blobs, snapshot, **changes))


def test_without_apsw_a_snapshot_is_the_pages_that_changed(
    large: SqliteWorld, blobs: MemoryBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(large, blobs) as session:
        session.call(WRITES[:1])
        changed = session.snapshot()
        monkeypatch.setattr("environments.sqlite_delta.find_spec", lambda name: None)
        pages = session.snapshot()
        session.call(WRITES[1:2])
        after = session.state_digest()
    assert (changed.form, pages.form, changed.digest) == (DELTA, PAGES, pages.digest)
    with start(large, blobs, pages) as restored:
        restored.call(WRITES[1:2])
        assert restored.state_digest() == after
        assert restored.snapshot().base == pages.base
    with pytest.raises(SnapshotError, match="install the extra 'sqlite'"):
        start(large, blobs, changed)


def test_a_large_world_snapshots_and_forks_in_a_worker(tmp_path: Path, blobs: MemoryBlobs) -> None:
    module = tmp_path / "my_large_shop.py"
    write_large(tmp_path / "shop.db")
    module.write_text(
        "from pathlib import Path\nfrom tests.environments.orders import shop\n"
        "world = shop(Path(__file__).with_name('shop.db'))\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        with Worker("my_large_shop:world") as worker, worker.open(Task(), blobs) as session:
            session.call(WRITES[:3])
            snapshot = session.snapshot()
            session.call(WRITES[3:])
            with worker.open(snapshot, blobs) as fork:
                assert fork.state_digest() == snapshot.digest
                assert fork.snapshot() == snapshot
                fork.call(WRITES[3:])
                assert fork.state_digest() == session.state_digest()
    assert snapshot.base is not None


@pytest.fixture
def taken(large: SqliteWorld, blobs: MemoryBlobs) -> Iterator[Snapshot]:
    with start(large, blobs) as session:
        session.call(WRITES[:6])
        yield session.snapshot()


def delta_with(blobs: MemoryBlobs, snapshot: Snapshot, **changes: object) -> Snapshot:
    fields = msgspec.json.decode(blobs.get(snapshot.blob)) | changes
    return replace(snapshot, blob=blobs.put(msgspec.json.encode(fields)))


@pytest.mark.parametrize(
    "tamper",
    [
        lambda blobs, taken: replace(taken, base=blobs.put(b"nothing")),
        lambda blobs, taken: replace(taken, base="0" * 64),
        lambda blobs, taken: replace(taken, base=None),
        lambda blobs, taken: replace(taken, blob=taken.base),
        lambda blobs, taken: replace(taken, form=IMAGE),
        lambda blobs, taken: replace(taken, digest=taken.digest[:-2] + "00"),
        lambda blobs, taken: delta_with(blobs, taken, changeset=b"garbage"),
        lambda blobs, taken: delta_with(blobs, taken, changeset=b""),
        lambda blobs, taken: delta_with(blobs, taken, user_version=5),
        lambda blobs, taken: delta_with(blobs, taken, user_version="1; DROP TABLE orders"),
        lambda blobs, taken: delta_with(blobs, taken, sequence=[["notes", 99]]),
        lambda blobs, taken: delta_with(blobs, taken, sequence=[["notes", 2**80]]),
    ],
)
def test_a_delta_that_does_not_lead_to_its_digest_is_refused(
    large: SqliteWorld, blobs: MemoryBlobs, taken: Snapshot, tamper: Callable[[MemoryBlobs, Snapshot], Snapshot]
) -> None:
    with pytest.raises(SnapshotError):
        start(large, blobs, tamper(blobs, taken))
    start(large, blobs, taken).close()


def test_no_damage_to_a_changeset_restores_to_another_state(
    large: SqliteWorld, blobs: MemoryBlobs, taken: Snapshot
) -> None:
    whole = msgspec.json.decode(blobs.get(taken.blob), type=Delta).changeset
    refused = 0
    for place in range(len(whole)):
        for torn in (whole[:place], whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]):
            try:
                with start(large, blobs, delta_with(blobs, taken, changeset=torn)) as restored:
                    assert restored.state_digest() == taken.digest
            except SnapshotError:
                refused += 1
    assert refused > len(whole)


def foreign(script: str) -> bytes:
    with sqlite3.connect(":memory:") as db:
        db.executescript(SCRIPT.read_text() + script)
        image = db.serialize()
    db.close()
    return image


@pytest.mark.parametrize(
    "script",
    [
        "CREATE TRIGGER more AFTER INSERT ON orders BEGIN DELETE FROM notes; END",
        "CREATE VIEW everything AS SELECT * FROM orders",
        "DROP TABLE audit; CREATE VIEW audit AS SELECT 1 AS what",
        "CREATE VIRTUAL TABLE search USING fts5 (text)",
        "CREATE VIRTUAL\n  TABLE search USING fts5 (text)",
        "CREATE VIRTUAL TABLE search USING fts5 (text); PRAGMA writable_schema = ON;"
        "UPDATE sqlite_schema SET sql = 'CREATE/**/VIRTUAL TABLE search USING fts5 (text)' WHERE name = 'search'",
    ],
)
def test_an_image_with_what_runs_by_itself_is_refused(blobs: MemoryBlobs, script: str) -> None:
    with start(shop(), blobs) as session:
        snapshot = session.snapshot()
    with pytest.raises(SnapshotError, match="another schema"):
        start(shop(), blobs, replace(snapshot, blob=blobs.put(foreign(script))))


def test_an_index_that_hides_rows_is_damage(blobs: MemoryBlobs) -> None:
    index = "CREATE INDEX by_colour ON labels (colour)"
    with start(shop(tools=[WRITE]), blobs) as session:
        session.call([call("write", sql=index)])
        snapshot = session.snapshot()
    hiding = f"{index} WHERE colour = 'no'; PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = '{index}'"
    image = foreign(f"{hiding} WHERE name = 'by_colour'")
    with pytest.raises(SnapshotError, match="damaged"):
        start(shop(), blobs, replace(snapshot, blob=blobs.put(image)))
    start(shop(), blobs, snapshot).close()


@pytest.mark.parametrize(
    "bait", ["CREATE INDEX told ON labels (tell(name))", "CREATE TABLE told (x DEFAULT 'x', y AS (tell(x)))"]
)
def test_the_schema_of_an_image_runs_no_function_of_the_user_s_own(blobs: MemoryBlobs, bait: str) -> None:
    ran: list[str] = []

    def tell(text: str) -> str:
        ran.append(text)
        return text

    def prepare(db: sqlite3.Connection) -> None:
        db.create_function("tell", 1, tell, deterministic=True)

    with closing(sqlite3.connect(":memory:")) as db:
        prepare(db)
        db.executescript(f"{SCRIPT.read_text()} {bait}")
        image = db.serialize()
    with closing(SqliteState(connect(image))) as state, start(shop(), blobs) as session:
        snapshot = replace(session.snapshot(), blob=blobs.put(image), digest=state.digest())
    ran.clear()
    refused = pytest.raises((SnapshotError, sqlite3.OperationalError), match=r"tell\(\)")
    with refused, start(shop(prepare=prepare, tools=[WRITE]), blobs, snapshot) as fork:
        fork.call([call("write", sql="INSERT INTO told (x) VALUES ('a')")])
        fork.call([call("write", sql="DELETE FROM told WHERE y = 'a'")])
    assert ran == []


def test_a_world_with_its_own_trigger_and_view_restores(tmp_path: Path, blobs: MemoryBlobs) -> None:
    script = tmp_path / "own.sql"
    script.write_text(
        SCRIPT.read_text()
        + "CREATE TRIGGER t AFTER DELETE ON orders BEGIN INSERT INTO audit (what) VALUES (old.id); END;"
        + "CREATE VIEW v AS SELECT * FROM orders;"
    )
    with start(shop(script), blobs) as session:
        session.call([*WRITES[:3], *UNPLACED])
        snapshot = session.snapshot()
        session.call(WRITES[3:4])
        expected = session.state_digest()
    with start(shop(script), blobs, snapshot) as fork:
        fork.call(WRITES[3:4])
        assert fork.state_digest() == expected != snapshot.digest
    with pytest.raises(SnapshotError, match="another schema"):
        start(shop(), blobs, snapshot)

"""The digest that follows writes is the one that reading everything again gives."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environments.protocol import SnapshotError
from environments.sqlite_image import connect
from environments.sqlite_state import SqliteState

SCHEMA = """
    CREATE TABLE plain (a, b REAL, c NUMERIC);
    CREATE TABLE keyed (k TEXT COLLATE NOCASE PRIMARY KEY, v INTEGER UNIQUE, d AS (v * 2), s TEXT AS (k || '!') STORED);
    CREATE TABLE "od""d na'me" (x, "y z", PRIMARY KEY (x, "y z")) WITHOUT ROWID;
    CREATE TABLE numbered (id INTEGER PRIMARY KEY AUTOINCREMENT, about TEXT REFERENCES keyed (k) ON DELETE CASCADE);
"""
VALUES = st.one_of(
    st.none(), st.integers(-3, 3), st.floats(allow_nan=False, width=16), st.sampled_from(["a", "A", "1", "b", b"a"])
)
WRITES = st.sampled_from(
    [
        "INSERT INTO plain VALUES (?1, ?2, ?1)",
        "UPDATE plain SET a = ?1 WHERE b > ?2",
        "DELETE FROM plain",
        "INSERT OR REPLACE INTO keyed VALUES (?1, ?2)",
        "INSERT INTO keyed VALUES (?1, ?2) ON CONFLICT DO UPDATE SET v = v + 1",
        "INSERT OR IGNORE INTO keyed VALUES (?1, ?2), (?2, ?1)",
        "INSERT INTO keyed VALUES ('a', 1), ('b', 1)",
        "UPDATE OR REPLACE keyed SET k = ?1",
        "DELETE FROM keyed WHERE k = ?1 OR v = ?2",
        'REPLACE INTO "od""d na\'me" VALUES (?1, ?2)',
        'UPDATE OR IGNORE "od""d na\'me" SET x = ?1',
        "INSERT INTO numbered (about) SELECT k FROM keyed",
        "DELETE FROM numbered WHERE id > ?1",
        "DELETE FROM sqlite_sequence",
        "CREATE TABLE more (x)",
        "DROP TABLE more",
        "ALTER TABLE plain ADD COLUMN extra DEFAULT 7",
        "CREATE INDEX by_a ON plain (a)",
        "ANALYZE",
        "PRAGMA user_version = 3",
        "PRAGMA foreign_keys = ON",
        "PRAGMA recursive_triggers = OFF",
        "BEGIN",
        "SAVEPOINT s",
        "ROLLBACK TO s",
        "ROLLBACK",
        "COMMIT",
        "VACUUM",
    ]
)


@pytest.fixture
def state() -> Iterator[SqliteState]:
    with closing(opened(SCHEMA)) as found:
        yield found


def opened(script: str) -> SqliteState:
    connection = connect()
    connection.executescript(script)
    return SqliteState(connection)


def read_again(state: SqliteState) -> str:
    with closing(SqliteState(connect(state.image()))) as fresh:
        return fresh.digest()


def attempt(state: SqliteState, sql: str, *values: object) -> None:
    holes = {number for number in (1, 2) if f"?{number}" in sql}
    try:
        state.connection.execute(sql, values[: max(holes, default=0)])
    except sqlite3.Error:
        return


@settings(max_examples=150)
@given(st.lists(st.tuples(WRITES, VALUES, VALUES), max_size=25), st.integers(1, 5))
def test_following_writes_and_reading_again_agree(writes: list[tuple[str, object, object]], every: int) -> None:
    with closing(opened(SCHEMA)) as state:
        for number, (sql, one, other) in enumerate(writes):
            attempt(state, sql, one, other)
            if number % every == 0:
                state.connection.commit()
                assert state.digest() == read_again(state)
        state.connection.commit()
        assert state.digest() == read_again(state)


@pytest.mark.parametrize(
    "own",
    [
        "CREATE TRIGGER t AFTER INSERT ON plain BEGIN INSERT INTO numbered (about) VALUES (NULL); END",
        "CREATE TEMP TRIGGER on_insert AFTER INSERT ON plain BEGIN UPDATE plain SET a = a + 1; END",
        "CREATE VIRTUAL TABLE search USING fts5 (text)",
        "CREATE TABLE wide (" + ", ".join(f"c{number}" for number in range(200)) + ")",
    ],
)
def test_where_writes_cannot_be_followed_everything_is_read(own: str) -> None:
    with closing(opened(f"{SCHEMA}; {own};")) as state:
        seen = {state.digest()}
        for sql in ("INSERT INTO plain VALUES (1, 2, 3)", "REPLACE INTO keyed VALUES ('a', 1)", "DELETE FROM plain"):
            state.connection.execute(sql)
            state.connection.commit()
            assert state.digest() == read_again(state)
            seen.add(state.digest())
        assert len(seen) == 4
        assert state.rows.changes is None


def test_a_blob_that_is_written_in_place_is_read(state: SqliteState) -> None:
    state.connection.execute("INSERT INTO numbered VALUES (1, zeroblob(2))")
    state.connection.commit()
    before = state.digest()
    with state.connection.blobopen("numbered", "about", 1, readonly=True) as blob:
        assert blob.read() == b"\x00\x00"
    state.digest()
    assert state.rows.changes is not None
    with state.connection.blobopen("numbered", "about", 1) as blob:
        blob.write(b"ab")
    state.connection.commit()
    assert before != state.digest() == read_again(state)
    assert state.rows.changes is None


def test_triggers_of_the_user_s_own_stay(state: SqliteState) -> None:
    state.connection.execute("CREATE TEMP TRIGGER on_insert AFTER INSERT ON plain BEGIN SELECT 1; END")
    state.connection.execute("CREATE TABLE more (x)")
    state.digest()
    assert state.connection.read("SELECT name FROM temp.sqlite_schema WHERE name LIKE 'on%'") == [("on_insert",)]


def test_a_stored_column_counts_whatever_its_expression_says() -> None:
    schema = "CREATE TABLE doubled (a INTEGER, b AS (a * 2) STORED)"
    with closing(opened(f"{schema}; INSERT INTO doubled VALUES (1)")) as honest, closing(connect()) as other:
        other.executescript("CREATE TABLE doubled (a INTEGER, b); INSERT INTO doubled VALUES (1, 99)")
        other.execute("PRAGMA writable_schema = ON")
        other.execute("UPDATE sqlite_schema SET sql = ?", (schema,))
        other.commit()
        with closing(SqliteState(connect(other.serialize()))) as forged:
            assert forged.connection.read("SELECT * FROM doubled") == [(1, 99)]
            assert forged.digest() != honest.digest()


def test_replaced_rows_are_seen_whatever_a_tool_sets(state: SqliteState) -> None:
    state.connection.execute("INSERT INTO keyed VALUES ('a', 1)")
    state.connection.execute("PRAGMA recursive_triggers = OFF")
    state.connection.commit()
    state.digest()
    state.connection.execute("REPLACE INTO keyed VALUES ('b', 1)")
    state.connection.commit()
    assert state.digest() == read_again(state)


def test_figures_of_the_planner_count(state: SqliteState) -> None:
    state.connection.execute("CREATE INDEX by_a ON plain (a)")
    seen = set()
    for rows in (1, 2, 3):
        state.connection.executemany("INSERT INTO plain VALUES (?, 0, 0)", [(number,) for number in range(rows)])
        state.connection.execute("ANALYZE")
        state.connection.execute("DELETE FROM plain")
        state.connection.commit()
        assert state.digest() == read_again(state)
        seen.add(state.digest())
    assert len(seen) == 3


def test_the_full_text_index_counts_by_what_can_be_found_in_it() -> None:
    digests = []
    for script in (
        "INSERT INTO s VALUES ('a'), ('b')",
        "INSERT INTO s VALUES ('b'), ('x'), ('a'); DELETE FROM s WHERE t = 'x'",
    ):
        with closing(opened(f"CREATE VIRTUAL TABLE s USING fts5 (t); {script};")) as state:
            digests.append(state.digest())
    assert digests[0] == digests[1]


def test_factories_that_a_tool_sets_change_no_digest(state: SqliteState) -> None:
    state.connection.execute("INSERT INTO plain VALUES ('x', 1, 2)")
    state.connection.commit()
    before = state.digest()
    state.connection.row_factory = sqlite3.Row
    state.connection.text_factory = bytes
    state.connection.execute("INSERT INTO plain VALUES ('y', 1, 2)")
    state.connection.execute("DELETE FROM plain WHERE a = 'y'")
    state.connection.commit()
    assert state.digest() == before
    assert state.connection.text_factory is bytes


def test_what_is_taken_back_leaves_nothing(state: SqliteState) -> None:
    state.connection.execute("INSERT INTO keyed VALUES ('a', 1)")
    before = state.digest()
    with state.taken_back():
        with state.connection as db:
            db.execute("INSERT INTO keyed VALUES ('b', 2)")
        inside = state.digest()
        state.connection.execute("DELETE FROM keyed")
        state.connection.rollback()
        assert state.digest() == inside != before
        state.connection.execute("CREATE TABLE more (x)")
        assert state.digest() != inside
    assert state.digest() == before == read_again(state)
    state.connection.execute("INSERT INTO keyed VALUES ('b', 2)")
    state.connection.commit()
    assert state.digest() == inside


def test_rows_that_were_read_inside_are_taken_back(state: SqliteState) -> None:
    before = state.digest()
    with state.taken_back():
        state.connection.execute("INSERT INTO numbered VALUES (1, 'x')")
        assert state.digest() != before
    assert state.digest() == before == read_again(state)
    assert state.rows.changes == {}


def test_an_exception_takes_back_too(state: SqliteState) -> None:
    before = state.digest()
    with pytest.raises(sqlite3.IntegrityError), state.taken_back():
        state.connection.executemany("INSERT INTO keyed VALUES (?, 1)", [("a",), ("b",)])
    assert state.digest() == before == read_again(state)


def test_a_commit_by_text_cannot_be_taken_back(state: SqliteState) -> None:
    block = state.taken_back()
    block.__enter__()
    state.connection.execute("INSERT INTO keyed VALUES ('a', 1)")
    state.connection.execute("COMMIT")
    with pytest.raises(SnapshotError, match="cannot be taken back"):
        block.__exit__(None, None, None)

import sqlite3

import pytest

from environments.protocol import SnapshotError
from environments.sqlite_state import FixedState


class Notes(FixedState):
    schema = """
        CREATE TABLE notes (id INTEGER PRIMARY KEY AUTOINCREMENT, value);
        CREATE TABLE trail (id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT);
    """
    trail = frozenset({"trail"})


def notes(*values: object) -> Notes:
    state = Notes()
    with state.connection as at:
        at.executemany("INSERT INTO notes (value) VALUES (?)", [(value,) for value in values])
    return state


def changed(state: Notes, sql: str) -> Notes:
    state.connection.executescript(sql)
    return state


def test_the_digest_does_not_see_how_rows_lie() -> None:
    plain = notes("a", "b")
    moved = changed(
        notes("a", "b"),
        """
        DELETE FROM notes; INSERT INTO notes VALUES (2, 'b'), (1, 'a');
        CREATE TABLE gone (x); DROP TABLE gone;
        """,
    )
    assert moved.image() != plain.image()
    assert moved.digest() == plain.digest()
    assert plain.digest().startswith("sqlite-rows/2:")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, "1"),
        ("YQ==", b"a"),
        (None, float("inf")),
        (None, ""),
        (b"a", "a"),
        (b"", None),
        ("é", "e\u0301"),
        (float("inf"), float("-inf")),
        ('["blob","61"]', b"a"),
    ],
)
def test_different_values_have_different_digests(one: object, other: object) -> None:
    assert notes(one).digest() != notes(other).digest()
    assert notes(one).digest() == notes(one).digest()


@pytest.mark.parametrize(
    "change",
    [
        "PRAGMA user_version = 3",
        "PRAGMA application_id = 4",
        "CREATE TABLE more (x)",
        "CREATE INDEX by_value ON notes (value)",
        "INSERT INTO notes VALUES (9, 'c'); DELETE FROM notes WHERE id = 9",
    ],
)
def test_whatever_a_query_can_see_moves_the_digest(change: str) -> None:
    assert changed(notes("a"), change).digest() != notes("a").digest()


def test_a_trail_is_left_out_of_the_settled_digest_only() -> None:
    trailing = changed(notes("a"), "INSERT INTO trail (what) VALUES ('x')")
    assert trailing.digest() != notes("a").digest()
    assert trailing.settled() == notes("a").settled()
    assert notes("b").settled() != notes("a").settled()


def test_an_image_restores() -> None:
    state = notes("a", 1, 1.5, b"\x00", None, "\x00z")
    assert Notes.restore(state.image()).digest() == state.digest()


def test_an_image_in_wal_mode_restores() -> None:
    image = bytearray(notes("a").image())
    image[18:20] = b"\x02\x02"
    bare = sqlite3.connect(":memory:")
    bare.deserialize(bytes(image))
    with pytest.raises(sqlite3.OperationalError):
        bare.execute("SELECT * FROM notes")
    bare.close()
    assert Notes.restore(bytes(image)).digest() == notes("a").digest()


@pytest.mark.parametrize(
    "hostile",
    [
        "CREATE TRIGGER more AFTER INSERT ON notes BEGIN DELETE FROM trail; END",
        "CREATE VIEW everything AS SELECT * FROM notes",
        "DROP TABLE notes; CREATE VIEW notes AS SELECT 1 AS id, 'a' AS value",
        "CREATE VIRTUAL TABLE search USING fts5 (value)",
        "CREATE TABLE more (x)",
        "DROP TABLE trail",
    ],
)
def test_an_image_with_a_foreign_schema_is_refused(hostile: str) -> None:
    with pytest.raises(SnapshotError, match="another schema"):
        Notes.restore(changed(notes("a"), hostile).image())


def test_a_damaged_image_is_refused_or_restores_to_what_its_digest_says() -> None:
    state = notes(*(f"value {number}" for number in range(200)))
    image = state.image()
    refused, changed_digests = 0, 0
    for place in range(100, len(image), 97):
        torn = bytearray(image)
        torn[place] ^= 0x01
        try:
            restored = Notes.restore(bytes(torn))
            seen = restored.digest()
        except SnapshotError:
            refused += 1
            continue
        changed_digests += seen != state.digest()
        assert Notes.restore(restored.image()).digest() == seen
    assert refused > 0
    assert changed_digests > 0


@pytest.mark.parametrize("length", [0, 16, 100, 1024, 5000])
def test_a_cut_image_is_refused(length: int) -> None:
    with pytest.raises(SnapshotError):
        Notes.restore(notes(*range(500)).image()[:length])


def test_text_that_is_not_utf8_is_refused() -> None:
    bare = sqlite3.connect(":memory:")
    bare.executescript(Notes.schema + "INSERT INTO notes (value) VALUES (CAST(X'ff' AS TEXT))")
    with pytest.raises(SnapshotError, match="cannot be read"):
        Notes.restore(bare.serialize())
    bare.close()


def test_no_extension_can_be_loaded() -> None:
    with pytest.raises(sqlite3.OperationalError, match="not authorized"):
        notes().connection.execute("SELECT load_extension('anything')")

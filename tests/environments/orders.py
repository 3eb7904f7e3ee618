"""A shop's own database as a world, small and with a large table beside it."""

import sqlite3
from pathlib import Path
from typing import Any

from environments.sqlite_world import WHOLE_BELOW, SqliteWorld

SCRIPT = Path(__file__).with_name("orders.sql")


def get_order(db: sqlite3.Connection, order: str) -> dict[str, Any]:
    """One order"""
    row = db.execute("SELECT item, qty FROM orders WHERE id = ?", (order,)).fetchone()
    return {"item": row[0], "qty": row[1]} if row else {"error": "unknown_order"}


def list_all(db: sqlite3.Connection) -> dict[str, Any]:
    """All that there is, in the order in which it lies"""
    tables = ("orders", "notes", "visits", "labels")
    return {table: [list(row) for row in db.execute(f"SELECT * FROM {table}")] for table in tables}


def put_order(db: sqlite3.Connection, order: str, item: str, qty: int = 1) -> dict[str, Any]:
    """Make or replace an order"""
    with db:
        db.execute("INSERT OR REPLACE INTO orders VALUES (?, ?, ?)", (order, item, qty))
    db.execute("INSERT INTO audit (what) VALUES ('put')")
    return {"put": order}


def cancel_order(db: sqlite3.Connection, order: str) -> dict[str, Any]:
    """Cancel an order"""
    changed = db.execute("DELETE FROM orders WHERE id = ?", (order,)).rowcount
    return {"cancelled": order} if changed else {"error": "unknown_order"}


def rename_order(db: sqlite3.Connection, order: str, name: str) -> dict[str, Any]:
    """Give an order another id"""
    return {"renamed": db.execute("UPDATE OR REPLACE orders SET id = ? WHERE id = ?", (name, order)).rowcount}


def swap_orders(db: sqlite3.Connection, one: str, other: str) -> dict[str, Any]:
    """Let two orders change their ids"""
    for name, order in (("?", one), (one, other), (other, "?")):
        db.execute("UPDATE orders SET id = ? WHERE id = ?", (name, order))
    return {"swapped": [one, other]}


def note(db: sqlite3.Connection, order: str, text: str) -> dict[str, Any]:
    """Write a note"""
    return {"number": db.execute("INSERT INTO notes (about, text) VALUES (?, ?)", (order, text)).lastrowid}


def visit(db: sqlite3.Connection, page: str) -> dict[str, Any]:
    """Count a visit, in a table without a key"""
    db.execute("INSERT INTO visits VALUES (?)", (page,))
    return {"visits": db.execute("SELECT count(*) FROM visits").fetchone()[0]}


def put_label(db: sqlite3.Connection, name: str, colour: str) -> dict[str, Any]:
    """Make or replace a label; the new one lies behind all others"""
    db.execute("INSERT OR REPLACE INTO labels VALUES (?, ?)", (name, colour))
    return {"label": name}


def add_table(db: sqlite3.Connection, name: str) -> dict[str, Any]:
    """Make a table"""
    db.execute(f'CREATE TABLE IF NOT EXISTS "{name}" (id INTEGER PRIMARY KEY, x)')
    return {"table": name}


def tidy(db: sqlite3.Connection) -> dict[str, Any]:
    """Rewrite the file"""
    db.commit()
    db.execute("VACUUM")
    return {}


def tally(db: sqlite3.Connection) -> dict[str, Any]:
    """Count what there is, and a number of the header up"""
    version = db.execute("PRAGMA user_version").fetchone()[0] + 1
    db.execute(f"PRAGMA user_version = {version}")
    return {"tallies": version}


def stumble(db: sqlite3.Connection) -> dict[str, Any]:
    """Write and then fail"""
    db.execute("DELETE FROM orders")
    raise RuntimeError("fell")


def overdraw(db: sqlite3.Connection, order: str) -> dict[str, Any]:
    """Break a constraint after a write"""
    db.execute("DELETE FROM notes")
    db.execute("UPDATE orders SET qty = 0 WHERE id = ?", (order,))
    return {}


def is_cancelled(db: sqlite3.Connection, task: object, messages: object) -> bool:
    """Whether o1 is gone; it looks in a rough manner."""
    done = not db.execute("SELECT 1 FROM orders WHERE id = 'o1'").fetchall()
    with db:
        db.execute("DELETE FROM orders")
    return done


def shop(start: Path = SCRIPT, **more: Any) -> SqliteWorld:
    """The world of a database of orders."""
    return SqliteWorld(
        "shop",
        start,
        reads=[get_order, list_all],
        writes=[
            *(put_order, cancel_order, rename_order, swap_orders, note),
            *(visit, put_label, add_table, tidy, tally, stumble, overdraw),
        ],
        errors=(sqlite3.IntegrityError,),
        trail=["audit"],
        check=is_cancelled,
        **more,
    )


def write_large(path: Path) -> Path:
    """A database file whose snapshots are kept as what has changed."""
    with sqlite3.connect(path) as db:
        db.executescript(SCRIPT.read_text())
        db.execute("CREATE TABLE ballast (id INTEGER PRIMARY KEY, x)")
        db.executemany("INSERT INTO ballast (x) VALUES (?)", ((bytes([n % 256]) * 1000,) for n in range(1100)))
    db.close()
    assert path.stat().st_size > WHOLE_BELOW
    return path


world = shop()

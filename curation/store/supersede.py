"""How a later statement takes the place of an earlier one by the same author about the same thing."""

from collections import defaultdict
from collections.abc import Iterable, Set
from typing import NamedTuple

import msgspec

from curation.store.store import Store
from curation.store.tables import STATEMENTS, check_name, slot_digest, statement_table
from schemas.canonical import encode
from schemas.statements import Statement, Verification


class Elsewhere(NamedTuple):
    """The records that are told of elsewhere too: in parts of the same logs that are stored already, in any parts of
    them, and in other logs.
    """

    before: Set[str] = frozenset()
    anywhere: Set[str] = frozenset()
    other_logs: Set[str] = frozenset()


NOWHERE = Elsewhere()

_OF_LOGS = ("log", "rule")


def superseding(store: Store, statements: Iterable[Statement], elsewhere: Elsewhere = NOWHERE) -> list[Statement]:
    """The statements that have to be written so that these hold: those of a slot that already holds are left out.

    A slot (what is said, and by whom) is replaced as a whole: where its standing statements are not exactly these,
    every new one names every standing one as superseded, and what somebody else had withdrawn that slot's earlier ones
    with. What an environment could not tell (a call not run, an answer that cannot be compared) never takes the place
    of what one did tell.

    Of a record that is told of ``elsewhere`` these are not all that its logs say: they stand beside what was said of it
    before, and where they say a part of what stands, that stands. What one log says takes the place of what another
    log says in no case, but for what an earlier version of its reader said.
    """
    statements = list(statements)
    if all(store.is_empty(table) for table in {statement_table(statement) for statement in statements}):
        return statements
    wanted: dict[tuple[str, str], dict[bytes, Statement]] = defaultdict(dict)
    for statement in statements:
        wanted[statement_table(statement), slot_digest(statement)][_content(statement)] = statement
    standing, withdrawals = _standing(store, wanted), _withdrawals(store, wanted)
    news: list[Statement] = []
    for place, contents in wanted.items():
        held = standing.get(place, {})
        one = next(iter(contents.values()))
        trajectory = one.trajectory
        if trajectory in elsewhere.before or (trajectory in elsewhere.other_logs and one.author.kind in _OF_LOGS):
            outdated = sorted(held[content] for content in held if _version(place, content) != one.author.version)
            missing = (statement for content, statement in contents.items() if content not in held)
            news.extend(msgspec.structs.replace(statement, supersedes=tuple(outdated)) for statement in missing)
        elif trajectory in elsewhere.anywhere and contents.keys() <= held.keys():
            continue
        elif held.keys() != contents.keys() and not _is_blank(contents.values(), held):
            replaced = tuple(sorted({*held.values(), *withdrawals.get(place, ())}))
            news.extend(msgspec.structs.replace(statement, supersedes=replaced) for statement in contents.values())
    return news


def _version(place: tuple[str, str], content: bytes) -> str:
    return msgspec.json.decode(content, type=STATEMENTS[place[0]]).author.version


def _is_blank(news: Iterable[Statement], held: Iterable[bytes]) -> bool:
    """Whether these say nothing, by an environment, where something is known."""
    return all(_is_untold(item) for item in news) and any(
        msgspec.json.decode(content, type=Verification).result != "unknown" for content in held
    )


def _is_untold(item: Statement) -> bool:
    return isinstance(item, Verification) and item.author.kind == "environment" and item.result == "unknown"


def _standing(store: Store, places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], dict[bytes, str]]:
    found: dict[tuple[str, str], dict[bytes, str]] = defaultdict(dict)
    for table, wanted in _by_table(places).items():
        rows = store.sql(
            f"SELECT slot, id, record FROM {table} WHERE slot IN (SELECT unnest(?)) "
            f"AND id NOT IN (SELECT unnest(supersedes) FROM {table})",
            [wanted],
        )
        for row in rows.to_pylist():
            check_name("statement", row["id"], row["record"].encode())
            content = _content(msgspec.json.decode(row["record"], type=STATEMENTS[table]))
            found[table, row["slot"]][content] = row["id"]
    return found


def _withdrawals(store: Store, places: Iterable[tuple[str, str]]) -> dict[tuple[str, str], list[str]]:
    """The standing statements of other slots that supersede one of these: said again as it was, that would not hold."""
    found: dict[tuple[str, str], list[str]] = {}
    for table, slots in _by_table(places).items():
        rows = store.sql(
            f"""SELECT withdrawn.slot, list(DISTINCT later.id) AS ids FROM {table} withdrawn
                JOIN (SELECT id, slot, unnest(supersedes) AS earlier FROM {table}) later ON later.earlier = withdrawn.id
                WHERE withdrawn.slot IN (SELECT unnest(?)) AND later.slot <> withdrawn.slot
                  AND later.id NOT IN (SELECT unnest(supersedes) FROM {table}) GROUP BY withdrawn.slot""",
            [slots],
        )
        found.update(((table, row["slot"]), row["ids"]) for row in rows.to_pylist())
    return found


def _by_table(places: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    slots: dict[str, list[str]] = defaultdict(list)
    for table, slot in places:
        slots[table].append(slot)
    return slots


def _content(statement: Statement) -> bytes:
    return encode(msgspec.structs.replace(statement, supersedes=()))

"""A side file over attempts that are in the store already: statements beside records, which stay as they are.

What a line does not mention stays as it was; what it says takes the place of what a side file said before.
"""

from collections import defaultdict
from collections.abc import Sequence, Set
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from curation.errors import UsageError
from curation.gate import statement_of
from curation.importers.attempt_keys import facts_of
from curation.importers.side_file import read_side_lines
from curation.store import Store
from curation.store.supersede import superseding
from curation.store.tables import STATEMENTS, check_name
from schemas.canonical import UnreadableError, encode, parse
from schemas.side_file import IDENTITY, SideLine
from schemas.statements import Statement

OWN_ID = "/id"
_NAMED = 20
_ROWS = 500


class UnmatchedLine(msgspec.Struct):
    """A line that no attempt is known for, as it names it."""

    line: int
    about: str


class AnnotateResult(msgspec.Struct):
    """What a side file said; ``unmatched_lines`` names the first of ``unmatched``.

    ``statements`` is what was not said before, ``written`` how many rows that became: none in a dry run.
    """

    lines: int
    matched: int
    unmatched: int
    unmatched_lines: list[UnmatchedLine]
    attempts_without_line: int
    statements: int
    written: int


class _Attempt(NamedTuple):
    """A live attempt: its record, and the values of ``IDENTITY`` that it was imported with."""

    record: str
    attempt: str
    identity: dict[str, Any]


def annotate(store: Store, path: Path, pointer: str = OWN_ID, *, dry_run: bool = False) -> AnnotateResult:
    """Say of the store's attempts what a side file says, and commit it, but for a dry run.

    A line's ``key`` is the value at ``pointer`` (RFC 6901) of a raw log record; ``file`` and ``line`` are where one was
    read. Keys of ``IDENTITY`` in a line tell apart what these leave open. Raises UsageError, with file and line, for a
    line that is about several attempts, that says the same attempt is another one, or that is about the attempt of
    another line; nothing is written then.
    """
    lines = dict(read_side_lines(path))
    index = _Index(store, pointer, {str(line.key) for line in lines.values() if line.key is not None})
    about: dict[str, int] = {}
    unmatched: list[UnmatchedLine] = []
    statements: list[Statement] = []
    with store.batch() as batch:
        for number, line in lines.items():
            try:
                attempt = index.find(line)
            except UsageError as error:
                raise UsageError(f"{path}:{number}: {error}") from None
            if attempt is None:
                unmatched.append(UnmatchedLine(number, _name_of(line)))
                continue
            if (first := about.setdefault(attempt.record, number)) != number:
                raise UsageError(f"{path}:{number}: line {first} is about the same attempt, {attempt.attempt}")
            facts, objects = facts_of(line, "side_file")
            statements.extend(statement_of(attempt.record, fact) for fact in facts)
            for item in objects:
                batch.add_object(item)
        news = superseding(store, statements)
        for statement in news:
            batch.add_statement(statement)
        written = {} if dry_run else store.write(batch)
    return AnnotateResult(
        lines=len(lines),
        matched=len(about),
        unmatched=len(unmatched),
        unmatched_lines=unmatched[:_NAMED],
        attempts_without_line=len(index.attempts) - len(about),
        statements=len(news),
        written=sum(written.get(table, 0) for table in STATEMENTS),
    )


class _Index:
    """The live attempts of a store, by where they were read and by the value at a pointer of their raw records."""

    def __init__(self, store: Store, pointer: str, keys: Set[str]) -> None:
        rows = store.sql(
            f"""SELECT a.attempt_id, t.id, {", ".join(f"t.{name}" for name in IDENTITY)}
                FROM attempts a JOIN trajectories t ON t.id = a.trajectory_id"""
        ).to_pylist()
        self.attempts = {
            row["id"]: _Attempt(row["id"], row["attempt_id"], {name: row[name] for name in IDENTITY}) for row in rows
        }
        self._places: dict[tuple[str, int], set[tuple[PurePath, str]]] = defaultdict(set)
        sightings = store.sql("SELECT name, place, trajectory FROM sightings WHERE trajectory IS NOT NULL")
        for name, place, record in zip(*(column.to_pylist() for column in sightings.columns), strict=True):
            path = PurePath(name)
            self._places[path.name, place].add((path, record))
        self._keys = _records_by_key(store, pointer, keys) if keys else {}

    def find(self, line: SideLine) -> _Attempt | None:
        """The attempt a line is about, or None. Raises UsageError where there are several, or its identity differs."""
        records = self._named(line)
        found = [self.attempts[record] for record in sorted(records) if record in self.attempts]
        agreeing = [attempt for attempt in found if not _differences(line, attempt)]
        match agreeing:
            case []:
                for attempt in found:
                    raise UsageError(
                        f"attempt {attempt.attempt} has {'; '.join(_differences(line, attempt))}; which attempt a log "
                        "line is stands in its record: import the log again with --revise and this file as --manifest"
                    )
                return None
            case [attempt]:
                return attempt
            case _:
                names = ", ".join(attempt.attempt for attempt in agreeing[:5])
                raise UsageError(
                    f"{_name_of(line)} is {len(agreeing)} attempts ({names}): tell them apart with run, attempt or "
                    "task, or name the place with file and line"
                )

    def _named(self, line: SideLine) -> Set[str]:
        if line.key is not None and line.file is None and line.line is None:
            return self._keys.get(str(line.key), frozenset())
        if line.key is None and line.file is not None and line.line is not None:
            wanted = PurePath(line.file)
            places = self._places.get((wanted.name, line.line), set())
            return {record for path, record in places if path.parts[-len(wanted.parts) :] == wanted.parts}
        raise UsageError("a line is about one record: give its key, or its file and line")


def _records_by_key(store: Store, pointer: str, keys: Set[str]) -> dict[str, set[str]]:
    """Which records have raw log lines with which of these keys at the pointer."""
    if pointer and not pointer.startswith("/"):
        raise UsageError(f"{pointer!r} is no JSON pointer: it starts with a slash, as in {OWN_ID} or /info/task_id")
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
    found: dict[str, set[str]] = defaultdict(set)
    query = """SELECT s.raw, any_value(o.bytes), list(DISTINCT s.trajectory)
               FROM sightings s JOIN objects o ON o.id = s.raw WHERE s.trajectory IS NOT NULL GROUP BY s.raw"""
    for batch in store.stream(query, {}, _ROWS):
        for raw, data, records in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            check_name("object", raw, data)
            try:
                value = _value_at(parse(data)[0], tokens)
            except UnreadableError:
                continue
            if isinstance(value, str | int) and not isinstance(value, bool) and str(value) in keys:
                found[str(value)].update(records)
    return found


def _value_at(value: Any, tokens: Sequence[str]) -> Any:
    for token in tokens:
        match value:
            case dict():
                value = value.get(token)
            case list() if token.isdecimal() and int(token) < len(value):
                value = value[int(token)]
            case _:
                return None
    return value


def _differences(line: SideLine, attempt: _Attempt) -> list[str]:
    """Where a line says that its attempt is another one, in words."""
    said = {
        "namespace": line.namespace,
        "task": None if line.task is None else str(line.task),
        "variant": line.variant,
        "parameters": None if line.parameters is UNSET else encode(line.parameters).decode(),
        "run": None if line.run is None else str(line.run),
        "attempt": line.attempt,
    }
    return [
        f"{name} {attempt.identity[name]!r}, not {value!r}"
        for name, value in said.items()
        if value is not None and value != attempt.identity[name]
    ]


def _name_of(line: SideLine) -> str:
    return f"key {line.key!r}" if line.key is not None else f"{line.file}:{line.line}"

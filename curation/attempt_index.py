"""The live attempts of a store, by what a line of a side file may call them."""

from collections import defaultdict
from collections.abc import Iterator, Sequence, Set
from functools import cache, cached_property
from pathlib import PurePath
from typing import Any, NamedTuple

from msgspec import UNSET

from curation.errors import UsageError
from curation.store import Store
from curation.store.tables import check_name
from schemas.canonical import UnreadableError, encode, parse
from schemas.side_file import IDENTITY, SideLine

OWN_ID = "/id"
PLACE = "file:line"
_COLUMNS = {"run": "run", "attempt_id": "attempt"}
_KEYS = f"a JSON pointer into the log's records such as {OWN_ID} or /info/task_id, {PLACE}, {', '.join(_COLUMNS)}"
_ROWS = 500


class LiveAttempt(NamedTuple):
    """A live attempt: its record, its own id, and the values of ``IDENTITY`` that it was imported with."""

    record: str
    attempt: str
    identity: dict[str, Any]


class AttemptIndex:
    """Finds the attempt that a line is about.

    A line's ``key`` is ``by``: a JSON pointer (RFC 6901) to a value in the raw log record, ``file:line``, ``run`` or
    ``attempt_id``. Raises UsageError where it is none of these.
    """

    def __init__(self, store: Store, by: str = OWN_ID) -> None:
        if by and not by.startswith("/") and by not in (PLACE, *_COLUMNS):
            raise UsageError(f"--key {by!r} is no JSON pointer and no other key: {_KEYS}")
        self._store, self._by = store, by
        rows = store.sql(
            f"""SELECT a.attempt_id, t.id, {", ".join(f"t.{name}" for name in IDENTITY)}
                FROM attempts a JOIN trajectories t ON t.id = a.trajectory_id ORDER BY a.attempt_id"""
        ).to_pylist()
        self.attempts = {
            row["id"]: LiveAttempt(row["id"], row["attempt_id"], {name: row[name] for name in IDENTITY}) for row in rows
        }

    def find(self, line: SideLine) -> LiveAttempt | None:
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
                    f"{name_of(line)} is {len(agreeing)} attempts ({names}): tell them apart with run, attempt or "
                    "task, name the place with file and line, or use --key attempt_id"
                )

    @cached_property
    def keys(self) -> dict[str, set[str]]:
        """The records that have each key."""
        if self._by == PLACE:
            return {}
        if self._by in _COLUMNS:
            return _by_column(self.attempts, _COLUMNS[self._by])
        return _records_by_value(self._store, self._by)

    @cached_property
    def places(self) -> dict[tuple[str, int], set[tuple[PurePath, str]]]:
        """Where records were read: the path and the record, by the file's own name and the number there."""
        path_of = cache(PurePath)
        found: dict[tuple[str, int], set[tuple[PurePath, str]]] = defaultdict(set)
        sightings = self._store.sql("SELECT name, place, trajectory FROM sightings WHERE trajectory IS NOT NULL")
        for name, place, record in zip(*(column.to_pylist() for column in sightings.columns), strict=True):
            path = path_of(name)
            found[path.name, place].add((path, record))
        return found

    def _named(self, line: SideLine) -> Set[str]:
        file, number = line.file, line.line
        if line.key is not None and file is None and number is None:
            if self._by != PLACE:
                return self.keys.get(str(line.key), frozenset())
            file, number = _place_of(str(line.key))
        elif line.key is not None or file is None or number is None:
            raise UsageError("a line is about one record: give its key, or its file and line")
        wanted = PurePath(file)
        places = self.places.get((wanted.name, number), set())
        return {record for path, record in places if path.parts[-len(wanted.parts) :] == wanted.parts}


def name_of(line: SideLine) -> str:
    """A line as it names what it is about."""
    return f"key {line.key!r}" if line.key is not None else f"{line.file}:{line.line}"


def _place_of(key: str) -> tuple[str, int]:
    file, _, number = key.rpartition(":")
    if not file or not (number.isascii() and number.isdecimal()):
        raise UsageError(f"key {key!r} is no {PLACE}, as in logs/runs.jsonl:12")
    return file, int(number)


def _by_column(attempts: dict[str, LiveAttempt], column: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for record, attempt in attempts.items():
        value = attempt.attempt if column == "attempt" else attempt.identity[column]
        if value is not None:
            found[value].add(record)
    return found


def _records_by_value(store: Store, pointer: str) -> dict[str, set[str]]:
    """Which records have raw log lines with each value at the pointer."""
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
    found: dict[str, set[str]] = defaultdict(set)
    for data, records in _raw_lines(store):
        try:
            value = _value_at(parse(data)[0], tokens)
        except UnreadableError:
            continue
        if isinstance(value, str | int) and not isinstance(value, bool):
            found[str(value)].update(records)
    return found


def _raw_lines(store: Store) -> Iterator[tuple[bytes, list[str]]]:
    query = """SELECT s.raw, any_value(o.bytes), list(DISTINCT s.trajectory)
               FROM sightings s JOIN objects o ON o.id = s.raw WHERE s.trajectory IS NOT NULL GROUP BY s.raw"""
    for batch in store.stream(query, {}, _ROWS):
        for raw, data, records in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            check_name("object", raw, data)
            yield data, records


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


def _differences(line: SideLine, attempt: LiveAttempt) -> list[str]:
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

"""A side file: what is known of attempts and does not stand in their logs; JSON Lines, CSV or Parquet."""

from pathlib import Path, PurePath

from curation.errors import UsageError
from curation.importers.attempt_keys import facts_of, identify
from curation.importers.face import Parsed
from curation.importers.side_columns import SideLines
from curation.importers.side_rows import rows_of
from schemas.side_file import SideLine


class SideFile:
    """The lines of a side file, found by a record's own id, or by the place where it stands."""

    def __init__(self, path: Path) -> None:
        """Read all of it. Raises UsageError with file and line for the first line that is of no use."""
        self._rows = rows_of(path)
        self.lines: dict[int, SideLine] = dict(SideLines(self._rows))
        self._keys: dict[str | None, int] = {}
        self._places: dict[tuple[str, int], list[tuple[PurePath, int]]] = {}
        for number, line in self.lines.items():
            self._add(number, line)

    def apply(self, parsed: Parsed, name: str) -> Parsed:
        """A record read from the file ``name``, with what its line says; unchanged where no line is about it."""
        number = self.find(parsed, name)
        if number is None:
            return parsed
        facts, objects = facts_of(self.lines[number], "side_file")
        return parsed._replace(
            trajectory=identify(parsed.trajectory, self.lines[number]),
            facts=parsed.facts + facts,
            objects=parsed.objects + objects,
        )

    def find(self, parsed: Parsed, name: str) -> int | None:
        """The number of the line about a record read from the file ``name``.

        ``file`` in a side file names a log by its path or by the end of it (``runs/a.jsonl``, ``a.jsonl``). Raises
        UsageError where two lines are about the record.
        """
        path = PurePath(name)
        places = self._places.get((path.name, parsed.place), [])
        found = [number for file, number in places if path.parts[-len(file.parts) :] == file.parts]
        if parsed.key in self._keys:
            found.append(self._keys[parsed.key])
        if len(found) > 1:
            raise self._error(max(found), f"line {min(found)} is about the same record, {name}:{parsed.place}")
        return found[0] if found else None

    def _add(self, number: int, line: SideLine) -> None:
        if line.key is not None and (line.file, line.line) == (None, None):
            first = self._keys.setdefault(str(line.key), number)
            if first != number:
                raise self._error(number, f"key {line.key!r} stands in line {first} already")
        elif line.key is None and line.file is not None and line.line is not None:
            file = PurePath(line.file)
            self._places.setdefault((file.name, line.line), []).append((file, number))
        else:
            raise self._error(number, "a line is about one record: give its key, or its file and line")

    def _error(self, number: int, words: str) -> UsageError:
        return UsageError(f"{self._rows.place(number)}: {words}")

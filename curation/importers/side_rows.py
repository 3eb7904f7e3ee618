"""What is said of attempts as rows: of a JSON Lines, CSV or Parquet file, or of an SQL query over files.

One row is in memory at a time, or some thousands where they come as columns. Values are as the source types them; a
CSV types none, so all of its values are text.
"""

import csv
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from curation.errors import UsageError
from curation.importers.face import MAX_RECORD_BYTES
from curation.importers.formulas import KNOWN, NOTE, unescape
from curation.importers.lines import BOM, read_lines
from curation.queries import SETTINGS, Bounds, stream
from schemas import canonical
from schemas.named_file import open_named

Form = Literal["jsonl", "csv", "parquet", "sql"]
Row = dict[str, Any]


_LOCAL: dict[str, str | bool | int | float | list[str]] = {
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
}
_BOUNDS = Bounds()
_OF_FILE = Bounds(None, 1 << 30)
_PARQUET = b"PAR1"
_HEAD = 1 << 16
_TEXT_FILES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_BATCH = 4096
_MAX_LINE = 16 << 20
_FORMS = "a side file holds one JSON object a line, or is a CSV with a header, or a Parquet file"


class SideRows(NamedTuple):
    """Rows with their numbers from 1 (in a text file, of the line where a row begins); ``source`` is a file or a query.

    Reading raises UsageError with file and line for what is not of the form.
    """

    form: Form
    source: str
    bounds: Bounds = _BOUNDS

    def read(self) -> Iterator[tuple[int, Row]]:
        """Every row with its number."""
        match self.form:
            case "jsonl":
                return _read_objects(Path(self.source))
            case "csv":
                return _read_csv(Path(self.source))
            case "parquet":
                return self._read_query(f"FROM read_parquet({_literal(_verbatim(self.source))})")
            case "sql":
                return self._read_query(self.source)

    @property
    def name(self) -> str:
        """What errors call the source."""
        return "--sql" if self.form == "sql" else self.source

    def place(self, number: int) -> str:
        """Where a row stands, in words."""
        return f"{self.name}:{number}" if self.form in ("jsonl", "csv") else f"{self.name}, row {number}"

    def _read_query(self, query: str) -> Iterator[tuple[int, Row]]:
        import duckdb

        number = 0
        try:
            with duckdb.connect(config={**SETTINGS, **_LOCAL}) as connection:
                kinds = [statement.type for statement in connection.extract_statements(query)]
                if kinds != [duckdb.StatementType.SELECT]:
                    raise UsageError(f"one SELECT statement is wanted, not {query!r}")
                files, texts = _named_in(connection, query)
                for name in files:
                    _refuse_endless(Path(name))
                for table in texts:
                    source = f"read_csv({_literal(table)}, all_varchar = true)"
                    connection.execute(f'CREATE TEMP VIEW "{table.replace(chr(34), chr(34) * 2)}" AS FROM {source}')
                connection.execute("SET lock_configuration = true")
                bounds = self.bounds if self.form == "sql" else _OF_FILE
                for batch in stream(connection, query, _BATCH, bounds, as_it_comes=True):
                    for row in batch.to_pylist(maps_as_pydicts="strict"):
                        number += 1
                        yield number, row
        except UsageError as error:
            raise UsageError(f"{self.name}: {error}") from None
        except duckdb.Error as error:
            words = " ".join(str(error).split())
            way = (
                "only local files are read, without extensions" if "extension" in words else "mend it and run it again"
            )
            raise UsageError(f"{self.name}: {words[:400]}: {way}") from None


def rows_of(path: Path) -> SideRows:
    """The rows of a file, told by its content: Parquet, JSON Lines (begins with a bracket), else CSV with a header."""
    try:
        with open_named(path) as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    if head.startswith(_PARQUET):
        return SideRows("parquet", str(path))
    if not (text := head.removeprefix(BOM).lstrip()) or text.startswith((b"{", b"[")):
        return SideRows("jsonl", str(path))
    return SideRows("csv", str(path))


def rows_of_query(query: str, bounds: Bounds = _BOUNDS) -> SideRows:
    """The rows of one SELECT in DuckDB's dialect over local files, as in ``SELECT id AS key FROM 'x.parquet'``.

    CSV files that it names as tables are read as text. Nothing else is opened: no network, no extension, no store.
    Of its result 4,096 rows are held at a time, which are bounded.
    """
    return SideRows("sql", query, bounds)


def _read_objects(path: Path) -> Iterator[tuple[int, Row]]:
    for data, number, *_ in read_lines(path):
        if data is None:
            raise UsageError(f"{path}:{number}: the line is over the limit of {MAX_RECORD_BYTES} bytes")
        try:
            value, _ = canonical.parse(data)
        except canonical.UnreadableError as error:
            raise UsageError(f"{path}:{number}: {error}; {_FORMS}") from None
        if not isinstance(value, dict):
            raise UsageError(f"{path}:{number}: this is no JSON object; {_FORMS}")
        yield number, value


def _read_csv(path: Path) -> Iterator[tuple[int, Row]]:
    lines = _text_lines(path)
    head = next(lines)
    separator = next((mark for mark in ",;\t" if mark in head), ",")
    columns = next(csv.reader([head], delimiter=separator, strict=True))
    repeated = sorted({name for name in columns if columns.count(name) > 1})
    if repeated:
        raise UsageError(f"{path}:1: column {repeated[0]!r} stands there {columns.count(repeated[0])} times: rename it")
    reader = csv.reader(lines, delimiter=separator, strict=True)
    while True:
        number = reader.line_num + 2
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise UsageError(
                f"{path}:{number}: {error}: is a quote left open? A quote inside a quoted text is written twice; texts "
                "that are longer go into JSON Lines or Parquet"
            ) from None
        if cells is None:
            return
        if cells and len(cells) != len(columns):
            raise UsageError(
                f"{path}:{number}: {len(cells)} values for {len(columns)} columns (separator {separator!r}), the first "
                f"is {cells[0]!r}: quote a text that holds a separator or a line end"
            )
        if cells:
            row = dict(zip(columns, cells, strict=True))
            row.pop(KNOWN, None)
            if NOTE in row:
                row = {name: unescape(cell) for name, cell in row.items() if name != NOTE}
            yield number, row


def _text_lines(path: Path) -> Iterator[str]:
    with open_named(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(_MAX_LINE), b""), 1):
            if len(line) == _MAX_LINE:
                raise UsageError(f"{path}:{number}: the line is over the limit of {_MAX_LINE} bytes; {_FORMS}")
            try:
                yield (line.removeprefix(BOM) if number == 1 else line).decode()
            except UnicodeDecodeError as error:
                wrong = line[error.start : error.end]
                raise UsageError(f"{path}:{number}: {wrong!r} is no UTF-8: save the file as UTF-8") from None


def _named_in(connection: Any, query: str) -> tuple[set[str], list[str]]:
    """All words of a query that may name a file, and the CSV files that it names as tables."""
    (tree,) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchone()
    pending, words, tables = [json.loads(tree)], set[str](), set[str]()
    while pending:
        match pending.pop():
            case str() as word:
                words.add(word)
            case dict() as node:
                pending.extend(node.values())
                match node:
                    case {"type": "BASE_TABLE", "table_name": str(name)} if name.lower().endswith(_TEXT_FILES):
                        tables.add(name)
            case list() as nodes:
                pending.extend(nodes)
    return words, sorted(tables)


def _refuse_endless(path: Path) -> None:
    """Raise UsageError where there is a pipe or a device of that name."""
    with suppress(OSError, ValueError):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(f"{path}: not a regular file; save what it gives to a file first")


def _literal(name: object) -> str:
    return "'" + str(name).replace("'", "''") + "'"


def _verbatim(path: str) -> str:
    """A path that DuckDB does not take for a pattern."""
    return re.sub(r"([\[*?])", r"[\1]", path)

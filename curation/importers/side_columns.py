"""Columns of a table as keys of schemas.side_file: which column is which key, and its text as the key's type.

A text field stays the text it is, so that ``007`` is not 7; a stratum from a CSV is text. Empty is absent.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, get_args

from curation.errors import UsageError
from curation.importers.attempt_keys import convert_keys
from curation.importers.face import RefusedError
from curation.importers.side_rows import Row, SideRows
from schemas import canonical
from schemas.side_file import SideLine
from schemas.statements import Outcome
from schemas.trajectory import Budget

REST = "*"
"""In a mapping, all columns that are neither keys nor mapped."""

_WHOLE = {"attempt", "line", "budget.steps", "budget.calls", "budget.tokens", "budget.retries"}
_NUMBER = {"score", "budget.seconds", "budget.cost"}
_WRITTEN = {"parameters", "tools"}  # JSON of any shape: in a table its text, as columns of objects share their keys
_OBJECTS = {"strata", "budget"}
_TRUTH = {
    **dict.fromkeys(("true", "yes", "pass", "passed"), True),
    **dict.fromkeys(("false", "no", "fail", "failed"), False),
    **{name: name for name in get_args(Outcome)},
}
_BITS = ("0", "1", 0, 1)
_WAY = "mend it, leave it out (`curate annotate --map '{}='`), or say it otherwise (`curate annotate --sql QUERY`)"


class Columns(NamedTuple):
    """How columns are read: ``named`` has the key that a column is, or none where it is left out."""

    named: Mapping[str, str | None]

    def key_of(self, column: str) -> str | None:
        """The key that a column is; None where it is left out. Raises UsageError where it is no key."""
        if column in self.named:
            return self.named[column]
        if _is_key(column):
            for other, key in self.named.items():
                if key == column:
                    raise UsageError(f"columns {column!r} and {other!r} are both {key!r}: leave out --map '{column}='")
            return column
        if REST in self.named:
            return None
        raise UsageError(
            f"column {column!r} is no key of a side file: say which one it is (`curate annotate --map "
            f"'{column}=strata.{column}'`), leave it out (--map '{column}='), or all such (--map '*=')"
        )


def read_columns(pairs: Sequence[str], outcome: str | None = None) -> Columns:
    """Columns from ``column=key`` pairs and the column of the outcome. Raises UsageError for a pair of no use."""
    named: dict[str, str | None] = {}
    for pair in [*pairs, *([] if outcome is None else [f"{outcome}=outcome"])]:
        column, equals, key = pair.rpartition("=")
        if not equals or not column or (column == REST and key):
            raise UsageError(
                f"--map {pair!r} is no column=key: as in --map task_id=key; --map 'seed=' leaves a column out, '*=' "
                "all others"
            )
        if key and not _is_key(key):
            keys = ", ".join((*SideLine.__struct_fields__, "strata.NAME", "budget.NAME"))
            raise UsageError(f"--map {pair!r}: {key!r} is no key of a side file; keys are {keys}")
        if column in named or (key and key in named.values()):
            raise UsageError(f"--map {pair!r}: that column or that key is mapped already; map each once")
        named[column] = key or None
    return Columns(named)


class SideLines:
    """The lines of a side file or table with their numbers, read anew whenever they are iterated.

    Iterating raises UsageError with file, line, column, value and the way out for the first that is of no use.
    """

    def __init__(self, rows: SideRows, columns: Columns | None = None) -> None:
        self._rows = rows
        self._columns = columns or Columns({})
        self.form = rows.form
        self.place = rows.place

    def __iter__(self) -> Iterator[tuple[int, SideLine]]:
        keys: dict[str, str | None] = {}
        for number, row in self._rows.read():
            try:
                for column in row.keys() - keys.keys():
                    keys[column] = self._columns.key_of(column)
                line = self._line(row, keys)
            except UsageError as error:
                raise UsageError(f"{self.place(number)}: {error}") from None
            yield number, line
        for name in self._columns.named.keys() - {REST} if keys else ():
            if name not in keys:
                raise UsageError(f"{self._rows.name}: no column {name!r}; there are {', '.join(map(repr, keys))}")

    def _line(self, row: Row, keys: Mapping[str, str | None]) -> SideLine:
        line: dict[str, Any] = {}
        for column, value in row.items():
            if (key := keys[column]) is None:
                continue
            try:
                said = value if self.form == "jsonl" else _typed(key, value)
            except (ValueError, ArithmeticError) as error:
                raise _refusal(column, value, str(error)) from None
            if said is not None:
                _put(line, key, said)
        try:
            return convert_keys(line, SideLine)
        except RefusedError as error:
            for column, value in row.items():
                _check(column, keys[column], value, self.form == "jsonl")
            raise UsageError(f"{error.detail}; see the published schema side_line.json") from None


def _check(column: str, key: str | None, value: Any, is_typed: bool) -> None:
    """Raise UsageError where this column alone makes no side line."""
    alone: dict[str, Any] = {}
    if key is not None and (said := value if is_typed else _typed(key, value)) is not None:
        _put(alone, key, said)
    try:
        convert_keys(alone, SideLine)
    except RefusedError as error:
        raise _refusal(column, value, error.detail) from None


def _is_key(name: str) -> bool:
    group, dot, rest = name.partition(".")
    if not dot:
        return name in SideLine.__struct_fields__
    return (group == "strata" and bool(rest)) or (group == "budget" and rest in Budget.__struct_fields__)


def _put(line: dict[str, Any], key: str, value: Any) -> None:
    group, dot, rest = key.partition(".")
    if dot or (group in _OBJECTS and isinstance(value, dict)):
        held = line.setdefault(group, {})
        line[group] = held | ({rest: value} if dot else value)
    else:
        line[key] = value


def _typed(key: str, value: Any) -> Any:
    """A cell as the type of its key; None where it is empty. Raises ValueError where it has another type."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and key in _WHOLE | _NUMBER | _WRITTEN | _OBJECTS:
        value = canonical.parse(value.encode())[0]
    elif key in _WRITTEN:
        raise ValueError("write it as JSON text: as columns, all objects would get each other's keys")
    match value:
        case str() if key == "outcome":
            value = _TRUTH.get(value.lower(), value)
        case Decimal():
            value = int(value) if value == value.to_integral_value() else float(value)
        case float() if not math.isfinite(value):
            raise ValueError("that is no number; unknown is an empty cell")
        case float() if key in _WHOLE and value.is_integer():
            value = int(value)
        case dict() if key in _OBJECTS:
            value = {name: cell for name, item in value.items() if (cell := _typed(f"{key}.{name}", item)) is not None}
    if key == "outcome" and not isinstance(value, bool | dict) and value not in get_args(Outcome):
        words = f"an outcome is {', '.join(get_args(Outcome))}, pass or fail, yes or no, true or false"
        way = (
            "; 0 is a failure as a reward and a success as an exit code: say which, as `reward = 1 AS outcome` in --sql"
        )
        raise ValueError(words + way if value in _BITS else words)
    return value


def _refusal(column: str, value: Any, words: str) -> UsageError:
    shown = repr(value)
    return UsageError(
        f"column {column!r} is {shown if len(shown) < 80 else shown[:80] + ' …'}: {words}; {_WAY.format(column)}"
    )

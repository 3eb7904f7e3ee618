"""What is refused for a limit is told which one; what a schema asks for is not waited for."""

import json
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from curation.importers import archive, arrow_rows, openai_chat
from curation.importers.archive import Archive, ArchiveError
from curation.importers.face import MAX_RECORD_BYTES, Rejected, Slice
from curation.ingest import IngestOptions, find_sources, ingest
from curation.prepared import Reading
from schemas import canonical, tool_schema
from schemas.canonical import UnreadableError, parse
from schemas.tool_schema import SchemaCheck, check_arguments
from tests.importers.zips import write_zip
from tests.ingest.logs import new_store, run, write


def check(schema: Any, value: Any) -> SchemaCheck:
    return check_arguments(msgspec.Raw(json.dumps(schema).encode()), value)


def test_a_record_over_the_size_limit_is_told_the_limit(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", [run("a"), {"messages": [{"role": "user", "content": "x" * 5_000}]}])
    read = ingest(new_store(tmp_path), find_sources([path], "auto"), IngestOptions(Reading(), limit=3_000))
    (refused,) = read.quarantine
    assert (read.accepted, refused.place, refused.code) == (1, 2, "too_large")
    assert refused.detail == "the record is over the limit of 3000 bytes"
    (item,) = openai_chat.IMPORTER.items(Slice(None, 1, 0))
    assert isinstance(item, Rejected)
    assert str(MAX_RECORD_BYTES) in item.detail


@pytest.mark.parametrize("text", [b"[" * 200_000, b'{"a":' * 100_000, b"[" * 300 + b"]" * 300])
def test_a_value_that_is_too_deep_is_told_the_limit(text: bytes) -> None:
    with pytest.raises(UnreadableError, match=f"the limit is {canonical.MAX_DEPTH} levels") as refused:
        parse(text)
    assert refused.value.code == "too_deep"


def test_the_limits_of_an_archive_stand_in_its_refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = write_zip(tmp_path / "bomb.zip", {"a": b"\0" * (2 * archive.MAX_SMALL_BYTES)})
    long = write_zip(tmp_path / "long.zip", {"x" * (archive.MAX_NAME + 1): b""})
    for path, limit in ((bomb, archive.MAX_RATIO), (long, archive.MAX_NAME)):
        with Archive(path) as opened, pytest.raises(ArchiveError, match=str(limit)):
            opened.read(next(opened.entries()), MAX_RECORD_BYTES)
    monkeypatch.setattr(archive, "MAX_DIRECTORY_BYTES", 10)
    with pytest.raises(ArchiveError, match="the limit is 10"):
        Archive(bomb)


def test_the_limit_of_a_columnar_file_stands_in_its_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setattr(arrow_rows, "MAX_GROUP_BYTES", 10)
    pq.write_table(pa.table({"a": ["x" * 100]}), tmp_path / "rows.parquet")
    pieces = list(arrow_rows.read_rows(tmp_path / "rows.parquet"))
    assert "over the limit of 10" in repr(pieces)


@pytest.mark.parametrize("scheme", ["http", "file"])
def test_a_schema_that_points_outside_is_unchecked_and_nothing_is_asked_for(tmp_path: Path, scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        target = f"127.0.0.1:{server.getsockname()[1]}/s" if scheme == "http" else (tmp_path / "s").as_posix()
        (tmp_path / "s").write_text("{}")
        found = check({"$ref": f"{scheme}://{target}"}, {})
        assert (found.unchecked, found.valid) == ("reference", False)
        with pytest.raises(TimeoutError):
            server.accept()


def explosive() -> dict[str, dict[str, Any]]:
    """Schemas that ask for more work than they are long, each with the code of its refusal."""
    doubled = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    return {
        "endless": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        "too_large": {"$ref": "#/$defs/d0", "$defs": {**doubled, "d60": {"type": "object"}}},
        "slow_pattern": {"properties": {"v": {"pattern": "^(a+)+$"}}},
    }


@pytest.mark.parametrize("code", explosive())
def test_an_explosive_schema_is_unchecked(code: str) -> None:
    assert check(explosive()[code], {"v": "a" * 40 + "!"}).unchecked == code


@pytest.mark.parametrize("pattern", ["[" * 500_000, "[" * 500_000 + "\\", "a?" * 300_000, "(a|b)" * 100_000])
def test_a_pattern_that_is_long_is_refused_unread(pattern: str) -> None:
    schemas: list[dict[str, Any]] = [{"properties": {"v": {"pattern": pattern}}}, {"patternProperties": {pattern: {}}}]
    for schema in schemas:
        found = check(schema, {"v": "a"})
        assert found.unchecked == "slow_pattern"
        assert f"the limit is {tool_schema.MAX_PATTERN}" in found.detail


def test_many_patterns_are_refused_together() -> None:
    many = {str(number): {"pattern": f"{number:0900}"} for number in range(120)}
    found = check({"properties": many}, {})
    assert (found.unchecked, str(tool_schema.MAX_PATTERNS) in found.detail) == ("slow_pattern", True)


def test_classes_without_an_end_cost_no_more_than_their_length() -> None:
    for pattern in ("[" * 900, "[^" * 400, "[" * 900 + "\\"):
        assert tool_schema.pattern_cost(pattern * 200, 10) > 0
    assert check({"properties": {"v": {"pattern": "["}}}, {"v": "a"}).unchecked == "broken_schema"

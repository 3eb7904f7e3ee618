"""Sessions as one slice, and what is held to for every format that reads them: torn, mutated and oversized input."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.importers import claude_code, codex, codex_exec, formats
from curation.importers.face import Importer, Item, Parsed, Rejected
from curation.importers.session_lines import parse_session, read_session
from schemas.canonical import encode
from schemas.reasons import QUARANTINE, WARNINGS
from schemas.trajectory import decode
from tests.importers.session import model, note, result, text, use, user

CLAUDE: list[Any] = [
    user("u1", None),
    model("a1", "u1", use("c1", sku="A17"), turn="m1"),
    model("a2", "a1", use("c2", sku="B17"), turn="m1"),
    result("r1", "a1", "c1"),
    result("r2", "a2", "c2"),
    note("b1", None, subtype="compact_boundary", logicalParentUuid="r2"),
    user("u2", "b1", [text("Ünknown"), {"type": "image", "source": {}}]),
    user("u3", "r2", "again", isSidechain=True),
]
ROLLOUT: list[Any] = [
    {"type": "session_meta", "payload": {"id": "t1"}},
    {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "Ünknown"}},
    {"type": "event_msg", "payload": {"type": "user_message", "message": "Ünknown"}},
    {"type": "response_item", "payload": {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c1"}},
    {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c1", "output": "x"}},
    {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}},
    {"type": "compacted", "payload": {"message": "so far"}},
    {"type": "response_item", "payload": {"type": "reasoning", "summary": []}},
]
STREAM: list[Any] = [
    {"type": "thread.started", "thread_id": "t1"},
    {"type": "turn.started"},
    {"type": "item.started", "item": {"id": "i1", "type": "command_execution", "command": "ls"}},
    {"type": "item.completed", "item": {"id": "i1", "type": "command_execution", "command": "ls", "status": "failed"}},
    {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}},
]


def joined(lines: list[Any]) -> bytes:
    return b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)


FILES: dict[str, tuple[Importer, bytes]] = {
    claude_code.IMPORTER.name: (claude_code.IMPORTER, joined(CLAUDE)),
    codex.IMPORTER.name: (codex.IMPORTER, joined(ROLLOUT)),
    codex_exec.IMPORTER.name: (codex_exec.IMPORTER, joined(STREAM)),
}
CONFUSED: list[Any] = [
    None,
    0,
    1.5,
    "",
    "u1",
    "a1",
    "c1",
    True,
    [],
    {},
    [None],
    ["x"],
    [{"type": "tool_result"}],
    {"type": []},
]


def read(folder: Path, importer: Importer, data: bytes, limit: int = 1 << 20) -> list[Item]:
    path = folder / "log"
    path.write_bytes(data)
    return list(importer.read(path, limit))


def check(items: list[Item], data: bytes) -> None:
    """What holds for whatever was read."""
    assert items or not data.strip()
    for item in items:
        assert data[item.offset :].startswith(item.raw)
        match item:
            case Parsed():
                assert decode(encode(item.trajectory)) == item.trajectory
                assert set(item.warnings) <= set(WARNINGS)
                assert item.raw == data.removeprefix(b"\xef\xbb\xbf")
            case Rejected():
                assert item.code in QUARANTINE
    parts = [(type(item), item.part) for item in items]
    assert len(set(parts)) == len(parts)


@pytest.mark.parametrize("name", FILES)
def test_a_session_is_known_by_what_it_holds(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"\xef\xbb\xbf\r\n" + FILES[name][1])
    assert formats.detect(path)[0].name == name


@pytest.mark.parametrize("name", FILES)
def test_what_a_file_is_called_and_how_its_lines_end_changes_no_attempt(tmp_path: Path, name: str) -> None:
    importer, data = FILES[name]
    plain = [item for item in read(tmp_path, importer, data) if isinstance(item, Parsed)]
    other = read(tmp_path, importer, b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    assert plain
    assert [item.trajectory for item in plain] == [item.trajectory for item in other if isinstance(item, Parsed)]
    check(other, b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))


@st.composite
def mutations(draw: st.DrawFn) -> tuple[Importer, bytes]:
    importer, data = FILES[draw(st.sampled_from(sorted(FILES)))]
    mutated = bytearray(data)
    for _ in range(draw(st.integers(1, 3))):
        at, to = sorted((draw(st.integers(0, len(mutated))), draw(st.integers(0, len(mutated)))))
        match draw(st.sampled_from(["cut", "repeat", "swap", "write"])):
            case "cut":
                del mutated[at:to]
            case "repeat":
                mutated[to:to] = mutated[at:to]
            case "swap" if at < to < len(mutated):
                mutated[at], mutated[to] = mutated[to], mutated[at]
            case _:
                junk = [b'"', b"\\", b"\n", b"]", b"\xff", b"\x00", b"1e999", b"NaN", b"null", b"u1"]
                mutated[at : at + 1] = draw(st.sampled_from(junk))
    return importer, bytes(mutated)


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mutated=mutations())
def test_mutated_sessions_are_read_or_refused(tmp_path: Path, mutated: tuple[Importer, bytes]) -> None:
    importer, data = mutated
    check(read(tmp_path, importer, data), data)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every place inside a value: what holds it, and its key there."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, held in inside for place in ((value, key), *places(held))]


@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_values_of_wrong_types_are_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    importer, whole = FILES[data.draw(st.sampled_from(sorted(FILES)))]
    lines = [json.loads(line) for line in whole.splitlines()]
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(places(lines)))
        holder[key] = json.loads(json.dumps(data.draw(st.sampled_from(CONFUSED))))
    written = joined(lines)
    check(read(tmp_path, importer, written), written)


@pytest.mark.parametrize("name", FILES)
def test_a_session_over_the_limit_is_refused_unread(tmp_path: Path, name: str) -> None:
    importer, data = FILES[name]
    (item,) = read(tmp_path, importer, data, len(data) - 1)
    assert isinstance(item, Rejected)
    assert (item.code, item.raw) == ("too_large", b"")


def test_lines_are_numbered_and_placed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'\xef\xbb\xbf\r\n{"a": 1}\n \n{"b": "\\ud800"}\r\n[[')
    (piece,) = read_session(path)
    assert piece.data is not None
    lines, replaced = parse_session(piece.data)
    assert [(line.number, line.value, line.code) for line in lines] == [
        (2, {"a": 1}, ""),
        (4, {"b": "\ufffd"}, ""),
        (5, None, "truncated"),
    ]
    assert replaced == 1
    assert all(path.read_bytes()[piece.offset + line.offset :].startswith(line.data) for line in lines)

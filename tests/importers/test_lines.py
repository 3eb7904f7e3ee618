from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.importers.face import Slice
from curation.importers.lines import read_lines


def slices(folder: Path, data: bytes, limit: int = 1000) -> list[Slice]:
    path = folder / "log.jsonl"
    path.write_bytes(data)
    return list(read_lines(path, limit))


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_lines_come_without_their_ends_and_with_their_place(tmp_path: Path, end: bytes) -> None:
    found = slices(tmp_path, b"one" + end + b"two" + end)
    assert found == [Slice(b"one", 1, 0), Slice(b"two", 2, 3 + len(end))]


def test_the_last_line_needs_no_end(tmp_path: Path) -> None:
    assert slices(tmp_path, b"one\ntwo") == [Slice(b"one", 1, 0), Slice(b"two", 2, 4)]


def test_blank_lines_are_numbered_but_not_read(tmp_path: Path) -> None:
    assert slices(tmp_path, b"\n \t\r\none\n\n") == [Slice(b"one", 3, 5)]


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    assert slices(tmp_path, b"\xef\xbb\xbfone\ntwo\n") == [Slice(b"one", 1, 3), Slice(b"two", 2, 7)]


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    assert slices(tmp_path, b"") == []


@pytest.mark.parametrize("size", [11, 12, 13, 5000])
def test_a_line_over_the_limit_is_skipped_and_the_next_is_read(tmp_path: Path, size: int) -> None:
    found = slices(tmp_path, b"a" * size + b"\r\nnext\n", limit=10)
    assert found == [Slice(None, 1, 0), Slice(b"next", 2, size + 2)]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_line_of_exactly_the_limit_is_read(tmp_path: Path, end: bytes) -> None:
    assert slices(tmp_path, b"a" * 10 + end, limit=10) == [Slice(b"a" * 10, 1, 0)]


def test_an_over_long_line_that_ends_in_carriage_returns_is_not_taken_for_a_short_one(tmp_path: Path) -> None:
    assert slices(tmp_path, b"a" * 10 + b"\r\raaa\nnext", limit=10) == [Slice(None, 1, 0), Slice(b"next", 2, 16)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.lists(st.sampled_from([b"a", b" ", b"\r", b"\n", b"bc" * 6])).map(b"".join), limit=st.integers(1, 12))
def test_each_slice_is_what_stands_at_its_offset(tmp_path: Path, data: bytes, limit: int) -> None:
    for piece in slices(tmp_path, data, limit):
        line = data.split(b"\n")[piece.place - 1]
        body = line.removesuffix(b"\r") if data[piece.offset + len(line) :][:1] == b"\n" else line
        assert data[: piece.offset].count(b"\n") == piece.place - 1
        if piece.data is None:
            assert len(body) > limit
        else:
            assert data[piece.offset :].startswith(piece.data)
            assert len(piece.data) <= limit
            assert piece.data in (line, body, line.removesuffix(b"\r"))

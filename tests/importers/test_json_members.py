import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.importers import json_members
from curation.importers.json_members import Member, read_members

WHOLE = '{"a": {"s": [1]}, "s": [1, {"x": "],", "y": [2]}, "}"], "b": [1, 2], "c": null}'


def read(folder: Path, data: bytes, limit: int = 1 << 20) -> list[Member]:
    path = folder / "object.json"
    path.write_bytes(data)
    return list(read_members(path, ("a", "c"), ("s",), limit))


def shown(members: list[Member]) -> list[tuple[str | None, int, bytes | None]]:
    return [(member.key, member.piece.place, member.piece.data) for member in members]


def test_members_are_given_whole_and_lists_by_element_as_they_are_written(tmp_path: Path) -> None:
    data = WHOLE.encode()
    members = read(tmp_path, b"\xef\xbb\xbf " + data)
    assert shown(members) == [
        ("a", 0, b'{"s": [1]}'),
        ("s", 1, b"1"),
        ("s", 2, b'{"x": "],", "y": [2]}'),
        ("s", 3, b'"}"'),
        ("c", 0, b"null"),
    ]
    for member in members:
        assert (b"\xef\xbb\xbf " + data)[member.piece.offset :].startswith(member.piece.data or b"-")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"{}", []),
        (b'{"s": []}', []),
        (b'{"s": null, "a": 1}', [("s", 0, b"null"), ("a", 0, b"1")]),
        (b'{"s": {"s": [1]}}', [("s", 0, b'{"s": [1]}')]),
        (b'{"a": 1, "a": 2}', [("a", 0, b"1"), ("a", 0, b"2")]),
        (b'{"s": [1, 2', [("s", 1, b"1"), ("s", 2, b"2"), (None, 0, b"")]),
        (b'{"s": [1, ', [("s", 1, b"1"), (None, 0, b"")]),
        (b'{"s": [1]} x', [("s", 1, b"1"), (None, 0, b"x")]),
        (b'{"a": "x', [("a", 0, b'"x'), (None, 0, b"")]),
        (b"", [(None, 0, b"")]),
    ],
)
def test_what_is_wrong_with_the_object_is_one_more_member(
    tmp_path: Path, data: bytes, expected: list[tuple[str | None, int, bytes]]
) -> None:
    assert shown(read(tmp_path, data)) == expected


def test_an_element_over_the_limit_has_no_data_and_the_others_have(tmp_path: Path) -> None:
    members = read(tmp_path, b'{"q": "%s", "s": [1, "%s", 3], "a": "%s"}' % (b"x" * 99, b"x" * 99, b"x" * 99), 20)
    assert shown(members) == [("s", 1, b"1"), ("s", 2, None), ("s", 3, b"3"), ("a", 0, None)]


@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_where_blocks_end_changes_nothing(tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = json.dumps({"a": 'x"\\', "s": [{"k\\": "\\\\"}, "[,]"], "é": 1}).encode()
    expected = read(tmp_path, data)
    monkeypatch.setattr(json_members, "_BLOCK", block)
    assert read(tmp_path, data) == expected


TEXT = st.text('ab"\\[]{},: é', max_size=6)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers(0, 9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.dictionaries(st.sampled_from("abcs") | TEXT, VALUES, max_size=5), ascii_only=st.booleans())
def test_members_are_those_that_a_parser_finds(tmp_path: Path, value: dict[str, Any], ascii_only: bool) -> None:
    found: dict[str, Any] = {}
    for key, piece in read(tmp_path, json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")):
        assert key is not None
        one = json.loads(piece.data or b"")
        if piece.place:
            found.setdefault(key, []).append(one)
        else:
            found[key] = one
    expected = {key: one for key, one in value.items() if key in "acs" and key}
    assert found == {key: one for key, one in expected.items() if one != [] or key != "s"}

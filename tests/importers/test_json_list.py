import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from curation.importers.face import Slice
from curation.importers.json_list import read_list

VALUES = st.recursive(
    st.none() | st.integers() | st.text(alphabet='ab"\\[]{},é', max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='k"]}', max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


def elements(folder: Path, data: bytes, limit: int = 1000) -> list[Slice]:
    path = folder / "log.json"
    path.write_bytes(data)
    return list(read_list(path, limit))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(VALUES, max_size=5), indent=st.sampled_from([None, 1]))
def test_each_element_is_an_exact_slice_of_the_file(tmp_path: Path, values: list[Any], indent: int | None) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=False).encode()
    found = elements(tmp_path, data)
    assert [json.loads(piece.data or b"") for piece in found] == values
    assert [piece.place for piece in found] == list(range(1, len(values) + 1))
    for piece in found:
        assert piece.data is not None
        assert data[piece.offset :].startswith(piece.data)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", []),
        (b"[]", []),
        (b"[ \n]\n", []),
        (b"\xef\xbb\xbf[1]", [Slice(b"1", 1, 4)]),
        (b"[1] x", [Slice(b"1", 1, 1), Slice(b"x", 2, 4)]),
        (b'[{"a":1}', [Slice(b'{"a":1}', 1, 1), Slice(b"", 2, 8)]),
        (b"[1,", [Slice(b"1", 1, 1), Slice(b"", 2, 3)]),
        (b'[{"a', [Slice(b'{"a', 1, 1)]),
        (b"[1,,2]", [Slice(b"1", 1, 1), Slice(b"", 2, 3), Slice(b"2", 3, 4)]),
        (b"[1,]", [Slice(b"1", 1, 1), Slice(b"", 2, 3)]),
    ],
)
def test_a_torn_list_gives_one_more_slice_that_no_parser_accepts(
    tmp_path: Path, data: bytes, found: list[Slice]
) -> None:
    assert elements(tmp_path, data) == found


def test_an_element_over_the_limit_is_skipped_and_the_next_is_read(tmp_path: Path) -> None:
    data = b'[1,"' + b"a" * 3_000_000 + b'\\"",3]'
    assert elements(tmp_path, data, limit=10) == [Slice(b"1", 1, 1), Slice(None, 2, 3), Slice(b"3", 3, len(data) - 2)]


def test_an_element_over_several_blocks_is_one_slice(tmp_path: Path) -> None:
    text = json.dumps(['ab\\"],[{' * 400_000, "next"]).encode()
    found = elements(tmp_path, text, limit=len(text))
    assert b",".join(piece.data or b"" for piece in found) == text[1:-1].replace(b", ", b",")

import json
from pathlib import Path

import pytest

from curation.importers.face import Slice
from curation.importers.json_value import read_value


def slices(folder: Path, data: bytes, limit: int = 1000) -> list[Slice]:
    path = folder / "one.json"
    path.write_bytes(data)
    return list(read_value(path, limit))


@pytest.mark.parametrize(("before", "after"), [(b"", b""), (b"\xef\xbb\xbf", b"\n"), (b" \r\n\t", b"\r\n")])
def test_the_value_is_cut_out_of_the_file(tmp_path: Path, before: bytes, after: bytes) -> None:
    value = json.dumps({"a": [1, "}{"]}, indent=4).encode()
    assert slices(tmp_path, before + value + after) == [Slice(value, 1, len(before))]


def test_an_empty_file_is_one_slice_that_holds_nothing(tmp_path: Path) -> None:
    assert slices(tmp_path, b"\n \n") == [Slice(b"", 1, 3)]


def test_a_file_over_the_limit_is_not_held(tmp_path: Path) -> None:
    assert slices(tmp_path, b'"1234"', 6) == [Slice(b'"1234"', 1, 0)]
    assert slices(tmp_path, b'"12345"', 6) == [Slice(None, 1, 0)]
    assert slices(tmp_path, b'\xef\xbb\xbf"1234"', 6) == [Slice(b'"1234"', 1, 3)]

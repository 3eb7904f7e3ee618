import os
import stat
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from curation.importers import archive
from curation.importers.archive import Archive, ArchiveError
from tests.importers.zips import set_size, write_zip, write_zstd

LIMIT = 1 << 24


def read(path: Path, limit: int = LIMIT) -> dict[str, bytes | None]:
    with Archive(path) as opened:
        return {entry.name: opened.read(entry, limit) for entry in opened.entries()}


def test_members_are_read_however_they_are_packed(tmp_path: Path) -> None:
    members = {"a.json": b"{}", "deep/er/b.json": b"x" * 5000, "empty": b""}
    assert read(write_zip(tmp_path / "a.zip", members)) == members
    assert read(write_zstd(tmp_path / "b.zip", members)) == members


def test_of_two_members_with_one_name_the_last_one_holds(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.zip", {"a": b"first"})
    with zipfile.ZipFile(path, "a") as again, pytest.warns(UserWarning, match="Duplicate name"):
        again.writestr("a", b"second")
    assert read(path) == {"a": b"second"}


@pytest.mark.parametrize(
    "name", ["../x", "samples/../../x", "/etc/x", "\\x", "a\\..\\x", "C:/x", "a\nb", "x" * (archive.MAX_NAME + 1)]
)
def test_a_member_that_leads_outside_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    path = write_zip(tmp_path / "a.zip", {name: b"{}"})
    with pytest.raises(ArchiveError, match="leads outside"):
        read(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR])
def test_links_and_devices_are_refused(tmp_path: Path, kind: int) -> None:
    path = tmp_path / "a.zip"
    info = zipfile.ZipInfo("samples/1_epoch_1.json")
    info.external_attr = (kind | 0o777) << 16
    with zipfile.ZipFile(path, "w") as made:
        made.writestr(info, "/etc/hostname")
    with pytest.raises(ArchiveError, match="is a link or another thing"):
        read(path)


def test_a_bomb_is_refused_by_its_ratio_and_a_large_member_by_its_size(tmp_path: Path) -> None:
    bomb = write_zip(tmp_path / "a.zip", {"a": b"\0" * (2 * archive.MAX_SMALL_BYTES)})
    with pytest.raises(ArchiveError, match=f"more than {archive.MAX_RATIO} times its size"):
        read(bomb)
    assert read(write_zip(tmp_path / "b.zip", {"a": os.urandom(5000)}), 4000) == {"a": None}


def test_a_size_that_is_not_the_declared_one_is_found_without_unpacking_all(tmp_path: Path) -> None:
    data = b"\0" * (1 << 26)
    for path in (write_zip(tmp_path / "a.zip", {"a": data}), write_zstd(tmp_path / "b.zip", {"a": data})):
        set_size(path, 1000)
        tracemalloc.start()
        with pytest.raises(ArchiveError, match="damaged"):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < len(data) // 2
        tracemalloc.stop()


def test_other_methods_and_passwords_are_refused_with_the_way_out(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_LZMA) as made:
        made.writestr("a", b"{}")
    with pytest.raises(ArchiveError, match="method 14: pack it with deflate or zstd"):
        read(tmp_path / "a.zip")
    locked = write_zip(tmp_path / "b.zip", {"a": b"{}"})
    data = bytearray(locked.read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + at] |= 1
    locked.write_bytes(data)
    with pytest.raises(ArchiveError, match="without a password"):
        read(locked)


def test_a_directory_over_the_limit_is_refused_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_DIRECTORY_BYTES", 1000)
    path = write_zip(tmp_path / "a.zip", {f"samples/{number}": b"" for number in range(100)})
    with pytest.raises(ArchiveError, match="the limit is 1000"):
        read(path)


def test_no_archive_is_read_in_part(tmp_path: Path) -> None:
    whole = write_zip(tmp_path / "a.zip", {"a": os.urandom(3000), "b": b"{}"}).read_bytes()
    for end in (0, 3, 100, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.zip").write_bytes(whole[:end])
        with pytest.raises(ArchiveError, match="no whole zip archive"):
            read(tmp_path / "cut.zip")
    for at in range(0, len(whole), 61):
        flipped = bytearray(whole)
        flipped[at] ^= 0xFF
        (tmp_path / "flipped.zip").write_bytes(flipped)
        try:
            found = read(tmp_path / "flipped.zip")
        except ArchiveError:
            continue
        assert set(found.values()) == set(read(tmp_path / "a.zip").values())

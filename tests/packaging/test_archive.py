"""Archives with an address: reproducible, and without names that lead out of their folder."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from dagflow.errors import PackageNotMade
from dagflow.packaging import archive
from dagflow.packaging.archive import Member, address, checked_name, publish, remove_old, write_tar, write_zip

FILES = {"lib/b.py": Member(b"b = 1\n"), "bin/python": Member(b"#!/bin/sh\n", is_program=True), "lib/a.py": Member(b"")}


def test_the_address_is_that_of_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"b = 1\n")
    assert address(FILES) == address({**dict(reversed(FILES.items())), "lib/b.py": Member(tmp_path / "b")})
    others = [
        {**FILES, "lib/b.py": Member(b"b = 2\n")},
        {**FILES, "lib/c.py": Member(b"")},
        {**FILES, "bin/python": Member(b"#!/bin/sh\n")},
    ]
    assert len({address(FILES), *map(address, others)}) == 4


def test_the_same_files_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b").write_bytes(b"b = 1\n")
    os.utime(tmp_path / "b", (1, 1))
    monkeypatch.setattr(archive, "_PIECE", 700)  # several pieces
    for write in (write_tar, write_zip):
        one, other = io.BytesIO(), io.BytesIO()
        write(one, FILES)
        write(other, {**dict(reversed(FILES.items())), "lib/b.py": Member(tmp_path / "b")})
        assert one.getvalue() == other.getvalue()


def test_a_tar_is_sorted_and_has_neither_times_nor_owners(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(archive, "_PIECE", 700)
    assert publish(tmp_path / "app.tar.gz", FILES)
    with tarfile.open(tmp_path / "app.tar.gz") as tar:
        members = tar.getmembers()
        assert [member.name for member in members] == ["bin/python", "lib/a.py", "lib/b.py"]
        assert {(member.mtime, member.uid, member.uname) for member in members} == {(315532800, 0, "")}
        assert tar.extractfile("lib/b.py").read() == b"b = 1\n"  # type: ignore[union-attr]
    subprocess.run(["tar", "-xzf", "app.tar.gz"], cwd=tmp_path, check=True)  # as Spark does
    assert stat.S_IMODE((tmp_path / "bin" / "python").stat().st_mode) & 0o500 == 0o500
    assert (tmp_path / "lib" / "b.py").read_bytes() == b"b = 1\n"


def test_a_zip_can_be_imported_from(tmp_path: Path) -> None:
    publish(tmp_path / "app.zip", {"one.py": Member(b"x = 1\n")})
    assert zipfile.ZipFile(tmp_path / "app.zip").read("one.py") == b"x = 1\n"


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "a//b", "", "a\nb", "a\\b", "./a", "x" * 300])
def test_names_that_lead_out_are_refused(name: str) -> None:
    with pytest.raises(PackageNotMade):
        checked_name(name)


def test_an_archive_is_written_once_and_completely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "app.tar.gz"
    with pytest.raises(PackageNotMade, match="No such file"):
        publish(path, {"a": Member(tmp_path / "gone")})
    assert list(tmp_path.iterdir()) == []
    assert publish(path, FILES)
    os.utime(path, (1, 1))
    assert not publish(path, FILES)
    assert path.stat().st_mtime > 1, "it was used just now"


def test_archives_that_were_not_used_for_longest_go(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"app-{number}.zip").touch()
        os.utime(tmp_path / f"app-{number}.zip", (number, number))
    (tmp_path / "other-0.zip").touch()
    remove_old(tmp_path, ["app-*.zip"], keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["app-2.zip", "app-3.zip", "other-0.zip"]

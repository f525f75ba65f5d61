"""The model of a disk, by calls that are written down."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.faults.disk import MODELS, Content, Disk, content_of
from tests.faults.shim import Call, Kind

ROOT = "/place"


def call(kind: Kind, inode: int, path: str, target: str = "", *, offset: int = 0, data: bytes = b"", flags: int = 0) -> Call:
    return Call(0, kind, inode, flags, offset, path and f"{ROOT}/{path}", target and f"{ROOT}/{target}", data)


def made(inode: int, path: str, data: bytes) -> list[Call]:
    return [call(Kind.OPEN, inode, path, flags=os.O_CREAT), call(Kind.WRITE, inode, path, data=data)]


def synced(inode: int) -> Call:
    return call(Kind.SYNC, inode, "")


def disk_after(folder: Path, *calls: Call) -> Disk:
    disk = Disk.of(folder)
    disk.root = ROOT
    for each in calls:
        disk.apply(each)
    return disk


def left(disk: Disk, model: str, seed: int = 0) -> Content:
    return disk.cut(model, random.Random(seed)).content(disk.top)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "old").write_bytes(b"before")
    return tmp_path


def test_what_was_there_before_survives(folder: Path) -> None:
    assert [left(disk_after(folder), model) for model in MODELS] == [{"old": b"before"}] * 3


def test_without_a_sync_nothing_has_to_survive(folder: Path) -> None:
    disk = disk_after(folder, *made(1, "new", b"data"))
    assert left(disk, "lost") == {"old": b"before"}
    found = [left(disk, "named", seed)["new"] for seed in range(20)]
    assert set(found) == {b"", bytes(4)}
    found = [left(disk, "reordered", seed).get("new") for seed in range(50)]
    assert set(found) == {None, b"", b"data"}


def test_the_sync_of_a_file_does_not_keep_its_name(folder: Path) -> None:
    top = folder.stat().st_ino
    disk = disk_after(folder, *made(1, "new", b"data"), synced(1))
    assert left(disk, "lost") == {"old": b"before"}
    assert left(disk, "named")["new"] == b"data"
    disk.apply(synced(top))
    assert [left(disk, model) for model in MODELS] == [{"old": b"before", "new": b"data"}] * 3


def test_the_sync_of_a_folder_does_not_keep_data(folder: Path) -> None:
    disk = disk_after(folder, *made(1, "new", b"data"), synced(folder.stat().st_ino))
    assert left(disk, "lost")["new"] == b""


def test_what_was_written_after_the_sync_is_lost(folder: Path) -> None:
    old = (folder / "old").stat().st_ino
    disk = disk_after(folder, call(Kind.WRITE, old, "old", offset=6, data=b" and after"))
    assert left(disk, "lost") == {"old": b"before"}
    assert {left(disk, "named", seed)["old"] for seed in range(20)} == {b"before", b"before" + bytes(10)}
    disk = disk_after(folder, call(Kind.TRUNCATE, old, "old", offset=2))
    assert {left(disk, "reordered", seed)["old"] for seed in range(20)} == {b"before", b"be"}


def test_pages_survive_one_by_one(folder: Path) -> None:
    disk = disk_after(folder, *made(1, "new", b"x" * 8192), synced(folder.stat().st_ino))
    found = {left(disk, "reordered", seed)["new"] for seed in range(50)}
    assert found == {b"", b"x" * 4096, b"x" * 8192, bytes(4096) + b"x" * 4096}


def test_a_rename_is_there_or_not(folder: Path) -> None:
    old = (folder / "old").stat().st_ino
    disk = disk_after(folder, call(Kind.RENAME, old, "old", "new"))
    assert left(disk, "lost") == {"old": b"before"}
    assert left(disk, "named") == {"new": b"before"}
    found = [left(disk, "reordered", seed) for seed in range(20)]
    assert all(each in ({"old": b"before"}, {"new": b"before"}) for each in found)


def test_a_removed_name_comes_back_unless_its_folder_was_synced(folder: Path) -> None:
    old = (folder / "old").stat().st_ino
    disk = disk_after(folder, call(Kind.UNLINK, old, "old"))
    assert left(disk, "lost") == {"old": b"before"}
    disk.apply(synced(folder.stat().st_ino))
    assert left(disk, "lost") == {}


def test_a_folder_that_was_not_synced_takes_its_files_along(folder: Path) -> None:
    calls = [call(Kind.MKDIR, 2, "sub"), *made(1, "sub/new", b"data"), synced(1), synced(2)]
    disk = disk_after(folder, *calls)
    assert left(disk, "lost") == {"old": b"before"}
    disk.apply(synced(folder.stat().st_ino))
    assert left(disk, "lost") == {"old": b"before", "sub": None, "sub/new": b"data"}


def test_two_names_of_a_file_stay_one_file(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    old = (folder / "old").stat().st_ino
    disk = disk_after(folder, call(Kind.LINK, old, "old", "other"), Call(0, Kind.SYMLINK, 9, 0, 0, "old", f"{ROOT}/link", b""))
    place = tmp_path_factory.mktemp("after")
    disk.cut("named", random.Random(0)).write(disk.top, place)
    assert content_of(place) == {"old": b"before", "other": b"before", "link": "old"}
    assert (place / "old").samefile(place / "other")

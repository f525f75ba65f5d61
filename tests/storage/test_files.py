from __future__ import annotations

import os
import pickle
import socket
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dagflow.storage import FileSystem, errors, explained, file_system, join, read_fully


@pytest.fixture
def files() -> FileSystem:
    return file_system("out")


def write(files: FileSystem, path: str, data: bytes) -> None:
    with files.create(path) as writer:
        writer.write(data)
        files.sync_file(writer)


def test_one_file_system_for_all_local_paths(files):
    assert files is file_system("file:///x")
    assert isinstance(files, FileSystem)
    assert type(pickle.loads(pickle.dumps(files))) is type(files)
    assert files.local_path("file:///a%20b") == "/a b"


def test_status_tells_length_time_and_kind(files, tmp_path):
    path = f"{tmp_path}/a"
    write(files, path, b"abc")
    os.utime(path, ns=(5, 1_700_000_000_123_456_789))
    status = files.status(path)
    assert (status.path, status.length, status.modified_ns) == (path, 3, 1_700_000_000_123_456_789)
    assert (status.is_regular, status.is_directory) == (True, False)
    assert status.inode == (os.stat(path).st_dev, os.stat(path).st_ino)
    assert files.status(f"file://{path}").length == 3
    folder = files.status(str(tmp_path))
    assert (folder.is_regular, folder.is_directory) == (False, True)


def test_status_of_what_is_not_there(files, tmp_path):
    with pytest.raises(FileNotFoundError):
        files.status(f"{tmp_path}/a")
    write(files, f"{tmp_path}/f", b"")
    with pytest.raises(NotADirectoryError):
        files.status(f"{tmp_path}/f/x")


def test_relative_paths_stay_relative(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(files, "logs/a", b"x")
    write(files, "~", b"x")
    assert [status.path for status in files.scan("logs")] == ["logs/a"]
    assert {status.path for status in files.scan(".")} == {"./logs", "./~"}
    assert files.exists("~")
    assert sorted(os.listdir(tmp_path)) == ["logs", "~"]
    files.remove_tree("logs")
    files.sync_folder("")
    assert not files.exists("logs")


def test_scan_sees_one_level_of_everything(files, tmp_path):
    write(files, f"{tmp_path}/a", b"abc")
    write(files, f"{tmp_path}/sub/b", b"b")
    os.symlink(tmp_path / "a", tmp_path / "link")
    os.symlink(tmp_path / "nothing", tmp_path / "dangling")
    os.symlink(tmp_path / "loop", tmp_path / "loop")
    os.symlink(tmp_path, tmp_path / "sub" / "up")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        found = {os.path.basename(status.path): status for status in files.scan(str(tmp_path))}
    kinds = {name: (status.is_regular, status.is_directory) for name, status in found.items()}
    assert kinds == {
        "a": (True, False),
        "sub": (False, True),
        "link": (True, False),
        "dangling": (False, False),
        "loop": (False, False),
        "pipe": (False, False),
        "socket": (False, False),
    }
    assert found["link"].length == 3
    assert found["link"].inode == found["a"].inode
    # A loop of folders is recognised by its inode.
    up = next(status for status in files.scan(f"{tmp_path}/sub") if status.path.endswith("/up"))
    assert up.is_directory
    assert up.inode == files.status(str(tmp_path)).inode


def test_scan_leaves_out_what_vanishes_meanwhile(files, tmp_path, monkeypatch):
    write(files, f"{tmp_path}/stays", b"")

    class Vanished:
        path, name = f"{tmp_path}/gone", "gone"

        def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
            return os.stat(self.path, follow_symlinks=follow_symlinks)

    real = os.scandir

    class Listing:
        def __init__(self, path: str) -> None:
            self.entries = real(path)

        def __enter__(self):
            return iter([Vanished(), *self.entries])

        def __exit__(self, *_: object) -> None:
            self.entries.close()

    monkeypatch.setattr(os, "scandir", Listing)
    assert [status.path for status in files.scan(str(tmp_path))] == [f"{tmp_path}/stays"]


def test_a_folder_that_may_not_be_read(files, tmp_path, monkeypatch):
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(errors.NotReadable, match="permission to read was denied"), explained(str(tmp_path), "listing the input"):
        list(files.scan(str(tmp_path)))


def test_a_file_that_may_not_be_opened(files, tmp_path, monkeypatch):
    def refuse(path: str, *_: object) -> int:
        raise PermissionError(13, "Permission denied", path)

    write(files, f"{tmp_path}/a", b"")
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(errors.NotReadable), explained(f"{tmp_path}/a", "opening the input"):
        files.open(f"{tmp_path}/a")


def test_an_abandoned_scan_leaves_nothing_open(files, tmp_path):
    for number in range(5):
        write(files, f"{tmp_path}/{number}", b"")
    scan = files.scan(str(tmp_path))
    next(scan)
    scan.close()  # type: ignore[attr-defined]


def test_names_that_are_not_utf8_come_back_unharmed(files, tmp_path):
    os.close(os.open(os.fsencode(str(tmp_path)) + b"/\xff\xfe", os.O_CREAT | os.O_WRONLY))
    (status,) = files.scan(str(tmp_path))
    with files.open(status.path) as stream:
        assert stream.read() == b""


def test_a_listing_costs_at_most_five_times_what_the_system_needs(files, tmp_path):
    for number in range(2_000):
        os.close(os.open(f"{tmp_path}/{number}", os.O_CREAT | os.O_WRONLY))

    def shortest(list_files):
        times = []
        for _ in range(5):
            start = time.thread_time()  # what else the machine does is not counted
            assert sum(1 for _ in list_files()) == 2_000
            times.append(time.thread_time() - start)
        return min(times)

    bare = shortest(lambda: [entry.stat() for entry in os.scandir(tmp_path)])
    assert shortest(lambda: files.scan(str(tmp_path))) < 5 * bare


def test_reading_anywhere(files, tmp_path):
    write(files, f"{tmp_path}/a", bytes(range(100)))
    with files.open(f"{tmp_path}/a") as stream:
        assert stream.seek(90) == 90
        assert stream.read(5) == bytes(range(90, 95))
        buffer = bytearray(10)
        assert stream.readinto(buffer) == 5
        assert buffer[:5] == bytes(range(95, 100))
        assert stream.read(5) == b""
        # Unbuffered: what is appended is seen at once.
        with open(tmp_path / "a", "ab") as more:
            more.write(b"more")
        assert stream.read(10) == b"more"


def test_a_pipe_is_refused_at_once_and_a_folder_too(files, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(errors.NotAFile, match="this is a pipe, not a file"), explained(f"{tmp_path}/pipe", "opening the input"):
        files.open(f"{tmp_path}/pipe")
    with pytest.raises(IsADirectoryError):
        files.open(str(tmp_path))
    with pytest.raises(errors.NotAFile, match="a device"), explained("/dev/null", "opening the input"):
        files.open("/dev/null")
    with pytest.raises(FileNotFoundError):
        files.open(f"{tmp_path}/none")


def test_refusing_leaves_no_descriptor_open(files, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        with pytest.raises(OSError, match="Illegal seek"):
            files.open(f"{tmp_path}/pipe")
    assert len(os.listdir("/dev/fd")) == before


class Stingy:
    """A stream that gives what it likes, but at least a byte."""

    def __init__(self, data: bytes, portions: list[int]) -> None:
        self.data, self.portions, self.position = data, portions, 0

    def read(self, size: int = -1, /) -> bytes:
        portion = self.portions.pop() if self.portions else 1
        piece = self.data[self.position : self.position + min(size, portion)]
        self.position += len(piece)
        return piece


@given(st.binary(max_size=50), st.lists(st.integers(1, 20), max_size=20), st.integers(0, 60))
def test_short_reads_are_repeated(data, portions, size):
    assert read_fully(Stingy(data, portions), size) == data[:size]  # type: ignore[arg-type]


def test_create_makes_folders_and_never_replaces(files, tmp_path):
    path = f"{tmp_path}/a/b/c"
    write(files, path, b"first")
    with pytest.raises(FileExistsError):
        files.create(path)
    with files.open(path) as stream:
        assert stream.read() == b"first"


def test_rename_replaces_and_makes_folders(files, tmp_path):
    write(files, f"{tmp_path}/a", b"new")
    write(files, f"{tmp_path}/b", b"old")
    files.rename(f"{tmp_path}/a", f"{tmp_path}/b")
    files.rename(f"file://{tmp_path}/b", f"{tmp_path}/sub/c")
    files.sync_folder(f"{tmp_path}/sub")
    with files.open(f"{tmp_path}/sub/c") as stream:
        assert stream.read() == b"new"
    with pytest.raises(FileNotFoundError):
        files.rename(f"{tmp_path}/a", f"{tmp_path}/d")
    with pytest.raises(FileNotFoundError):
        files.rename(f"{tmp_path}/a", f"{tmp_path}/other/d")


def test_removing(files, tmp_path):
    write(files, f"{tmp_path}/a/b/c", b"")
    write(files, f"{tmp_path}/keep/d", b"")
    os.symlink(tmp_path / "keep", tmp_path / "a" / "link")
    os.symlink(tmp_path / "keep", tmp_path / "link")
    files.remove_tree(f"{tmp_path}/a")
    files.remove_tree(f"{tmp_path}/a")
    files.remove_tree(f"{tmp_path}/link")
    assert os.listdir(tmp_path) == ["keep"]
    files.remove(f"{tmp_path}/keep/d")
    with pytest.raises(FileNotFoundError):
        files.remove(f"{tmp_path}/keep/d")
    files.make_folders(f"{tmp_path}/x/y")
    files.make_folders(f"{tmp_path}/x/y")
    assert files.exists(f"{tmp_path}/x/y")
    assert not files.exists(f"{tmp_path}/x/z")


def test_a_tree_goes_although_a_cancelled_task_still_writes_there(files, tmp_path):
    folder = f"{tmp_path}/staging"
    stop = threading.Event()

    def zombie() -> None:
        number = 0
        while not stop.is_set() and number < 300:
            number += 1
            try:
                os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_WRONLY))
            except FileNotFoundError:
                return

    files.make_folders(folder)
    thread = threading.Thread(target=zombie)
    thread.start()
    files.remove_tree(folder)
    stop.set()
    thread.join()
    assert not files.exists(folder)


def test_a_name_leads_to_one_folder_or_the_next(files, tmp_path):
    place = join(str(tmp_path), "current")
    assert files.pointed(place) is None
    for name in ("one", "two"):
        write(files, join(str(tmp_path), name, "a"), name.encode())
        files.point(place, name)
        assert files.pointed(place) == name
        assert (tmp_path / "current" / "a").read_text() == name
    os.symlink("one", tmp_path / ".current.new")  # of a process that died
    files.point(place, "one")
    assert sorted(os.listdir(tmp_path)) == ["current", "one", "two"]
    files.remove(place)
    assert (tmp_path / "one" / "a").exists()


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_name_that_is_taken_leads_nowhere(files, tmp_path, is_folder):
    (tmp_path / "current").mkdir() if is_folder else (tmp_path / "current").touch()
    with pytest.raises(FileExistsError):
        files.pointed(join(str(tmp_path), "current"))


def test_exists_does_not_hide_that_it_cannot_know(files, tmp_path, monkeypatch):
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(PermissionError):
        files.exists(join(str(tmp_path), "a"))


def test_a_full_disk_is_told(files):
    with pytest.raises(errors.DiskFull), explained("/dev/full", "writing output"), open("/dev/full", "wb", buffering=0) as full:
        full.write(b"x")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_folder_that_is_synced_survives_with_those_above_it(files, tmp_path, monkeypatch):
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    above = [f"{tmp_path}/a/b", f"{tmp_path}/a", str(tmp_path)]
    files.make_folders(f"{tmp_path}/a/b/c")
    files.sync_folder(f"{tmp_path}/a/b/c")
    assert synced[:4] == [f"{tmp_path}/a/b/c", *above]
    synced.clear()
    files.sync_folder(f"{tmp_path}/a/b/c")
    assert synced == [f"{tmp_path}/a/b/c"]
    files.remove_tree(f"{tmp_path}/a/b")
    with files.create(f"{tmp_path}/a/b/c/file"):
        pass
    synced.clear()
    files.sync_folder(f"{tmp_path}/a/b/c")
    assert synced == [f"{tmp_path}/a/b/c", *above[:2]]

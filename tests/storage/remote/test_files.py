from __future__ import annotations

import datetime
import io
import os
import pickle
import subprocess
import sys
import uuid
from typing import ClassVar

import fsspec.registry  # noqa: F401  # emptied by tests
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from dagflow.errors import PackageMissing, UnknownScheme
from dagflow.storage import FileSystem, file_system, join
from dagflow.storage.remote.files import FsspecFileSystem, _modified_ns


@pytest.fixture
def folder():
    """A folder of its own: fsspec's memory belongs to the whole process."""
    url = f"memory://test-{uuid.uuid4().hex}"
    yield url
    file_system(url).remove_tree(url)


def write(url: str, data: bytes) -> None:
    with file_system(url).create(url) as writer:
        writer.write(data)
        file_system(url).sync_file(writer)


def read(url: str) -> bytes:
    with file_system(url).open(url) as stream:
        return stream.read()


def test_one_file_system_a_scheme(folder):
    files = file_system(folder)
    assert files is file_system("memory://other")
    assert isinstance(files, FileSystem)
    assert pickle.loads(pickle.dumps(files)).scheme == "memory"
    assert files.local_path(folder) is None


def test_files_come_and_go(folder):
    files = file_system(folder)
    url = join(folder, "a", "b.txt")
    assert not files.exists(url)
    write(url, b"hello")
    status = files.status(url)
    assert (status.path, status.length, status.is_regular, status.is_directory, status.inode) == (url, 5, True, False, None)
    assert abs(status.modified_ns / 1e9 - datetime.datetime.now(tz=datetime.UTC).timestamp()) < 60
    assert files.status(join(folder, "a")).is_directory
    with pytest.raises(FileExistsError):
        files.create(url)
    files.rename(url, join(folder, "c [1]*.txt"))
    files.sync_folder(folder)
    assert not files.exists(url)
    assert read(join(folder, "c [1]*.txt")) == b"hello"
    files.remove(join(folder, "c [1]*.txt"))
    with pytest.raises(FileNotFoundError):
        files.status(join(folder, "c [1]*.txt"))
    with pytest.raises(FileNotFoundError):
        files.open(url)


def test_scan_sees_one_level_and_new_files_at_once(folder):
    files = file_system(folder)
    for name in ("a", "b", "sub/c"):
        write(join(folder, name), b"x")
    found = {status.path: status.is_directory for status in files.scan(folder)}
    assert found == {join(folder, "a"): False, join(folder, "b"): False, join(folder, "sub"): True}
    write(join(folder, "d"), b"x")
    assert join(folder, "d") in {status.path for status in files.scan(folder + "/")}
    with pytest.raises(NotADirectoryError):
        list(files.scan(join(folder, "a")))
    with pytest.raises(FileNotFoundError):
        list(files.scan(join(folder, "none")))


def test_a_listing_is_not_kept(folder, monkeypatch):
    class Keeping(MemoryFileSystem):
        kept: ClassVar[set[str]] = set()

        def ls(self, path, detail=True, **options):
            self.kept.add(path)
            return super().ls(path, detail, **options)

        def invalidate_cache(self, path=None):
            self.kept.discard(path)

    files, driver = FsspecFileSystem("memory"), Keeping()
    write(join(folder, "a"), b"x")
    monkeypatch.setattr(files, "resolve", lambda path: (driver, driver._strip_protocol(path)))
    assert [status.path for status in files.scan(folder)] == [join(folder, "a")]
    assert not driver.kept


def test_two_readers_of_one_file_do_not_disturb_each_other(folder):
    url = join(folder, "a")
    write(url, b"0123456789")
    files = file_system(url)
    with files.open(url) as first, files.open(url) as second:
        assert first.read(4) == b"0123"
        assert second.read(2) == b"01"
        assert first.read(2) == b"45"
    with files.open(url) as again:
        assert again.seek(8) == 8
        buffer = bytearray(4)
        assert again.readinto(buffer) == 2


@pytest.mark.parametrize("name", ["tree", "tree [1]"])
def test_a_tree_goes(folder, name):
    files = file_system(folder)
    write(join(folder, name, "a"), b"")
    write(join(folder, name, "sub", "b"), b"")
    write(join(folder, "tree 1"), b"")
    files.remove_tree(join(folder, name))
    files.remove_tree(join(folder, name))
    assert {status.path for status in files.scan(folder) if status.is_regular} == {join(folder, "tree 1")}
    files.make_folders(join(folder, "x", "y"))
    assert files.exists(join(folder, "x", "y"))


def test_a_driver_that_cannot_create_exclusively_looks_first(folder, monkeypatch):
    real = MemoryFileSystem._open

    def _open(self, path, mode="rb", **options):
        if mode == "xb":
            raise NotImplementedError("File mode not supported")
        return real(self, path, mode, **options)

    monkeypatch.setattr(MemoryFileSystem, "_open", _open)
    write(join(folder, "a"), b"first")
    with pytest.raises(FileExistsError):
        write(join(folder, "a"), b"second")
    assert read(join(folder, "a")) == b"first"


def test_an_unknown_scheme_gets_the_nearest():
    with pytest.raises(UnknownScheme) as caught:
        file_system("memroy://x/y")
    assert str(caught.value) == "memroy://x/y: memroy:// is not supported. Did you mean memory://?"
    assert caught.value.exit_code == 3
    with pytest.raises(UnknownScheme, match=r"Supported: plain paths, s3://"):
        file_system("qqqqqqqqq://x")


def test_a_file_says_where_a_name_leads(folder):
    files, place = file_system(folder), join(folder, "current")
    assert files.pointed(place) is None
    for name in ("_snapshots/w000003", "_snapshots/w000004"):
        files.point(place, name)
        assert files.pointed(place) == name
    assert read(place) == b"_snapshots/w000004\n"


def test_a_missing_driver_names_what_to_install(monkeypatch):
    # Whether s3fs is installed here or not: this process cannot import it.
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)  # an earlier test may have opened one
    with pytest.raises(PackageMissing) as caught:
        FsspecFileSystem("s3", url="s3://bucket/x")
    assert str(caught.value) == (
        "s3://bucket/x needs the package s3fs, which is not installed (Install s3fs to access S3)\n"
        "  help: install it here, and where the tasks run: pip install 'dagflow[s3]'"
    )
    assert caught.value.exit_code == 3


def test_a_missing_driver_of_a_driver_too(monkeypatch):
    monkeypatch.setitem(sys.modules, "smbclient", None)
    monkeypatch.delitem(sys.modules, "fsspec.implementations.smb", raising=False)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "smb", raising=False)
    with pytest.raises(PackageMissing, match="pip install smbprotocol"):
        FsspecFileSystem("smb", url="smb://host/x")


def test_fsspec_itself_may_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(PackageMissing, match="pip install fsspec"):
        FsspecFileSystem("s3", url="s3://bucket/x")


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({}, 0),
        ({"mtime": 1.5}, 1_500_000_000),
        ({"LastModified": datetime.datetime(1970, 1, 1, 0, 0, 2, 3, tzinfo=datetime.UTC)}, 2_000_003_000),
        ({"mtime": None, "updated": "1970-01-01T00:00:01Z"}, 1_000_000_000),
        ({"last_modified": "yesterday"}, 0),
        ({"created": datetime.datetime(1970, 1, 1, 0, 0, 1)}, 1_000_000_000),  # noqa: DTZ001  # as some drivers have it
    ],
)
def test_the_time_of_a_change_under_each_drivers_name(info, expected):
    assert _modified_ns(info) == expected


def test_the_room_loads_no_driver():
    code = (
        "import sys, dagflow.storage as s; s.file_system('x').exists('y'); s.open_store('x');"
        "heavy = {'fsspec', 'pyarrow', 'pyspark', 'networkx', 'click', 'cattrs'} & set(sys.modules); assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def test_a_stream_of_the_driver_itself_is_abandoned(folder):
    files = file_system(folder)
    writer = files.create(join(folder, "a"))
    writer.write(b"x")
    files.abandon(writer)
    plain = io.BytesIO()  # has no discard, as the streams of hdfs
    files.abandon(plain)
    assert plain.closed

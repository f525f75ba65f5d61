"""The store on disks: what it leaves, what it survives, what it says."""

from __future__ import annotations

import errno
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from dagflow.storage import LocalStore, errors, open_store, probe
from dagflow.storage.local import store as module


def refuse_links(source: str, target: str) -> None:
    raise PermissionError(errno.EPERM, "Operation not permitted", source, None, target)


def test_a_local_store_travels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = LocalStore("run", durable=False)
    first.create("a", b"1")
    monkeypatch.chdir("/")
    second = pickle.loads(pickle.dumps(first))
    assert (second.read("a"), second.durable, second.url) == (b"1", False, f"{tmp_path}/run")
    assert LocalStore(f"file://{tmp_path}/run").read("a") == b"1"
    with pytest.raises(ValueError, match="is not a local folder"):
        LocalStore("s3://bucket/x")


def test_opening_a_store_makes_nothing(tmp_path):
    made = open_store(f"{tmp_path}/run")
    assert made.names() == []
    assert made.read("a") is None
    assert os.listdir(tmp_path) == []


def test_leftovers_are_ignored_and_swept(tmp_path):
    made = LocalStore(f"{tmp_path}", durable=False)
    made.create("log/0", b"x")
    (tmp_path / "log" / ".tmp-dead").write_bytes(b"half")
    os.utime(tmp_path / "log" / ".tmp-dead", (100, 100))
    (tmp_path / ".tmp-alive").write_bytes(b"half")
    os.utime(tmp_path / ".tmp-alive", (200, 200))
    assert made.names() == ["log/0"]
    assert made.sweep(before=150) == 1
    assert sorted(os.listdir(tmp_path)) == [".tmp-alive", "log"]
    assert os.listdir(tmp_path / "log") == ["0"]


def test_a_writer_whose_temporary_file_is_swept_writes_it_again(tmp_path, monkeypatch):
    made = LocalStore(f"{tmp_path}/run", durable=True)
    real, swept = os.link, []

    def link(source: str, target: str) -> None:
        if not swept:
            swept.append(made.sweep(before=float("inf")))
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    assert made.create("a", b"1")
    assert swept == [1]
    assert made.read("a") == b"1"


def test_a_writer_whose_file_was_swept_is_not_taken_for_the_one_that_got_its_number(tmp_path, monkeypatch):
    """File systems give the number of a removed file to the next one: a paused writer saw its own in the record of another."""
    store, other, real = LocalStore(str(tmp_path)), LocalStore(str(tmp_path)), os.link

    def overtaken(source: str, target: str) -> None:
        monkeypatch.setattr(os, "link", real)
        os.unlink(source)
        for number in range(20):  # one of them gets the number, if it is free
            other.create(f"entries/{number}", b"theirs")
        real(source, target)

    other.create("entries/first", b"makes the folder")
    monkeypatch.setattr(os, "link", overtaken)
    assert store.create("entries/0", b"ours") is False
    assert store.read("entries/0") == b"theirs"


def test_empty_folders_go_with_their_last_record(tmp_path):
    made = LocalStore(f"{tmp_path}/run", durable=False)
    made.create("windows/7/reports/0", b"")
    made.create("windows/8/reports/0", b"")
    made.discard("windows/7/reports/0")
    assert os.listdir(tmp_path / "run" / "windows") == ["8"]
    made.discard("windows/8/reports/0")
    assert os.listdir(tmp_path / "run") == []
    assert made.create("windows/8/reports/0", b"")


def test_discarding_and_creating_at_once_in_one_folder(tmp_path):
    made = LocalStore(f"{tmp_path}/run", durable=False)

    def work(number: int) -> None:
        for round_ in range(100):
            assert made.create(f"a/b/{number}", b"%d" % round_)
            made.discard(f"a/b/{number}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert made.names() == []


def test_short_reads_and_writes_are_repeated(tmp_path, monkeypatch):
    real_read, real_write = os.read, os.write
    monkeypatch.setattr(os, "read", lambda descriptor, size: real_read(descriptor, min(size, 3)))
    monkeypatch.setattr(os, "write", lambda descriptor, data: real_write(descriptor, data[:2]))
    made = LocalStore(f"{tmp_path}")
    assert made.create("a", b"0123456789")
    assert made.read("a") == b"0123456789"


def test_a_name_that_is_a_folder_of_others(tmp_path):
    made = LocalStore(f"{tmp_path}")
    made.create("a/b", b"")
    assert made.read("a") is None
    with pytest.raises(errors.NotAFile):
        made.create("a", b"")
    assert made.read("a/b/c") is None
    with pytest.raises(errors.NotAFolder, match="a/b is a file"):
        made.create("a/b/c", b"")


def fail(number: int):
    def raising(*arguments: object, **_: object) -> None:
        raise OSError(number, os.strerror(number), *(str(each) for each in arguments[:1]))

    return raising


@pytest.mark.parametrize(
    ("call", "number", "kind"),
    [
        ("write", errno.ENOSPC, errors.DiskFull),
        ("write", errno.EDQUOT, errors.DiskFull),
        ("fsync", errno.EIO, errors.DeviceFailed),
        ("open", errno.EACCES, errors.NotWritable),
        ("open", errno.EROFS, errors.NotWritable),
        ("open", errno.EMFILE, errors.TooManyOpenFiles),
        ("link", errno.ENOSPC, errors.DiskFull),
        ("link", errno.EIO, errors.DeviceFailed),
    ],
)
def test_what_fails_publishes_nothing_and_leaves_nothing(tmp_path, monkeypatch, call, number, kind):
    made = LocalStore(f"{tmp_path}")
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail(number))
        with pytest.raises(kind, match="while publishing a record") as caught:
            made.create("a", b"x")
    assert caught.value.path == f"{tmp_path}/a"
    assert os.listdir(tmp_path) == []
    assert made.create("a", b"x")


def test_a_record_that_may_not_be_read(tmp_path, monkeypatch):
    made = LocalStore(f"{tmp_path}")
    made.create("a", b"x")
    monkeypatch.setattr(os, "open", fail(errno.EACCES))
    with pytest.raises(errors.NotReadable, match="while reading a record"):
        made.read("a")
    monkeypatch.setattr(os, "scandir", fail(errno.EACCES))
    with pytest.raises(errors.NotReadable, match="while listing records"):
        made.names()


@pytest.mark.parametrize("number", [errno.EEXIST, errno.EIO, errno.ETIMEDOUT, errno.EPERM])
def test_a_link_that_took_effect_and_was_reported_as_failed_counts(tmp_path, monkeypatch, number):
    real = os.link

    def link(source: str, target: str) -> None:
        real(source, target)
        raise OSError(number, os.strerror(number), source, None, target)

    monkeypatch.setattr(os, "link", link)
    made = LocalStore(f"{tmp_path}")
    assert made.create("a", b"mine")
    assert not made.create("a", b"mine")
    assert os.listdir(tmp_path) == ["a"]


def test_equal_bytes_of_another_writer_are_not_taken_for_ours(tmp_path, monkeypatch):
    made, other = LocalStore(f"{tmp_path}"), LocalStore(f"{tmp_path}")
    real = os.link

    def late(source: str, target: str) -> None:
        monkeypatch.setattr(os, "link", real)
        assert other.create("a", b"same")
        real(source, target)

    monkeypatch.setattr(os, "link", late)
    assert not made.create("a", b"same")


def test_a_disk_without_links_and_exclusive_renames_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", refuse_links)
    monkeypatch.setattr(module, "_rename_no_replace", fail(errno.EINVAL))
    made = LocalStore(f"{tmp_path}")
    with pytest.raises(errors.StoreRefused, match=r"neither hard links .* nor a rename that refuses to replace") as caught:
        probe(made)
    assert caught.value.exit_code == 3
    assert os.listdir(tmp_path) == []


def test_a_rename_that_took_effect_and_was_reported_as_failed_counts(tmp_path, monkeypatch):
    real = module._rename_no_replace

    def rename(source: str, target: str) -> None:
        real(source, target)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "link", refuse_links)
    monkeypatch.setattr(module, "_rename_no_replace", rename)
    made = LocalStore(f"{tmp_path}")
    assert made.create("a", b"mine")
    assert made.read("a") == b"mine"


# ------------------------------------------------------------------------------------------------ power cuts


@pytest.fixture
def synced(monkeypatch):
    """The paths that were synced, in order, with links and renames between them."""
    happened: list[str] = []
    real_sync, real_link = os.fsync, os.link

    def fsync(descriptor: int) -> None:
        happened.append("sync " + os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")).partition("-")[0])
        real_sync(descriptor)

    def link(source: str, target: str) -> None:
        happened.append("link " + os.path.basename(target))
        real_link(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "link", link)
    return happened


def test_a_durable_record_is_synced_before_and_its_name_after_the_link(tmp_path, synced):
    made = LocalStore(f"{tmp_path}/run")
    made.create("log/0", b"x")
    assert synced.index("sync .tmp") < synced.index("link 0") < len(synced) - 1
    assert synced[-1] == "sync log"
    assert "sync run" in synced
    assert f"sync {tmp_path.name.partition('-')[0]}" in synced
    synced.clear()
    made.create("log/1", b"x")
    assert synced == ["sync .tmp", "link 1", "sync log"]
    synced.clear()
    # The loser acts upon the winner's record, which the winner may not have secured yet.
    assert not LocalStore(f"{tmp_path}/run").create("log/1", b"y")
    assert synced[-1] == "sync log"


def test_what_a_new_process_reads_is_secured_first(tmp_path, synced):
    LocalStore(f"{tmp_path}/run", durable=False).create("log/0", b"x")
    assert synced == ["link 0"]
    made = LocalStore(f"{tmp_path}/run")
    made.read("log/0")
    assert synced[-2:] == ["sync run", "sync log"]
    synced.clear()
    made.read("log/0")
    made.names("log/")
    assert synced == []
    LocalStore(f"{tmp_path}/run", durable=False).names()
    assert synced == []


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EROFS, errno.ENOTSUP])
def test_a_disk_that_cannot_sync_folders_will_do(tmp_path, monkeypatch, number):
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(number, os.strerror(number))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    assert LocalStore(f"{tmp_path}/run").create("log/0", b"x")


def test_a_record_whose_name_could_not_be_secured_is_reported_and_not_removed(tmp_path, monkeypatch):
    made = LocalStore(f"{tmp_path}")
    real = os.fsync

    def fsync(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(errors.DeviceFailed):
            made.create("a", b"x")
    assert not made.create("a", b"x")
    assert made.read("a") == b"x"


def test_many_folders_do_not_fill_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_REMEMBERED", 10)
    made = LocalStore(f"{tmp_path}")
    for number in range(40):
        made.create(f"{number}/report", b"")
        assert len(made._settled) <= 10
    assert len(made.names()) == 40

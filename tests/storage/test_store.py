from __future__ import annotations

import errno
import os
import pickle
import tempfile
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dagflow.errors import surroundings as errors
from dagflow.storage import CountingStore, LocalStore, MemoryStore, Store, file_system, localstore, open_store, probe, store

KINDS = ["durable", "quick", "memory", "fsspec", "counting", "without links"]


@contextmanager
def a_store(kind: str):
    """A new, empty store of each kind."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if kind == "memory":
            yield MemoryStore()
        elif kind == "counting":
            yield CountingStore()
        elif kind == "fsspec":
            url = f"memory://store-{uuid.uuid4().hex}"
            yield open_store(url)
            file_system(url).remove_tree(url)
        else:
            if kind == "without links":
                patch.setattr(os, "link", refuse_links)
            yield LocalStore(f"{folder}/run/log", durable=kind == "durable")


def refuse_links(source: str, target: str) -> None:
    raise PermissionError(errno.EPERM, "Operation not permitted", source, None, target)


@pytest.fixture(params=KINDS)
def any_store(request):
    with a_store(request.param) as made:
        yield made


# ------------------------------------------------------------------------------------------------ laws of every store


def test_the_first_record_of_a_name_stays(any_store):
    assert isinstance(any_store, Store)
    assert any_store.read("log/0") is None
    assert any_store.names() == []
    assert any_store.create("log/0", b"first")
    assert not any_store.create("log/0", b"second")
    assert any_store.read("log/0") == b"first"
    assert any_store.create("log/1", b"")
    assert any_store.read("log/1") == b""
    assert any_store.create("top", b"x" * 3_000_000)
    assert any_store.read("top") == b"x" * 3_000_000
    assert any_store.names() == ["log/0", "log/1", "top"]
    assert any_store.names("log/") == ["log/0", "log/1"]
    assert any_store.names("t") == ["top"]
    assert any_store.names("lo") == ["log/0", "log/1"]
    assert any_store.names("none/") == []
    any_store.discard("log/0")
    any_store.discard("log/0")
    any_store.discard("no/such")
    assert any_store.names() == ["log/1", "top"]
    assert any_store.create("log/0", b"again")
    assert any_store.url


def test_every_store_passes_the_probe_and_keeps_nothing_of_it(any_store):
    probe(any_store)
    assert any_store.names() == []


@pytest.mark.parametrize("name", ["", "/a", "a/", "a//b", ".", "..", "a/../b", ".hidden", "a/.b", "a\0b"])
def test_a_name_that_may_not_be(any_store, name):
    for call in (lambda: any_store.create(name, b""), lambda: any_store.read(name), lambda: any_store.discard(name)):
        with pytest.raises(ValueError, match="is no name of a record"):
            call()


names = st.sampled_from(["a", "b/0", "b/1", "b/c/2", "bb", "ä ö", "b/[x]*?"])
operations = st.lists(
    st.one_of(
        st.tuples(st.just("create"), names, st.binary(max_size=5)),
        st.tuples(st.just("read"), names),
        st.tuples(st.just("discard"), names),
        st.tuples(st.just("names"), st.sampled_from(["", "a", "b", "b/", "b/c", "b/c/", "x/"])),
    ),
    max_size=30,
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None)
@given(operations=operations)
def test_a_store_behaves_like_a_dictionary_that_never_replaces(kind, operations):
    model: dict[str, bytes] = {}
    with a_store(kind) as tried:
        for call, name, *data in operations:
            answer = getattr(tried, call)(name, *data)
            if call == "create":
                assert answer is (name not in model)
                model.setdefault(name, data[0])
            elif call == "read":
                assert answer == model.get(name)
            elif call == "discard":
                model.pop(name, None)
            else:
                assert answer == sorted(known for known in model if known.startswith(name))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10, deadline=None)
@given(writers=st.integers(2, 8), published=st.integers(1, 6), data=st.binary(max_size=20))
def test_of_many_threads_exactly_one_wins(kind, writers, published, data):
    with a_store(kind) as tried:
        barrier = threading.Barrier(writers)

        def run(number: int) -> list[tuple[bool, bytes | None]]:
            seen = []
            for name in range(published):
                barrier.wait()
                won = tried.create(f"claims/{name}", data + b"#%d" % number)
                seen.append((won, tried.read(f"claims/{name}")))
            return seen

        with ThreadPoolExecutor(writers) as pool:
            seen = list(pool.map(run, range(writers)))
        for name in range(published):
            winners = [number for number in range(writers) if seen[number][name][0]]
            assert len(winners) == 1
            assert {seen[number][name][1] for number in range(writers)} == {data + b"#%d" % winners[0]}


# ------------------------------------------------------------------------------------------------ local


def test_a_local_store_travels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = LocalStore("run", durable=False)
    first.create("a", b"1")
    monkeypatch.chdir("/")
    second = pickle.loads(pickle.dumps(first))
    assert (second.read("a"), second.durable, second.url) == (b"1", False, f"{tmp_path}/run")
    assert LocalStore(f"file://{tmp_path}/run").read("a") == b"1"
    with pytest.raises(ValueError, match="no local folder"):
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
    monkeypatch.setattr(localstore, "_rename_no_replace", fail(errno.EINVAL))
    made = LocalStore(f"{tmp_path}")
    with pytest.raises(errors.StoreRefused, match=r"neither hard links .* nor a rename that refuses to replace") as caught:
        probe(made)
    assert caught.value.exit_code == 3
    assert os.listdir(tmp_path) == []


def test_a_rename_that_took_effect_and_was_reported_as_failed_counts(tmp_path, monkeypatch):
    real = localstore._rename_no_replace

    def rename(source: str, target: str) -> None:
        real(source, target)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "link", refuse_links)
    monkeypatch.setattr(localstore, "_rename_no_replace", rename)
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
    monkeypatch.setattr(localstore, "_REMEMBERED", 10)
    made = LocalStore(f"{tmp_path}")
    for number in range(40):
        made.create(f"{number}/report", b"")
        assert len(made._settled) <= 10
    assert len(made.names()) == 40


# ------------------------------------------------------------------------------------------------ doubles and the probe


def test_the_counting_store_counts_and_fails_when_told():
    def lose_the_answer(call: str, name: str) -> None:
        if (call, name) == ("create", "b"):
            raise TimeoutError

    counting = CountingStore(after=lose_the_answer)
    counting.create("a", b"1")
    with pytest.raises(TimeoutError):
        counting.create("b", b"2")
    assert counting.read("b") == b"2"
    assert counting.names() == ["a", "b"]
    assert dict(counting.counts) == {"create": 2, "read": 1, "names": 1}
    counting.reset()
    assert counting.calls == []
    counting.before = lose_the_answer
    counting.discard("a")
    counting.discard("b")
    with pytest.raises(TimeoutError):
        counting.create("b", b"2")
    assert counting.names() == []


class Careless(MemoryStore):
    """Ignores the condition."""

    def create(self, name: str, data: bytes) -> bool:
        self._records[name] = data
        return True


class LooksFirst(MemoryStore):
    """Looks, and writes then."""

    def create(self, name: str, data: bytes) -> bool:
        if self.read(name) is not None:
            return False
        threading.Event().wait(0.002)
        self._records[name] = data
        return True


class Blind(MemoryStore):
    def names(self, prefix: str = "") -> list[str]:
        return []


class Broken(MemoryStore):
    def create(self, name: str, data: bytes) -> bool:
        raise RuntimeError("no such bucket")


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (Careless, "a second record of one name was not refused"),
        (LooksFirst, r"of 4 writers of one name, \d were told that they won"),
        (Blind, "is not listed"),
        (Broken, "trying it out failed .RuntimeError: no such bucket"),
    ],
)
def test_the_probe_refuses_stores_that_cannot_publish(bad, why):
    made = bad()
    with pytest.raises(errors.StoreRefused, match=why):
        store.probe(made)
    assert made._records == {}

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import attrs
import pytest

from dagflow.storage import FolderLock, Holder, errors, file_system, lock_holder, open_store
from dagflow.testing import FakeClock

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
HOLDER = """
import sys, fcntl
if sys.argv[2] == "False":
    def flock(*_):
        raise OSError(38, "Function not implemented")
    fcntl.flock = flock
from dagflow.storage import FolderLock
lock = FolderLock(sys.argv[1], who="the first", now=lambda: 0.0)
lock.acquire()
print("held", flush=True)
sys.stdin.readline()
lock.release()
print("released", flush=True)
sys.stdin.readline()
"""


def no_flock(descriptor: int, operation: int) -> None:
    raise OSError(errno.ENOSYS, "Function not implemented")


@pytest.fixture(params=["flock", "numbers"])
def has_flock(request, monkeypatch):
    """Each test runs twice: as on most disks, and as on one whose file system has no flock."""
    if request.param == "numbers":
        monkeypatch.setattr(fcntl, "flock", no_flock)
    return request.param == "flock"


@pytest.fixture
def other_process(tmp_path, has_flock):
    """Another process that holds the folder."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path), str(has_flock)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_a_second_launch_is_refused_and_told_who_holds_the_folder(tmp_path, other_process):
    with pytest.raises(errors.FolderInUse) as caught:
        FolderLock(str(tmp_path)).acquire()
    host = socket.gethostname()
    assert str(caught.value) == (
        f"{tmp_path} is in use by process {other_process.pid} on {host} since 1970-01-01T00:00:00Z (the first): two launches "
        f"cannot use the same folder. Wait until it is done, stop it (`kill {other_process.pid}` there), or give this launch "
        "another output."
    )
    assert caught.value.exit_code == 3


@pytest.mark.chaos
def test_a_dead_holder_is_recognised_at_once(tmp_path, other_process):
    other_process.send_signal(signal.SIGKILL)
    other_process.wait()
    with FolderLock(str(tmp_path)) as held:
        assert held.abandoned_by.pid == other_process.pid
        assert held.abandoned_by.who == "the first"
    with FolderLock(str(tmp_path)) as held:
        assert held.abandoned_by is None


@pytest.mark.chaos
def test_a_holder_that_is_dead_but_not_buried_is_dead(tmp_path, other_process):
    other_process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, other_process.pid, os.WEXITED | os.WNOWAIT)  # a zombie, until the fixture waits for it
    with FolderLock(str(tmp_path)):
        pass


def test_a_stopped_holder_still_holds(tmp_path, other_process):
    other_process.send_signal(signal.SIGSTOP)
    with pytest.raises(errors.FolderInUse):
        FolderLock(str(tmp_path)).acquire()
    other_process.send_signal(signal.SIGCONT)


def test_a_released_folder_is_free_while_its_holder_lives(tmp_path, other_process):
    other_process.stdin.write("\n")
    other_process.stdin.flush()
    assert other_process.stdout.readline() == "released\n"
    with FolderLock(str(tmp_path)) as held:
        assert held.abandoned_by is None
        assert held.is_held
    assert not held.is_held


def test_one_process_too_may_hold_it_only_once(tmp_path, has_flock):
    with FolderLock(f"{tmp_path}/new/run") as held:
        with pytest.raises(errors.FolderInUse, match=f"process {os.getpid()} on"):
            FolderLock(f"file://{tmp_path}/new/run").acquire()
        with pytest.raises(RuntimeError, match="is held already"):
            held.acquire()
    held.release()
    for _ in range(3):
        with held:
            pass


def test_of_many_threads_one_gets_it(tmp_path, has_flock):
    barrier = threading.Barrier(8)

    def run(_: int) -> FolderLock | None:
        tried = FolderLock(str(tmp_path))
        barrier.wait()
        try:
            tried.acquire()
        except errors.FolderInUse:
            return None
        return tried

    for _ in range(10):
        with ThreadPoolExecutor(8) as pool:
            winners = [each for each in pool.map(run, range(8)) if each is not None]
        assert len(winners) == 1
        winners[0].release()


def test_nothing_piles_up(tmp_path, has_flock):
    for _ in range(30):
        with FolderLock(str(tmp_path)):
            pass
    kept = sum(len(files) for _, _, files in os.walk(tmp_path))
    assert kept <= 12


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # another test's threads may still be there
def test_a_child_does_not_inherit_the_lock(tmp_path):
    held = FolderLock(str(tmp_path))
    held.acquire()
    from_child, to_parent = os.pipe()
    to_child, to_child_end = os.pipe()
    child = os.fork()
    if child == 0:  # a worker that outlives its parent's launch
        os.close(to_child_end)
        os.write(to_parent, b"1" if held.is_held else b"0")
        os.read(to_child, 1)
        os._exit(0)
    assert os.read(from_child, 1) == b"0"
    # What the system does when the parent dies: its descriptor goes, without any release.
    os.close(held._descriptor)
    held._descriptor = None
    with FolderLock(str(tmp_path)) as again:
        assert again.is_held
    os.write(to_child_end, b"x")
    os.waitpid(child, 0)
    for descriptor in (from_child, to_parent, to_child, to_child_end):
        os.close(descriptor)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # another test's threads may still be there
def test_a_child_does_not_release_what_its_parent_holds(tmp_path, has_flock):
    with FolderLock(str(tmp_path)) as held:
        child = os.fork()
        if child == 0:
            held.release()
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(errors.FolderInUse):
            FolderLock(str(tmp_path)).acquire()


def test_a_lock_file_that_is_removed_meanwhile_is_made_again(tmp_path, monkeypatch):
    real = fcntl.flock
    removed = []

    def flock(descriptor: int, operation: int) -> None:
        if not removed:
            removed.append(os.unlink(tmp_path / ".lock"))
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with FolderLock(str(tmp_path)):
        assert removed
        with pytest.raises(errors.FolderInUse):
            FolderLock(str(tmp_path)).acquire()


@pytest.mark.parametrize("content", [b"", b"{half", b"[]", b'"x"', b'{"pid": "?"}', b"\xff"])
def test_a_holder_that_has_not_written_its_name_yet(tmp_path, content):
    slept = []
    with FolderLock(str(tmp_path)) as held:
        os.ftruncate(held._descriptor, 0)
        os.pwrite(held._descriptor, content, 0)
        with pytest.raises(errors.FolderInUse, match="is in use by another process: two launches"):
            FolderLock(str(tmp_path), sleep=slept.append).acquire()
    assert len(slept) == 25


def test_the_name_of_a_dead_one_is_not_shown_for_the_new_holder(tmp_path):
    with FolderLock(str(tmp_path), who="alive") as held:
        mine = os.pread(held._descriptor, 10_000, 0)
        dead = attrs.evolve(Holder.from_bytes(mine), born="1", who="dead")
        os.ftruncate(held._descriptor, 0)
        os.pwrite(held._descriptor, dead.to_bytes(), 0)

        def sleep(_: float) -> None:
            os.ftruncate(held._descriptor, 0)
            os.pwrite(held._descriptor, mine, 0)

        with pytest.raises(errors.FolderInUse, match="alive"):
            FolderLock(str(tmp_path), sleep=sleep).acquire()


def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch):
    def refuse(path: str, *_: object) -> int:
        raise OSError(errno.EROFS, "Read-only file system", path)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(errors.NotWritable, match="mounted read-only"):
        FolderLock(str(tmp_path)).acquire()


def test_a_lock_that_fails_for_another_reason(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", refuse)
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(errors.DeviceFailed):
        FolderLock(str(tmp_path)).acquire()
    assert len(os.listdir("/dev/fd")) == before


# ------------------------------------------------------------------------------------------------ folders elsewhere


def test_a_folder_behind_a_url(monkeypatch):
    url = f"memory://lock-{uuid.uuid4().hex}"
    with FolderLock(url), pytest.raises(errors.FolderInUse):
        FolderLock(url).acquire()
    file_system(url).remove_tree(url)


def test_a_holder_elsewhere_without_a_lease_is_of_an_earlier_version(monkeypatch):
    url = f"memory://lock-{uuid.uuid4().hex}"
    me = Holder.this_process(now=0.0)
    store = open_store(url)
    store.create("_lock/0000000007", attrs.evolve(me, host="far away", pid=5).to_bytes())
    with pytest.raises(errors.FolderInUse, match=f"If it is gone for good, remove {url}/_lock/0000000007"):
        FolderLock(url).acquire()
    store.discard("_lock/0000000007")
    with FolderLock(url):
        pass
    file_system(url).remove_tree(url)


def test_a_launch_that_died_on_another_host_is_followed_when_its_lease_ends(tmp_path, other_process, has_flock, monkeypatch):
    clock, awaited = FakeClock(), []
    other_process.kill()
    other_process.wait()
    monkeypatch.setattr(socket, "gethostname", lambda: "another host")
    held = FolderLock(str(tmp_path), clock=clock.monotonic, sleep=clock.sleep, waiting=awaited.append)
    with held:
        assert held.abandoned_by.pid == other_process.pid
        held.check()
        held.confirm()
        assert lock_holder(str(tmp_path)).host == "another host"
    assert clock.monotonic() == (0.0 if has_flock else pytest.approx(60.0))  # the system knows that the process is gone
    assert [holder.pid for holder in awaited] == ([] if has_flock else [other_process.pid])


@pytest.mark.chaos
def test_a_launch_that_was_paused_learns_that_it_has_been_followed(tmp_path, monkeypatch):
    monkeypatch.setattr(fcntl, "flock", no_flock)
    clock = FakeClock()
    with FolderLock(str(tmp_path), who="the first", clock=clock.monotonic) as first:
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(socket, "gethostname", lambda: "another host")
            second = FolderLock(str(tmp_path), who="the second", clock=clock.monotonic, sleep=clock.sleep)
            second.acquire()
        with pytest.raises(errors.LeaseLost, match=r"on another host took over since .* \(the second\)"):
            first.check()
        for call in (first.check, first.confirm, first.raise_if_lost):
            with pytest.raises(errors.LeaseLost):
                call()
    second.check()  # the release of the first one has changed nothing
    second.confirm()
    second.release()


def test_a_lock_that_is_not_held_checks_nothing(tmp_path):
    idle = FolderLock(str(tmp_path))
    idle.check()
    idle.confirm()
    idle.raise_if_lost()


def test_the_holder_survives_a_power_cut(tmp_path, monkeypatch):
    noted: list[bytes] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: noted.append(os.pread(descriptor, 1000, 0)))
    with FolderLock(str(tmp_path), who="the first", durable=True):
        assert [b"the first" in each for each in noted] == [True]
    with FolderLock(str(tmp_path)):
        assert len(noted) == 1


def test_a_holder_before_the_machine_has_started(tmp_path):
    for is_before_boot in (False, True, False):  # the first one has no holder before it
        if is_before_boot:
            os.utime(tmp_path / ".lock", (1e9, 1e9))
        with FolderLock(str(tmp_path)) as held:
            assert held.is_before_boot == is_before_boot
            assert held.abandoned_by is None


def test_a_failing_disk_does_not_hide_how_the_holder_ended(tmp_path, monkeypatch):
    def fail(descriptor: int, size: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    held = FolderLock(str(tmp_path))
    held.acquire()
    with monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", fail)
        held.release()
    with FolderLock(str(tmp_path)) as again:
        assert again.abandoned_by is not None

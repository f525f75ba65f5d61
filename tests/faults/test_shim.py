"""The library that counts calls, in small processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults import shim
from tests.faults.disk import Disk, content_of
from tests.faults.shim import Action, Control, Kind

pytestmark = [
    pytest.mark.skipif(bool(shim.unsupported()), reason=shim.unsupported()),
    pytest.mark.full,
]

WORK = """
import os, sqlite3, subprocess, sys
os.chdir(sys.argv[1])
os.mkdir("sub")
with open("sub/new", "wb", buffering=0) as file:
    file.write(b"0123456789")
    os.fsync(file.fileno())
    os.pwrite(file.fileno(), b"xx", 4)
    os.writev(file.fileno(), [b"ab", b"cd"])
    os.ftruncate(file.fileno(), 13)
os.link("sub/new", "linked")
os.rename("sub/new", "moved")
os.symlink("moved", "leads")
os.unlink("linked")
os.rmdir("sub")
open("/dev/null", "wb").write(b"elsewhere")
subprocess.run([sys.executable, "-c", "open('child', 'w').write('of a child')"], check=True)
database = sqlite3.connect("data.db")
with database:
    database.execute("CREATE TABLE t (n)")
    database.executemany("INSERT INTO t VALUES (?)", [(n,) for n in range(1000)])
database.close()
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shim.compiled(tmp_path_factory.mktemp("library"))


@pytest.fixture
def run(library: Path, tmp_path: Path) -> Callable[..., tuple[int, Control]]:
    root = tmp_path / "root"
    root.mkdir()

    def run(action: Action, target: int = 0) -> tuple[int, Control]:
        control = Control.create(tmp_path / "control", root, action, target)
        environment = {**os.environ, shim.PRELOAD: str(library), shim.CONTROL_VARIABLE: str(control.path)}
        ended = subprocess.run(
            [sys.executable, "-c", WORK, root], env=environment, check=False, stderr=subprocess.PIPE, text=True
        )
        return ended.returncode, control

    return run


def number_of(calls: list[shim.Call], kind: Kind, path: str = "") -> int:
    return next(call.number for call in calls if call.kind is kind and call.path.endswith(path))


def test_the_calls_explain_the_files(run: Callable[..., tuple[int, Control]], tmp_path: Path) -> None:
    disk = Disk.of(tmp_path / "root")
    status, control = run(Action.CUT, 1 << 60)
    assert status == 0
    calls = list(control.calls())
    assert {call.kind for call in calls} == set(Kind) - {Kind.SEND}
    assert [call.number for call in calls] == sorted(call.number for call in calls)
    for call in calls:
        disk.apply(call)
    found = content_of(tmp_path / "root")
    assert disk.now().content(disk.top) == found
    assert found["child"] == b"of a child"
    assert control.hits == 0


def test_faults_hit_the_call(run: Callable[..., tuple[int, Control]], tmp_path: Path) -> None:
    root = tmp_path / "root"
    _, control = run(Action.CUT, 1 << 60)
    number = number_of(list(control.calls()), Kind.WRITE, "/sub/new")

    def hit(action: Action) -> tuple[int, Control]:
        for path in sorted(root.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        return run(action, number)

    status, control = hit(Action.KILL)
    assert (status, control.count, control.kind, (root / "sub" / "new").read_bytes()) == (
        -signal.SIGKILL,
        number,
        Kind.WRITE,
        b"",
    )
    status, _ = hit(Action.TEAR)
    assert (status, (root / "sub" / "new").read_bytes()) == (-signal.SIGKILL, b"01234")
    for action in (Action.EIO, Action.ENOSPC):
        status, control = hit(action)
        assert (status, control.hits) == (1, 1)
    status, control = hit(Action.FULL)
    assert status == 1
    assert control.hits > 1
    status, control = hit(Action.CUT)
    assert (status, [call.kind for call in control.calls()]) == (-signal.SIGKILL, [Kind.MKDIR, Kind.OPEN])


def test_a_fault_hits_only_calls_that_can_have_it(run: Callable[..., tuple[int, Control]], tmp_path: Path) -> None:
    _, control = run(Action.CUT, 1 << 60)
    calls = list(control.calls())
    shutil.rmtree(tmp_path / "root")
    (tmp_path / "root").mkdir()
    status, control = run(Action.ENOSPC, number_of(calls, Kind.UNLINK, "/linked"))  # the next to take space is the child's file
    assert (status, control.hits, control.kind) == (1, 1, Kind.OPEN)
    assert content_of(tmp_path / "root").keys() == {"moved", "leads"}

"""The daemon of workers that has imported pyarrow before it forks: one thread, and children that compute."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from dagflow.spark import daemon
from dagflow.spark.connection import session
from dagflow.spark.connection.address import Given
from dagflow.spark.jvm.options import DriverJvm
from tests.local.processes import lives

linux = pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")


def run(program: str, **environ: str) -> str:
    variables = {**os.environ, "OMP_NUM_THREADS": "1", **environ}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=250, check=True, env=variables)
    return done.stdout.strip()


PREPARE = """
import os, sys
from dagflow.spark.daemon import prepare, threads
is_sound = prepare("operators.readers.block_reader,no.such.module")
print(is_sound, threads(), "pyarrow" in sys.modules, os.environ.get("JE_ARROW_MALLOC_CONF"))
"""


@linux
def test_it_has_one_thread_after_its_imports() -> None:
    assert run(PREPARE) == "True 1 True None"


@linux
def test_the_user_s_options_for_jemalloc_stay() -> None:
    assert run(PREPARE, JE_ARROW_MALLOC_CONF="dirty_decay_ms:5") == "True 1 True dirty_decay_ms:5"


@linux
def test_with_another_thread_it_becomes_spark_s_own_daemon() -> None:
    program = """
import os, threading, time
from dagflow.spark import daemon
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
os.execv = lambda program, arguments: print(arguments[1:])
daemon.main()
"""
    assert run(program) == "['-m', 'pyspark.daemon']"


@linux
def test_workers_have_random_numbers_of_their_own() -> None:
    program = """
import os
from dagflow.spark.daemon import prepare
prepare()
import numpy, random
for _ in range(3):
    if os.fork() == 0:
        print(numpy.random.rand(), random.random(), flush=True)
        os._exit(0)
    os.wait()
"""
    assert len(set(run(program, PYTHONHASHSEED="0").split())) == 6


class TestSettings:
    @pytest.fixture(autouse=True)
    def python(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)

    def settings(self, master: str = "local[2]", conf: Any = None, outside: Any = None) -> dict[str, str]:
        return session._daemon(DriverJvm(preload=("operators.a", "operators.b")), master, conf or {}, outside or {})

    def test_a_local_master_has_it(self) -> None:
        preload = "spark.executorEnv._DAGFLOW_PRELOAD"
        assert self.settings() == {"spark.python.daemon.module": "dagflow.spark.daemon", preload: "operators.a,operators.b"}

    def test_a_cluster_has_not(self) -> None:
        assert self.settings("spark://head:7077") == {}

    def test_one_that_is_given_stays(self) -> None:
        assert self.settings(conf={daemon.SETTING: "mine"}) == {}
        assert self.settings(outside={daemon.SETTING: Given("theirs", "spark-submit")}) == {}

    def test_another_python_may_lack_dagflow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PYSPARK_PYTHON", "/usr/bin/python3")
        assert self.settings() == {}

    def test_a_dagflow_that_is_not_installed_is_not_found_by_a_new_python(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def missing(name: str) -> None:
            raise PackageNotFoundError(name)

        monkeypatch.setattr(session, "distribution", missing)
        assert self.settings() == {}


STRESS = """
import os, sys, tempfile, threading, time
from dagflow.spark.daemon import prepare
assert prepare("operators.readers.block_reader")
import pyarrow as pa, pyarrow.compute as pc, pyarrow.csv, pyarrow.dataset, pyarrow.parquet

def work(folder, number):
    # both thread pools of pyarrow, its memory pool in several threads, and files
    table = pa.table({"key": pa.array(range(20_000)), "text": [f"row {i}" for i in range(20_000)]})
    file = os.path.join(folder, f"{number}.parquet")
    pyarrow.parquet.write_table(table, file, row_group_size=2_000)
    read = pyarrow.dataset.dataset(file).to_table(filter=pc.field("key") >= 100)
    assert read.num_rows == 19_900, read.num_rows
    assert read.group_by("key", use_threads=True).aggregate([("text", "count")]).num_rows == 19_900
    lines = ("a,b\\n" + "1,2\\n" * 50_000).encode()
    results = []
    def parse():
        results.append(pyarrow.csv.read_csv(pa.BufferReader(lines)).num_rows)
    threads = [threading.Thread(target=parse) for _ in range(3)]
    [each.start() for each in threads]
    [each.join() for each in threads]
    assert results == [50_000] * 3, results

children, failed, deadline = int(sys.argv[1]), 0, time.monotonic() + 240
with tempfile.TemporaryDirectory() as folder:
    for first in range(0, children, 8):
        pids = []
        for number in range(first, first + 8):
            pid = os.fork()
            if pid == 0:
                try:
                    work(folder, number)
                except BaseException as error:
                    print(repr(error), file=sys.stderr)
                    os._exit(1)
                os._exit(0)
            pids.append(pid)
        while pids and time.monotonic() < deadline:
            pid, status = os.waitpid(pids[0], os.WNOHANG)
            if pid:
                pids.pop(0)
                failed += status != 0
            else:
                time.sleep(0.01)
        for pid in pids:
            os.kill(pid, 9)
            failed += 1
print(failed)
"""


@linux
@pytest.mark.full
def test_hundreds_of_forks_compute_without_a_hang_or_a_crash() -> None:
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", STRESS, "400"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=variables, check=False)
    assert (done.stdout.strip(), done.returncode, done.stderr) == ("0", 0, "")


class TestAhead:
    """A process that is started ahead takes the place of the one that Spark starts."""

    SPARK = [sys.executable, "-m", "dagflow.spark.daemon", "pyspark.worker"]

    def spark_starts(self, address: str, folder: Path, **more: str) -> subprocess.Popen[bytes]:
        """Start a daemon as Spark does."""
        variables = {**os.environ, **daemon._OF_SPARK, "PYTHON_UNIX_DOMAIN_ENABLED": "True", **more}
        variables |= {"PYTHON_WORKER_FACTORY_SOCK_DIR": str(folder), daemon.AHEAD: address, "SPARK_REUSE_WORKER": "1"}
        return subprocess.Popen(self.SPARK, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables)

    def worker(self, process: subprocess.Popen[bytes]) -> tuple[socket.socket, int]:
        """Return the connection to a new worker, and the id of the process that has forked it."""
        assert process.stdout is not None
        (length,) = struct.unpack("!i", process.stdout.read(4))
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(20)
        connection.connect(process.stdout.read(length))
        (pid,) = struct.unpack("!i", connection.recv(4))
        return connection, int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    def ended(self, pid: int) -> bool:
        deadline = time.monotonic() + 20
        while lives(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        return not lives(pid)

    @pytest.fixture
    def folder(self) -> Iterator[Path]:
        """Return a folder for sockets. Their addresses have at most 107 bytes; pytest's own folders can have more already."""
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            yield Path(folder)

    @pytest.fixture
    def ahead(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
        started: list[subprocess.Popen[bytes]] = []

        class Noted(subprocess.Popen[bytes]):
            def __init__(self, *args: Any, **more: Any) -> None:
                super().__init__(*args, **more)
                started.append(self)

        monkeypatch.setattr(tempfile, "tempdir", str(folder))
        with monkeypatch.context() as patch:
            patch.setattr(subprocess, "Popen", Noted)
            address = daemon.start_ahead(["operators.readers.block_reader"])
        yield address, started[0]
        assert started[0].stdin is not None
        started[0].stdin.close()
        assert self.ended(started[0].pid)
        assert not list(folder.glob("dagflow-workers-*"))

    @linux
    @pytest.mark.full
    def test_it_forks_the_workers_and_ends_with_spark(self, ahead: tuple[str, subprocess.Popen[bytes]], folder: Path) -> None:
        address, prepared = ahead
        with self.spark_starts(address, folder) as process:
            connection, parent = self.worker(process)
            assert parent == prepared.pid
            assert process.poll() is None
            process.terminate()  # as Spark does
            assert process.stdin is not None
            process.stdin.close()
            connection.close()
            assert self.ended(prepared.pid)

    @linux
    @pytest.mark.full
    def test_when_it_is_killed_spark_s_process_ends(self, ahead: tuple[str, subprocess.Popen[bytes]], folder: Path) -> None:
        address, prepared = ahead
        with self.spark_starts(address, folder) as process:
            self.worker(process)[0].close()
            prepared.kill()
            assert process.stdout is not None
            assert process.stdout.read() == b""
            assert process.wait(20) == 0

    @linux
    @pytest.mark.full
    def test_with_another_environment_spark_s_process_does_the_work(
        self, ahead: tuple[str, subprocess.Popen[bytes]], folder: Path
    ) -> None:
        address, _ = ahead
        with self.spark_starts(address, folder, OMP_NUM_THREADS="2") as process:
            connection, parent = self.worker(process)
            assert parent == process.pid
            process.terminate()
            connection.close()

    def test_nothing_stays_of_a_process_that_was_killed(self, folder: Path) -> None:
        address = folder / "made for it" / "socket"
        address.parent.mkdir()
        address.touch()
        process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        process.kill()
        daemon._wait_for(process, str(address))
        assert process.returncode == -9
        assert process.stdin is not None
        assert process.stdin.closed
        assert not address.parent.exists()

    def test_an_address_at_which_no_process_waits(self, tmp_path: Path) -> None:
        assert daemon.hand_over(str(tmp_path / "socket")) is False

    def test_a_path_too_long_for_a_socket_leaves_nothing(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        deep = tmp_path / ("x" * 100)
        deep.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(deep))
        with pytest.raises(OSError, match="too long"):
            daemon.start_ahead([])
        assert not list(deep.iterdir())

    @linux
    @pytest.mark.full
    def test_without_spark_it_ends_with_the_launch(self, ahead: tuple[str, subprocess.Popen[bytes]]) -> None:
        """The fixture closes its standard input, and waits."""
        assert ahead[1].poll() is None

    @pytest.mark.parametrize(
        ("environ", "more", "alike"),
        [
            ({}, [], True),
            ({"HOME": "/elsewhere"}, [], True),
            ({"MALLOC_ARENA_MAX": "1"}, [], False),
            ({}, ["/no/such/file.zip"], True),
            ({}, [tempfile.gettempdir()], False),
            ({"SPARK_HOME": tempfile.gettempdir()}, [os.path.join(tempfile.gettempdir(), ".")], True),
        ],
    )
    def test_what_was_imported_counts_only_where_imports_would_be_the_same(
        self, environ: dict[str, str], more: list[str], alike: bool
    ) -> None:
        assert daemon.is_alike({**os.environ, **environ}, [*more, *sys.path]) is alike

    def test_another_order_of_the_path_is_another_path(self) -> None:
        assert not daemon.is_alike(os.environ, sys.path[::-1])

"""The daemon of workers that has imported pyarrow before it forks: one thread, and children that compute."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest

from dagflow.spark import daemon
from dagflow.spark.connection import session
from dagflow.spark.connection.address import Given
from dagflow.spark.jvm.options import DriverJvm

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

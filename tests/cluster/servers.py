"""Spark's servers as processes of a test's own, on 127.0.0.1."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pyspark

from dagflow.spark.jvm.java import find_java
from tests import servers
from tests.servers import SLOW, free_port, listening

SPARK_HOME = Path(pyspark.__file__).parent


@attrs.frozen
class Server:
    """A server that runs: its address, its process, and its UI."""

    address: str
    pid: int
    ui: str

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs of its application, as Spark's REST interface tells them."""
        [application] = self._ask("applications")
        jobs: list[dict[str, Any]] = self._ask(f"applications/{application['id']}/jobs")
        return jobs

    def executors(self) -> list[dict[str, Any]]:
        """The executors of its application that live, and the driver."""
        [application] = self._ask("applications")
        found: list[dict[str, Any]] = self._ask(f"applications/{application['id']}/executors")
        return found

    def _ask(self, what: str) -> Any:
        with urllib.request.urlopen(f"{self.ui}/api/v1/{what}", timeout=30) as answer:
            return json.load(answer)


def environment(**more: str) -> dict[str, str]:
    """The environment of servers: without PYSPARK_PYTHON, so that drivers have to say it."""
    names = {"PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_HOME", "SPARK_REMOTE"}
    kept = {name: value for name, value in os.environ.items() if name not in names}
    return {**kept, "JAVA_HOME": str(find_java().home), "SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1", **more}


def process(log: Path, *command: str, **more: str) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    """Run one of Spark's processes."""
    return servers.process(log, *command, env=environment(**more))


@contextlib.contextmanager
def standalone(folder: Path, workers: int = 2, hosts: tuple[str, ...] = ()) -> Iterator[str]:
    """A standalone master with workers of one core each; yields its URL. `hosts`: addresses of the workers."""
    folder.mkdir(parents=True, exist_ok=True)
    spark_class, port = str(SPARK_HOME / "bin" / "spark-class"), free_port()
    master = "org.apache.spark.deploy.master.Master"
    with contextlib.ExitStack() as stack:
        where = ("--host", "127.0.0.1", "--port", str(port), "--webui-port", "0")
        running = stack.enter_context(process(folder / "master.log", spark_class, master, *where, SPARK_DAEMON_MEMORY="256m"))
        listening(port, running, folder / "master.log")
        address = f"spark://127.0.0.1:{port}"
        logs = [
            stack.enter_context(worker(folder / f"worker{number}", address, hosts[number] if hosts else "127.0.0.1"))
            for number in range(workers)
        ]
        registered(*logs)
        yield address


@contextlib.contextmanager
def worker(folder: Path, master: str, host: str = "127.0.0.1", hidden: Path | None = None, **more: str) -> Iterator[Path]:
    """A worker of one core; yields its log. What is `hidden` is another, empty folder for its executors (needs root)."""
    spark_class, log = str(SPARK_HOME / "bin" / "spark-class"), folder.with_suffix(".log")
    work = ("-d", str(folder), "--cores", "1", "--memory", "2g", "--host", host, "--webui-port", "0")
    command = [spark_class, "org.apache.spark.deploy.worker.Worker", *work, master]
    if hidden is not None:
        command = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(hidden), *command]
    with process(log, *command, **{"SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": host, **more}):
        yield log


def registered(*logs: Path) -> None:
    """Waits until workers are known to their master."""
    deadline = time.monotonic() + SLOW
    while not all("Successfully registered with master" in log.read_text(errors="replace") for log in logs):
        assert time.monotonic() < deadline, logs[-1].read_text(errors="replace")[-2000:]
        time.sleep(0.1)


@contextlib.contextmanager
def connect_server(folder: Path, *conf: str, **more: str) -> Iterator[Server]:
    """A Spark Connect server on two slots."""
    folder.mkdir(parents=True, exist_ok=True)
    port, ui, log = free_port(), free_port(), folder / "connect.log"
    settings = [
        f"spark.connect.grpc.binding.port={port}",
        "spark.connect.grpc.binding.address=127.0.0.1",
        "spark.driver.host=127.0.0.1",
        f"spark.ui.port={ui}",
        "spark.python.unix.domain.socket.enabled=true",
        f"spark.sql.warehouse.dir={folder / 'warehouse'}",
        *conf,
    ]
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2,4]", "--driver-memory", "1g"]
    for one in settings:
        command += ["--conf", one]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with process(log, *command, **{"PYSPARK_PYTHON": sys.executable, **more}) as running:
        listening(port, running, log)
        yield Server(f"sc://127.0.0.1:{port}", running.pid, f"http://127.0.0.1:{ui}")

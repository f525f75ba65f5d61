"""Executors whose Python has nothing installed: the libraries come with the launch."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from dagflow.spark.jvm.java import find_java
from tests.cluster.places import Place
from tests.cluster.servers import SPARK_HOME, Server, connect_server, registered, standalone, worker

pytestmark = [pytest.mark.cluster, pytest.mark.spark]
SMALL = {"spark.executor.memory": "512m"}


@attrs.frozen
class PackagingPlace(Place):
    """A place whose launches keep their packages in a folder that tests share."""

    cache: Path = attrs.field(kw_only=True)

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "XDG_CACHE_HOME": str(self.cache)}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def place(tmp_path: Path, cache: Path) -> PackagingPlace:
    folder = tmp_path / "work"
    folder.mkdir()
    made = PackagingPlace(folder, cache=cache)
    made.fill()
    return made


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Python of our version without any library."""
    folder = tmp_path_factory.mktemp("bare")
    base = os.path.realpath(sys.executable)
    subprocess.run([base, "-m", "venv", "--without-pip", str(folder)], check=True)
    missing = "import importlib.util as u; assert not [n for n in ('dagflow', 'pyarrow', 'attrs') if u.find_spec(n)]"
    subprocess.run([folder / "bin" / "python", "-I", "-c", missing], check=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def master(cluster: Path, bare: Path) -> Iterator[str]:
    """A cluster of one worker that finds the bare Python first."""
    path = {"PATH": f"{bare}:{os.environ['PATH']}", "PYTHONPATH": ""}
    with standalone(cluster, workers=0) as address, worker(cluster / "worker", address, **path) as log:
        registered(log)
        yield address


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, bare: Path) -> Iterator[Server]:
    """A server whose Python is the bare one."""
    python = {"PYSPARK_PYTHON": str(bare / "python"), "PATH": f"{bare}:{os.environ['PATH']}", "PYTHONPATH": ""}
    with connect_server(tmp_path_factory.mktemp("connect"), **python) as server:
        yield server


def packaged(place: PackagingPlace, *definitions: str) -> dict[str, Any]:
    """The answer of `dagflow package`."""
    words = [word for each in ("input=in", "output=out", *definitions) for word in ("-D", each)]
    ran = place.run(sys.executable, "-m", "dagflow", "package", str(place.application), *words, "--json")
    assert ran.returncode == 0, ran.stderr
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


@pytest.mark.nightly
def test_an_executor_with_a_bare_python_gets_the_libraries(master: str, cluster: Path, place: PackagingPlace) -> None:
    ran = place.launch(master=master, package="true", **SMALL)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert place.found() == place.expected()
    [script] = cluster.glob("worker/app-*/0/environment/bin/python")
    assert script.read_text().startswith("#!/bin/sh")


@pytest.mark.nightly
def test_a_connect_server_with_a_bare_python_gets_the_libraries(server: Server, place: PackagingPlace) -> None:
    ran = place.launch(remote=server.address, package="true")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert place.found() == place.expected()


@pytest.mark.nightly
class TestCluster:
    def test_without_the_package_its_python_is_not_fit(self, master: str, place: PackagingPlace, bare: Path) -> None:
        ran = place.launch(master=master, **SMALL, **{"spark.pyspark.python": str(bare / "python")})
        assert ran.returncode == 3
        assert "dagflow is not installed for" in ran.stderr

    def test_another_python_is_told(self, master: str, place: PackagingPlace, tmp_path: Path) -> None:
        """A program in the place of each Python, which says that it is an old one."""
        for name in ("python3", f"python{sys.version_info[0]}.{sys.version_info[1]}", "python"):
            (tmp_path / name).write_text("#!/bin/sh\necho 'cpython-39 x86_64-linux-gnu'\n")
            (tmp_path / name).chmod(0o755)
        folder = tmp_path / "other"
        folder.mkdir()
        path = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": ""}
        with standalone(folder, workers=0) as address, worker(folder / "worker", address, **path) as log:
            registered(log)
            ran = place.launch(master=address, package="true", **SMALL)
        if ran.returncode == 0:
            pytest.skip("a Python of the right version is in /usr/bin")
        assert ran.returncode == 3
        assert "error[DF445]" in ran.stderr
        assert f"{tmp_path}/python3 is cpython-39" in ran.stderr
        assert "Traceback" not in ran.stderr

    def test_the_second_launch_makes_nothing(self, master: str, place: PackagingPlace) -> None:
        packaged(place)
        again = packaged(place)
        assert again["is_new"] is False

    def test_a_shared_folder_is_enough(self, master: str, cluster: Path, place: PackagingPlace, tmp_path: Path) -> None:
        here = {"spark.executorEnv.DAGFLOW_PACKAGES": str(tmp_path / "host"), "package_folder": str(tmp_path / "shared")}
        before = {*cluster.glob("worker/app-*")}
        for _ in range(2):
            ran = place.launch(master=master, package="true", **SMALL, **here, fresh="true")
            assert (ran.returncode, ran.stderr) == (0, "")
            assert place.found() == place.expected()
            assert len(list((tmp_path / "host").iterdir())) == 1
        [work, other] = {*cluster.glob("worker/app-*")} - before
        assert [path.name for path in (work / "0" / "environment").iterdir()] == ["bin"], "only the script was sent"
        assert (other / "0" / "environment" / "bin" / "python").is_file()

    def test_a_script_in_an_active_session_sends_it_too(self, master: str, place: PackagingPlace) -> None:
        (place.folder / "script.py").write_text(SCRIPT)
        command = [sys.executable, "script.py", master, str(place.application)]
        ran = place.run(*command)
        assert ran.returncode == 0, ran.stderr
        assert place.found() == place.expected()

    def test_spark_submit_takes_it(self, master: str, place: PackagingPlace) -> None:
        answer = packaged(place)
        command = shlex.split(answer["submit"]["client"].replace("MASTER", master))
        command[0] = str(SPARK_HOME / "bin" / "spark-submit")
        ran = place.run(*command, "--progress", "none", "-D", "input=in", "-D", "output=out", "-D", "spark.executor.memory=512m")
        assert ran.returncode == 0, ran.stderr
        assert place.found() == place.expected()

    def test_the_driver_runs_in_it_too(self, master: str, place: PackagingPlace, bare: Path, tmp_path: Path) -> None:
        """As in cluster mode: Spark's own Java, the unpacked archive and the zip are all that the driver has."""
        answer = packaged(place)
        (tmp_path / "environment").mkdir()
        subprocess.run(["tar", "-xzf", answer["archive"], "-C", str(tmp_path / "environment")], check=True)
        command = shlex.split(answer["submit"]["cluster"].replace("MASTER", master).replace("mode cluster", "mode client"))
        command[0] = str(SPARK_HOME / "bin" / "spark-submit")
        driver = ["--conf", f"spark.pyspark.driver.python={tmp_path}/environment/bin/python"]
        definitions = ["-D", "input=in", "-D", "output=out", "-D", "spark.executor.memory=512m"]
        environ = [f"PATH={bare}:{os.defpath}", f"JAVA_HOME={find_java().home}"]
        ran = place.run(
            "env", "-u", "PYTHONPATH", *environ, command[0], *driver, *command[1:], "--progress", "none", *definitions
        )
        assert ran.returncode == 0, ran.stderr
        assert place.found() == place.expected()


SCRIPT = """
import sys
from pyspark.sql import SparkSession
from dagflow import launch

settings = {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
SparkSession.builder.master(sys.argv[1]).config(map=settings).getOrCreate()
launch(sys.argv[2], {"input": "in", "output": "out"}, package=True, shared_paths=True)
"""

"""`dagflow doctor`: each check finds what it is for, and names a remedy."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator
from importlib.machinery import FrozenImporter
from pathlib import Path
from typing import Any

import pytest

from dagflow.cli.main import main
from dagflow.diagnosis import machine, python, spark
from dagflow.diagnosis.check import Check


def only(checks: Iterator[Check], status: str = "problem") -> Check:
    """Return the one check of a status."""
    (found,) = [check for check in checks if check.status == status]
    return found


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment in which nothing of this machine's settings counts."""
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}


def test_this_machine_is_ready_without_starting_spark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("SPARK_HOME", "SPARK_REMOTE", "PYSPARK_PYTHON", "PYSPARK_SUBMIT_ARGS"):
        monkeypatch.delenv(name, raising=False)
    began = time.monotonic()
    assert main(["doctor"]) == 0
    assert time.monotonic() - began < 5  # 0.5 s on a quiet machine
    names = [line[9:26].strip() for line in capsys.readouterr().out.splitlines() if line.startswith(("ok", "warning"))]
    assert {"Python", "pyspark", "Java", "class archive", "Spark", "cache", "loopback", "host name"} < set(names)


def test_a_problem_ends_with_3(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAVA_HOME", "/no/such/java")
    assert main(["doctor"]) == 3
    out = capsys.readouterr().out
    assert "problem  Java             JAVA_HOME is '/no/such/java', and Spark cannot use it: there is no such folder." in out
    assert "\n                          help: unset JAVA_HOME\n" in out
    assert "1 problem" in out.splitlines()[-1]
    assert main(["doctor", "--json"]) == 3
    data = json.loads(capsys.readouterr().out)
    assert data["ok"] is False
    assert [each["remedy"] for each in data["checks"] if each["status"] == "problem"] == ["unset JAVA_HOME"]


def test_files_that_hide_modules(tmp_path: Path) -> None:
    for name in ("random.py", "mine.py", "test_app.py"):
        (tmp_path / name).touch()
    for name in ("operators", "pandas", "queue"):
        (tmp_path / name).mkdir()
    (tmp_path / "operators" / "__init__.py").touch()
    found = [(check.status, check.text, check.remedy) for check in python.shadowed(str(tmp_path))]
    assert found == [
        ("warning", "operators hides the module operators of the library", "mv operators my_operators"),
        ("warning", "random.py hides the module random of Python", "mv random.py my_random.py"),
    ]


def test_versions_are_compared_with_what_dagflow_requires(monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(name: str) -> str:
        if name == "numpy":
            raise python.PackageNotFoundError(name)
        return {"pyspark": "4.4.0", "pyarrow": "26.0", "pandas": "2.3.3"}.get(name, "1")

    monkeypatch.setattr(python, "version", installed)
    found = {check.name: check for check in python.packages()}
    assert found["pyarrow"].status == found["pandas"].status == "ok"
    assert found["pyspark"].text.startswith("4.4.0 is installed, dagflow needs pyspark")
    assert found["numpy"].remedy == f"{sys.executable} -m pip install 'numpy>=1.26'"


def test_a_spark_home_of_another_version(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-3.5.1.jar").touch()
    found = only(spark.place({**environ, "SPARK_HOME": str(tmp_path)}))
    assert "SPARK_HOME has Spark 3.5.1, which does not fit PySpark 4" in found.text
    assert found.remedy == "unset SPARK_HOME"
    assert "where there is no Spark" in only(spark.place({**environ, "SPARK_HOME": "/nowhere"})).text


def test_a_cluster_that_does_not_answer(environ: dict[str, str]) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]  # nothing listens there
        found = only(spark.place({**environ, "SPARK_REMOTE": f"sc://127.0.0.1:{port}"}))
    assert "does not answer" in found.text
    assert (found.text.endswith("(named by env SPARK_REMOTE)"), found.remedy) == (True, "unset SPARK_REMOTE")
    assert only(spark.place({**environ, "PYSPARK_SUBMIT_ARGS": "--master nothing"})).remedy == "unset PYSPARK_SUBMIT_ARGS"


def test_a_proxy_before_spark_connect(environ: dict[str, str]) -> None:
    given = {**environ, "SPARK_REMOTE": "sc://head", "https_proxy": "http://proxy"}
    assert only(spark.place(given), "warning").remedy == "export no_proxy=localhost,127.0.0.1"
    assert [check.status for check in spark.place({**given, "no_proxy": "localhost"})] == ["ok"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 'no such module' >&2; exit 1", "which cannot run tasks: no such module"),
        ("""echo '["3.8.1", "18"]'""", "Python 3.8.1; this is"),
        ("echo nonsense", "which cannot run tasks"),
    ],
)
def test_another_python_for_tasks(environ: dict[str, str], tmp_path: Path, script: str, reason: str) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    found = only(spark.tasks({**environ, "PYSPARK_PYTHON": str(program)}))
    assert reason in found.text
    assert found.remedy == "unset PYSPARK_PYTHON"


def test_the_python_of_tasks_that_fits(environ: dict[str, str]) -> None:
    assert [check.status for check in spark.tasks(environ)] == ["ok"]
    assert [check.text for check in spark.tasks({**environ, "PYSPARK_PYTHON": sys.executable})] == ["the same as here"]


def test_folders_that_are_full_or_not_writable(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    found = only(machine.folders({**environ, "XDG_CACHE_HOME": "/proc"}))
    assert (found.name, found.remedy) == ("cache", "export XDG_CACHE_HOME=/path/to/a/folder")
    usage: Any = type("Usage", (), {"free": 200 << 20})
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda _: usage)
    assert {check.status for check in machine.folders(environ)} == {"warning"}
    usage.free = 1 << 20
    assert {check.status for check in machine.folders(environ)} == {"problem"}
    assert only(machine.folders({}), "warning").text == "neither XDG_CACHE_HOME nor HOME names a folder"


def test_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "meminfo"
    file.write_text("MemTotal:        2097152 kB\nMemAvailable:     524288 kB\nHugePages_Total:       0\n")
    assert only(machine.memory(str(file)), "warning").text == "512 MiB of 2 GiB available, which is little for Spark"
    assert list(machine.memory(str(tmp_path / "none"))) == []


def test_a_host_name_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: str) -> str:
        raise OSError("unknown")

    monkeypatch.setattr(machine.socket, "gethostbyname", unknown)
    monkeypatch.setattr(machine, "_DNS_SECONDS", 0.05)
    assert only(machine.network(), "warning").remedy.endswith("| sudo tee -a /etc/hosts")


def test_a_missing_class_archive(environ: dict[str, str]) -> None:
    found = only(spark.java(environ), "warning")
    assert (found.name, found.remedy) == ("class archive", "dagflow warm")


@pytest.mark.full
@pytest.mark.spark
def test_a_session_of_spark_runs_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--spark"]) == 0
    assert ", one task ran in " in capsys.readouterr().out


def test_a_file_hides_only_what_is_not_found_before_it(tmp_path: Path) -> None:
    for name in ("random.py", "sys.py", "os.py"):
        (tmp_path / name).touch()
    folder, path = str(tmp_path), [place for place in sys.path if place != str(tmp_path)]
    assert python.is_found_first("random", folder, path), "a launch puts the folder first"
    assert python.is_found_first("random", folder, [folder, *path])
    assert not python.is_found_first("random", folder, [*path, folder]), "Python's own is found before"
    assert not python.is_found_first("sys", folder, path), "built in"
    assert not python.is_found_first("os", folder, path) or not FrozenImporter.find_spec("os"), "frozen"

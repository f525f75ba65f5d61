"""A JVM that starts before the application is loaded: taken by the session that fits it, else it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dagflow.spark.connection import ahead
from dagflow.spark.errors import SparkNotStarted
from dagflow.spark.jvm.options import DriverJvm

QUICK = DriverJvm(runs_dataframes=False, preload=("operators.sinks.record_writer",))


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Spark whose launcher notes its arguments, and waits for the end of its standard input."""
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    program = tmp_path / "bin" / "spark-submit"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\ncat > /dev/null\n', encoding="utf-8")
    program.chmod(0o700)
    return tmp_path / "arguments"


def started(**more: Any) -> ahead.JvmAhead:
    given: dict[str, Any] = {"master": "local[2]", "remote": None, "conf": {"spark.ui.enabled": "false"}, "jvm": QUICK, **more}
    found = ahead.start_ahead(**given)
    assert found is not None
    return found


def test_it_ends_when_no_session_takes_it(launcher: Path) -> None:
    jvm = started()
    assert jvm._process.poll() is None
    folder = jvm._port_file.parent
    assert folder.is_dir()
    jvm.close()
    assert jvm._process.returncode == -9
    assert not folder.exists()


def test_a_session_with_other_needs_does_not_take_it(launcher: Path) -> None:
    jvm = started()
    conf = {"spark.ui.enabled": "false"}
    needs = jvm._needs
    try:
        assert ahead._Needs("local[2]", conf, needs.outside, DriverJvm(runs_dataframes=False, preload=("other",))) == needs
        assert not jvm.adopted("local[3]", conf, needs.outside, QUICK)
        assert not jvm.adopted("local[2]", {}, needs.outside, QUICK)
        assert not jvm.adopted("local[2]", conf, needs.outside, DriverJvm(runs_dataframes=True))
    finally:
        jvm.close()


def test_one_that_has_ended_is_not_taken(launcher: Path) -> None:
    jvm = started()
    assert jvm._process.stdin is not None
    jvm._process.stdin.close()
    assert not jvm.adopted("local[2]", {"spark.ui.enabled": "false"}, jvm._needs.outside, QUICK)
    jvm.close()


def test_in_place_of_one_that_was_killed_no_other_is_started(launcher: Path) -> None:
    """Ctrl-C kills it: the launch has to end, and not to wait for a JVM."""
    jvm = started()
    jvm._process.kill()
    with pytest.raises(SparkNotStarted, match="its JVM was killed"):
        jvm.adopted("local[2]", {"spark.ui.enabled": "false"}, jvm._needs.outside, QUICK)
    jvm.close()


@pytest.mark.parametrize(
    "given",
    [
        {"master": "spark://head:7077"},
        {"master": "local-cluster[2,1,1024]"},
        {"master": "nonsense"},
        {"master": None, "remote": "sc://head"},
        {"master": None, "conf": {"spark.remote": "sc://head"}},
        {"master": None, "conf": {"spark.master": "yarn"}},
    ],
)
def test_only_a_local_master_has_one(launcher: Path, given: dict[str, Any]) -> None:
    assert ahead.start_ahead(**{"master": "local[2]", "remote": None, "conf": {}, "jvm": QUICK, **given}) is None
    assert not launcher.exists()


def test_a_process_that_uses_pyspark_has_none(launcher: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", ahead)  # any module
    assert ahead.start_ahead("local[2]", None, {}, QUICK) is None


PROGRAM = """
import os, sys
from dagflow.spark.connection.ahead import start_ahead
from dagflow.spark.connection.session import connect
from dagflow.spark.jvm.options import DriverJvm

def options(**more):
    jvm = DriverJvm(runs_dataframes=False, use_archive=False)
    ahead = start_ahead("local[1]", None, {"spark.ui.enabled": "false"}, jvm)
    link, ours = connect("a name", master="local[1]", conf={"spark.ui.enabled": "false"}, ahead=ahead, **{"jvm": jvm, **more})
    ahead.close()
    is_taken = link.spark.sparkContext._gateway.proc is ahead._process
    assert is_taken or ahead._process.returncode is not None
    beans = link.spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    print(is_taken, "-XX:TieredStopAtLevel=1" in list(beans), link.spark.sparkContext.appName, link.spark.range(3).count())
    link.stop()

options(**eval(sys.argv[1]))
print(sorted(name for name in os.environ if name.startswith("PYSPARK_GATEWAY")))
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("more", "expected"), [("{}", "True True a name 3"), ("{'jvm': DriverJvm(runs_dataframes=True)}", "False False a name 3")]
)
def test_a_session_takes_the_one_that_fits(more: str, expected: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, more], capture_output=True, text=True, timeout=200, check=True)
    assert (done.stdout.splitlines(), done.stderr) == ([expected, "[]"], "")


def content(file: Path) -> bytes:
    """Return what a file of /proc holds; nothing when its process is gone."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_an_application_with_a_mistake_leaves_no_jvm(tmp_path: Path) -> None:
    """Its error is shown as soon as it is found."""
    (tmp_path / "app.py").write_text("def populate_dag(dag, conf):\n    raise ValueError('a mistake')\n", encoding="utf-8")
    command = ["env", f"_DAGFLOW_TEST_MARK={tmp_path}", sys.executable, "-m", "dagflow", "launch", str(tmp_path)]
    launch = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])
    assert "a mistake" in launch.communicate(timeout=60)[1]
    assert launch.returncode == 2
    mark = f"_DAGFLOW_TEST_MARK={tmp_path}".encode()
    assert not [each for each in Path("/proc").glob("[0-9]*/environ") if mark in content(each)]

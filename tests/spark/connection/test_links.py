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
from dagflow.spark.connection.session import active_session, connect
from dagflow.spark.jvm.options import DriverJvm
from dagflow.spark.task import warm_up

jvm = DriverJvm(runs_dataframes=False, runs_queries=False)
given = {"spark.ui.enabled": "false"}
link, ours = connect("x", master="local[1]", conf=given, jvm=jvm)
assert link.run(warm_up, 3) == [b"", b"", b""]
assert link.setting("spark.ui.enabled", "") == "false" and link.setting("spark.no.such", "a") == "a"
print("session:", link._session)
shared, is_ours = connect("a second run")  # in another thread, say
print("of the same Spark:", shared.context is link.context, "ours:", ours, is_ours)
assert link.spark is shared.spark is active_session()
assert link.run(warm_up, 2) == [b"", b""] and link.spark.range(3).count() == 3
link.stop()
print("left:", active_session())
"""


@pytest.mark.full
def test_jobs_without_exchanges_need_no_session() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=200, check=False)
    assert (done.stderr, done.stdout.splitlines()) == (
        "",
        ["session: None", "of the same Spark: True ours: True False", "left: None"],
    )


def test_a_link_is_its_own(spark_session: Any) -> None:
    link, _ = connect("test", session=spark_session)
    assert link_of(link) is link
    assert connect("test", session=link) == (link, False)
    assert link.run(warm_up, 2) == [b"", b""]

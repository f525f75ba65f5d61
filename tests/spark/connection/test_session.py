"""Which session a run gets, and with which settings. One real session for all; clusters have tests of their own."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from dagflow.errors import SessionElsewhere, SettingFixed
from dagflow.spark.connection import starting
from dagflow.spark.connection.session import active_link, connect, jobs_run

pytestmark = pytest.mark.spark


def test_the_active_session_is_used_and_is_not_ours(spark_session: Any) -> None:
    link, ours = connect("test")
    assert not ours
    assert link.spark.sparkContext is spark_session.sparkContext
    assert link.slots() == 2
    assert not link.is_lost()


def test_also_from_another_thread(spark_session: Any) -> None:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(connect("test")))
    thread.start()
    thread.join()
    [(link, ours)] = found
    assert not ours, "a run in the background must not stop a notebook's session"
    assert link.spark.sparkContext is spark_session.sparkContext


def test_the_same_master_may_be_named(spark_session: Any) -> None:
    assert connect("test", master=spark_session.sparkContext.master)[1] is False


def test_another_master_is_refused(spark_session: Any) -> None:
    with pytest.raises(SessionElsewhere) as caught:
        connect("test", master="spark://boss:7077")
    assert str(caught.value).startswith(
        "a Spark session is active at local[2,4], but this run asks for spark://boss:7077, and a process"
    )


def test_settings_of_an_active_session(spark_session: Any) -> None:
    key = "spark.sql.shuffle.partitions"
    before = spark_session.conf.get(key)
    connect("test", conf={key: "3", "spark.app.name": "mine", "spark.ui.enabled": "false"})
    assert spark_session.conf.get(key) == "3"
    spark_session.conf.set(key, before)
    with pytest.raises(SettingFixed) as caught:
        connect("test", conf={"spark.executor.memory": "9g"})
    assert str(caught.value).startswith(
        "spark.executor.memory cannot become '9g': the session at local[2,4] has started already, and there it is not set"
    )


def test_a_session_that_is_given_is_used(spark_session: Any) -> None:
    link, ours = connect("test", session=spark_session)
    assert (link.spark, ours) == (spark_session, False)


def test_jobs_are_counted(spark_session: Any) -> None:
    before = jobs_run(spark_session)
    spark_session.range(3).collect()
    assert jobs_run(spark_session) == before + 1


def test_the_environment_is_the_users_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.2")
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    before = dict(os.environ)
    with starting.environment_of_jvm("local[2]", {"spark.pyspark.python": "/a/python"}, {}):
        assert "SPARK_REMOTE" not in os.environ, "pyspark takes only one address"
        assert os.environ["PYSPARK_PYTHON"] == "/a/python"
        assert os.environ["SPARK_LOCAL_IP"] == "127.0.0.2"
        assert os.environ["JAVA_HOME"]
    assert dict(os.environ) == before


def test_the_file_that_makes_spark_quiet_goes_again() -> None:
    with starting.quiet_file() as path:
        assert os.path.exists(path)
    assert not os.path.exists(os.path.dirname(path))


def test_there_is_a_session_only_once_somebody_made_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(__import__("sys").modules, "pyspark", raising=False)
    assert active_link() is None

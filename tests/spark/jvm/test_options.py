"""Options of the driver's JVM: chosen by the plan, and never against the user's own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dagflow.spark.connection import starting
from dagflow.spark.connection.address import Given
from dagflow.spark.jvm.class_archive import ClassArchive
from dagflow.spark.jvm.options import QUICK, DriverJvm, launcher_options

QUICK_JVM = DriverJvm(runs_dataframes=False, use_archive=True)
ARCHIVE = ClassArchive(Path("/cache of/classes-17-ab"))


def test_a_jvm_that_sees_no_records_starts_quickly() -> None:
    assert QUICK_JVM.options("", {}, None).split() == list(QUICK)


def test_dataframes_keep_compilers_and_collector() -> None:
    jvm = DriverJvm(runs_dataframes=True, use_archive=True)
    assert jvm.options("", {}, None) == ""
    assert not jvm.uses_archive("", {})


@pytest.mark.parametrize("given", ["-XX:+UseG1GC", "-Xss4m -XX:+UseZGC", "-XX:-UseSerialGC", "-XX:+UseParallelGC"])
def test_there_is_one_collector_only(given: str) -> None:
    assert "-XX:+UseSerialGC" not in QUICK_JVM.options(given, {}, None)
    assert "-XX:+UseSerialGC" not in QUICK_JVM.options("", {"JDK_JAVA_OPTIONS": given}, None)
    assert "-XX:+UseSerialGC" not in launcher_options({"JAVA_TOOL_OPTIONS": given})
    assert "-XX:TieredStopAtLevel=1" in QUICK_JVM.options(given, {}, None)


@pytest.mark.parametrize("given", ["-Xshare:off", "-XX:SharedArchiveFile=/mine", "-XX:+AutoCreateSharedArchive", "-javaagent:a"])
def test_an_archive_of_the_user_s_own_or_an_agent_leaves_ours_out(given: str) -> None:
    assert QUICK_JVM.uses_archive("-Xss4m", {})
    assert not QUICK_JVM.uses_archive(given, {})
    assert not QUICK_JVM.uses_archive("", {"JAVA_TOOL_OPTIONS": given})


def test_java_is_silent_about_an_archive_that_it_cannot_use() -> None:
    options = QUICK_JVM.options("", {}, ARCHIVE)
    assert "-Xlog:disable -Xlog:all=error:stderr" in options
    assert options.endswith('"-XX:SharedArchiveFile=/cache of/classes-17-ab/archive.jsa"')


def test_the_user_s_options_stand_behind_ours_so_they_win() -> None:
    key = "spark.driver.extraJavaOptions"
    found = starting.settings_at_start("local[2]", {key: "-Dmine=1"}, {}, "quiet", "-XX:TieredStopAtLevel=1")[key]
    assert found == "-Dlog4j2.configurationFile=file:quiet -XX:TieredStopAtLevel=1 -Dmine=1"
    outside = {key: Given("-Dtheirs=1", "spark-submit")}
    assert starting.settings_at_start("local[2]", {}, outside, "quiet")[key].endswith(" -Dtheirs=1")


@pytest.mark.parametrize("master", ["spark://head:7077", "local-cluster[2,1,1024]", "yarn"])
def test_only_a_local_master_starts_quickly(master: str) -> None:
    with starting.quick_start(QUICK_JVM, master, {}, {}) as options:
        assert options == ""


def test_the_environment_of_a_quick_start_goes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LAUNCHER_OPTS", "-Dmine=1")
    before = dict(os.environ)
    with starting.quick_start(QUICK_JVM, "local[2]", {}, {}) as options:
        assert "-XX:+UseSerialGC" in options
        assert os.environ["SPARK_LAUNCHER_OPTS"].endswith("-Dmine=1")
    assert dict(os.environ) == before

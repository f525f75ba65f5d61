"""The Spark session of a run: classic (embedded or a cluster's master) or Spark Connect, with the settings that we rest on."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import sys
import threading
import warnings
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

from dagflow.spark import daemon
from dagflow.spark.connection.address import Address, Given, address, checked, outside_settings
from dagflow.spark.connection.ahead import JvmAhead
from dagflow.spark.connection.archives import PythonArchive
from dagflow.spark.connection.failures import first_line
from dagflow.spark.connection.links import ClassicLink, ConnectLink, Link, is_local, is_of_connect
from dagflow.spark.connection.not_started import not_started
from dagflow.spark.connection.reach import check_answers, check_reachable
from dagflow.spark.connection.starting import NAMED, environment_of_jvm, given_setting, quick_start, quiet_file, settings_at_start
from dagflow.spark.errors import ClusterUnreachable, ConnectMissing, SessionElsewhere, SettingFixed, SparkLost
from dagflow.spark.jvm.options import DriverJvm

_RETRIES = 5  # of Connect's client, 17 s in all: a window is tried again anyway, and a run should not take 10 minutes to end


def connect(
    application: str,
    *,
    master: str | None = None,
    remote: str | None = None,
    conf: Mapping[str, str] | None = None,
    session: Any = None,
    jvm: DriverJvm | None = None,
    ahead: JvmAhead | None = None,
    archive: PythonArchive | None = None,
) -> tuple[Link, bool]:
    """Return the link to a Spark, and whether it is ours to stop.

    `session` (or its link) is used as it is, and so is an active one where no remote is given: only what `conf` names is set.
    Without either, Spark runs where `dagflow.spark.connection.address` says; `jvm` says what a JVM started for a local master is
    needed for; `ahead` is one that may do; `archive` goes to the executors.

    Raises JavaMissing, JavaUnsuitable, ConnectMissing, ClusterUnreachable, SessionElsewhere, SettingFixed, SparkLost.
    """
    conf = dict(conf or {})
    master = master or conf.get("spark.master")
    link = link_of(session) if session is not None else _active_unless_remote(remote, conf)
    if link is not None:
        if master is not None and master != link.address:
            raise SessionElsewhere(active=link.address, wanted=master)
        adapt(link, conf)
        if archive is not None:
            archive.send(link)
        return link, False
    outside = outside_settings()
    wanted = checked(address(master, remote, conf, outside))
    if wanted.kind == "remote":
        link = _connect(application, wanted.value, conf, outside)
        adapt(link, conf)
        if archive is not None:
            archive.send(link)
        return link, True
    if archive is not None:
        conf |= archive.settings(conf, outside)
    return _start(application, wanted.value, conf, outside, jvm or DriverJvm(), ahead), True


def address_of(master: str | None, remote: str | None, conf: Mapping[str, str], session: Any = None) -> Address:
    """The address that `connect` would take; starts nothing. Raises SparkLost."""
    link = link_of(session) if session is not None else _active_unless_remote(remote, conf)
    if link is not None:
        return Address(link.address, "the active session")
    return checked(address(master, remote, conf, outside_settings()))


def _active_unless_remote(remote: str | None, conf: Mapping[str, str]) -> Link | None:
    return None if remote is not None or "spark.remote" in conf else active_link()


def open_session(
    application: str, master: str | None, remote: str | None, conf: dict[str, str], jvm: DriverJvm | None = None
) -> tuple[Any, bool]:
    """Return the session of `connect`, and whether it is ours to stop."""
    link, ours = connect(application, master=master, remote=remote, conf=conf, jvm=jvm)
    return link.spark, ours


def active_link() -> Link | None:
    """The Spark that this process has, whichever thread asks, or None. Raises SparkLost when its JVM is gone."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    places = [SparkSession]
    if remote := sys.modules.get("pyspark.sql.connect.session"):
        places.append(remote.SparkSession)
    for place in places:
        try:
            link = place.active()
        except PySparkException:  # none
            continue
        except Exception as error:
            raise SparkLost(address="the active session", doing="an earlier run", reason=first_line(error)) from error
        if is_of_connect(link) or link.sparkContext._jsc is not None:  # else its context was stopped without it
            return link_of(link)
    context = SparkContext._active_spark_context
    return None if context is None else ClassicLink(context)


def forget(link: Link) -> None:
    """Stop Spark. If its JVM is gone, clear what pyspark keeps of it, so that this process can start another one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    started = getattr(SparkContext._gateway, "proc", None)
    with contextlib.suppress(Exception):
        link.stop()
        if started is None or started.poll() is None:
            return  # a JVM that lives, and has only lost its SparkContext, is used again
    with contextlib.suppress(Exception):
        link.context._accumulatorServer.shutdown()  # type: ignore[attr-defined]  # classic: stopping the other kind raises nothing
    gateway: Any = SparkContext._gateway
    with contextlib.suppress(Exception):
        gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        with contextlib.suppress(Exception):
            process.kill()
            process.wait(10)
            process.stdin.close()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def link_of(session: Any) -> Link:
    """Return the link of a session; a link is returned as it is."""
    if isinstance(session, ClassicLink | ConnectLink):
        return session
    if is_of_connect(session):
        return ConnectLink(session, f"sc://{session.client.host}")
    return ClassicLink(session.sparkContext, session)


def adapt(link: Link, conf: Mapping[str, str]) -> None:
    """Apply settings to a session that runs already. Raises SettingFixed for what can be set only when Spark starts."""
    for key, value in conf.items():
        if key in NAMED:
            continue
        has = link.spark.conf.get(key, None)
        if has == value:
            continue
        if not link.spark.conf.isModifiable(key):
            raise SettingFixed(key=key, value=value, has=has, address=link.address)
        link.spark.conf.set(key, value)


def jobs_run(session: Any) -> int:
    """Return how many jobs a classic session's Spark has run so far: Spark's own count, not ours."""
    return int(session.sparkContext._jsc.sc().dagScheduler().numTotalJobs())


def _start(
    application: str, master: str, conf: Mapping[str, str], outside: Mapping[str, Given], jvm: DriverJvm, ahead: JvmAhead | None
) -> ClassicLink:
    from pyspark import SparkConf, SparkContext

    check_reachable(master)
    # what pyspark imports at its first call into Java and with the first query: now, while the JVM starts
    threading.Thread(target=_import_ahead, name="dagflow-imports", daemon=True).start()
    # py4j logs each call that a dying JVM leaves without an answer, with its traceback; the run tells it, once
    logging.getLogger().addFilter(is_not_of_py4j)
    with contextlib.ExitStack() as stack:
        stack.enter_context(environment_of_jvm(master, conf, outside))
        of_workers = _daemon(jvm, master, conf, outside)
        of_workers |= _daemon_ahead(of_workers, jvm)
        if ahead is not None and ahead.adopted(master, conf, outside, jvm):
            settings = dict(ahead.settings)
        else:
            quiet, options = stack.enter_context(quiet_file()), stack.enter_context(quick_start(jvm, master, conf, outside))
            settings = settings_at_start(master, conf, outside, quiet, options)
        settings |= of_workers
        given = SparkConf().setMaster(master).setAppName(application).setAll([*settings.items()])
        try:
            link = ClassicLink(SparkContext.getOrCreate(given))
            link.context.setLogLevel("FATAL")
            if jvm.runs_queries or any(key.startswith("spark.sql.") for key in conf):  # whose values only a session checks
                _ = link.spark  # now, while the first window is planned
        except Exception as error:
            raise not_started(master, error, _values(outside) | settings) from error
    # pyspark's server for accumulators prints a traceback when the JVM dies; the run tells it as SparkLost
    if (server := getattr(link.context, "_accumulatorServer", None)) is not None:
        server.handle_error = lambda *_: None
    return link


def _import_ahead() -> None:
    with contextlib.suppress(Exception):  # the job that needs it says what is wrong
        for name in ("pyspark.testing", "pyspark.sql.pandas.functions", "pandas"):
            importlib.import_module(name)


def is_not_of_py4j(record: logging.LogRecord) -> bool:
    """A filter of the root logger, on which py4j logs."""
    return record.module not in ("java_gateway", "clientserver")


def _connect(application: str, remote: str, conf: Mapping[str, str], outside: Mapping[str, Given]) -> Link:
    try:
        from pyspark.sql.connect.session import SparkSession
    except ImportError as error:
        raise ConnectMissing(remote=remote, reason=str(error)) from error
    check_reachable(remote)
    try:
        if not remote.startswith("sc://"):  # local[2]: pyspark starts a server in this process
            return ConnectLink(_serve(application, remote, conf, outside), remote)
        check_answers(remote)
        session = SparkSession.builder.remote(remote).appName(application).create()
        with contextlib.suppress(ImportError, AttributeError):
            from pyspark.sql.connect.client.retries import DefaultPolicy

            session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES)])
            warnings.filterwarnings("ignore", r"\[RETRIES_EXCEEDED\]", UserWarning)  # we tell it ourselves
        session.range(1).collect()
    except ClusterUnreachable:
        raise
    except Exception as error:
        raise ClusterUnreachable(master=remote, reason=first_line(error)) from error
    return ConnectLink(session, remote)


def _serve(application: str, remote: str, conf: Mapping[str, str], outside: Mapping[str, Given]) -> Any:
    from pyspark.sql import SparkSession

    with environment_of_jvm(remote, conf, outside), quiet_file() as quiet:
        settings = settings_at_start(remote, conf, outside, quiet)
        builder = SparkSession.builder.remote(remote).appName(application).config(map=settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it starts the server with these settings, and then complains that they are fixed
            return builder.getOrCreate()


def _daemon(jvm: DriverJvm, master: str, conf: Mapping[str, str], outside: Mapping[str, Given]) -> dict[str, str]:
    """Return the settings for a daemon of workers that has imported dagflow, where a new Python is sure to find it."""
    if not is_local(master) or given_setting(daemon.SETTING, conf, outside) or "PYSPARK_GATEWAY_PORT" in os.environ:
        return {}
    if os.environ.get("PYSPARK_PYTHON") != sys.executable:
        return {}
    try:
        distribution("dagflow")
    except PackageNotFoundError:
        return {}
    return {daemon.SETTING: daemon.MODULE, f"spark.executorEnv.{daemon.PRELOAD}": ",".join(jvm.preload)}


def _daemon_ahead(settings: Mapping[str, str], jvm: DriverJvm) -> dict[str, str]:
    """Start the daemon for a run, if the settings have it, while the JVM starts. Return the setting with which Spark finds it."""
    if settings and jvm.preload and sys.platform == "linux":
        with contextlib.suppress(OSError):  # then Spark's own process does all imports
            return {f"spark.executorEnv.{daemon.AHEAD}": daemon.start_ahead(jvm.preload)}
    return {}


def _values(outside: Mapping[str, Given]) -> dict[str, str]:
    return {key: given.value for key, given in outside.items()}

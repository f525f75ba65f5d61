"""From a command line to a built application."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from dagflow.cli.app_arguments import AppArguments
from dagflow.cli.progress import Progress, make_progress
from dagflow.cli.relay import OutputRelay
from dagflow.cli.report_error import Refused
from dagflow.config import Problems, RunSettings, build_run_settings, read_layers, spark_conf
from dagflow.errors import ConfigError
from dagflow.launching.build import LoadedApplication, build, examine
from dagflow.launching.places import place_problems
from dagflow.logs import configure
from dagflow.planning.plan import Plan
from dagflow.spark.connection.address import Address
from dagflow.spark.connection.ahead import JvmAhead, start_ahead
from dagflow.spark.jvm.options import DriverJvm


def built(arguments: AppArguments) -> LoadedApplication:
    """The application with its settings; its DAG is not checked. Raises ConfigError."""
    problems, application = Problems(), None
    for problem in arguments.problems:
        problems.add(problem)
    with problems:
        application = build(
            arguments.application,
            environment=os.environ,
            conf_files=arguments.conf_files,
            definitions=arguments.definitions,
            options=arguments.options,
        )
    problems.raise_all()
    assert application is not None
    return application


def planned(arguments: AppArguments, places: bool = False) -> tuple[LoadedApplication, Plan]:
    """The application and its plan. Raises DagflowError with all that is wrong; `places`: also with what it reads and writes."""
    application, plan, others = examine(
        arguments.application,
        environment=os.environ,
        conf_files=arguments.conf_files,
        definitions=arguments.definitions,
        options=arguments.options,
    )
    problems = (*arguments.problems, *others)
    if places and application is not None:
        problems += place_problems(application, plan)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise Refused(problems)
    assert application is not None
    assert plan is not None
    return application, plan


def spark_address(built: LoadedApplication) -> Address | None:
    """Return the Spark master of an application and the origin of that setting; None with the local runner. Raises SparkLost."""
    if built.run.runner == "local":
        return None
    from dagflow.spark.connection.session import address_of

    return address_of(built.run.master, built.run.remote, built.spark)


def progress_and_logs(settings: RunSettings, relay: OutputRelay | None) -> Progress:
    """Configure logging, and return the progress: none with log lines in JSON, unless it is set."""
    is_json = settings.log_format == "json"
    kind = "none" if is_json and settings.progress == "auto" else settings.progress
    configure_logs(settings, events=is_json and kind == "none")
    return make_progress(kind, relay.events if relay is not None and kind == "json" else sys.stderr)


def configure_logs(settings: RunSettings, *, events: bool = False) -> None:
    """Configure logging for a process in which operators run. `events`: the events of a run are log lines too."""
    configure(settings.log_format, settings.log_level, settings.log_levels, events=events)


def settings_ahead(arguments: AppArguments) -> tuple[RunSettings | None, dict[str, str]]:
    """Return the settings of the run and of Spark, as known without loading APP; None if they are wrong. Raises nothing."""
    try:
        layers = read_layers(
            environment=os.environ,
            conf_files=arguments.conf_files,
            definitions=arguments.definitions,
            options=arguments.options,
        )
        return build_run_settings(layers), {key: setting.value for key, setting in spark_conf(layers).items()}
    except ConfigError:
        return None, {}


def start_jvm_ahead(arguments: AppArguments, run: RunSettings | None, conf: Mapping[str, str]) -> JvmAhead | None:
    """Start Spark's JVM where `settings_ahead`, the last two arguments, ask for one. Raises nothing."""
    if run is None or run.runner != "spark" or arguments.problems:
        return None
    jvm = DriverJvm(runs_dataframes=False, use_archive=run.class_archive != "off")
    return start_ahead(run.master, run.remote, conf, jvm)

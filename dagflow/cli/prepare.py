"""From a command line to a built application."""

from __future__ import annotations

import os

from dagflow.cli.app_arguments import AppArguments
from dagflow.cli.report_error import Refused
from dagflow.config import Problems
from dagflow.launching.build import LoadedApplication, build, examine
from dagflow.launching.places import place_problems
from dagflow.plan.plan import Plan
from dagflow.spark.connection.address import Address


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
        problems += place_problems(application)
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

"""From a command line to a built application."""

from __future__ import annotations

import os

from dagflow.cli.ending import Refused
from dagflow.cli.options import Given
from dagflow.config import Problems
from dagflow.launching.build import LoadedApplication, build, examine
from dagflow.launching.places import place_problems
from dagflow.plan.plan import Plan
from dagflow.spark.address import Address


def built(given: Given) -> LoadedApplication:
    """The application with its settings; its DAG is not checked. Raises ConfigError."""
    problems, made = Problems(), None
    for problem in given.problems:
        problems.add(problem)
    with problems:
        made = build(
            given.application,
            environment=os.environ,
            conf_files=given.conf_files,
            definitions=given.definitions,
            options=given.options,
        )
    problems.raise_all()
    assert made is not None
    return made


def planned(given: Given, places: bool = False) -> tuple[LoadedApplication, Plan]:
    """The application and its plan. Raises DagflowError with all that is wrong; `places`: also with what it reads and writes."""
    found, plan, others = examine(
        given.application,
        environment=os.environ,
        conf_files=given.conf_files,
        definitions=given.definitions,
        options=given.options,
    )
    problems = (*given.problems, *others)
    if places and found is not None:
        problems += place_problems(found)
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise Refused(problems)
    assert found is not None
    assert plan is not None
    return found, plan


def spark_address(built: LoadedApplication) -> Address | None:
    """Where Spark would run an application, and what says so; None with the local runner. Raises SparkLost."""
    if built.run.runner == "local":
        return None
    from dagflow.spark.session import address_of

    return address_of(built.run.master, built.run.remote, built.spark)

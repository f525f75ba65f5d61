"""From a command line to a built application."""

from __future__ import annotations

import os

from dagflow.cli.ending import Refused
from dagflow.cli.options import Given
from dagflow.plan.plan import Plan
from dagflow.runtime.build import Built, build, examine


def built(given: Given) -> Built:
    """The application with its settings; its DAG is not checked. Raises ConfigError."""
    return build(
        given.application,
        environment=os.environ,
        conf_files=given.conf_files,
        definitions=given.definitions,
        options=given.options,
    )


def planned(given: Given) -> tuple[Built, Plan]:
    """The application and its plan. Raises DagflowError with all that is wrong."""
    found, plan, problems = examine(
        given.application,
        environment=os.environ,
        conf_files=given.conf_files,
        definitions=given.definitions,
        options=given.options,
    )
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise Refused(problems)
    assert found is not None
    assert plan is not None
    return found, plan

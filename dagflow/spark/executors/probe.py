"""The check on the driver: the needs of a plan, and a job that looks at all executors that are there.

The job needs neither dagflow nor pyarrow in them.
"""

from __future__ import annotations

import importlib
import json
import time
from importlib.metadata import packages_distributions
from typing import Any

import attrs

from dagflow.model.operator.sink import Sink
from dagflow.planning.plan import Plan
from dagflow.runtime.run_folder.folders import Folders
from dagflow.runtime.task.compile import stage_program
from dagflow.runtime.task.user_code import named_libraries
from dagflow.spark.connection.failures import place_of_failure, unfit_for_package, unfit_worker
from dagflow.spark.connection.links import Link, is_of_connect
from dagflow.spark.executors import look
from dagflow.spark.executors.check import (
    PACKAGES,
    TASKS,
    Facts,
    Needs,
    Problem,
    facts_of,
    installed,
    package_remedy,
    problems_of,
    python_remedy,
    why_not_read,
)
from dagflow.storage import OWN_FOLDER, join


def needs_of(plan: Plan, run_folder: str | None, max_skew: float) -> Needs:
    """Return the needs of an application. Inputs that the driver does not see either are left out: the launch refuses them."""
    operators = [node.operator for node in plan.dag.nodes.values()]
    folders = Folders.of_operators(operators, run_folder)
    inputs = dict.fromkeys(path for operator in operators for path in operator.input_paths())
    libraries = sorted({name for stage in plan.stages for name in named_libraries(stage_program(plan, stage.name))})
    owners = packages_distributions() if libraries else {}
    modules = {name: next(iter(owners.get(name.partition(".")[0], ())), "") for name in libraries}
    own = set(filter(None, modules.values())) | {*PACKAGES}
    return Needs(
        packages={name: installed(name) for name in sorted(own)},
        modules={TASKS: "dagflow", **modules},
        inputs=tuple(path for path in inputs if not why_not_read(path)),
        outputs=tuple(folder for folder in folders.outputs if join(folder, OWN_FOLDER) != folders.run_folder),
        tables=tuple(dict.fromkeys(folder for each in operators if isinstance(each, Sink) for folder in each.task_folders())),
        max_skew=max_skew,
    )


@attrs.frozen
class Found:
    """The result of a probe: the facts about each executor that has answered, and all problems."""

    facts: tuple[Facts, ...]
    problems: tuple[Problem, ...]


def probe(link: Link, slots: int, needs: Needs) -> Found:
    """Look from every slot, so on every executor that is there now. Raises what Spark raises, but for a Python that is unfit."""
    wanted = needs.as_json()
    asked = time.time()
    try:
        column = _function(link.spark, wanted)
        rows = link.spark.range(0, slots, 1, slots).select(column("id").alias("facts")).collect()
    except Exception as error:
        if problem := unfit_problem(str(error), needs):
            return Found((), (problem,))
        raise
    answered = time.time()
    facts = [facts_of(json.loads(row[0])) for row in rows]
    problems = dict.fromkeys(problem for each in facts for problem in problems_of(needs, each, asked, answered))
    return Found(tuple({each.place: each for each in facts}.values()), tuple(problems))


def unfit_problem(text: str, needs: Needs) -> Problem | None:
    """Return the problem of a Python that could not run a task at all, if that is what the text of an exception says."""
    place = place_of_failure(text) or "an executor"
    if reason := unfit_for_package(text):
        return Problem(place, f"the package: {reason}", package_remedy(needs.python))
    reason = unfit_worker(text)
    if reason is None:
        return None
    return Problem(place, f"the Python of the tasks: {reason}", python_remedy(needs.python))


def _function(spark: Any, wanted: str) -> Any:
    from pyspark.sql.types import StringType

    cloudpickle: Any = importlib.import_module("pyspark.cloudpickle")
    cloudpickle.register_pickle_by_value(look)  # for good: another launch may be at the same place
    functions: Any = importlib.import_module(f"pyspark.sql{'.connect' if is_of_connect(spark) else ''}.functions")
    function = look.look
    return functions.udf(lambda _: function(wanted), StringType(), useArrow=False)  # needs no pyarrow there

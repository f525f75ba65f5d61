"""The needs of an application, from its plan."""

from __future__ import annotations

from importlib.metadata import packages_distributions

from dagflow.model.operator.sink import Sink
from dagflow.planning.plan import Plan
from dagflow.runtime.run_folder.folders import Folders
from dagflow.runtime.task.compile import stage_program
from dagflow.runtime.task.user_code import named_libraries
from dagflow.spark.executors.folders import why_not_read
from dagflow.spark.executors.needs import PACKAGES, TASKS, Needs, installed
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

"""Problems with the places that an application reads and writes. Finding them creates and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dagflow.errors import DagflowError
from dagflow.launching.build import LoadedApplication
from dagflow.model.operator.base import InputOperator, Operator
from dagflow.model.operator.context import OperatorContext, SystemClock
from dagflow.runtime.run_folder.folders import Folders, foreign_files, outputs_in_inputs
from dagflow.storage import explained


def place_problems(built: LoadedApplication) -> tuple[DagflowError, ...]:
    """Find missing inputs, outputs in or equal to inputs, and output folders with files that no run wrote.

    Operators with invalid properties are left out: further errors would follow from these.
    """
    operators = {name: node.operator for name, node in built.expanded.operators.items() if _is_sound(node.operator)}
    folders = Folders.of_operators([*operators.values()], built.run.run_folder)
    inside = list(outputs_in_inputs(operators, folders))
    others = [folder for folder in folders.outputs if folder not in {problem.output for problem in inside}]
    return (*_missing(operators, built.run.continuous), *inside, *_foreign(others))


def _is_sound(operator: Operator) -> bool:
    try:
        operator.check()
    except Exception:  # noqa: BLE001  # user code; the check of the DAG tells it
        return False
    return True


def _missing(operators: Mapping[str, Operator], continuous: bool) -> Iterator[DagflowError]:
    for name, operator in operators.items():
        if isinstance(operator, InputOperator):
            try:
                operator.check_inputs(OperatorContext(name=name, continuous=continuous, clock=SystemClock()))
            except DagflowError as problem:
                yield problem


def _foreign(outputs: list[str]) -> Iterator[DagflowError]:
    for folder in outputs:
        try:
            with explained(folder, "looking at the output folder"):
                if problem := foreign_files(folder):
                    yield problem
        except DagflowError as problem:
            yield problem

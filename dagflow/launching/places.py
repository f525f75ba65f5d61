"""Problems with the places that an application reads and writes. Finding them creates and changes nothing."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping

from dagflow.errors import DagflowError
from dagflow.launching.build import LoadedApplication
from dagflow.model.operator.base import InputOperator, Operator
from dagflow.model.operator.context import OperatorContext, SystemClock
from dagflow.planning.plan import Plan
from dagflow.runtime.run_folder.folders import Folders, foreign_files, outputs_in_inputs
from dagflow.runtime.windows.datasets import datasets_of
from dagflow.storage import explained, local_path
from dagflow.storage.errors import NotReadable


def place_problems(built: LoadedApplication, plan: Plan | None = None) -> tuple[DagflowError, ...]:
    """Find inputs that are missing or may not be read, and outputs that cannot be written or are shared by sinks that differ.

    Outputs in or equal to inputs, or with files that no run wrote, cannot be written either. Operators with invalid properties
    are left out: further errors would follow from these.
    """
    operators = {name: node.operator for name, node in built.expanded.operators.items() if _is_sound(node.operator)}
    folders = Folders.of_operators([*operators.values()], built.run.run_folder)
    inside = list(outputs_in_inputs(operators, folders))
    others = [folder for folder in folders.outputs if folder not in {problem.output for problem in inside}]
    missing = tuple(_missing(operators, built.run.continuous))
    return (*missing, *_unreadable(operators), *inside, *_unfit(others), *_shared(plan))


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


def _unreadable(operators: Mapping[str, Operator]) -> Iterator[DagflowError]:
    for path in dict.fromkeys(path for operator in operators.values() for path in operator.input_paths()):
        plain = local_path(path)
        if plain is not None and os.path.exists(plain):
            mode = os.R_OK | (os.X_OK if os.path.isdir(plain) else 0)
            if not os.access(plain, mode):
                yield NotReadable(path=path, doing="listing the input" if os.path.isdir(plain) else "reading the input")


def _unfit(outputs: list[str]) -> Iterator[DagflowError]:
    for folder in outputs:
        try:
            with explained(folder, "making the output folder"):
                _check_writable(folder)
            with explained(folder, "looking at the output folder"):
                if problem := foreign_files(folder):
                    yield problem
        except DagflowError as problem:
            yield problem


def _check_writable(folder: str) -> None:
    """Raise OSError if a local folder cannot be written, or cannot be made."""
    there = local_path(folder)
    if there is None:
        return
    there = os.path.abspath(there)
    while not os.path.lexists(there):
        there = os.path.dirname(there)
    if not os.path.isdir(there):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), there)
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), there)


def _shared(plan: Plan | None) -> Iterator[DagflowError]:
    try:
        for _ in () if plan is None else datasets_of(plan):
            pass
    except DagflowError as problem:
        yield problem

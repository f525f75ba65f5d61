from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict

import dagflow.errors
import operators
from dagflow.errors import DagflowError


def classes(cls: type[DagflowError]) -> list[type[DagflowError]]:
    return [each for sub in cls.__subclasses__() for each in (sub, *classes(sub))]


def test_every_code_is_that_of_one_error() -> None:
    """A branch of the tree may share its code with the error that tells several of its kind together."""
    for package in (dagflow.errors, operators):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    users: dict[str, set[str]] = defaultdict(set)
    for cls in classes(DagflowError):
        if "code" in vars(cls) and cls.__module__.startswith(("dagflow.", "operators.")):
            users[cls.code].add(cls.__name__)
    assert {code: names for code, names in users.items() if len(names) > 1} == {"DF010": {"DagError", "DagErrors"}}

"""The class of each code."""

from __future__ import annotations

from importlib import import_module

from dagflow.errors import MODULES
from dagflow.errors.base import DagflowError


def classes_by_code() -> dict[str, type[DagflowError]]:
    """Return every class that has a code of its own. Loads all modules of errors."""
    names = ("dagflow.errors.base", "dagflow.errors.packages", *MODULES)
    values = ((name, each) for name in names for each in vars(import_module(name)).values() if isinstance(each, type))
    errors = [each for name, each in values if issubclass(each, DagflowError) and each.__module__ == name]
    return {each.code: each for each in errors if "code" in vars(each) and each is not DagflowError}

"""Public names of a package that are imported when they are first used."""

from __future__ import annotations

import ast
import pkgutil
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def lazy_exports(package: str) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package, whose names are in the stub beside its `__init__`.

    The stub, `__init__.pyi`, is the one table of the names: each line `from module import Name as Name` adds one. Type checkers
    read the same file.

    >>> import operators
    >>> lazy_exports("operators")[0] == operators.__all__
    True
    """
    module_of = modules_of_names(pkgutil.get_data(package, "__init__.pyi") or b"")

    def get(name: str) -> object:
        """Import a name when it is first used."""
        if name not in module_of:
            from dagflow.errors import suggest

            near = suggest(name, module_of)
            raise AttributeError(f"module {package!r} has no {name!r}" + (f"; did you mean {near!r}?" if near else ""))
        value = getattr(__import__(module_of[name], fromlist=[name]), name)  # which also imports a module of that name
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        """Return the names of the package, imported or not."""
        return sorted({*vars(sys.modules[package]), *module_of})

    return sorted(module_of), get, names


def shown_in_notebooks(function: str) -> Callable[..., dict[str, str]]:
    """Return the method by which notebooks show an object: a function of `dagflow.render.notebook`, imported when it is called.

    So classes of any layer can show themselves, without an import of the layers above.
    """

    def _repr_mimebundle_(self: Any, include: object = None, exclude: object = None) -> dict[str, str]:
        bundle: dict[str, str] = getattr(import_module("dagflow.render.notebook"), function)(self)
        return bundle

    return _repr_mimebundle_


def modules_of_names(stub: bytes) -> dict[str, str]:
    """Return the module of each name in the text of a stub.

    >>> modules_of_names(b"from operators.transform.filter import Filter as Filter")
    {'Filter': 'operators.transform.filter'}
    """
    imports = [node for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}

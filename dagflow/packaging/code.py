"""The application's own modules, and the libraries that they and its operators import, anywhere in their code.

Imports are read, not run: many stand in functions, and are run by a task only.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from dagflow.model.operator.base import Operator, fields_of
from dagflow.runtime.task.user_code import Libraries, import_folder, is_user_code

OURS = ("dagflow", "operators")
_SKIPPED = ("__pycache__", "node_modules", "site-packages")


def user_modules() -> list[ModuleType]:
    """Return the modules of the user that are loaded."""
    libraries = Libraries()
    modules = [m for name, m in sorted(sys.modules.items()) if getattr(m, "__name__", None) == name]
    return [module for module in modules if is_user_code(module, libraries)]


def code_files(application: ModuleType | None, modules: Iterable[ModuleType]) -> dict[str, Path]:
    """Return the Python files of an application by their name below the folder that they are imported from.

    These are the files of the loaded modules, and all below the application's own folder. Nothing but Python code: other files
    may hold secrets.
    """
    files: dict[str, Path] = {}
    for module in modules:
        path = Path(os.path.abspath(module.__file__ or ""))
        if path.suffix == ".py":
            files[os.path.relpath(path, import_folder(module))] = path
    if application is not None and getattr(application, "__file__", None):
        top = Path(import_folder(application))
        package = application.__name__.partition(".")[0]
        below = top / package if "." in application.__name__ else Path(os.path.abspath(application.__file__ or "")).parent
        for path in _python_files(below):
            files.setdefault(str(path.relative_to(top)), path)
    return {name: files[name] for name in sorted(files) if not name.startswith("..")}


def _python_files(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _SKIPPED and name[0] != "." and not os.path.exists(os.path.join(place, name, "pyvenv.cfg"))
        )
        for name in sorted(files):
            path = Path(place, name)
            if path.suffix == ".py" and not path.is_symlink():
                yield path


def imported_by(paths: Iterable[Path]) -> set[str]:
    """Return the names of the modules that some files import, dotted and at any depth of the code."""
    names: set[str] = set()
    for path in paths:
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError, OSError):  # a file that nothing imports may be anything
            continue
        names |= _imports(tree)
    return names


def _imports(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def imported_by_operators(operators: Iterable[Operator]) -> set[str]:
    """Return what the modules of operators import: those of the library, and what these import of the library in turn."""
    names: set[str] = set()
    top = Path(sys.modules["operators"].__file__ or "").parent.parent if "operators" in sys.modules else Path()
    left = {type(operator).__module__ for operator in operators}
    seen: set[str] = set()
    while left:
        name = left.pop()
        if name in seen or name.partition(".")[0] != "operators":
            continue
        seen.add(name)
        path = top.joinpath(*name.split("."))
        modules = imported_by(
            each for each in (path.with_suffix(".py"), path / "__init__.py") if name != "operators" and each.is_file()
        )
        names |= modules
        left |= modules
    return names


def texts_of(operators: Iterable[Operator]) -> Iterator[str]:
    """Yield the strings among the properties of operators, those in lists too."""
    for operator in operators:
        for value in fields_of(operator).values():
            if isinstance(value, str):
                yield value
            elif isinstance(value, list | tuple | set):
                yield from (each for each in value if isinstance(each, str))

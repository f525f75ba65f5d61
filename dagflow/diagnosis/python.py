"""Checks of Python: its version, the packages that dagflow needs, and files that hide modules."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from importlib.machinery import FrozenImporter, PathFinder
from importlib.metadata import PackageNotFoundError, version

from dagflow.diagnosis.check import Check
from dagflow.spark.executors.check import fits, required

NEEDED = ("pyarrow", "pyspark", "pandas", "numpy")
LIBRARIES = ("operators", "dagflow", "pyarrow", "pyspark", "pandas", "numpy", "attrs", "click", "networkx")


def packages() -> Iterator[Check]:
    """Check Python and the versions of the packages that cause most problems."""
    try:
        own = f"dagflow {version('dagflow')}"
    except PackageNotFoundError:
        own = "dagflow (not installed)"
    yield Check("Python", "ok", f"{sys.version.split()[0]}, {own}, {sys.executable}")
    pip = f"{shlex.quote(sys.executable)} -m pip install"
    for name in NEEDED:
        wanted = required(name)
        try:
            present = version(name)
        except PackageNotFoundError:
            yield Check(name, "problem", "is not installed", f"{pip} {shlex.quote(wanted)}")
            continue
        if fits(present, wanted):
            yield Check(name, "ok", present)
        else:
            yield Check(name, "problem", f"{present} is installed, dagflow needs {wanted}", f"{pip} {shlex.quote(wanted)}")


def is_found_first(name: str, folder: str, path: Sequence[str]) -> bool:
    """Return whether an application in a folder imports a module from there: nothing before the folder has it.

    `path`: that of this process. A launch puts the folder first, unless it is on the path already. What is built into Python is
    found before everything else.
    """
    if name in sys.builtin_module_names or FrozenImporter.find_spec(name) is not None:
        return False
    folder = os.path.realpath(folder)
    places = [os.path.realpath(place) for place in path]
    before = places[: places.index(folder)] if folder in places else []
    PathFinder.invalidate_caches()
    return PathFinder.find_spec(name, before) is None


def shadowed(folder: str) -> Iterator[Check]:
    """Check a folder for files that hide modules of Python or of dagflow from applications in it."""
    names = {}
    try:
        entries = sorted(os.listdir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.endswith(".py"):
            names[entry[:-3]] = entry
        elif os.path.isfile(os.path.join(folder, entry, "__init__.py")):
            names[entry] = entry
    hidden = [
        name
        for name in names
        if (name in sys.stdlib_module_names or name in LIBRARIES) and is_found_first(name, folder, sys.path)
    ]
    if "dagflow" in hidden and os.path.isdir(os.path.join(folder, "dagflow", "diagnosis")):
        hidden = [name for name in hidden if name not in ("dagflow", "operators")]  # the folder of dagflow's own sources
    for name in hidden:
        owner = "Python" if name in sys.stdlib_module_names else "the library" if name == "operators" else "a package"
        entry = names[name]
        remedy = f"mv {shlex.quote(entry)} {shlex.quote('my_' + entry)}"
        yield Check("module names", "warning", f"{entry} hides the module {name} of {owner}", remedy)
    if not hidden:
        yield Check("module names", "ok", "no file in this folder hides a module")

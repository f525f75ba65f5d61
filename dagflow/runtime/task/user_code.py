"""User code: the modules that travel to the tasks by value, since executors do not have them.

These are the modules in the folders of those that a program names: an operator's class, a function, the class of a record, and
what these use in turn. A library goes by its name, wherever it lies: executors have it too.
"""

from __future__ import annotations

import importlib.metadata
import io
import os
import site
import sys
import sysconfig
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import cloudpickle

from dagflow.runtime.stage.by_value import Pickler

_OURS = ("dagflow", "operators")
_INSTALLED_INTO = ("site-packages", "dist-packages", "lib-dynload")
_REGISTRY = threading.RLock()
"""cloudpickle has one registry of modules for the process, and several launches may pickle at once."""


def dump_by_value(thing: Any) -> bytes:
    """Pickle an object with all user code that it names. May raise any exception, as picklers do."""
    return _dumped(thing, Libraries())[0]


def named_libraries(thing: Any) -> set[str]:
    """Return the modules of libraries that `dump_by_value` names: executors import them. May raise any exception, too."""
    libraries = Libraries()
    _, named = _dumped(thing, libraries)
    travel = cloudpickle.list_registry_pickle_by_value()
    return {name for name in named if (module := sys.modules.get(name)) is not None and _is_library(module, libraries, travel)}


def _dumped(thing: Any, libraries: Libraries) -> tuple[bytes, set[str]]:
    """Return a pickled object, and the modules that the pickler has met."""
    folders: set[str] = set()
    while True:
        file = io.BytesIO()
        pickler = _Pickler(file)
        with by_value(folders, libraries):
            pickler.dump(thing)
        named = (sys.modules.get(name) for name in pickler.named)
        user_folders = {import_folder(module) for module in named if module is not None and is_user_code(module, libraries)}
        if user_folders <= folders:
            return file.getvalue(), pickler.named
        folders |= user_folders


def _is_library(module: ModuleType, libraries: Libraries, travel: Iterable[str]) -> bool:
    top = module.__name__.partition(".")[0]
    if top in (*_OURS, "__main__", "__mp_main__") or top in sys.stdlib_module_names or module.__name__ in travel:
        return False
    return not is_user_code(module, libraries)


@contextmanager
def by_value(folders: Iterable[str], libraries: Libraries) -> Iterator[None]:
    """Let cloudpickle take the user code in some folders by value while this lasts. Other threads wait."""
    wanted = set(folders)
    with _REGISTRY:
        registered = cloudpickle.list_registry_pickle_by_value()
        modules = [
            module
            for name, module in list(sys.modules.items() if wanted else ())
            if getattr(module, "__name__", None) == name  # no alias of another one
            and name not in registered
            and is_user_code(module, libraries)
            and import_folder(module) in wanted
        ]
        for module in modules:
            cloudpickle.register_pickle_by_value(module)
        try:
            yield
        finally:
            for module in modules:
                cloudpickle.unregister_pickle_by_value(module)


class Libraries:
    """The folders and names of libraries. Remembers what it has looked up."""

    def __init__(self) -> None:
        folders = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
        self._folders = {os.path.abspath(folder) for folder in (*folders, *site.getsitepackages(), site.getusersitepackages())}
        self._installed: dict[str, frozenset[str]] = {}

    def have(self, folder: str, name: str) -> bool:
        """Return whether the package or module `name` in a folder belongs to a library.

        It does in a folder of this Python's, in an archive, and where pip has installed it (`pip install --target`).
        """
        if folder in self._folders or os.path.basename(folder) in _INSTALLED_INTO or not os.path.isdir(folder):
            return True
        if folder not in self._installed:
            self._installed[folder] = _installed_in(folder)
        return name in self._installed[folder]


def is_user_code(module: ModuleType, libraries: Libraries) -> bool:
    """Return whether a module is the user's: not built in, not of this framework, not of a library."""
    name = module.__name__.partition(".")[0]
    if name in (*_OURS, "__main__") or not getattr(module, "__file__", None):
        return False
    return not libraries.have(import_folder(module), name)


def import_folder(module: ModuleType) -> str:
    """Return the folder that a module is imported from: that of its file, above its packages."""
    folder, file = os.path.split(os.path.abspath(module.__file__ or ""))
    packages = module.__name__.split(".")
    if file.partition(".")[0] != "__init__":
        packages.pop()
    for package in reversed(packages):
        above, last = os.path.split(folder)
        if last != package:  # loaded under a name of its own
            break
        folder = above
    return folder


class _Pickler(Pickler):
    """Notes the modules that it meets, and those of all classes, functions and objects."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.named: set[str] = set()

    def persistent_id(self, thing: Any) -> None:
        """Note the module of an object. Return None, so that the object is pickled as usual."""
        if isinstance(thing, ModuleType):
            name: object = thing.__name__
        else:
            owner = thing if isinstance(thing, type | FunctionType | BuiltinFunctionType) else type(thing)
            name = owner.__module__
        if isinstance(name, str):
            self.named.add(name)


def _installed_in(folder: str) -> frozenset[str]:
    """Return the top-level names that pip has installed into a folder."""
    names: set[str] = set()
    for distribution in importlib.metadata.distributions(path=[folder]):
        for file in distribution.files or ():
            names.add(file.parts[0].partition(".")[0])
    return frozenset(names)

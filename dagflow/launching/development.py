"""Running an application again whenever its code changes: which files to watch, and how their modules are loaded anew."""

from __future__ import annotations

import importlib
import linecache
import os
import sys
from collections.abc import Iterable

from dagflow.launching.build import LoadedApplication
from dagflow.launching.errors import DevelopmentWouldReplace
from dagflow.planning.plan import Plan
from dagflow.runtime.run_folder.folders import Folders
from dagflow.runtime.run_folder.window_log import WindowLog
from dagflow.runtime.task.user_code import Libraries, is_user_code
from dagflow.storage import file_system

Stamp = tuple[int, int] | None


class UserCode:
    """The modules that are loaded while this object exists, as far as they are the user's, and the files to watch.

    Args:
        application: the argument APP of the command line. Its folder is watched too: code that fails to load is not a module.
        files: further files to watch.
    """

    def __init__(self, application: str, files: Iterable[str] = ()) -> None:
        self._known = set(sys.modules)
        self._application = application.partition(":")[0]
        self._files = tuple(files)
        self._libraries = Libraries()
        self._stamps: dict[str, Stamp] = {}

    def remember(self) -> None:
        """Note the state of all files. Call it before the code is loaded, so that no change is missed.

        Files of earlier loads stay watched: the next load may fail at one of them.
        """
        self._stamps = {path: _stamp(path) for path in {*self._watched(), *self._stamps}}

    def changed(self) -> str | None:
        """Return the path of a file that has changed, appeared or gone since `remember`; None if there is none.

        Files that the code has loaded since are watched from now on.
        """
        in_folder = self._in_folder()
        for path in sorted({*self._watched(), *self._stamps}):
            stamp = _stamp(path)
            if path not in self._stamps and path not in in_folder:
                self._stamps[path] = stamp
            elif self._stamps.get(path) != stamp:
                return path
        return None

    def forget(self) -> None:
        """Remove the user's modules, so that the next import reads their files."""
        for name in self._loaded():
            del sys.modules[name]
        importlib.invalidate_caches()
        linecache.checkcache()

    def _loaded(self) -> list[str]:
        loaded = [(name, module) for name, module in list(sys.modules.items()) if name not in self._known]
        return [name for name, module in loaded if getattr(module, "__name__", None) and is_user_code(module, self._libraries)]

    def _watched(self) -> set[str]:
        files = {os.path.abspath(sys.modules[name].__file__ or "") for name in self._loaded()}
        return {*files, *map(os.path.abspath, self._files), *self._in_folder()}

    def _in_folder(self) -> set[str]:
        is_path = self._application.endswith(".py") or os.path.isdir(self._application)
        place = os.path.abspath(self._application if is_path else self._application.replace(".", os.sep))  # a module
        folder = place if os.path.isdir(place) else os.path.dirname(place)
        if not os.path.isdir(folder):
            return set()
        return {entry.path for entry in os.scandir(folder) if entry.name.endswith(".py")}


def _stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def refuse_committed(built: LoadedApplication, plan: Plan) -> None:
    """Raise DevelopmentWouldReplace where the run folder has committed windows, unless the settings say `fresh`."""
    folders = Folders.of(plan, built.run.run_folder)
    if built.run.fresh or folders.run_folder is None or not file_system(folders.run_folder).exists(folders.run_folder):
        return
    if WindowLog.open(folders.run_folder, durable=False).windows("decision"):
        raise DevelopmentWouldReplace(output=", ".join(folders.outputs) or folders.run_folder)

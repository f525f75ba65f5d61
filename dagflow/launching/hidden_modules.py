"""Modules of the user's that hide Python's own: whoever imports `queue` gets the `queue.py` beside the application."""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Iterator
from importlib.machinery import PathFinder
from types import ModuleType

from dagflow.launching.errors import StandardModuleHidden
from dagflow.model.source import shown


def hidden_module(error: BaseException) -> StandardModuleHidden | None:
    """What an exception really means when it comes of a module of Python's own that a file of the user's hides, else None.

    Such a file is found only by what it breaks: a `statistics.py` that nobody misses does no harm.
    """
    for cause in _chain(error):
        name = _module_of(cause)
        if name in sys.stdlib_module_names:
            found = PathFinder.find_spec(name, sys.path)
            path = found.origin if found is not None else None
            if path and not path.startswith(tuple(sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib"))):
                place = path.removesuffix("/__init__.py")
                what = re.sub(r" \(.*\)$", "", str(cause))  # without its path, or the advice of newer Pythons
                return StandardModuleHidden(path=shown(place), name=name, error=f"{type(cause).__name__}: {what}")
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _module_of(error: BaseException) -> str:
    """The module that lacks what was asked of it."""
    if isinstance(error, ImportError):
        return (error.name or "").partition(".")[0]
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        return error.obj.__name__.partition(".")[0]
    return ""

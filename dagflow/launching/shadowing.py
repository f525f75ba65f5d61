"""Detects modules of the user that shadow others: an `operators` before the library, a `queue.py` before the standard one."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dagflow.model.operator.call_sites import shown

if TYPE_CHECKING:
    from dagflow.launching.errors import OperatorsShadowed, StandardModuleHidden

NAME = "operators"


def shadow_of(spec: Any) -> OperatorsShadowed | None:
    """Return the error for an `operators` (a spec, or a module without one) that is not the library, None for the library."""
    origin, folders = spec.origin, spec.submodule_search_locations
    place = os.path.dirname(os.path.abspath(origin)) if origin else next(iter(folders or ()), "")
    if os.path.exists(os.path.join(place, "contexts", "entity.py")):
        return None
    from dagflow.launching.errors import OperatorsShadowed  # `import dagflow` need not load it

    return OperatorsShadowed(path=shown(origin if folders is None else place))


def explain_shadows() -> None:
    """See to it that `from operators import …` names what hides the library, wherever it is written: in scripts and tests too.

    Another `operators` works as ever; only asking it for a name of the library raises OperatorsShadowed.
    """
    known = sys.modules.get(NAME)
    if known is not None:
        _explain(known)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds `operators` as the finders behind it do, and has it explain itself once it is loaded."""

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != NAME:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next((each for finder in others if (each := finder.find_spec(name, path, target)) is not None), None)
        if spec is not None and spec.loader is not None and shadow_of(spec) is not None:
            loader: Any = spec.loader
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                _explain(module)

            with contextlib.suppress(AttributeError):  # a loader that takes no attributes: Python's own message has to do
                loader.exec_module = exec_module
        return spec


def _explain(module: ModuleType) -> None:
    spec = module.__spec__
    shadow = None if spec is None else shadow_of(spec)
    if shadow is None or "__getattr__" in vars(module):
        return
    shadow.add_note(f"error[{shadow.code}]")  # which Python's own traceback does not have

    def missing(name: str) -> Any:
        if name in _library_names():
            raise shadow
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}", name=name, obj=module)

    module.__getattr__ = missing  # type: ignore[method-assign]


def _library_names() -> set[str]:
    """The public names of the library, which lies beside dagflow; read, since it cannot be imported."""
    from pathlib import Path  # `import dagflow` need not load these

    from dagflow.exports import modules_of_names

    stub = Path(__file__).parents[2] / NAME / "__init__.pyi"
    return set(modules_of_names(stub.read_bytes())) if stub.is_file() else set()


def hidden_module(error: BaseException) -> StandardModuleHidden | None:
    """Return the error for a user's file that hides a standard module (a `queue.py`), if an exception comes from that.

    Such a file is found only by what it breaks: a `statistics.py` that no import needs does no harm.
    """
    import re
    import sysconfig
    from importlib.machinery import PathFinder

    from dagflow.launching.errors import StandardModuleHidden  # `import dagflow` need not load these

    for cause in _chain(error):
        name = _module_of(cause)
        if name in sys.stdlib_module_names:
            hidden = PathFinder.find_spec(name, sys.path)
            path = hidden.origin if hidden is not None else None
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
    """Return the name of the module that lacks an attribute or cannot be imported."""
    if isinstance(error, ImportError):
        return (error.name or "").partition(".")[0]
    if isinstance(error, AttributeError) and isinstance(error.obj, ModuleType):
        return error.obj.__name__.partition(".")[0]
    return ""

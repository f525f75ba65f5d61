"""Finding an application: a folder with `app.py`, `path.py[:name]` or `module[:name]`, and the settings that it takes."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import os
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

import attrs
from typing_extensions import is_protocol

from dagflow.errors.wording import did_you_mean, known_names
from dagflow.launching.errors import ApplicationBroken, ApplicationMissing, NoPopulateDag
from dagflow.model.errors.classes import SettingsNotAttrs
from dagflow.model.graph.class_checks import line_of
from dagflow.model.graph.module import Module
from dagflow.model.types.comparison import evaluated, type_name
from dagflow.model.types.expressions import UNIONS

POPULATE = "populate_dag"


@attrs.frozen
class Application:
    """An application to launch.

    Attributes:
        name: shown in reports and in Spark's UI.
        populate_dag: fills the DAG.
        settings_class: the attrs class of its settings; None: a mapping.
        where: the file or module.
    """

    name: str
    populate_dag: Callable[..., object]
    settings_class: type | None
    where: str


def load_application(spec: str) -> Application:
    """The application that a command line names. Raises ConfigError: missing, broken, or without populate_dag."""
    place, colon, name = spec.partition(":") if spec[1:3] != ":\\" else (spec, "", "")
    path = os.path.join(place, "app.py") if os.path.isdir(place) else place
    if os.path.isdir(place) and not os.path.isfile(path):
        raise ApplicationMissing(spec=spec, reason=f"the folder {place} has no app.py")
    if path.endswith(".py"):
        if not os.path.isfile(path):
            raise ApplicationMissing(spec=spec, reason=f"there is no file {path}")
        module = _load_file(os.path.abspath(path), spec)
    elif os.path.dirname(place):  # not the name of a module
        raise ApplicationMissing(spec=spec, reason=f"there is no folder {place}")
    else:
        module = _load_module(place, spec)
    default = os.path.basename(os.path.dirname(os.path.abspath(path))) if path.endswith("app.py") else place.rpartition(".")[2]
    candidate = _find(module, name if colon else None, spec)
    return application_of(
        candidate, default if not path.endswith(".py") or path.endswith("app.py") else os.path.basename(path)[:-3], spec
    )


def application_of(populate: Any, name: str | None = None, where: str = "") -> Application:
    """The application behind a function or an object with `populate_dag`. Raises NoPopulateDag."""
    if isinstance(populate, Module):
        raise NoPopulateDag(spec=where or repr(populate), is_module=True)
    function: Any = populate if inspect.isroutine(populate) else getattr(populate, POPULATE, populate)
    if not callable(function):
        raise NoPopulateDag(spec=where or repr(populate))
    return Application(name or str(getattr(populate, "__name__", "application")), function, _settings_class(function), where)


def _settings_class(function: Callable[..., Any]) -> type | None:
    """The annotation of the second parameter, when it is an attrs class. Only that one is evaluated.

    Raises SettingsNotAttrs for another class, which would be ignored.
    """
    function = inspect.unwrap(function)
    parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) < 2:
        return None
    annotation = parameters[1].annotation
    if isinstance(annotation, str):
        known: dict[str, Any] = getattr(function, "__globals__", {})
        holder: Any = types.SimpleNamespace(__module__=function.__module__)
        annotation = known[annotation] if annotation in known else evaluated(annotation, holder)
    if inspect.isclass(annotation) and attrs.has(annotation):
        return annotation
    wrong = _not_settings(annotation)
    if wrong:
        raise SettingsNotAttrs(type_name(annotation), wrong, line_of(function))
    return None


def _not_settings(annotation: Any) -> str | None:
    """Return the kind of value that an annotation promises, if a mapping of settings is not one; else None."""
    if get_origin(annotation) in UNIONS:
        members = [each for each in get_args(annotation) if each is not type(None)]
        return "a union" if any(attrs.has(each) or _not_settings(each) for each in members if inspect.isclass(each)) else None
    if not inspect.isclass(annotation) or annotation in (Any, object, inspect.Parameter.empty):
        return None
    if is_protocol(annotation) or issubclass(dict, annotation) or issubclass(annotation, Mapping):
        return None
    return "a dataclass" if dataclasses.is_dataclass(annotation) else "no attrs class"


def _load_file(path: str, spec: str) -> types.ModuleType:
    """Load a file's folder as a package of its own name, so that relative imports and siblings work."""
    folder, file = os.path.split(path)
    name = file[:-3]
    if os.path.isfile(os.path.join(folder, "__init__.py")):
        package = os.path.basename(folder)
        parent = os.path.dirname(folder)
        name = f"{package}.{name}"
    else:
        parent = folder
    if parent not in sys.path:
        sys.path.insert(0, parent)
    if folder not in sys.path:
        sys.path.insert(1, folder)
    known = sys.modules.get(name)
    if known is not None and os.path.abspath(getattr(known, "__file__", "") or "") != path:
        name = f"_dagflow_app_{abs(hash(path)):x}"  # another module of that name is loaded already
    elif known is not None:
        return known
    if "." in name:
        return _import(name, spec)
    spec_of_file = importlib.util.spec_from_file_location(name, path)
    assert spec_of_file is not None
    assert spec_of_file.loader is not None
    module = importlib.util.module_from_spec(spec_of_file)
    sys.modules[name] = module
    try:
        spec_of_file.loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(name, None)
        raise ApplicationBroken.of(spec, error) from error
    return module


def _load_module(name: str, spec: str) -> types.ModuleType:
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    missing = f"there is no folder, file or module {name}"
    try:
        module_spec = importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        raise ApplicationMissing(spec=spec, reason=f"{missing} ({error})") from error
    except ValueError as error:  # no name of a module at all
        raise ApplicationMissing(spec=spec, reason=missing) from error
    except Exception as error:  # a package above it raised
        raise ApplicationBroken.of(spec, error) from error
    if module_spec is None:
        raise ApplicationMissing(spec=spec, reason=missing)
    return _import(name, spec)


def _import(name: str, spec: str) -> types.ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise ApplicationBroken.of(spec, error) from error


def _find(module: types.ModuleType, name: str | None, spec: str) -> Any:
    if name is None:
        candidate = getattr(module, POPULATE, None) or getattr(module, "application", None)
        if candidate is not None:
            return candidate
        own = [v for v in vars(module).values() if inspect.isclass(v) and v.__module__ == module.__name__]
        owners = [cls for cls in own if hasattr(cls, POPULATE) and not issubclass(cls, Module)]
        if len(owners) == 1:
            return owners[0]()
        raise NoPopulateDag(spec=spec)
    candidate = getattr(module, name, None)
    if candidate is None:
        public = tuple(n for n, v in vars(module).items() if callable(v) and not n.startswith("_"))
        raise ApplicationMissing(
            spec=spec,
            reason=f"{spec.partition(':')[0]} has no {name!r}.{did_you_mean(name, public, otherwise=known_names(public))}",
        )
    if inspect.isclass(candidate) and issubclass(candidate, Module):
        raise NoPopulateDag(spec=spec, is_module=True)
    return candidate() if inspect.isclass(candidate) and hasattr(candidate, POPULATE) else candidate

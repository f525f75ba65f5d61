"""From a built application to the record of its launch, and back."""

from __future__ import annotations

import functools
import os
import platform
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import attrs

from dagflow.config import SettingRow, effective
from dagflow.config.layers import split_key
from dagflow.config.values.hints import settable
from dagflow.errors.shown import HIDDEN, sounds_secret, without_secrets
from dagflow.launching.build import LoadedApplication, build
from dagflow.launching.errors import ApplicationUnknown
from dagflow.model.errors.running import StateNotPlain
from dagflow.model.types.plain_data import encode
from dagflow.planning.plan import Plan
from dagflow.planning.view import plan_view
from dagflow.runtime.run_folder.launch_record import LaunchRecord


def launch_record(built: LoadedApplication, plan: Plan) -> LaunchRecord:
    """Return the record to keep of a built application."""
    rows = _rows(built)
    is_secret = _secrets(rows)
    definitions: list[str] = []
    code: dict[str, Any] = {}
    left_out: list[str] = []

    def keep(key: str, value: Any) -> None:
        try:
            if not is_secret(key):
                plain = encode(value, key)
                if without_secrets(plain) == plain:
                    code[key] = plain
                    return
        except StateNotPlain:
            pass
        left_out.append(key)

    base = built.layers.base
    for key, field in settable(type(base)).items() if attrs.has(type(base)) else ():
        keep(key, getattr(base, field.name))
    for setting in (*built.layers.application().winners().values(), *built.layers.operators().winners().values()):
        if setting.is_text and not is_secret(setting.key) and without_secrets(setting.value) == setting.value:
            definitions.append(f"{setting.key}={setting.value}")
            code.pop(setting.key, None)
        else:
            keep(setting.key, setting.value)
    return LaunchRecord(
        application=built.application.where or _importable(built.application.populate_dag),
        name=built.dag.name,
        folder=os.getcwd(),
        definitions=definitions,
        code=code,
        left_out=list(dict.fromkeys(left_out)),
        view=without_secrets(plan_view(plan, applied=built.applied).as_json()),
        settings=[[row.group, row.key, without_secrets(row.value), row.origin] for row in rows],
        versions=dict(_versions(built.run.runner)),
    )


@functools.cache
def _versions(runner: str) -> dict[str, str]:
    libraries = ("dagflow", "pyarrow", *(("pyspark",) if runner == "spark" else ()))
    versions = {"python": platform.python_version()}
    for name in libraries:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def rebuild(record: LaunchRecord, definitions: Sequence[str] = ()) -> LoadedApplication:
    """Build the application of a launch again; the process must stand in its `folder`.

    `definitions`: settings in the place of those that are kept, or were left out. Raises ApplicationUnknown, ConfigError,
    DagError.
    """
    if not record.application:
        raise ApplicationUnknown(record.name, "the function that was launched has no name by which it could be loaded")
    return build(record.application, code=record.code, definitions=(*record.definitions, *definitions))


def _secrets(rows: Sequence[SettingRow]) -> Callable[[str], bool]:
    """Return a test of keys: whether the value of a key is, holds, or is a part of a secret."""
    hidden = [_parts(row.key) for row in rows if row.value == HIDDEN]

    def is_secret(key: str) -> bool:
        path = _parts(key)
        return sounds_secret(key) or any(path[: len(other)] == other[: len(path)] for other in hidden)

    return is_secret


def _parts(key: str) -> tuple[str, ...]:
    return tuple(part.lower() for part in split_key(key))


def _importable(function: Any) -> str:
    """`module:name` of a function that can be imported by that name; a method may rest on what its object was made with."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module in (None, "__main__") or not name.isidentifier() or getattr(sys.modules.get(module), name, None) is not function:
        return ""
    return f"{module}:{name}"


def _rows(built: LoadedApplication) -> list[SettingRow]:
    return effective(
        built.application.settings_class,
        built.layers,
        operators={name: node.operator for name, node in built.expanded.operators.items()},
        modules={name: node.module for name, node in built.expanded.modules.items()},
        applied=built.applied,
        only_given=True,
    )

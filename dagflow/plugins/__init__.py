"""Operators, formats and sinks that other packages bring, by entry points of their distributions.

Nothing is read until a list is asked for, or a name that the library does not know. A plug-in that cannot be imported is reported
with the package that it comes from, and the others work.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import attrs

OPERATORS, FORMATS, SINKS = "dagflow.operators", "dagflow.formats", "dagflow.sinks"
GROUPS = (OPERATORS, FORMATS, SINKS)


@attrs.frozen
class Plugin:
    """A class that a package offers under a name. `problem`: the reason why it cannot be imported, or an empty string."""

    group: str
    name: str
    package: str
    target: Any = None
    problem: str = ""


class PluginWarning(UserWarning):
    """A plug-in cannot be used."""


def plugins(*groups: str) -> Iterator[Plugin]:
    """Load the plug-ins of some groups (all of them), broken ones included, by group and name."""
    for group in groups or GROUPS:
        for point in sorted(entry_points(group=group), key=lambda point: point.name):
            yield _loaded(point)


def plugin_named(group: str, name: str) -> Any:
    """Return the class of a name, None if no package offers it. Warns of one that is broken."""
    for point in entry_points(group=group, name=name):
        plugin = _loaded(point)
        if not plugin.problem:
            return plugin.target
        warnings.warn(f"{plugin.package} offers {name!r}, which cannot be used: {plugin.problem}", PluginWarning, stacklevel=2)
    return None


def plugin_names(group: str) -> list[str]:
    """Return the names in a group, without loading anything."""
    return sorted(point.name for point in entry_points(group=group))


def _loaded(point: EntryPoint) -> Plugin:
    package = "an unknown package" if point.dist is None else f"{point.dist.name} {point.dist.version}"
    try:
        target = point.load()
    except Exception as error:  # noqa: BLE001  # code of others, which may raise anything when it is imported
        return Plugin(point.group, point.name, package, problem=f"{type(error).__name__}: {error}")
    if not isinstance(target, type):
        return Plugin(point.group, point.name, package, problem=f"{point.value} is not a class")
    return Plugin(point.group, point.name, package, target)

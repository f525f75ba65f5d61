"""The entries of the catalogue: one per public class of the library, and of the packages that extend it."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from dagflow.catalogue.docstrings import DocParts, doc_parts
from dagflow.catalogue.errors import NoSuchOperator
from dagflow.config import show
from dagflow.config.values import hints
from dagflow.config.values.field_docs import field_docs
from dagflow.model.operator.ports import OutputPort, ports_of
from dagflow.model.types.expressions import type_name
from dagflow.plugins import plugins

LIBRARY = "operators"
GROUPS = {
    "files": "Sources",
    "tables": "Sources",
    "logs": "Sources",
    "sources": "Sources",
    "readers": "Readers",
    "transform": "Transforms",
    "aggregate": "By key",
    "join": "By key",
    "sinks": "Sinks",
    "formats": "Formats",
    "contexts": "Records within a block",
}
"""The title of each package of the library, in the order of the data."""
PLUGGED = "From other packages"
_SEE = re.compile(r"\bsee `?(\w+)`?|^as (\w+) has")


@attrs.frozen
class PortEntry:
    """A port: its name, `in` or `out`, the type of its records, and whether it may stay unconnected."""

    name: str
    direction: str
    type: str
    optional: bool = False


@attrs.frozen
class PropertyEntry:
    """A property: its type, its default as configuration writes it (None: it must be given), and its meaning."""

    name: str
    type: str
    default: str | None
    doc: str


@attrs.frozen
class CatalogueEntry:
    """A class of the library or of a plug-in. `package`: the distribution of a plug-in, else an empty string."""

    name: str
    group: str
    cls: type
    doc: DocParts
    package: str = ""

    @property
    def import_line(self) -> str:
        """The line that imports it."""
        module = self.cls.__module__ if self.package else LIBRARY
        return f"from {module} import {self.cls.__name__}"

    @property
    def source(self) -> str:
        """The file and line of the class."""
        try:
            return f"{inspect.getsourcefile(self.cls)}:{inspect.getsourcelines(self.cls)[1]}"
        except (OSError, TypeError):
            return self.cls.__module__


@attrs.frozen
class BrokenPlugin:
    """A plug-in that cannot be imported."""

    name: str
    package: str
    problem: str


def catalogue() -> tuple[list[CatalogueEntry], list[BrokenPlugin]]:
    """Return all entries, by group, and the plug-ins that are broken."""
    library = importlib.import_module(LIBRARY)
    entries = []
    for name in library.__all__:
        cls = getattr(library, name)
        if not inspect.isclass(cls):  # a module of functions, as `agg`
            continue
        folder = cls.__module__.split(".")[1]
        if folder in GROUPS and not _is_value(cls):
            entries.append(CatalogueEntry(name, GROUPS[folder], cls, doc_parts(cls.__doc__)))
    order = list(dict.fromkeys(GROUPS.values()))
    entries.sort(key=lambda entry: (order.index(entry.group), entry.name))
    broken = []
    for plugin in plugins():
        if plugin.problem:
            broken.append(BrokenPlugin(plugin.name, plugin.package, plugin.problem))
        else:
            entries.append(CatalogueEntry(plugin.name, PLUGGED, plugin.target, doc_parts(plugin.target.__doc__), plugin.package))
    return entries, broken


def entry_named(name: str, entries: list[CatalogueEntry]) -> CatalogueEntry:
    """Return the entry of a name, in any case, also with its package: `operators.Filter`. Raises NoSuchOperator."""
    module, _, last = name.rpartition(".")
    exact = [entry for entry in entries if entry.name == name or entry.import_line == f"from {module} import {last}"]
    for entry in exact or [entry for entry in entries if entry.name.lower() == name.lower()]:
        return entry
    raise NoSuchOperator(name=name, known=tuple(entry.name for entry in entries))


def ports_of_entry(entry: CatalogueEntry) -> list[PortEntry]:
    """Return the ports that the class declares, `errors` last."""
    ports = sorted(ports_of(entry.cls).items(), key=lambda item: item[0] == "errors")
    return [
        PortEntry(
            name,
            "out" if isinstance(port, OutputPort) or type(port).__name__ == "ProxyOutputPort" else "in",
            type_name(port.declared_type).replace("~", ""),
            bool(getattr(port, "optional", False)),
        )
        for name, port in ports
    ]


def properties_of(entry: CatalogueEntry, entries: list[CatalogueEntry]) -> list[PropertyEntry]:
    """Return the properties: those that must be given first, then those of the class, then those of its bases."""
    if not attrs.has(entry.cls):
        return []
    by_name = {other.name: other.cls for other in entries}
    own = {hints.key_of(field) for field in attrs.fields(entry.cls) if not field.inherited}
    properties = []
    for key, field in hints.settable(entry.cls).items():
        hint = hints.field_hint(entry.cls, field)
        doc = doc_of(entry.cls, key, by_name)
        properties.append(PropertyEntry(key, hints.type_name(hint), _default(field, hint), doc))
    return sorted(properties, key=lambda each: each.name not in own and each.default is not None)


def _default(field: attrs.Attribute[Any], hint: Any) -> str | None:
    """Return the default as configuration writes it. Of one that a function makes, its value where that is simple."""
    default: Any = field.default
    if default is attrs.NOTHING:
        return None
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # attrs types it as a function
        if default.takes_self:
            return "…"
        made = default.factory()
        if isinstance(made, list | dict | set | tuple):
            default = made
        else:
            return f"{type(made).__name__}()"
    return show(default, hint)


def doc_of(cls: type, key: str, by_name: Mapping[str, type] | None = None, depth: int = 2) -> str:
    """Return the description of a property: of the class, of a base, or of the class that a description refers to.

    `by_name`: the classes that it may refer to.
    """
    texts = [text for text in _docs(cls, key) if text]
    for text in texts:
        if not _SEE.search(text):
            return text
    for text in texts:
        name = _SEE.search(text)
        other = None if name is None else (by_name or {}).get(name[1] or name[2])
        if other is not None and depth and (further := doc_of(other, key, by_name, depth - 1)):
            return further
    return texts[0] if texts else ""


def _docs(cls: type, key: str) -> Iterator[str]:
    for klass in cls.__mro__:
        if klass is object:
            break
        names = doc_parts(vars(klass).get("__doc__")).names
        yield names.get(key, "")
    yield field_docs(cls).get(key, "")


def _is_value(cls: type) -> bool:
    """Return True for the classes of records, which are not assembled."""
    return cls.__name__ in ("Entity", "KeyValue", "LogMessage", "OffsetBlock", "WindowValue")

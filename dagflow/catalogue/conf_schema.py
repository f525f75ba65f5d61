"""The JSON schema of the configuration files of an application, by which editors complete and check them."""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from typing import Any, Literal, get_args

import attrs

from dagflow.catalogue.entries import doc_of
from dagflow.config.assembly import default_of
from dagflow.config.run_settings import RunSettings
from dagflow.config.values import hints
from dagflow.errors.shown import sounds_secret

JsonSchema = dict[str, Any]

DRAFT = "http://json-schema.org/draft-07/schema#"
"""The version of JSON Schema that editors of TOML know."""
MAX_DEPTH = 5
"""The levels of objects in objects; below them, any value will do."""


def conf_schema(
    title: str, settings_class: type | None, operators: Mapping[str, Any], modules: Mapping[str, Any], attributes: Collection[str]
) -> JsonSchema:
    """Return the schema of the files that `--conf` takes.

    Nothing is required, since values may come from the command line or the environment.

    Args:
        title: the name of the application.
        settings_class: the class of its settings, None if it takes any.
        operators: those of the DAG, by name. Those in modules are called `MODULE.OPERATOR`.
        modules: the same.
        attributes: what can be set of any operator beside its properties.
    """
    run, own = _properties(RunSettings), {} if settings_class is None else _properties(settings_class)
    parts = _table({})
    for name, thing in {**modules, **operators}.items():
        place = parts
        for part in name.split("."):
            place = place["properties"].setdefault(part, _table({}))
        place["properties"] = {**_properties(type(thing), thing), **place["properties"]}
        if name in operators:
            place["properties"] |= {"port": {"type": "object"}, **{attribute: {} for attribute in attributes}}
    parts["properties"]["*"] = {"type": "object", "description": "properties of all operators that have them"}
    tables = {"run": _table(run), "operator": parts, "spark": {"type": "object", "description": "passed to Spark as it is"}}
    schema = {"$schema": DRAFT, "title": title, **_table({**run, **own, **tables})}
    return schema if settings_class is not None else {**schema, "additionalProperties": True}


def schema_of(hint: Any, depth: int = 0) -> JsonSchema:
    """Return the schema of the values of a type, as a TOML file can say them.

    >>> from dagflow.config import Bytes
    >>> schema_of(Bytes | None)
    {'anyOf': [{'type': ['integer', 'string']}, {'const': 'none'}]}
    >>> schema_of(list[int])
    {'anyOf': [{'type': 'array', 'items': {'type': 'integer'}}, {'type': 'integer'}]}
    """
    parts = hints.members(hint)
    if len(parts) > 1:
        return {"anyOf": [schema_of(part, depth) for part in parts]}
    what = hints.kind(hint)
    if what is hints.NoneType:
        return {"const": "none"}
    if hints.unit_of(hint) is not None:
        return {"type": ["integer" if what is int else "number", "string"]}
    if what is Literal:
        return {"enum": list(get_args(hints.unwrap(hint)[0]))}
    if hints.is_list(hint):  # one element may stand for a list of it
        element, several = schema_of(hints.element(hint), depth), get_args(hints.unwrap(hint)[0])
        is_fixed = what is tuple and bool(several) and several[-1] is not Ellipsis
        return {"anyOf": [{"type": "array", "items": element}, element]} if element and not is_fixed else {}
    if hints.is_dict(hint):
        return {"type": "object", "additionalProperties": schema_of(hints.element(hint, 1), depth)}
    if hints.is_attrs(hint):
        return _table(_properties(what, depth=depth + 1)) if depth < MAX_DEPTH else {}
    if isinstance(what, type) and issubclass(what, enum.Enum):
        return {"enum": list(what.__members__)}
    plain: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", **dict.fromkeys(hints.TEXTS, "string")}
    return {"type": plain[what]} if what in plain else {}


def _table(properties: JsonSchema) -> JsonSchema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _properties(cls: type, thing: Any = None, depth: int = 0) -> JsonSchema:
    """Return the schemas of the fields of a class. `thing`: an object of it, None: the defaults are those of the class."""
    properties = JsonSchema()
    for key, field in hints.settable(cls).items():
        hint = hints.field_hint(cls, field)
        value = default_of(field) if thing is None else getattr(thing, field.name)
        schema = schema_of(hint, depth)
        if attrs.has(type(value)) and not isinstance(value, type) and depth < MAX_DEPTH:
            of_value = _table(_properties(type(value), value, depth + 1))
            schema = of_value if hints.is_attrs(hint) else {"anyOf": [schema, of_value]}
        if doc := doc_of(cls, key):
            schema = {**schema, "description": doc}
        if isinstance(value, str | bool | int | float) and not sounds_secret(key) and not hints.is_secret(hint):
            schema = {**schema, "default": value}
        properties[key] = schema
    return properties

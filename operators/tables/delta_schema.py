"""Schemas as the log of a Delta table has them, compared."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_WIDER = {
    ("byte", "short"),
    ("byte", "integer"),
    ("byte", "long"),
    ("short", "integer"),
    ("short", "long"),
    ("integer", "long"),
    ("float", "double"),
}


_ARROW = {
    "byte": "int8",
    "short": "int16",
    "integer": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float64",
    "boolean": "bool",
    "date": "date32",
}


def folder_columns(schema: str, names: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return columns with the types of their values in the names of folders. Times are texts, which writers format as they like.

    >>> schema = '{"fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "timestamp"}]}'
    >>> folder_columns(schema, ["b", "a"])
    (('b', 'string'), ('a', 'int64'))
    """
    types = {field["name"]: field["type"] for field in json.loads(schema)["fields"]}
    return tuple((name, folder_type(types[name])) for name in names)


def folder_type(kind: Any) -> str:
    """Return the type of the values of a column in the names of folders, as Arrow names it.

    >>> folder_type("integer"), folder_type("decimal(9, 2)"), folder_type("string")
    ('int32', 'decimal128(9, 2)', 'string')
    """
    digits = re.fullmatch(r"decimal\((\d+), *(\d+)\)", str(kind))
    return f"decimal128({digits[1]}, {digits[2]})" if digits else _ARROW.get(str(kind), "string")


def lost_columns(before: str, after: str) -> tuple[str, ...]:
    """Return a phrase for each column of a schema that another one has lost, or has with a type that does not hold its values.

    Both are texts of JSON. New columns, new fields of structs, and wider types lose nothing.

    >>> one = '{"type": "struct", "fields": [{"name": "a", "type": "integer"}, {"name": "b", "type": "string"}]}'
    >>> two = '{"type": "struct", "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "date"}, {"name": "c"}]}'
    >>> lost_columns(one, two), lost_columns(two, one)
    (("'b' was string, and is date",), ("'a' was long, and is integer", "'b' was date, and is string", "'c' is gone"))
    """
    return tuple(_lost("", json.loads(before), json.loads(after)))


def _lost(path: str, before: Any, after: Any) -> list[str]:
    if isinstance(before, dict) and isinstance(after, dict) and before.get("type") == after.get("type"):
        match before["type"]:
            case "struct":
                now = {field["name"]: field for field in after["fields"]}
                problems = []
                for field in before["fields"]:
                    name = f"{path}.{field['name']}" if path else field["name"]
                    if field["name"] not in now:
                        problems.append(f"{name!r} is gone")
                    else:
                        problems += _lost(name, field["type"], now[field["name"]]["type"])
                return problems
            case "array":
                return _lost(f"{path}[]", before["elementType"], after["elementType"])
            case "map":
                keys = _lost(f"{path}.key", before["keyType"], after["keyType"])
                return [*keys, *_lost(f"{path}.value", before["valueType"], after["valueType"])]
    return [] if before == after or _is_wider(before, after) else [f"{path!r} was {_name(before)}, and is {_name(after)}"]


def _is_wider(before: Any, after: Any) -> bool:
    digits = [re.fullmatch(r"decimal\((\d+),(\d+)\)", str(kind).replace(" ", "")) for kind in (before, after)]
    if digits[0] and digits[1]:
        (old, old_scale), (new, new_scale) = ((int(each[1]), int(each[2])) for each in digits if each)
        return new_scale >= old_scale and new - new_scale >= old - old_scale
    return not isinstance(before, dict) and not isinstance(after, dict) and (before, after) in _WIDER


def _name(kind: Any) -> str:
    return str(kind["type"]) if isinstance(kind, dict) else str(kind)

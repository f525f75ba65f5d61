"""The JSON Schema of events, made from their classes: `docs/reference/events.schema.json`.

Write it with `python -m dagflow.runtime.event_schema > docs/reference/events.schema.json`.
"""

from __future__ import annotations

import json
import sys
import types
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs

from dagflow.runtime import events

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def json_schema() -> dict[str, Any]:
    """Return the schema of one line. Fields and kinds that it does not name are allowed: later releases may add some."""
    kinds = [cls for cls in vars(events).values() if isinstance(cls, type) and issubclass(cls, events.Event)]
    named = {cls.kind: cls for cls in kinds if cls is not events.Event}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "An event of a run of dagflow, one per line",
        "type": "object",
        "properties": {"v": {"const": events.VERSION}, "event": {"type": "string"}, "at": {"type": "number"}},
        "required": ["v", "event", "at"],
        "allOf": [{"if": {"properties": {"event": {"const": kind}}}, "then": {"$ref": f"#/$defs/{kind}"}} for kind in named],
        "$defs": {kind: _of_event(cls) for kind, cls in named.items()},
    }


def _of_event(cls: type[events.Event]) -> dict[str, Any]:
    hints = get_type_hints(cls)
    names = [field.name for field in attrs.fields(cls) if field.name != "at"]
    shown = {"source": "from"} if cls is events.Stolen else {}
    properties = {shown.get(name, name): _of_type(hints[name]) for name in names}
    description = (cls.__doc__ or "").strip().partition("\n")[0]
    return {"description": description, "properties": properties, "required": list(properties)}


def _of_type(tp: Any) -> dict[str, Any]:
    origin, arguments = get_origin(tp), get_args(tp)
    if origin in (types.UnionType, Union):
        return {"anyOf": [_of_type(each) for each in arguments]}
    if origin in (list, tuple):
        return {"type": "array", "items": _of_type(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of_type(arguments[1])}
    return {"type": _PLAIN[tp]} if tp in _PLAIN else {}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(json_schema(), indent=1) + "\n")

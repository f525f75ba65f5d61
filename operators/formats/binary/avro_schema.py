"""Avro schemas as Arrow types, and reduced to the columns to decode."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import attrs
import pyarrow as pa

from dagflow.scan import text_of

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
VALUE = "value"
"""The column of files whose rows are not records."""

Mend = Callable[[Any], Any]


class NoArrowForm(ValueError):
    """A schema without an Arrow type; the text gives the reason."""


class NoSchema(NoArrowForm):
    """The file is damaged: its schema is not an Avro schema."""


@attrs.define
class AvroSchema:
    """A schema out of a file's header.

    Columns are the fields of a record; another schema has one column, `value`. A union of null and one type is nullable, a
    union of numbers has the widest type, and in other unions the values are strings. Enums are strings, and so are UUIDs in text
    form.

    >>> schema = AvroSchema({"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "int", "double"]}]})
    >>> str(schema.kind_of("a")[0])
    'double'

    Attributes:
        parsed: the schema as JSON has it.
        fields: the schemas of the columns.
        names: the named types in it.
    """

    parsed: Any
    fields: dict[str, Any] = attrs.field(init=False)
    names: dict[str, Any] = attrs.field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        self.fields = {f["name"]: f["type"] for f in self.parsed["fields"]} if self.is_record else {VALUE: self.parsed}
        self._note(self.parsed, "")

    @property
    def is_record(self) -> bool:
        """True if rows are records."""
        return isinstance(self.parsed, Mapping) and self.parsed.get("type") in ("record", "error")

    def kind_of(self, column: str) -> tuple[pa.DataType, Mend | None]:
        """Return the Arrow type of a column, and the conversion of decoded values for Arrow (None: none). Raises NoArrowForm."""
        return self._kind(self.fields[column], _space(self.parsed, ""), ())

    def reduced(self, columns: Collection[str] | None = None) -> Any:
        """Return the schema with these columns only, and without logical types: dates and times are decoded as numbers."""
        defined: set[str] = set()
        if not self.is_record or columns is None:
            return self._plain(self.parsed, "", defined)
        fields = [field for field in self.parsed["fields"] if field["name"] in columns]
        return self._plain({**self.parsed, "fields": fields}, "", defined)

    def _note(self, schema: Any, space: str) -> None:
        if isinstance(schema, list):
            for member in schema:
                self._note(member, space)
        elif isinstance(schema, Mapping):
            kind = schema.get("type")
            if kind in ("record", "error", "enum", "fixed"):
                name = _full(schema["name"], schema.get("namespace", space))
                self.names[name] = schema
                space = name.rpartition(".")[0]
            names: list[str] = [field["name"] for field in schema.get("fields", ())]
            if len(names) > len(set(names)):
                raise NoSchema(f"a record has the field {next(n for n in names if names.count(n) > 1)!r} twice")
            for field in schema.get("fields", ()):
                self._note(field["type"], space)
            for part in ("items", "values"):
                if part in schema:
                    self._note(schema[part], space)
            if isinstance(kind, list | Mapping):
                self._note(kind, space)

    def _resolved(self, schema: Any, space: str) -> tuple[Any, str]:
        """Resolve a schema that may be a name. Return it with the namespace of names in it."""
        while isinstance(schema, Mapping) and isinstance(schema.get("type"), list | Mapping):
            schema = schema["type"]
        if isinstance(schema, str) and schema not in PRIMITIVES:
            name = schema if schema in self.names else _full(schema, space)
            if name not in self.names:
                raise NoSchema(f"nothing defines the type {schema!r}")
            return self.names[name], name.rpartition(".")[0]
        return ({"type": schema} if isinstance(schema, str) else schema), _space(schema, space)

    def _kind(self, schema: Any, space: str, above: tuple[int, ...]) -> tuple[Any, Mend | None]:
        schema, space = self._resolved(schema, space)
        if isinstance(schema, list):
            return self._union([member for member in schema if member != "null"], space, above)
        kind = schema["type"]
        if kind in ("record", "error"):
            if id(schema) in above:
                raise NoArrowForm(f"the record {schema['name']!r} holds itself")
            fields = {f["name"]: self._kind(f["type"], space, (*above, id(schema))) for f in schema["fields"]}
            mends = {name: mend for name, (_, mend) in fields.items() if mend is not None}
            return pa.struct([(name, each) for name, (each, _) in fields.items()]), _record_mend(mends) if mends else None
        if kind == "array":
            item, mend = self._kind(schema["items"], space, above)
            return pa.list_(item), None if mend is None else _list_mend(mend)
        if kind == "map":
            item, mend = self._kind(schema["values"], space, above)
            return pa.map_(pa.string(), item), _map_mend(mend)
        return _simple(schema), None

    def _union(self, members: list[Any], space: str, above: tuple[int, ...]) -> tuple[Any, Mend | None]:
        if not members:
            return pa.null(), None
        kinds = [self._kind(member, space, above) for member in members]
        if len(kinds) == 1:
            return kinds[0]
        types = [kind for kind, _ in kinds]
        if all(kind in (pa.int32(), pa.int64()) for kind in types):
            return pa.int64(), None
        if all(kind in (pa.int32(), pa.int64(), pa.float32(), pa.float64()) for kind in types):
            return pa.float64(), float
        return pa.string(), _as_text

    def _plain(self, schema: Any, space: str, defined: set[str]) -> Any:
        """Return a schema in which the first use of each named type defines it."""
        if isinstance(schema, list):
            return [self._plain(member, space, defined) for member in schema]
        schema, space = self._resolved(schema, space)
        kind = schema["type"]
        if "name" in schema:
            name = _full(schema["name"], schema.get("namespace", space))
            if name in defined:
                return name
            defined.add(name)
            own: dict[str, Any] = {"type": kind, "name": name}
            if kind == "fixed":
                own["size"] = schema["size"]
            elif kind == "enum":
                own["symbols"] = schema["symbols"]
            else:
                space = name.rpartition(".")[0]
                own["fields"] = [{"name": f["name"], "type": self._plain(f["type"], space, defined)} for f in schema["fields"]]
        elif kind == "array":
            own = {"type": kind, "items": self._plain(schema["items"], space, defined)}
        elif kind == "map":
            own = {"type": kind, "values": self._plain(schema["values"], space, defined)}
        else:
            own = {"type": kind}
        if schema.get("logicalType") == "decimal":
            own |= {name: schema[name] for name in ("logicalType", "precision", "scale") if name in schema}
        return own


def _simple(schema: Mapping[str, Any]) -> Any:
    """Return the Arrow type of a schema without parts."""
    kind, logical = schema["type"], schema.get("logicalType")
    of_logical: dict[tuple[Any, Any], Any] = {
        ("int", "date"): pa.date32(),
        ("int", "time-millis"): pa.time32("ms"),
        ("long", "time-micros"): pa.time64("us"),
        ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
        ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
        ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
        ("long", "local-timestamp-millis"): pa.timestamp("ms"),
        ("long", "local-timestamp-micros"): pa.timestamp("us"),
        ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
    }
    if (kind, logical) in of_logical:
        return of_logical[kind, logical]
    if logical == "decimal" and kind in ("bytes", "fixed"):
        precision, scale = schema["precision"], schema.get("scale", 0)
        if precision > 76:
            raise NoArrowForm(f"decimals have at most 76 digits, but these have {precision}")
        return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    plain = {
        "null": pa.null(),
        "boolean": pa.bool_(),
        "int": pa.int32(),
        "long": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "bytes": pa.binary(),
        "string": pa.string(),
        "enum": pa.string(),
    }
    if kind == "fixed":
        return pa.binary(schema["size"])
    if kind not in plain:
        raise NoSchema(f"there is no type {kind!r} in Avro")
    return plain[kind]


def _full(name: str, space: str | None) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def _space(schema: Any, space: str) -> str:
    if isinstance(schema, Mapping) and "name" in schema:
        return _full(schema["name"], schema.get("namespace", space)).rpartition(".")[0]
    return space


def _as_text(value: Any) -> str:
    return text_of(value)


def _record_mend(mends: Mapping[str, Mend]) -> Mend:
    def mended(record: dict[str, Any]) -> dict[str, Any]:
        changed = {name: None if record[name] is None else mend(record[name]) for name, mend in mends.items()}
        return {**record, **changed}

    return mended


def _list_mend(mend: Mend) -> Mend:
    return lambda values: [None if value is None else mend(value) for value in values]


def _map_mend(mend: Mend | None) -> Mend:
    if mend is None:
        return lambda values: list(values.items())
    return lambda values: [(key, None if value is None else mend(value)) for key, value in values.items()]

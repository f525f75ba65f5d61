"""The rows that functions return, as batches with the columns that `columns=` of `Map` and `FlatMap` declares.

The columns are those of the declaration, whatever the values are: types that values say would depend on how the input is cut.
"""

from __future__ import annotations

import dataclasses
import datetime
import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast, get_type_hints

import attrs
import pyarrow as pa
import pyarrow.types as t
from typing_extensions import is_typeddict

from dagflow import Operator, OutputPort, StreamColumns
from dagflow.scan import TableSchema
from operators.problems import all_problems
from operators.transform.errors import RowNotAsDeclared

MAX_ROWS = 1 << 13
"""The most rows that wait to become a batch."""


def to_schema(source: Any) -> TableSchema | None:
    """Return the columns that a property declares: as text, a mapping of names to types, or a class with fields."""
    if source is None:
        return None
    if isinstance(source, type) and not attrs.has(source) and inspect.get_annotations(source):
        return TableSchema.of(get_type_hints(source))
    return TableSchema.of(source)


def returned_type(function: Any) -> Any:
    """Return the annotation of what a function returns; None where it has none."""
    try:
        return get_type_hints(function).get("return") if callable(function) else None
    except Exception:  # noqa: BLE001  # annotations may name anything
        return None


def columns_of(kind: Any) -> TableSchema | None:
    """Return the columns of a TypedDict all of whose rows they hold; None for other types.

    Rows without an optional key would be lost, and so would be those whose times have a zone, or not.
    """
    try:
        schema = to_schema(kind) if is_typeddict(kind) and not kind.__optional_keys__ else None
    except (ValueError, TypeError, NameError):
        return None
    return None if schema is None or any(t.is_temporal(field.type) for field in schema.arrow) else schema


@attrs.define
class RowFunction(Operator):
    """The base of operators whose function returns records, or rows with columns that are declared.

    Args:
        columns: see `Map`.
    """

    columns: TableSchema | None = attrs.field(default=None, kw_only=True, converter=to_schema)

    @property
    def called(self) -> Any:
        """The function, or an expression."""
        raise NotImplementedError

    @property
    def result_of(self) -> Any:
        """The annotation that says the columns of a row, where `columns` does not."""
        raise NotImplementedError

    @property
    def declared(self) -> TableSchema | None:
        """The columns of rows, where they are declared."""
        return columns_of(self.result_of) if self.columns is None and callable(self.called) else self.columns

    def check(self) -> None:
        """Raise ValueError where the columns of an expression are declared."""
        with all_problems(super().check) as problems:
            if self.columns is not None and not callable(self.called):
                problems.append("columns= declares the rows of a function; an expression has one column, `value`: see Select")

    def emitted_type(self, port: str) -> Any:
        """Return that results are rows where their columns are declared."""
        return Any if port == "output" and self.declared is not None else None

    def result_columns(self, port: str, arriving: Callable[[str], StreamColumns]) -> StreamColumns | None:
        """Return the columns that are declared."""
        declared = self.declared if port == "output" else None
        return None if declared is None else StreamColumns({field.name: str(field.type) for field in declared.arrow})

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return batches of rows whose columns are declared."""
        is_declared = port == "output" and self.declared is not None
        return frozenset({"batch"}) if is_declared else super().emitted_forms(port, handled)


@attrs.define
class DeclaredRows:
    """Rows that become batches, in the order in which they came."""

    schema: pa.Schema
    function: str
    output: OutputPort[Any]
    _names: tuple[str, ...] = attrs.field(init=False)
    _fits: tuple[Callable[[Any], bool], ...] = attrs.field(init=False)
    _rows: list[tuple[Any, ...]] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._names = tuple(self.schema.names)
        self._fits = tuple(_fit(field.type) for field in self.schema)

    def add(self, result: Any) -> None:
        """Add a row: a dict, or an object with fields. Raises RowNotAsDeclared for another one, which costs no other."""
        row = result if type(result) is dict else _fields_of(result)
        if row is None or len(row) != len(self._names) or not all(map(row.__contains__, self._names)):
            raise self._misfit(result, _other_columns(row, self._names))
        values = tuple(map(row.__getitem__, self._names))
        for fits, value, field in zip(self._fits, values, self.schema, strict=True):
            if not (field.nullable if value is None else fits(value)):
                raise self._misfit(result, f"{field.name}={value!r:.100} is not of the type {field.type}")
        self._rows.append(values)
        if len(self._rows) >= MAX_ROWS:
            self.emit()

    def __enter__(self) -> DeclaredRows:
        return self

    def __exit__(self, *error: object) -> None:
        self.emit()  # also those before a row that costs only itself

    def emit(self) -> None:
        """Emit the rows that wait."""
        rows, self._rows = self._rows, []
        if rows:
            columns = zip(zip(*rows, strict=True), self.schema, strict=True)
            arrays = [pa.array(values, field.type) for values, field in columns]
            self.output.emit_batch(pa.RecordBatch.from_arrays(arrays, schema=self.schema))

    def _misfit(self, result: Any, reason: str) -> RowNotAsDeclared:
        return RowNotAsDeclared(function=self.function, row=f"{result!r:.200}", reason=reason)


def _fields_of(result: Any) -> Mapping[str, Any] | None:
    """Return the fields of an object as a row; None where it has none."""
    if isinstance(result, Mapping):
        return result
    kind: Any = type(result)
    if isinstance(result, tuple) and hasattr(kind, "_fields"):
        return dict(zip(kind._fields, result, strict=True))
    if not (attrs.has(kind) or dataclasses.is_dataclass(kind)):
        return None
    fields: Any = attrs.fields(type(result)) if attrs.has(type(result)) else dataclasses.fields(cast("Any", result))
    return {field.name: getattr(result, field.name) for field in fields}


def _other_columns(row: Mapping[str, Any] | None, names: tuple[str, ...]) -> str:
    if row is None:
        return "it has no fields"
    missing = [name for name in names if name not in row]
    if missing:
        return f"it lacks the column {missing[0]!r}"
    return f"it has the column {next(name for name in row if name not in names)!r}, which is not declared"


def _fit(kind: pa.DataType) -> Callable[[Any], bool]:
    """Return the condition that a column of a type gives a value back as it is."""
    if t.is_integer(kind):
        low = 0 if t.is_unsigned_integer(kind) else -(1 << kind.bit_width - 1)
        high = (1 << kind.bit_width - (0 if low == 0 else 1)) - 1
        return lambda value: type(value) is int and low <= value <= high
    if t.is_float64(kind):
        return lambda value: type(value) is float or (type(value) is int and abs(value) <= 1 << 53)
    if t.is_string(kind) or t.is_large_string(kind):
        return lambda value: type(value) is str and (value.isascii() or _has_code_points(value))
    if t.is_boolean(kind) or t.is_binary(kind) or t.is_date32(kind):
        cls = bool if t.is_boolean(kind) else bytes if t.is_binary(kind) else datetime.date
        return lambda value: type(value) is cls
    return lambda value: _comes_back(value, kind)


def _has_code_points(text: str) -> bool:
    """Return False for a text with half a surrogate pair, which no column holds."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _comes_back(value: Any, kind: pa.DataType) -> bool:
    try:
        (back,) = pa.array([value], kind).to_pylist()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    is_alike = type(back) is type(value) or (type(value) is int and (t.is_decimal(kind) or t.is_floating(kind)))
    return is_alike and _equal(back, value)


def _equal(back: Any, value: Any) -> bool:
    """Return whether two values are equal, in which NaN is equal to itself."""
    if isinstance(value, list) and isinstance(back, list):
        return len(back) == len(value) and all(map(_equal, back, value))
    if isinstance(value, dict) and isinstance(back, dict):
        return back.keys() == value.keys() and all(_equal(back[name], each) for name, each in value.items())
    return bool(back == value or (back != back and value != value))

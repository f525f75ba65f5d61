"""Union: several streams become one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from typing import Any, ClassVar, Generic

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, OperatorContext, OutputPort, StreamColumns
from dagflow.arrow_types import joint_type, type_named
from dagflow.config import integer_from
from operators.transform.errors import UnionColumnsDiffer, UnionValueNotHeld
from operators.transform.own_ports import OwnPorts, fixed

T = TypeVar("T", default=Any)


@attrs.define
class Union(OwnPorts, Generic[T]):
    """Emit the records of all inputs. `UNION ALL BY NAME` of SQL.

    Rows have the columns of the first input, in its order: those of the others are found by name. A column whose types differ
    gets the one that holds the values of all, as int64 for int16; without such a type the streams are refused. Of integers and
    floats that is float64: an integer that it does not hold, as 2**53 + 1, is a bad row (`on_error`).

    Where the columns of an input are not known before the run, rows and dicts are compared as they come: by name with the inputs
    whose columns are known, or else with the first row of the task. Records of classes are emitted as they are.

    An input without any rows yet has the columns that the `schema` of its reader declares, also behind `Select` and the like: so
    all rows have them. Where only the files say the columns, nothing is known of them until one comes. Until then, rows of the
    other inputs lack them, and an expression that names one is refused.

    Records of one input keep their order within a partition only. Where the planner puts an exchange before it and it has several
    partitions, these get the records in turn, and what reads all of them gets them in any order.

    Args:
        count: the number of inputs. They are the ports `input_0`, `input_1`, … of `inputs`. All must be connected, to streams of
            one type.
        allow_missing_columns: whether a column may be missing in some inputs. Its values are null there. Columns that the first
            input does not have come last.

    Raises UnionColumnsDiffer; UnionValueNotHeld for a bad row.

    >>> from dagflow.testing import run_operator
    >>> run_operator(Union[str](2), {"input_0": ["a", "b"], "input_1": ["c"]})["output"]
    ['a', 'b', 'c']

    In a DAG: `old.to(both.inputs[0])`, `new.to(both.inputs[1])`, and then `both.output.to(…)`.
    """

    mixes_partitions: ClassVar[bool] = True

    count: int = attrs.field(default=2, validator=integer_from(1), on_setattr=fixed)
    allow_missing_columns: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))

    output = OutputPort[T]()

    @property
    def inputs(self) -> tuple[InputPort[T], ...]:
        """The input ports."""
        return tuple(getattr(self, f"input_{number}") for number in range(self.count))

    def _own_ports(self) -> tuple[Callable[..., dict[str, Any]], tuple[Any, ...]]:
        return _inputs, (self.count,)

    def columns_read(self, port: str, wanted: Callable[[str], frozenset[str] | None]) -> frozenset[str] | None:
        """Return those that are read behind it."""
        return wanted("output")

    def result_columns(self, port: str, arriving: Callable[[str], StreamColumns]) -> StreamColumns | None:
        """Return the columns of all inputs, where they are known."""
        columns = {each.name: types for each in self.inputs if (types := arriving(each.name).types) is not None}
        if port != "output" or len(columns) < self.count:
            return None
        try:
            return StreamColumns(self._together(columns))
        except UnionColumnsDiffer:  # the run says so
            return None

    def setup(self, context: OperatorContext) -> None:
        """Find the columns of all rows, as far as they are known."""
        schemas = {port.name: port.schema for port in self.inputs}
        self._known = {name: _types(schema) for name, schema in schemas.items() if schema is not None}
        types = self._together(self._known)
        self._schema = pa.schema([(name, type_named(kind or "")) for name, kind in types.items()])
        self._reference = {next(iter(self._known)): types} if self._known else {}
        self._schemas: dict[str, tuple[pa.Schema, pa.Schema]] = {}

    def _together(self, columns: Mapping[str, Mapping[str, str | None]]) -> dict[str, str | None]:
        """Return the columns of all inputs by the columns of each. Raises UnionColumnsDiffer."""
        together: dict[str, str | None] = {}
        first: dict[str, str] = {}
        for port, types in columns.items():
            for name, kind in types.items():
                before = first.setdefault(name, port)
                together[name] = kind if before == port else _wider(name, (before, together[name]), (port, kind))
        for port, types in columns.items():
            if lacking := [name for name in together if name not in types and not self.allow_missing_columns]:
                raise UnionColumnsDiffer(
                    port=port, column=lacking[0], type=None, other=first[lacking[0]], other_type=together[lacking[0]]
                )
        return together

    def _check_names(self, port: str, types: Mapping[str, str | None]) -> None:
        """Raise UnionColumnsDiffer where rows of an input do not have the columns of others, or of the first row that came."""
        ((other, columns),) = (self._reference or {port: dict(types)}).items()
        self._reference[other] = columns
        if self.allow_missing_columns or columns.keys() == types.keys():
            return
        for (one, some), (another, others) in permutations([(port, types), (other, columns)]):
            for name in others.keys() - some.keys():
                raise UnionColumnsDiffer(port=one, column=name, type=None, other=another, other_type=others[name])

    def _aligned(self, batch: pa.RecordBatch, port: str) -> pa.RecordBatch:
        """Return rows with the columns of all inputs, as far as they are known, and with all of their own."""
        arriving, schema = self._schemas.get(port, (None, None))
        if arriving is None or not arriving.equals(batch.schema):
            schema = self._schema_of(batch.schema, port)
            self._schemas[port] = batch.schema, schema
        if batch.schema.equals(schema):
            return batch
        names = batch.schema.names
        arrays = [
            _cast(batch.column(field.name), field) if field.name in names else pa.nulls(batch.num_rows, field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _schema_of(self, arriving: pa.Schema, port: str) -> pa.Schema:
        """Return the columns with which rows of an input are emitted. Raises UnionColumnsDiffer."""
        if port in self._known and {*arriving.names} <= {*self._schema.names}:
            return self._schema
        self._check_names(port, _types(arriving))
        if not self._known:
            return arriving
        own = {field.name: field.type for field in arriving}
        types = self._together({**self._known, port: _types(arriving)})
        kinds = {name: own[name] if kind in (None, str(own.get(name))) else type_named(kind) for name, kind in types.items()}
        return pa.schema(list(kinds.items()))

    def _filled(self, record: Any, port: str) -> Any:
        """Return a record; a dict with the columns of all inputs, as far as they are known. Raises UnionColumnsDiffer."""
        if not isinstance(record, dict) or any(record.keys() == columns.keys() for columns in self._reference.values()):
            return record
        self._check_names(port, dict.fromkeys(record))
        return {**dict.fromkeys(self._schema.names), **record}


def _types(schema: pa.Schema) -> dict[str, str | None]:
    return {field.name: str(field.type) for field in schema}


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    """Return values in the type of all inputs. Raises UnionValueNotHeld."""
    try:
        return column.cast(field.type)
    except pa.ArrowInvalid as error:
        value = str(column[0]) if len(column) == 1 else None
        raise UnionValueNotHeld(column=field.name, type=str(column.type), joint_type=str(field.type), value=value) from error


def _wider(column: str, before: tuple[str, str | None], now: tuple[str, str | None]) -> str | None:
    """Return the type that holds the values of two inputs, each with its type. Raises UnionColumnsDiffer."""
    (other, other_type), (port, kind) = before, now
    if kind is None or other_type is None or kind == other_type:
        return kind if kind == other_type else None
    try:
        types = type_named(other_type), type_named(kind)
    except ValueError:  # of a type that has no name
        return None
    both = joint_type(*types)
    if both is None or any(_changes(each, both) for each in types):
        raise UnionColumnsDiffer(port=port, column=column, type=kind, other=other, other_type=other_type)
    return str(both)


def _changes(kind: pa.DataType, to: pa.DataType) -> bool:
    """Return whether values would change by a cast that does not refuse them: decimals that become floats, and bytes text."""
    if pa.types.is_nested(kind) and pa.types.is_nested(to):
        if not pa.types.is_struct(kind):
            return any(_changes(kind.field(at).type, to.field(at).type) for at in range(kind.num_fields))
        return any(_changes(field.type, to.field(field.name).type) for field in kind)
    return (_is_text(kind) != _is_text(to) and not pa.types.is_null(kind)) or _rounds(kind, to)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _rounds(kind: pa.DataType, to: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind) and pa.types.is_floating(to))


def _inputs(count: int) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for number in range(count):
        port: InputPort[Any] = InputPort[T]()  # type: ignore[valid-type]  # of the class that it will be a port of
        members |= {f"input_{number}": port, **_handlers(port, number)}
    return members


def _handlers(port: InputPort[Any], number: int) -> dict[str, Any]:
    name = f"input_{number}"

    def one(self: Union[Any], record: Any) -> None:
        self.output.emit(self._filled(record, name))

    def several(self: Union[Any], records: Iterator[Any]) -> None:
        self.output.emit_all(self._filled(record, name) for record in records)

    def batch(self: Union[Any], batch: pa.RecordBatch) -> None:
        self.output.emit_batch(self._aligned(batch, name))

    return {
        f"pass_{number}": port.process(one),
        f"pass_all_{number}": port.stream(several),
        f"pass_batch_{number}": port.batch(batch),
    }

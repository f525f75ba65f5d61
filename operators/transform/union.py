"""Union: several streams become one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Generic

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, OperatorContext, OutputPort, StreamColumns
from dagflow.arrow_types import joint_type, type_named
from dagflow.config import integer_from
from operators.transform.errors import UnionColumnsDiffer
from operators.transform.own_ports import OwnPorts, fixed

T = TypeVar("T", default=Any)


@attrs.define
class Union(OwnPorts, Generic[T]):
    """Emit the records of all inputs. `UNION ALL BY NAME` of SQL.

    Rows have the columns of the first input, in its order: those of the others are found by name. A column whose types differ
    gets the one that holds the values of all, as int64 for int16; without such a type the streams are refused. Records of
    classes are emitted as they are.

    Args:
        count: the number of inputs. They are the ports `input_0`, `input_1`, … of `inputs`. All must be connected, to streams of
            one type.
        allow_missing_columns: whether a column may be missing in some inputs. Its values are null there. Columns that the first
            input does not have come last.

    Raises UnionColumnsDiffer.

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

    def result_columns(self, port: str, arriving: Callable[[str], StreamColumns]) -> StreamColumns | None:
        """Return the columns of all inputs, where they are known."""
        columns = {each.name: arriving(each.name).types for each in self.inputs}
        if port != "output" or None in columns.values():
            return None
        try:
            return StreamColumns(self._together(columns))
        except UnionColumnsDiffer:  # the run says so
            return None

    def setup(self, context: OperatorContext) -> None:
        """Find the columns of all rows."""
        schemas = {port.name: port.schema for port in self.inputs}
        known = {
            name: None if schema is None else {field.name: str(field.type) for field in schema}
            for name, schema in schemas.items()
        }
        types = self._together(known)
        self._schema = pa.schema([(name, type_named(kind or "")) for name, kind in types.items()])

    def _together(self, columns: Mapping[str, Mapping[str, str | None] | None]) -> dict[str, str | None]:
        """Return the columns of all inputs, as far as they are known, by the columns of each. Raises UnionColumnsDiffer."""
        known = {port: types for port, types in columns.items() if types is not None}
        together: dict[str, str | None] = {}
        first: dict[str, str] = {}
        for port, types in known.items():
            for name, kind in types.items():
                before = first.setdefault(name, port)
                together[name] = kind if before == port else _wider(name, (before, together[name]), (port, kind))
        for port, types in known.items():
            if lacking := [name for name in together if name not in types and not self.allow_missing_columns]:
                raise UnionColumnsDiffer(
                    port=port, column=lacking[0], type=None, other=first[lacking[0]], other_type=together[lacking[0]]
                )
        return together

    def _aligned(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with the columns of all inputs."""
        schema = self._schema
        if not len(schema) or batch.schema.equals(schema):
            return batch
        names = batch.schema.names
        arrays = [
            batch.column(field.name).cast(field.type) if field.name in names else pa.nulls(batch.num_rows, field.type)
            for field in schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


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
    if both is None or any(_is_text(each) != _is_text(both) or _rounds(each, both) for each in types):
        raise UnionColumnsDiffer(port=port, column=column, type=kind, other=other, other_type=other_type)
    return str(both)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _rounds(kind: pa.DataType, to: pa.DataType) -> bool:
    """Return whether decimals would become floats, which a cast does not refuse."""
    return bool(pa.types.is_decimal(kind) and pa.types.is_floating(to))


def _inputs(count: int) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for number in range(count):
        port: InputPort[Any] = InputPort[T]()  # type: ignore[valid-type]  # of the class that it will be a port of
        members |= {f"input_{number}": port, **_handlers(port, number)}
    return members


def _handlers(port: InputPort[Any], number: int) -> dict[str, Any]:
    def one(self: Union[Any], record: Any) -> None:
        self.output.emit(record)

    def several(self: Union[Any], records: Iterator[Any]) -> None:
        self.output.emit_all(records)

    def batch(self: Union[Any], batch: pa.RecordBatch) -> None:
        self.output.emit_batch(self._aligned(batch))

    return {
        f"pass_{number}": port.process(one),
        f"pass_all_{number}": port.stream(several),
        f"pass_batch_{number}": port.batch(batch),
    }

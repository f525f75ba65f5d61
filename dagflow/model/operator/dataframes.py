"""`DataFrameOperator`: an operator whose work is a function of Spark's DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import attrs

from dagflow.model.operator.base import Operator
from dagflow.model.types.columns import column_type
from dagflow.model.types.expressions import resolve
from dagflow.model.types.forms import schema_of

if TYPE_CHECKING:
    import pyarrow as pa

INPUT, OUTPUT = "input", "output"


@attrs.define(slots=False, eq=False)
class DataFrameOperator(Operator):
    """An operator that Spark itself runs: `transform` says what becomes of a window's records, as a DataFrame.

    It has the ports `input` and `output`, both with known columns. `operators.SparkOperator` is one that takes a function.
    """

    def transform(self, frame: Any) -> Any:
        """Return the DataFrame that the operator makes of that of a window's records.

        Called on the driver's instance (not set up), once for each attempt of a window.
        """
        raise NotImplementedError

    def columns(self, port: str, kind: Any) -> pa.Schema | None:
        """Return the columns of `input` or `output`, whose type is `kind`; None if the type does not declare them."""
        return schema_of(kind)

    def columns_with_values(self, kind: Any) -> frozenset[str]:
        """Return the columns of `output` that must not be null: the fields of its type, `kind`, that may not be None."""
        columns = self.columns(OUTPUT, kind)
        names = () if columns is None else columns.names
        types = {name: resolve(column_type(kind, name)) for name in names}
        return frozenset(name for name, tp in types.items() if tp is not Any and type(None) not in get_args(tp))


def not_in_spark(kind: pa.DataType) -> str | None:
    """Return the type that stands for one which Spark lacks; empty if there is none, and None if Spark has the type.

    >>> import pyarrow as pa
    >>> not_in_spark(pa.uint8()), not_in_spark(pa.int8()), not_in_spark(pa.list_(pa.float16())), not_in_spark(pa.uint64())
    ('int16', None, '', 'decimal128(20, 0)')
    """
    import pyarrow as pa

    types: Any = pa.types
    if str(kind) in _INSTEAD:
        return _INSTEAD[str(kind)]
    if types.is_interval(kind) or types.is_union(kind) or types.is_run_end_encoded(kind):
        return ""
    if types.is_list_view(kind) or types.is_large_list_view(kind):
        return f"list<{kind.value_type}>" if not_in_spark(kind.value_type) is None else ""
    within = [kind.field(number).type for number in range(kind.num_fields)]
    return "" if any(not_in_spark(each) is not None for each in within) else None


_INSTEAD = {
    "uint8": "int16",
    "uint16": "int32",
    "uint32": "int64",
    "uint64": "decimal128(20, 0)",
    "halffloat": "float32",
    "time32[s]": "time64[us]",
    "time32[ms]": "time64[us]",
    "date64[ms]": "date32",
    "string_view": "string",
    "binary_view": "binary",
}

"""Batches that must have certain columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagflow.runtime.exchange.errors import ColumnsDiffer, TimeNotInSpark

if TYPE_CHECKING:
    import pyarrow as pa


def fitted(batch: pa.RecordBatch, columns: pa.Schema, operator: str) -> pa.RecordBatch:
    """Return a batch with the columns that a body declares. Raises ColumnsDiffer for a column that is missing or of another type.

    Raises TimeNotInSpark for times that Spark cannot hold.
    """
    import pyarrow as pa

    if not batch.schema.equals(columns):
        arrays = []
        for field in columns:
            number = batch.schema.get_field_index(field.name)
            if number < 0:
                raise ColumnsDiffer(operator, "its input", field.name, None, str(field.type))
            array = batch.column(number)
            try:
                arrays.append(array if array.type == field.type else array.cast(field.type))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                kinds = str(array.type), str(field.type)
                raise ColumnsDiffer(operator, "its input", field.name, *kinds, help=str(error)) from error
        batch = pa.RecordBatch.from_arrays(arrays, schema=columns)
    for field, array in zip(columns, batch.columns, strict=True):
        kind = field.type
        if (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns":
            try:
                array.cast(pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else pa.duration("us"))
            except pa.ArrowInvalid as error:
                raise TimeNotInSpark(operator, field.name, str(kind), str(error)) from error
    return batch

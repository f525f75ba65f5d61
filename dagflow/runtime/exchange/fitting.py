"""Batches that must have certain columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dagflow.errors.dataframes import ColumnsDiffer

if TYPE_CHECKING:
    import pyarrow as pa


def fitted(batch: pa.RecordBatch, columns: pa.Schema, operator: str) -> pa.RecordBatch:
    """A batch with just the columns that a body declares. Raises ColumnsDiffer for one that is not there, or of another type."""
    if batch.schema.equals(columns):
        return batch
    import pyarrow as pa

    arrays = []
    for field in columns:
        number = batch.schema.get_field_index(field.name)
        if number < 0:
            raise ColumnsDiffer(operator, "its input", field.name, None, str(field.type))
        array = batch.column(number)
        try:
            arrays.append(array if array.type == field.type else array.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ColumnsDiffer(operator, "its input", field.name, str(array.type), str(field.type), help=str(error)) from error
    return pa.RecordBatch.from_arrays(arrays, schema=columns)

"""One operator with a DataFrame transform, in a local Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from dagflow.local.spool import transform_runner
from dagflow.model.operator.dataframes import INPUT, OUTPUT, DataFrameOperator
from dagflow.model.types.forms import to_batch, to_records
from dagflow.plan.errors import NotSupported
from dagflow.runtime.exchange.dataframes import check_values
from dagflow.runtime.exchange.fitting import fitted
from dagflow.runtime.stage.program import DataFrameTransform

if TYPE_CHECKING:
    import pyarrow as pa

_NAME = "operator"


def run_transform(
    operator: DataFrameOperator, windows: Sequence[Sequence[Any]], types: Mapping[str, Any], first: int
) -> list[Any]:
    """Apply an operator to windows of records, or of batches. Raises NotSupported where its columns are not declared."""
    columns = {port: operator.columns(port, types[port]) for port in (INPUT, OUTPUT)}
    given, made = columns[INPUT], columns[OUTPUT]
    if given is None or made is None:
        name = type(operator).__name__
        reason = f"nothing says the columns of {name}"
        raise NotSupported(reason, "run_operator", f"{name}[In, Out](…), or input_schema=… and output_schema=…")
    with_values = sorted(operator.columns_with_values(types[OUTPUT]))
    found: list[Any] = []
    with closing(transform_runner()) as here:
        for number, records in enumerate(windows):
            transform = DataFrameTransform(
                operator=_NAME,
                window=first + number,
                level=1,
                tag=0,
                first=0,
                partitions=1,
                given=given,
                made=made,
                function=operator.transform,
            )
            for batch in here.made(transform, (fitted(batch, given, _NAME) for batch in _batches(records, types[INPUT]))):
                check_values(batch, with_values, _NAME)
                found += to_records(batch, types[OUTPUT])
    return found


def _batches(records: Sequence[Any], kind: Any) -> Iterator[pa.RecordBatch]:
    plain = []
    for record in records:
        if type(record).__module__ == "pyarrow.lib":  # told without importing it
            yield from record.to_batches() if hasattr(record, "to_batches") else (record,)
        else:
            plain.append(record)
    if plain:
        yield to_batch(plain, kind)

"""SparkOperator: a function of DataFrames, which Spark itself runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, get_args

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import DataFrameOperator, InputPort, OutputPort
from dagflow.config import one_of
from dagflow.scan import TableSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BodyScope = Literal["rows", "window", "all"]
"""The input that the result of a body covers: a row, that of one window of the run, or all."""
T = TypeVar("T", default=Any)
U = TypeVar("U", default=Any)


def to_schema(value: Any) -> TableSchema | None:
    """Return the columns of a schema in any of its forms."""
    return None if value is None else TableSchema.of(value)


@attrs.define
class SparkOperator(DataFrameOperator, Generic[T, U]):
    """Transform the records of a window as a DataFrame: with SQL, joins with tables, or any library for Spark.

    `SparkOperator[In, Out](body)` names the classes of the records on both sides, whose fields are the columns; or the schemas
    name the columns. `body` is called once per window, on the driver. It builds a DataFrame and runs nothing itself: an action
    (`count()`, `collect()`, `show()`) would run everything before it once more. Its result must have the declared columns, in any
    order. The order of the records is not defined. docs/how-to/dataframe_operators.md shows the costs.

    A class with properties of its own derives from `dagflow.DataFrameOperator`, and overrides `transform(frame)`.

    Args:
        body: a function of a `pyspark.sql.DataFrame` that returns one.
        input_schema: the columns of the input, where its type does not say them: text (`"id: int64, tags: list<string>"`), a
            mapping, a `pyarrow.Schema`. Other columns that arrive are left out.
        output_schema: the columns of what `body` returns, where the type does not say them.
        scope: the input that the result covers. `rows`: `body` is a function of single rows, such as a filter or a projection.
            `window`: a window, however the input is cut. `all`: a launch takes its input as one window, and a later launch with
            more input is refused.

    >>> from operators import SparkOperator
    >>> SparkOperator(lambda frame: frame.groupBy("word").count(), input_schema="word: string",
    ...               output_schema="word: string, count: int64").emitted_columns("output", None)
    [('word', 'string'), ('count', 'int64')]
    """

    body: Callable[[DataFrame], DataFrame] = attrs.field(validator=attrs.validators.is_callable())
    input_schema: TableSchema | None = attrs.field(default=None, kw_only=True, converter=to_schema)
    output_schema: TableSchema | None = attrs.field(default=None, kw_only=True, converter=to_schema)

    scope: BodyScope = attrs.field(default="all", kw_only=True, validator=one_of(get_args(BodyScope)))  # type: ignore[misc]

    input = InputPort[T]()
    output = OutputPort[U]()

    def transform(self, frame: DataFrame) -> DataFrame:
        """Call `body`."""
        return self.body(frame)

    def columns(self, port: str, kind: Any) -> pa.Schema | None:
        """Return the columns of the schema, or else of the type."""
        schema = self.input_schema if port == "input" else self.output_schema
        return super().columns(port, kind) if schema is None else _arrow(schema)

    def columns_with_values(self, kind: Any) -> frozenset[str]:
        """Return the columns without nulls of the schema, or else of the type."""
        schema = self.output_schema
        if schema is None:
            return super().columns_with_values(kind)
        return frozenset(name for name, column in schema.columns.items() if not column.nullable)

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return batches."""
        return frozenset({"batch"})

    def offered_forms(self, port: str) -> frozenset[str]:
        """Return batches."""
        return frozenset({"batch"})

    def emitted_columns(self, port: str, agreed: Any) -> list[tuple[str, str]] | None:
        """Return the columns of `output_schema`."""
        return None if self.output_schema is None else [(f.name, str(f.type)) for f in _arrow(self.output_schema)]


def _arrow(schema: TableSchema) -> pa.Schema:
    return pa.schema([(name, column.arrow) for name, column in schema.columns.items()])

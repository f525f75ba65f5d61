"""DataFrame transforms: between two levels of a window, Spark itself makes records of records."""

from __future__ import annotations

import contextlib
import os
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa

from dagflow.model.operator.call_sites import shown
from dagflow.model.operator.dataframes import not_in_spark
from dagflow.planning.errors import TypeNotInSpark
from dagflow.runtime.exchange.dataframes import transformed_rows
from dagflow.runtime.exchange.errors import ColumnsDiffer
from dagflow.runtime.exchange.rows import batch_of, tag_of
from dagflow.runtime.stage.errors import OperatorFailed
from dagflow.runtime.stage.failure import user_frames
from dagflow.runtime.stage.program import DataFrameTransform
from dagflow.runtime.task.execute import keep_memory
from dagflow.spark.connection.links import is_of_connect
from dagflow.spark.task import tidy_output

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_TIMES = "UTC"
_CONNECT = "SPARK_CONNECT_MODE_ENABLED"  # pyspark asks this variable whenever one of its functions is called
_RETURNED = "the result of its body"


def schema_in_spark(columns: pa.Schema, operator: str, what: str) -> StructType:
    """Columns as Spark has them. Raises TypeNotInSpark."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructType

    fields = StructType()
    for field in columns:
        try:
            fields.add(field.name, from_arrow_type(field.type, prefer_timestamp_ntz=True))
        except PySparkException as error:
            raise TypeNotInSpark(operator, what, field.name, str(field.type), not_in_spark(field.type) or "") from error
    return fields


def as_arrow(schema: StructType) -> pa.Schema:
    """The Arrow form in which Spark takes and gives columns."""
    from pyspark.sql.pandas.types import to_arrow_schema

    columns: pa.Schema = to_arrow_schema(schema, timezone=_TIMES)
    return columns


def at_work() -> None:
    """Prepare a worker process of Spark, once."""
    keep_memory()
    tidy_output()


@attrs.frozen
class Columns:
    """The function of a `mapInArrow` that makes columns of the rows of one exchange."""

    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches in the rows."""
        at_work()
        for batch in batches:
            for blob in batch.column("blob"):
                yield batch_of(blob.as_buffer()).cast(self.schema)


@attrs.frozen
class Rows:
    """The function of a `mapInArrow` that makes rows of what a transform has made."""

    transform: DataFrameTransform

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows for the tasks of its operator."""
        from pyspark import TaskContext

        from dagflow.spark.dataframes.levels import together

        at_work()
        context = TaskContext.get()
        assert context is not None
        made = (batch.cast(self.transform.made) for batch in batches)
        yield from together(transformed_rows(made, self.transform, context.partitionId()))


def through(frame: DataFrame, transforms: Iterable[DataFrameTransform], count: int, schema: str) -> DataFrame:
    """Return the rows that come to a level of `count` tasks, where transforms take the rows for their operators.

    All of them read one exchange. Nothing of what they do may be moved below it, or what is before it would run once for each:
    Spark does not see through the functions of `mapInArrow`, and does not move filters that may be a matter of chance.
    """
    transforms = list(transforms)
    arrived = frame.repartitionById(count, frame["dst"])
    # SQL, since functions of columns are others in a session of Spark Connect
    tag = "coalesce(tag + floor(rand(0)), 0)"  # is the tag
    passed = arrived.filter(f"{tag} NOT IN ({', '.join(str(tag_of(transform.tag)) for transform in transforms)})")
    for transform in transforms:
        given = schema_in_spark(transform.given, transform.operator, "its input")
        rows = arrived.filter(f"{tag} = {tag_of(transform.tag)}").sortWithinPartitions("src", "seq")
        result = applied(transform, rows.mapInArrow(Columns(as_arrow(given)).__call__, given))
        # the same rows in the same order, however they have come: what is made again must be what was lost
        order = [quoted(field.name) for field in result.schema if is_ordered(field.dataType)]
        ordered = result.sortWithinPartitions(*order) if order else result
        made = attrs.evolve(transform, function=_stays)
        passed = passed.unionAll(ordered.mapInArrow(Rows(made).__call__, schema))
    return passed


def _stays(frame: Any) -> Any:
    """Stand in for a transform's function in tasks: only the driver calls that function."""
    raise NotImplementedError


def applied(transform: DataFrameTransform, frame: DataFrame) -> DataFrame:
    """Apply a transform to a frame, and put its columns in their order. Raises OperatorFailed, ColumnsDiffer."""
    try:
        with functions_for(frame):
            made = transform.function(frame)
            if not hasattr(made, "mapInArrow"):
                raise TypeError(f"it returned {type(made).__name__}, but must return a DataFrame")
            schema = made.schema  # Spark Connect looks at it only now
    except Exception as error:
        raise transform_failed(error, transform.operator, transform.window) from error
    check_columns(transform, schema)
    result: DataFrame = made.select(*(quoted(field.name) for field in transform.made))
    return result


@contextlib.contextmanager
def functions_for(frame: DataFrame) -> Iterator[None]:
    """While this lasts, `pyspark.sql.functions` makes columns for the session of a frame: classic, or of Spark Connect."""
    before = os.environ.pop(_CONNECT, None)
    if is_of_connect(frame):
        os.environ[_CONNECT] = "1"
    try:
        yield
    finally:
        os.environ.pop(_CONNECT, None)
        if before is not None:
            os.environ[_CONNECT] = before


def check_columns(transform: DataFrameTransform, schema: StructType) -> None:
    """Raises ColumnsDiffer where what a transform returns has not the columns that are declared."""
    wanted = schema_in_spark(transform.made, transform.operator, "its declared output")
    has = {field.name: field.dataType.simpleString() for field in schema}

    def differ(column: str, has: str | None, wanted: str | None, help: str) -> ColumnsDiffer:
        return ColumnsDiffer(transform.operator, _RETURNED, column, has, wanted, help=help, window=transform.window)

    for field in wanted:
        kind = field.dataType.simpleString()
        if field.name not in has:
            raise differ(field.name, None, kind, f"it returns {', '.join(has) or 'no columns'}")
        if has[field.name] != kind:
            cast = f"col({field.name!r}).cast({kind!r})"
            raise differ(field.name, has[field.name], kind, f".withColumn({field.name!r}, {cast}), or declare the other type")
    names = [field.name for field in schema]
    for name in names:
        if name not in wanted.names or names.count(name) > 1:
            kind = f"{has[name]}, twice" if names.count(name) > 1 else has[name]
            raise differ(name, kind, None, f"select the declared columns: {', '.join(wanted.names)}")


def quoted(name: str) -> str:
    """A column's name as Spark reads it, whatever is in it.

    >>> quoted("a.b")
    '`a.b`'
    """
    return "`" + name.replace("`", "``") + "`"


def is_ordered(kind: Any) -> bool:
    """Return whether Spark can sort by a type."""
    from pyspark.sql.types import ArrayType, MapType, StructType, VariantType

    if isinstance(kind, ArrayType):
        return is_ordered(kind.elementType)
    if isinstance(kind, StructType):
        return all(is_ordered(field.dataType) for field in kind)
    return not isinstance(kind, MapType | VariantType)


def transform_failed(error: BaseException, operator: str, window: int) -> OperatorFailed:
    """The error that an exception in a transform stands for: what it says, and the user's own lines; nothing of the JVM."""
    return OperatorFailed(
        operator=operator,
        doing="its body",
        error=f"{type(error).__name__}: {said(str(error))}",
        window=window,
        frames=user_frames(error) or "\n".join(called_at(error)),
        trace="".join(traceback.format_exception(error)),
    )


def said(text: str) -> str:
    r"""Return the message of one of Spark's exceptions, without plans, places in the program and traces.

    >>> said("[UNRESOLVED_COLUMN] A column `x` cannot be resolved. SQLSTATE: 42703;\n'Project ['x]\n+- MapInArrow")
    '[UNRESOLVED_COLUMN] A column `x` cannot be resolved.'
    """
    text = re.split(r";?\n\s*'|;\n|\n== |\n\nJVM stacktrace|\n\s*at org\.|\n\s*at java\.", text, maxsplit=1)[0]
    return re.sub(r"\s*SQLSTATE: \w+", "", text).strip().rstrip(";")


def called_at(error: BaseException) -> list[str]:
    """The user's lines that Spark itself has noted for what failed, or the SQL text."""
    places = []
    for context in getattr(error, "getQueryContext", list)() or ():
        try:
            path, _, line = str(context.callSite()).rpartition(":")
        except Exception:  # noqa: BLE001  # the context of SQL text has none
            places.append(f"  in {context.fragment()}")
            continue
        if path:
            places.append(f"  at {shown(path)}:{line}: {context.fragment()}")
    return places


def failed_within(error: BaseException, transforms: Mapping[str, DataFrameTransform]) -> OperatorFailed | None:
    """The error of a transform that has failed while Spark ran it; None for failures with other causes."""
    from pyspark.errors import PySparkException

    if not transforms or not isinstance(error, PySparkException) or not error.getCondition():
        return None
    text = str(error)
    if "dagflow/spark/" in text or "Job aborted" in text:
        return None
    names = " or ".join(transform.operator for transform in transforms.values())
    return transform_failed(error, names, next(iter(transforms.values())).window)

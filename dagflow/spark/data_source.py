"""`spark.read.format("dagflow")`: the committed rows of a dataset as a DataFrame.

Users call `register`. docs/how-to/read_datasets.md has the recipe.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from dagflow.arrow_types import type_named
from dagflow.ledger.dataset.files import dataset_columns, dataset_files, read_dataset
from dagflow.ledger.dataset.tables import FileGroup
from dagflow.model.operator.dataframes import not_in_spark
from dagflow.spark.dataframes.transforms import as_arrow, schema_in_spark
from dagflow.spark.errors import ColumnNotInSpark, OptionWrong
from dagflow.storage import absolute

MAX_BYTES = 128 << 20
"""The most bytes of files that one task reads, unless a file alone has more: as Spark's own readers."""
OPEN_COST = 4 << 20
"""The bytes that opening a file counts for, so that a task does not get too many small ones."""


def register(spark: SparkSession) -> None:
    """Let a session read datasets: `spark.read.format("dagflow").load(path)`.

    Python workers need dagflow, as for a launch. Options: `as_of`, the number of an entry of the ledger, or a time in ISO 8601
    with its zone.
    """
    spark.dataSource.register(DatasetSource)


class DatasetSource(DataSource):
    """A dataset as Spark reads it: exactly the files that the ledger's newest entry, or that of `as_of`, makes content."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "dagflow"

    def schema(self) -> StructType:
        """Return the dataset's columns. Raises ColumnNotInSpark, OptionWrong, and the errors of `read_dataset`."""
        path, as_of = self._path(), self._as_of()
        columns = dataset_columns(path, as_of)
        return spark_schema(read_dataset(path, as_of).schema if columns is None else columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the dataset."""
        return DatasetReader(self._path(), self._as_of(), schema)

    def _path(self) -> str:
        path = self.options.get("path", "")
        if not path:
            raise OptionWrong(option="path", value="", reason="name the dataset's folder: .load(FOLDER)")
        return absolute(path)

    def _as_of(self) -> int | datetime.datetime | None:
        text = self.options.get("as_of")
        if text is None or text.isdecimal():
            return None if text is None else int(text)
        reason = "give the number of an entry, or a time with its zone, 2026-11-23T10:00:00+00:00"
        try:
            time = datetime.datetime.fromisoformat(text)
        except ValueError:
            raise OptionWrong(option="as_of", value=text, reason=reason) from None
        if time.tzinfo is None:
            raise OptionWrong(option="as_of", value=text, reason=reason)
        return time


@attrs.frozen
class DatasetReader(DataSourceReader):
    """Reads the files of a dataset. The ledger is read once, when Spark plans the tasks."""

    path: str
    as_of: int | datetime.datetime | None
    columns: StructType

    def partitions(self) -> Sequence[InputPartition]:
        """Return a partition for each task: files that are read in one way."""
        groups, _ = dataset_files(self.path, self.as_of)
        return [InputPartition(part) for group in groups for part in parts_of(group)] or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the batches of a partition."""
        group, schema = partition.value, as_arrow(self.columns)
        if group is not None:
            for batch in group.dataset().to_batches(batch_readahead=1, fragment_readahead=1):
                columns = [batch.column(field.name).cast(field.type) for field in schema]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def spark_schema(columns: pa.Schema) -> StructType:
    """Return columns as Spark has them: a type that Spark lacks becomes one that holds its values. Raises ColumnNotInSpark."""
    fields = []
    for field in columns:
        instead = not_in_spark(field.type)
        if instead == "":
            raise ColumnNotInSpark(column=field.name, type=str(field.type))
        fields.append(field if instead is None else field.with_type(type_named(instead)))
    return schema_in_spark(pa.schema(fields), "dagflow", "the dataset")


def parts_of(group: FileGroup) -> Iterable[FileGroup]:
    """Return the files of a group in parts for one task each, in their order."""
    start = total = 0
    for number, size in enumerate(group.sizes):
        cost = size + OPEN_COST
        if number > start and total + cost > MAX_BYTES:
            yield _part(group, start, number)
            start, total = number, 0
        total += cost
    yield _part(group, start, len(group.paths))


def _part(group: FileGroup, start: int, stop: int) -> FileGroup:
    return attrs.evolve(group, paths=tuple(group.paths[start:stop]), sizes=tuple(group.sizes[start:stop]))

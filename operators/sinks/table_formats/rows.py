"""`StagedRows`: staged files as the decision of their window describes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import unquote

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from dagflow import StagedWindow
from dagflow.arrow_types import type_named
from dagflow.scan import NO_VALUE
from dagflow.storage import file_system


@attrs.frozen(kw_only=True)
class StagedRows:
    """A staged file, as the decision of its window describes it.

    Attributes:
        path: where it is staged. `name`: its name in the table.
        rows, size: of the file.
        partition: the values of the columns that name its folder, as texts; None for null.
        columns: all columns of its rows, those that name the folder too: `(name, Arrow type)`.
        stats: of the columns, as the table format keeps them.
        sign: 1 for rows of a changing stream, -1 for those that are taken back; 0 where none are.
    """

    path: str
    name: str
    rows: int
    size: int
    partition: dict[str, str | None]
    columns: list[list[str]]
    stats: str = ""
    sign: int = 0

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return pa.schema([(name, type_named(kind)) for name, kind in self.columns])


def with_values(part: pa.RecordBatch, folder: str, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows in all columns of a schema, with the values that the name of their folder holds.

    >>> import pyarrow as pa
    >>> schema = pa.schema({"day": pa.int32(), "n": pa.int64()})
    >>> with_values(pa.record_batch({"n": [7]}), "day=3", schema).to_pydict()
    {'day': [3], 'n': [7]}
    """
    texts = partition_values(folder)
    columns = [
        pa.repeat(pa.scalar(texts[field.name], pa.string()).cast(field.type), part.num_rows)
        if field.name in texts
        else part.column(field.name)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def staged_rows(window: StagedWindow) -> list[StagedRows]:
    """Return the files of a window, in the order of their tasks."""
    return [StagedRows(**each) for task in window.staged for each in task]


def read_rows(files: Sequence[StagedRows], schema: pa.Schema) -> pa.Table:
    """Return the rows of staged files in the columns of a schema, in the order of the files; missing columns are null."""
    return pa.Table.from_batches(list(_batches(files, schema)), schema=schema)


def _batches(files: Sequence[StagedRows], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for file in files:
        with file_system(file.path).open(file.path) as stream:
            table = pq.read_table(pa.BufferReader(stream.read()))
        missing = [field for field in schema if field.name not in table.column_names]
        for field in missing:
            table = table.append_column(field, pa.nulls(len(table), field.type))
        yield from table.select(schema.names).cast(schema).to_batches()


def partition_values(folder: str) -> dict[str, str | None]:
    """Return the values that the name of a folder holds, as texts; None for null.

    >>> partition_values("country=se/city=Malm%C3%B6")
    {'country': 'se', 'city': 'Malmö'}
    """
    values = (part.split("=", 1) for part in folder.split("/") if part)
    return {unquote(name): None if text == NO_VALUE else unquote(text) for name, text in values}

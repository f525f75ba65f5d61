"""DataFrame transforms for the in-process runner: in a local Spark, started when the first one is needed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from dagflow.runtime.stage.program import DataFrameTransform
from dagflow.spark.connection.address import DEFAULT_MASTER
from dagflow.spark.connection.session import active_link, open_session
from dagflow.spark.dataframes.transforms import applied, as_arrow, schema_in_spark, transform_failed


class LocalTransformRunner:
    """Runs transforms in the active session, or in one of its own, which `close` ends."""

    def __init__(self) -> None:
        self._session: Any = None
        self._ours = False

    def made(self, transform: DataFrameTransform, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Apply a transform to some batches. Raises OperatorFailed, ColumnsDiffer, JavaMissing."""
        from pyspark.errors import PySparkException

        if self._session is None:
            # a cluster that spark-submit or the environment names is none of the local runner's business
            master = None if active_link() is not None else DEFAULT_MASTER
            self._session, self._ours = open_session("dagflow", master, None, {"spark.sql.shuffle.partitions": "2"})
        given = schema_in_spark(transform.given, transform.operator, "its input")
        table = pa.Table.from_batches([batch.cast(as_arrow(given)) for batch in batches], schema=as_arrow(given))
        frame = self._session.createDataFrame(table, schema=given)
        try:
            result: pa.Table = applied(transform, frame).toArrow()
        except PySparkException as error:
            raise transform_failed(error, transform.operator, transform.window) from error
        yield from result.cast(transform.made).to_batches()

    def close(self) -> None:
        """Ends a session of its own."""
        session, self._session = self._session, None
        if session is not None and self._ours:
            with contextlib.suppress(Exception):
                session.stop()

"""Bodies of DataFrames for the in-process runner: in a local Spark, started when the first one is needed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from dagflow.runtime.stage.program import Body
from dagflow.spark.address import DEFAULT_MASTER
from dagflow.spark.bodies import applied, as_arrow, body_failed, schema_in_spark
from dagflow.spark.session import active_session, open_session


class BodiesHere:
    """Runs bodies in the active session, or in one of its own, which `close` ends."""

    def __init__(self) -> None:
        self._session: Any = None
        self._ours = False

    def made(self, body: Body, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What a body makes of some batches. Raises OperatorFailed, ColumnsDiffer, JavaMissing."""
        from pyspark.errors import PySparkException

        if self._session is None:
            # a cluster that spark-submit or the environment names is none of the local runner's business
            master = None if active_session() is not None else DEFAULT_MASTER
            self._session, self._ours = open_session("dagflow", master, None, {"spark.sql.shuffle.partitions": "2"})
        given = schema_in_spark(body.given, body.operator, "its input")
        table = pa.Table.from_batches([batch.cast(as_arrow(given)) for batch in batches], schema=as_arrow(given))
        frame = self._session.createDataFrame(table, schema=given)
        try:
            found: pa.Table = applied(body, frame).toArrow()
        except PySparkException as error:
            raise body_failed(error, body.operator, body.window) from error
        yield from found.cast(body.made).to_batches()

    def close(self) -> None:
        """Ends a session of its own."""
        session, self._session = self._session, None
        if session is not None and self._ours:
            with contextlib.suppress(Exception):
                session.stop()

"""The life of one managed reader, as the scan operator sees it: opened, read batch by batch, closed exactly once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pyarrow as pa

from dagflow.scan.loader import Origin, ResultSetLoader
from dagflow.scan.managed import ManagedReader, SchemaNegotiator

Output = Callable[[pa.RecordBatch, Origin | None], pa.RecordBatch]
"""Makes what the scan gives of what a reader has loaded."""


@attrs.define(eq=False)
class ManagedBatchReader:
    """Runs a managed reader as the scan operator's RowBatchReader."""

    reader: ManagedReader[Any]
    negotiator: SchemaNegotiator
    output: Output
    _has_more: bool = attrs.field(init=False, default=True)
    _is_closed: bool = attrs.field(init=False, default=False)

    def open(self) -> bool:
        """See RowBatchReader. Raises RuntimeError when the reader returned True and built no loader."""
        if not self.reader.open(self.negotiator):
            return False
        if self.negotiator.loader is None:
            raise RuntimeError(f"{type(self.reader).__name__}.open() returned True, but did not call negotiator.build()")
        return True

    def next(self) -> pa.RecordBatch | None:
        """See RowBatchReader."""
        loader = self._loader
        while True:
            harvested = loader.harvest()
            if harvested is not None:
                made = self.output(harvested, loader.origin)
                if made.num_rows:
                    return made
            elif self._has_more:
                self._has_more = self.reader.next()
            else:
                return None

    @property
    def schema_version(self) -> int:
        """See RowBatchReader."""
        loader = self.negotiator.loader
        return 0 if loader is None else max(loader.schema_version, int(self.negotiator.table_schema is not None))

    def empty(self) -> pa.RecordBatch | None:
        """See RowBatchReader."""
        loader = self.negotiator.loader
        schema = self.negotiator.table_schema if loader is None or loader.schema is None else loader.schema
        return None if schema is None else self.output(schema.empty_table().to_batches()[0], None)

    def close(self) -> None:
        """See RowBatchReader."""
        if not self._is_closed:
            self._is_closed = True
            self.reader.close()

    @property
    def _loader(self) -> ResultSetLoader:
        loader = self.negotiator.loader
        assert loader is not None
        return loader

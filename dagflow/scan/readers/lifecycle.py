"""The life cycle of one managed reader: opened, read batch by batch, closed exactly once."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pyarrow as pa

from dagflow.errors import DagflowError
from dagflow.scan.errors import ReaderFailed, ReaderMisbehaves
from dagflow.scan.readers.loader import Harvest, ResultSetLoader
from dagflow.scan.readers.machine import closing
from dagflow.scan.readers.managed import ManagedReader, SchemaNegotiator


@attrs.define(eq=False, kw_only=True)
class ManagedBatchReader:
    """A managed reader as a RowBatchReader for the scan operator.

    Args:
        reader, negotiator: the reader of the format, and its negotiator.
        output: converts a loaded batch to one of the scan.
        empty_of: returns a batch of the scan without rows, once the reader has declared its schema.
        at_end: called after the last batch.
        done: called when the reader is closed.
    """

    reader: ManagedReader[Any]
    negotiator: SchemaNegotiator
    output: Callable[[Harvest], pa.RecordBatch]
    empty_of: Callable[[], pa.RecordBatch]
    at_end: Callable[[], None] = attrs.field(default=lambda: None)
    done: Callable[[], None] = attrs.field(default=lambda: None)
    _has_more: bool = attrs.field(init=False, default=True)
    _is_closed: bool = attrs.field(init=False, default=False)

    def open(self) -> bool:
        """See RowBatchReader. Raises ReaderFailed, ReaderMisbehaves, and errors of dagflow as they are."""
        with self._failing("open"):
            is_open = self.reader.open(self.negotiator)
        if is_open and self.negotiator.loader is None:
            raise ReaderMisbehaves(format=self._name, reason="open() returned True, but did not call negotiator.build()")
        return bool(is_open)

    def next(self) -> pa.RecordBatch | None:
        """See RowBatchReader. Raises as `open` does."""
        loader = self._loader
        while True:
            harvest = loader.harvest(is_last=not self._has_more)
            if harvest is not None:
                batch = self.output(harvest)
                if batch.num_rows:
                    return batch
            elif self._has_more:
                with self._failing("next"):
                    self._has_more = bool(self.reader.next())
            else:
                self.at_end()
                return None

    @property
    def schema_version(self) -> int:
        """See RowBatchReader."""
        loader = self.negotiator.loader
        return 0 if loader is None else loader.schema_version + int(self.negotiator.table_schema is not None)

    def empty(self) -> pa.RecordBatch | None:
        """See RowBatchReader."""
        return self.empty_of() if self.schema_version else None

    def close(self) -> None:
        """See RowBatchReader. Raises as `open` does; whatever happens, the reader is closed once."""
        if self._is_closed:
            return
        self._is_closed = True
        with closing(self.done), self._failing("close"):
            self.reader.close()

    @property
    def _name(self) -> str:
        return type(self.reader).__name__

    @property
    def _loader(self) -> ResultSetLoader:
        loader = self.negotiator.loader
        assert loader is not None
        return loader

    @contextlib.contextmanager
    def _failing(self, doing: str) -> Iterator[None]:
        """Wrap errors of the reader, with reader, source and range. Errors of dagflow and of storage stay as they are."""
        try:
            yield
        except (DagflowError, OSError, MemoryError):
            raise
        except Exception as error:  # a reader may raise anything
            start, stop = self.negotiator.extent
            raise ReaderFailed(
                format=self._name,
                doing=doing,
                path=self.negotiator.source,
                start=start,
                stop=stop,
                error=f"{type(error).__name__}: {error}",
            ) from error

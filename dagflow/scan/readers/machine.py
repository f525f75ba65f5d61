"""The scan operator: a state machine over readers. It knows no schema, no file and no projection."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Literal, Protocol, TypeVar

import attrs

Batch = TypeVar("Batch")
BatchOut_co = TypeVar("BatchOut_co", covariant=True)

ScanState = Literal["start", "reader", "waiting", "empty", "end", "failed", "closed"]


class RowBatchReader(Protocol[BatchOut_co]):
    """A reader as the scan operator uses it. It is made, opened, drained and closed; then the next one is made."""

    def open(self) -> bool:
        """Return whether there is anything to read. A reader without anything is skipped."""
        ...

    def next(self) -> BatchOut_co | None:
        """Return the next batch, never an empty one; None at the end. Not called again after that."""
        ...

    @property
    def schema_version(self) -> int:
        """The version of the schema: 0 while it is not known. Rises if and only if the schema has changed."""
        ...

    def empty(self) -> BatchOut_co | None:
        """Return a batch without rows that has the current schema; None if it is not known."""
        ...

    def close(self) -> None:
        """Release all resources. Called exactly once."""
        ...


def close_after(error: BaseException, close: Callable[[], None]) -> None:
    """Close a reader after an error. An error of `close` becomes a note of the first one."""
    try:
        close()
    except Exception as second:  # noqa: BLE001  # the first error matters
        error.add_note(f"closing the reader failed, too: {second}")


@contextmanager
def closing(close: Callable[[], None]) -> Iterator[None]:
    """Call `close` at the end of the block. An error of `close` never hides one of the block."""
    try:
        yield
    except BaseException as error:
        close_after(error, close)
        raise
    close()


@attrs.define(eq=False)
class Scan(Generic[Batch]):
    """The state machine that opens, drains and closes one reader after the other.

    A framework supplies `next_reader`, which returns the next reader, or None if there is none now. Reader k is closed before
    reader k + 1 is requested.

    ========  ==========================================  =========  =====================================================
    state     what happens                                then       what comes of it
    ========  ==========================================  =========  =====================================================
    start     `batches()`                                 waiting
    waiting   next_reader gives a reader                  reader
    waiting   next_reader gives None                      waiting    `batches()` ends; it may be called again
    waiting   `finish()`, no batch came, a schema known   empty      one batch of no rows ("fast schema")
    waiting   `finish()` otherwise                        end        nothing ("fast NONE")
    empty     the batch is taken                          end
    reader    open() is False                             waiting    closed, counted in `skipped`
    reader    next() gives a batch                        reader     the batch
    reader    next() gives None                           waiting    closed; its schema is kept if it is the first known
    any       an exception of a reader                    failed     the reader is closed; the exception goes on
    any       `close()`                                   closed     the reader at hand is closed
    ========  ==========================================  =========  =====================================================

    In `end`, `batches()` and `finish()` give nothing; in `failed` and `closed` they raise RuntimeError. `close()` may be called
    again.
    """

    next_reader: Callable[[], RowBatchReader[Batch] | None]
    state: ScanState = attrs.field(init=False, default="start")
    delivered: int = attrs.field(init=False, default=0)
    """The number of batches that have been yielded."""
    skipped: int = attrs.field(init=False, default=0)
    """The number of readers that had nothing to read."""
    _reader: RowBatchReader[Batch] | None = attrs.field(init=False, default=None)
    _empty: Batch | None = attrs.field(init=False, default=None)

    def batches(self) -> Iterator[Batch]:
        """Yield the batches of all readers that there are now."""
        if not self._is_open():
            return
        self.state = "waiting"
        while True:
            try:
                reader = self._current()
                if reader is None:
                    return
                batch = reader.next()
                if batch is None:
                    self._leave(reader)
                    continue
            except BaseException as error:
                self._fail(error)
                raise
            self.delivered += 1
            yield batch

    def finish(self) -> Iterator[Batch]:
        """Yield the rest after the last reader: an empty batch, if the schema is known and there was no other batch."""
        yield from self.batches()
        if not self._is_open():
            return
        self.state = "end"
        if self.delivered == 0 and self._empty is not None:
            self.state = "empty"
            yield self._empty
            self.state = "end"

    def close(self) -> None:
        """Close the current reader. Raises the errors of its `close`."""
        self.state = "closed"
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _is_open(self) -> bool:
        if self.state in ("failed", "closed"):
            raise RuntimeError(f"the scan is {self.state}")
        return self.state not in ("end", "empty")

    def _current(self) -> RowBatchReader[Batch] | None:
        while self._reader is None:
            reader = self.next_reader()
            if reader is None:
                return None
            self._reader, self.state = reader, "reader"
            if not reader.open():
                self.skipped += 1
                self._leave(reader)
        return self._reader

    def _leave(self, reader: RowBatchReader[Batch]) -> None:
        if self.delivered == 0 and self._empty is None and reader.schema_version > 0:
            self._empty = reader.empty()
        self._reader, self.state = None, "waiting"
        reader.close()

    def _fail(self, error: BaseException) -> None:
        self.state = "failed"
        reader, self._reader = self._reader, None
        if reader is not None:
            close_after(error, reader.close)

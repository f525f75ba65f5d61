"""The near end of an exchange: takes what an output port emits, and makes rows of it for the tasks that it goes to.

Which records a row has depends on the records and their order only, not on the pieces in which they came: a task that is run
again after it has given away a part of its work reads in other pieces, and must send the same rows. (Only rows of records of
many KiB are cut by their size as they come; if such a task is run again so, Spark finds other rows, and the window is run again.)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, get_origin

from dagflow.model.operator.context import Cursor
from dagflow.model.types.columns import RecordMisfit
from dagflow.model.types.comparison import type_name
from dagflow.model.types.forms import schema_of, to_batch
from dagflow.model.types.keys import KeyAssignment, Router
from dagflow.planning.plan import FORWARD, GATHER, HASH
from dagflow.runtime.exchange.errors import ColumnsDiffer, CombinedKeyChanged, TimeNotInSpark
from dagflow.runtime.exchange.fitting import fitted
from dagflow.runtime.exchange.hot_keys import HotKeys
from dagflow.runtime.exchange.rows import BLOB, Row, pickled_blobs, pieces_of, tag_of
from dagflow.runtime.run_folder.reports import ExchangeFigures
from dagflow.runtime.stage.blame import first_failing_row, raising, record_of, refuse_mistyped
from dagflow.runtime.stage.conversion import runs_of_records
from dagflow.runtime.stage.failure import Abort, abort
from dagflow.runtime.stage.program import SendPlan, SourcePlan, TaskSpec

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    from dagflow.runtime.stage.node import Node
    from dagflow.runtime.stage.outlet import Step

ROWS = 1 << 15
"""Rows of a blob; fewer when they are wide."""
RECORDS = 1 << 13
"""Records that become a batch at once."""
BULK = 256
"""The number of records that become a batch before they are spread. Partitions are found faster by column."""
PICKLED = 1 << 10
"""Records of a pickled blob."""
HELD = 64 << 20
"""Bytes of batches that one sender holds for all its destinations."""
KEYS = 1 << 16
"""Keys that are combined before what there is of them is sent."""


class Sender:
    """Stands at the end of a stream in place of the inlet of a sink that is in another level.

    Records that are retracted go by a sender of their own, which is made for the first of them. `inserting`: that one's twin.
    """

    def __init__(
        self, node: Node, plan: SendPlan, spec: TaskSpec, send: Callable[[Row], None], inserting: Sender | None = None
    ) -> None:
        first, self._partitions = spec.layout.destinations[plan.stage]
        self._node = node
        self._plan = plan
        self._spec = spec
        self._retracts = inserting is not None
        self._retracting: Sender | None = None
        self._first = first
        self._own = spec.partition
        self._src = spec.layout.number
        self._here = Cursor(sender=f"task {spec.name}")  # where records have come from that were held for a while
        self._send = send
        self._sequence = [0] * self._partitions
        self._records: list[list[Any]] = [[] for _ in range(self._partitions)]
        self._batches: list[list[pa.RecordBatch]] = [[] for _ in range(self._partitions)]
        self._rows = [0] * self._partitions
        self._bytes = [0] * self._partitions
        self._held = 0
        self._next_destination = spec.layout.number  # the first record of each task goes to another partition
        self._is_arrow = schema_of(plan.type) is not None
        outer = get_origin(plan.type) or plan.type
        self._class = outer if isinstance(outer, type) else None
        self._portion = RECORDS if self._is_arrow else PICKLED
        self._hottest = HotKeys(Router.STRIDE)
        self.figures: ExchangeFigures = ExchangeFigures() if inserting is None else inserting.figures
        self._router: Router | None = None
        if plan.kind == HASH:
            assert plan.key is not None
            deal = KeyAssignment(self._partitions, spec.layout.owners.get(plan.stage, ()))
            self._router = Router(plan.port, plan.key, plan.type, deal, self._hottest.see_all)
        self._pairs: dict[Any, tuple[int, Any]] = {}
        combiner = plan.combiner if plan.kind in (HASH, GATHER) else None
        self._combine_batch = combiner.batchwise() if combiner is not None and self._is_arrow else None
        self._combine = combiner.pairwise() if combiner is not None and self._combine_batch is None and self._router else None

    @property
    def port(self) -> str:
        """The port that it leads to: `operator.port`."""
        return self._plan.port

    def steps(self, chunk: list[Any] | pa.RecordBatch, retracts: bool) -> Iterator[Step]:
        """Take records or a batch; nothing follows from them in this task."""
        sender = self
        if retracts:
            sender = self._retracting = self._retracting or Sender(self._node, self._plan, self._spec, self._send, self)
        with self._node.steps.time.charging(self._node.account):
            if isinstance(chunk, list):
                sender.take_records(chunk)
            else:
                sender.take_batch(chunk)
        return iter(())

    def take_records(self, chunk: list[Any]) -> None:
        """Take records."""
        self.figures.before += len(chunk)
        if self._class is not None and set(map(type, chunk)) != {self._class}:
            for record in chunk:  # now the call that emitted it is known; later records of many calls are packed together
                self._refuse_mistyped(record)
        if self._combine is not None:
            self._combined(chunk)
            return
        if self._is_arrow and len(chunk) >= BULK:
            with contextlib.suppress(RecordMisfit):  # one by one they go where `on_error` says
                self._spread(to_batch(chunk, self._plan.type), chunk)
                return
        records, portion = self._records, self._portion
        for record, partition in self._routed(chunk):
            buffer = records[partition]
            buffer.append(record)
            if len(buffer) >= portion:
                self._pack(partition)

    def take_batch(self, batch: pa.RecordBatch) -> None:
        """Take a batch."""
        if self._combine is None and (self._plan.key is None or self._plan.key.function is None):
            self.figures.before += batch.num_rows
            self._spread(batch)
            return
        rows, records = self._objects(batch)
        if self._combine is not None:
            self.take_records(records)
        elif records:
            self.figures.before += batch.num_rows
            self._spread(rows, records)

    def _objects(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, list[Any]]:
        """Return the rows that have a record, and the records. To others the `on_error` of their operator applies."""
        kept: list[bool] = []
        objects: list[Any] = []
        for first, records in runs_of_records(batch, self._plan.type):
            if isinstance(records, Exception):
                record = record_of(batch.slice(first, 1), self._plan.type)
                self._node.bad_record(f"the exchange to {self._plan.port}", records, record)
            else:
                objects += records
            kept += [False] if isinstance(records, Exception) else [True] * len(records)
        if all(kept):
            return batch, objects
        import pyarrow as pa

        return batch.filter(pa.array(kept, pa.bool_())), objects

    def _spread(self, batch: pa.RecordBatch, records: list[Any] | None = None) -> None:
        """Send the rows of a batch where they go. `records`: the same as objects, where they are at hand."""
        if self._partitions == 1 or self._plan.kind in (GATHER, FORWARD):
            if self._router is not None and not self._sees_keys(batch):
                self._places(batch, records)
            self._add(self._own if self._plan.kind == FORWARD else 0, batch)
            return
        import numpy as np

        from dagflow.arrow_types.buffers import order_of

        places = self._places(batch, records)
        order = order_of(places)
        bounds = np.searchsorted(places[order], np.arange(self._partitions + 1))
        sorted_batch = batch.take(order)
        for partition in range(self._partitions):
            start, stop = int(bounds[partition]), int(bounds[partition + 1])
            if start < stop:
                self._add(partition, sorted_batch.slice(start, stop - start))

    def finish(self) -> None:
        """Send all that is left."""
        self._spill()
        for partition in range(self._partitions):
            self._pack(partition)
            self._seal(partition, self._rows[partition])
        if self._retracting is not None:
            self._retracting.finish()
        if not self._retracts:
            self.figures.hottest = self._hottest.told()

    # Where records go

    def _routed(self, chunk: list[Any]) -> Any:
        """Yield the records, each with its partition."""
        kind, partitions = self._plan.kind, self._partitions
        if self._router is not None:
            return self._keyed(chunk)
        if kind in (GATHER, FORWARD):
            return ((record, self._own if kind == FORWARD else 0) for record in chunk)
        start, self._next_destination = self._next_destination, self._next_destination + len(chunk)
        return ((record, (start + number) % partitions) for number, record in enumerate(chunk))

    def _keyed(self, chunk: list[Any]) -> Any:
        assert self._router is not None
        of_record = self._router.of_record
        for record in chunk:
            try:
                partition = of_record(record)
            except Exception as error:  # noqa: BLE001  # user code may raise anything
                self._no_key(error, record)
                continue
            yield record, partition

    def _places(self, batch: pa.RecordBatch, records: list[Any] | None) -> np.ndarray[Any, Any]:
        """Return the partition of each row."""
        import numpy as np

        router = self._router
        if router is None:
            start, self._next_destination = self._next_destination, self._next_destination + batch.num_rows
            return (start + np.arange(batch.num_rows)) % self._partitions
        if self._plan.key is not None and self._plan.key.function is not None:
            assert records is not None
            return np.fromiter((self._place(router, record) for record in records), dtype=np.int64, count=len(records))
        try:
            return router.of_batch(batch)
        except Exception as error:
            raise self._failed(f"the key ({self._plan.key}) of {self._plan.port}", error, None) from error

    def _sees_keys(self, batch: pa.RecordBatch) -> bool:
        """Note which keys there are if all rows go to one partition, and any key of theirs can be hashed."""
        return self._partitions == 1 and self._router is not None and self._router.sees(batch)

    def _place(self, router: Router, record: Any) -> int:
        try:
            return router.of_record(record)
        except Exception as error:
            raise self._failed(f"the key ({self._plan.key}) of {self._plan.port}", error, record) from error

    def _no_key(self, error: Exception, record: Any) -> None:
        self._refuse_mistyped(record)
        raise self._failed(f"the key ({self._plan.key}) of {self._plan.port}", error, record) from error

    def _failed(self, doing: str, error: Exception, record: Any, cursor: Cursor | None = None) -> Abort:
        return abort(self._plan.sink[0], self._node.window, doing, error, record, cursor or self._node.context.services.cursor)

    # Combining

    def _combined(self, chunk: list[Any]) -> None:
        """Make one record of those with the same key, as long as there are not too many keys."""
        assert self._combine is not None
        assert self._router is not None
        key_of = self._router.key
        for record, partition in self._routed(chunk):
            key = key_of(record)
            try:
                before = self._pairs.get(key)
            except TypeError:  # a list: it has no hash of Python's, and keys of one repr() may differ
                self._put(partition, record)
                continue
            if before is None:
                self._pairs[key] = (partition, record)
                if len(self._pairs) >= KEYS:
                    self._spill()
                continue
            try:
                self._pairs[key] = (partition, self._combine(before[1], record))
            except Exception as error:
                raise self._failed("combine()", error, record) from error

    def _spill(self) -> None:
        pairs, self._pairs = self._pairs, {}
        for key, (partition, record) in pairs.items():
            self._check_key(key, record)
            self._put(partition, record)

    def _check_key(self, key: Any, record: Any) -> None:
        """End the task where combining has changed the key."""
        assert self._router is not None
        try:
            key_value = self._router.key(record)
        except Exception as error:
            reason = TypeError("it returned None, and must return a record") if record is None else error
            raise self._failed("combine()", reason, record, self._here) from error
        if key_value != key and repr(key_value) != repr(key):  # NaN differs from itself
            changed = CombinedKeyChanged(self._plan.port, repr(key_value)[:200])
            raise self._failed("combine()", changed, record, self._here)

    def _check_keys(self, partition: int, batch: pa.RecordBatch) -> None:
        """End the task where combining a batch has made rows of other partitions."""
        if self._router is None or self._plan.key is None or self._plan.key.function is not None or not batch.num_rows:
            return
        strange = self._router.is_foreign(batch, partition)
        if strange.any():
            row = batch.slice(int(strange.argmax()), 1).select(list(self._plan.key.columns)).to_pylist()[0]
            raise self._failed("combine_batch()", CombinedKeyChanged(self._plan.port, repr(row)[:200]), None, self._here)

    # From records to blobs

    def _put(self, partition: int, record: Any) -> None:
        """Send a record that stands for itself."""
        self._records[partition].append(record)
        if len(self._records[partition]) >= self._portion:
            self._pack(partition)

    def _pack(self, partition: int) -> None:
        """Make a batch, or a blob, of the records for a partition."""
        records = self._records[partition]
        if not records:
            return
        self._records[partition] = []
        if not self._is_arrow:
            self.figures.records += len(records)
            for blob in self._pickled(records):
                self._emit(partition, blob, len(blob), is_pickled=True)
            return
        for batch in self._converted(records):
            self._add(partition, batch)

    def _pickled(self, records: list[Any]) -> list[bytes]:
        try:
            return list(pickled_blobs(records))
        except Exception as error:
            text = TypeError(f"records of {type_name(self._plan.type)} cannot be pickled on their way: {error}")
            raise abort(
                self._node.name,
                self._node.window,
                f"the exchange to {self._plan.port}",
                text,
                records[0],
                self._node.context.services.cursor,
            ) from error

    def _converted(self, records: Sequence[Any]) -> list[pa.RecordBatch]:
        """Convert records to batches. For records that do not fit, the `on_error` of their operator applies."""
        try:
            return [to_batch(records, self._plan.type)]
        except RecordMisfit as error:
            if len(records) == 1:
                self._refuse_mistyped(records[0])
                self._node.bad_record(f"the exchange to {self._plan.port}", error, records[0])
                return []
            half = len(records) // 2
            return [*self._converted(records[:half]), *self._converted(records[half:])]

    def _refuse_mistyped(self, record: Any) -> None:
        """End the task where a record that cannot cross is not of its port's type."""
        source = SourcePlan(*self._plan.source, self._plan.type)
        refuse_mistyped(record, source, self._node.window, self._node)

    def _add(self, partition: int, batch: pa.RecordBatch) -> None:
        if self._records[partition]:
            self._pack(partition)
        batch = self._fitted(batch)
        held = self._batches[partition]
        if held and held[0].schema != batch.schema:  # of input whose columns have changed
            self._seal(partition, self._rows[partition])
        size = batch.nbytes
        self._batches[partition].append(batch)
        self._rows[partition] += batch.num_rows
        self._bytes[partition] += size
        self._held += size
        while self._rows[partition] >= ROWS:
            self._seal(partition, ROWS)
        if self._bytes[partition] >= BLOB:
            self._seal(partition, self._rows[partition])
        elif self._held >= HELD:
            for each in range(self._partitions):
                self._seal(each, self._rows[each])

    def _fitted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if self._plan.columns is None:
            return batch
        try:
            return fitted(batch, self._plan.columns, self._plan.sink[0])
        except (ColumnsDiffer, TimeNotInSpark) as error:
            raise self._failed("its input", error, None) from error

    def _seal(self, partition: int, rows: int) -> None:
        """Send the first rows of what is held for a partition."""
        import pyarrow as pa

        batches = self._batches[partition]
        if not rows or not batches:
            return
        taken: list[pa.RecordBatch] = []
        self._rows[partition] -= rows
        while rows:
            first = batches.pop(0)
            taken.append(first.slice(0, rows))
            if first.num_rows > rows:
                batches.insert(0, first.slice(rows))
            rows -= taken[-1].num_rows
        size = sum(each.nbytes for each in batches)
        self._held += size - self._bytes[partition]
        self._bytes[partition] = size
        batch = taken[0] if len(taken) == 1 else pa.concat_batches(taken)
        if self._combine_batch is not None:
            try:
                combined = _a_batch(self._combine_batch(batch))
                self._check_keys(partition, combined)
            except Exception as error:
                failing = first_failing_row(batch, self._plan.type, raising(self._combine_batch))
                record, error = (None, error) if failing is None else (failing.record, failing.error)
                raise self._failed("combine_batch()", error, record, self._here) from error
            batch = combined
        self.figures.records += batch.num_rows
        if batch.num_rows:
            for piece in pieces_of(batch):
                self._emit(partition, piece, piece.nbytes)

    def _emit(self, partition: int, blob: Any, size: int, *, is_pickled: bool = False) -> None:
        # the sequence begins with the exchange: so the order in which several of them come does not depend on pieces either
        sequence = (2 * self._plan.tag + self._retracts << 40) + self._sequence[partition]
        self._sequence[partition] += 1
        self.figures.rows += 1
        self.figures.bytes += size
        tag = tag_of(self._plan.tag, retracts=self._retracts, is_pickled=is_pickled)
        self._send(Row(self._first + partition, tag, self._src, sequence, blob))


def _a_batch(found: Any) -> pa.RecordBatch:
    """Return the result of `combine_batch` if it is a batch. Raises TypeError otherwise."""
    import pyarrow as pa

    if not isinstance(found, pa.RecordBatch):
        raise TypeError(f"it returned {type(found).__name__}, and must return a pyarrow.RecordBatch: `return batch`")
    return found

"""`HeldChanges`: the changes of a stream that wait for the next emission point. Added by the planner."""

from __future__ import annotations

import ast
import base64
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_origin

import attrs

from dagflow.model.operator.base import Operator
from dagflow.model.operator.context import OperatorContext
from dagflow.model.operator.ports import InputPort, OutputPort
from dagflow.model.operator.protocols import StateSize
from dagflow.model.operator.state import State, WindowState
from dagflow.model.operator.table_state import TableState
from dagflow.model.types.plain_data import decode, dumps, encode, loads
from dagflow.planning.errors import NotHeld

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

T = TypeVar("T")
COUNT = "#rows"
ROWS_OF_A_BATCH = 1 << 16
MAX_ROWS = 1 << 20
"""Rows after which an emission point for which nothing is kept emits what they come to, since all of its rows may be too many."""


def summed(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    """Return the sums of counts by name, without those that are 0."""
    sums: Counter[str] = Counter()
    for each in counts:
        sums.update(each)
    return {name: count for name, count in sums.items() if count}


@attrs.define
class HeldChanges(Operator, Generic[T]):
    """Keep the changes of windows until an emission point, and emit what they come to: first the rows that are taken back.

    >>> import pyarrow as pa
    >>> from dagflow.testing import OperatorTask
    >>> with OperatorTask(HeldChanges(), in_batches=True) as task:
    ...     task.give("input", pa.record_batch({"shop": ["b", "a"], "sold": [2, 1]}))
    ...     task.give("input", pa.record_batch({"shop": ["b"], "sold": [2]}), retracts=True)
    ...     task.end_window()["output"]
    [{'shop': 'a', 'sold': 1}]
    """

    takes_changes: ClassVar[bool] = True
    scope: ClassVar[Any] = "all"
    partition_key_fixed: ClassVar[bool] = True
    waits_for_emission: ClassVar[bool] = True
    selects_rows: ClassVar[bool] = True

    input = InputPort[T](partition_by="*")
    output = OutputPort[T]()
    batches = WindowState[list[tuple[Any, int]]](factory=list)
    waiting = WindowState(0)
    records = WindowState[list[tuple[Any, int]]](factory=list)
    rows = TableState(format_version=2)
    texts = State[dict[str, int]](factory=dict, merge=summed)

    def state_size(self, changing: Collection[str]) -> StateSize:
        """Return what bounds its rows."""
        return StateSize("the changes since the last emission point", "the next one")

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, which tells signs and emission points."""
        self._context = context

    @input.batch
    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Take rows in."""
        self.batches.append((batch, self._context.sign))
        self.waiting += batch.num_rows
        if self.waiting >= MAX_ROWS and self._context.emits and not self._is_kept():
            self._emit_rows()
            self.batches, self.waiting = [], 0

    @input.stream
    def add_records(self, records: Iterator[T]) -> None:
        """Take records in that have no columns."""
        self.records.extend((record, self._context.sign) for record in records)

    def end_window(self) -> None:
        """Keep what has come or, at an emission point, emit it with what is kept."""
        if self._context.emits:
            self._emit_rows()
            self._emit_records()
        else:
            self._context.hold(self._hold_rows() + self._hold_records())

    def _hold_rows(self) -> int:
        """Add the window's rows to those that are kept, and return how many more these are."""
        if (net := self.input.net_changes(self.batches)) is None:
            return 0
        before = net.kept(self.rows.lookup(net.keys), COUNT)
        counts = before + net.counts
        self.rows.keep(net, COUNT, counts, with_rows=True)
        return int((counts != 0).sum() - (before != 0).sum())

    def _is_kept(self) -> bool:
        return any(batch.num_rows for batch in self.rows.batches())

    def _emit_rows(self) -> None:
        if self._is_kept():
            self._hold_rows()
            held = [(_rows(batch), _numbers(batch.column(COUNT))) for batch in self.rows.batches()]
            for rows, _ in held:
                self.rows.remove(self.input.keys_of(rows))
        else:
            net = self.input.net_changes(self.batches)
            held = [] if net is None else [(net.rows, net.counts)]
        ways = [self.output.retract_batch, self.output.emit_batch]
        for sign, emit in zip((-1, 1), ways[:: self._context.sign], strict=True):  # in a handler, emitted rows have its sign
            for rows, counts in held:
                some = _repeated(rows, counts * sign)
                for start in range(0, some.num_rows, ROWS_OF_A_BATCH):
                    emit(some.slice(start, ROWS_OF_A_BATCH))

    def _hold_records(self) -> int:
        """Do the same for records without columns."""
        before, counts = len(self.texts), Counter[str]()
        for record, sign in self.records:
            counts[_text_of(record, self.input.record_type)] += sign
        self.texts = summed([self.texts, counts])
        return len(self.texts) - before

    def _emit_records(self) -> None:
        try:
            self._hold_records()
        except NotHeld:
            if self.texts:
                raise
            emitted = list(self.records)  # nothing is to be kept of them
        else:
            emitted = [(_record_of(text, self.input.record_type), count) for text, count in self.texts.items()]
        self.texts = {}
        for record, count in emitted:
            for _ in range(-count):
                self.output.retract(record)
        for record, count in emitted:
            for _ in range(count):
                self.output.emit(record)


def _numbers(column: pa.Array) -> np.ndarray[Any, Any]:
    import pyarrow.compute as pc

    from dagflow.arrow_types.buffers import numbers_of

    return numbers_of(pc.fill_null(column, 0))  # pyright: ignore[reportAttributeAccessIssue]


def _rows(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that a batch of the table stands for."""
    import pyarrow as pa

    names = [name for name in batch.schema.names if name.startswith(".")]
    return pa.RecordBatch.from_arrays([batch.column(name) for name in names], [name[1:] for name in names])


def _repeated(rows: pa.RecordBatch, counts: np.ndarray[Any, Any]) -> pa.RecordBatch:
    """Return each row as often as its count says; not at all for one that is negative."""
    import numpy as np

    from dagflow.arrow_types.buffers import of_numbers

    return rows.take(of_numbers(np.repeat(np.arange(len(counts)), counts.clip(min=0))))


def _text_of(record: Any, tp: Any) -> str:
    """Return a record as text, from which `_record_of` makes an equal one. Raises NotHeld where there is none."""
    kinds: tuple[Any, ...] = (
        lambda: "=" + repr(record),
        lambda: "$" + dumps(encode(record, "a record")).decode(),
        lambda: "@" + repr([_text_of(part, Any) for part in _parts(record)]),
        lambda: "#" + _column_text(record),
    )
    for text_of in kinds:
        try:
            text: str = text_of()
            made = _record_of(text, tp)
        except (
            NotHeld,
            ValueError,
            TypeError,
            OverflowError,
            SyntaxError,
            KeyError,
            AttributeError,
            MemoryError,
            RecursionError,
        ):
            continue
        if type(made) is type(record) and (made == record or repr(made) == repr(record)):  # a NaN differs from itself
            return text
    raise NotHeld(type=type(record).__qualname__, record=repr(record)[:200])


def _record_of(text: str, tp: Any) -> Any:
    if text[0] == "@":
        parts = [_record_of(part, Any) for part in ast.literal_eval(text[1:])]
        kind = get_origin(tp) or tp
        return kind(*parts) if attrs.has(kind) else tuple(parts)
    if text[0] == "#":
        return _column_value(text[1:])
    return ast.literal_eval(text[1:]) if text[0] == "=" else decode(loads(text[1:].encode()), tp)


def _parts(record: Any) -> tuple[Any, ...]:
    """Return the values of a tuple or of an attrs class, each of which has a text of its own. Raises TypeError."""
    return record if type(record) is tuple else attrs.astuple(record, recurse=False)


def _column_text(record: Any) -> str:
    """Return the text of a record whose values say the types of its columns, such as dates and decimals."""
    import pyarrow as pa

    batch = pa.RecordBatch.from_pydict({"record": [record]})
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
    return base64.b64encode(stream.getvalue()).decode("ascii")


def _column_value(text: str) -> Any:
    import pyarrow as pa

    with pa.ipc.open_stream(base64.b64decode(text)) as reader:
        return reader.read_all().to_pylist()[0]["record"]

"""`UniqueRows`: finds rows of a changing stream that a sink could not tell apart. Added by the planner."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import attrs

from dagflow.model.operator.base import Operator
from dagflow.model.operator.context import OperatorContext
from dagflow.model.operator.ports import InputPort, OutputPort
from dagflow.model.operator.protocols import StateSize
from dagflow.model.operator.state import WindowState
from dagflow.model.operator.table_state import TableState
from dagflow.planning.errors import RowsShareKeys

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
COUNT = "#rows"


@attrs.define
class UniqueRows(Operator, Generic[T]):
    """Pass changes on, unless two rows then stand that are equal in `keys`. It keeps the number of rows of each key.

    Raises RowsShareKeys.

    >>> import pyarrow as pa
    >>> from dagflow.testing import OperatorTask
    >>> with OperatorTask(UniqueRows(keys=("shop",)), in_batches=True) as task:
    ...     task.give("input", pa.record_batch({"shop": ["a"], "sold": [1]}))
    ...     task.end_window()["output"]
    [{'shop': 'a', 'sold': 1}]
    """

    takes_changes: ClassVar[bool] = True
    scope: ClassVar[Any] = "all"
    partition_key_fixed: ClassVar[bool] = True
    selects_rows: ClassVar[bool] = True

    keys: tuple[str, ...] = attrs.field(kw_only=True)

    input = InputPort[T](partition_by="*")
    output = OutputPort[T]()
    changes = WindowState[list[tuple[Any, int]]](factory=list)
    rows = TableState()

    def state_size(self, changing: Collection[str]) -> StateSize:
        """Return what bounds its rows."""
        return StateSize("a number for each key", "the rows that stand")

    def partition_key(self, port: str) -> Any:
        """Return the keys."""
        return self.keys

    def state_properties(self) -> tuple[str, ...]:
        """Return the keys: rows are counted by them."""
        return ("keys",)

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, which tells signs."""
        self._context = context

    @input.batch
    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Take rows in."""
        self.changes.append((batch, self._context.sign))

    def end_window(self) -> None:
        """Count the rows of each key, and pass the changes on."""
        self._count()
        for wanted, emit in ((-1, self.output.retract_batch), (1, self.output.emit_batch)):
            for batch, sign in self.changes:
                if sign == wanted:
                    emit(batch)

    def _count(self) -> None:
        if (net := self.input.net_changes(self.changes, self.keys)) is None:
            return
        counts = net.kept(self.rows.lookup(net.keys), COUNT) + net.counts
        counts = self._context.standing(counts, lambda at: net.rows.slice(at, 1).to_pylist()[0])
        if len(counts) and counts.max() > 1:
            (row,) = net.rows.slice(int(counts.argmax()), 1).to_pylist()
            raise RowsShareKeys(keys=self.keys, rows=int(counts.max()), row=repr(row)[:200])
        self.rows.keep(net, COUNT, counts)

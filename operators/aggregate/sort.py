"""Sort: all rows in an order, or the first of them. `ORDER BY` of SQL, with `LIMIT`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar, Generic, Literal, get_args

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OperatorContext, OutputPort, State, StateSize, StreamColumns, TableState, WindowState
from dagflow.config import integer_from, one_of
from operators.aggregate.fields import no_key
from operators.aggregate.kept_keys import record_key
from operators.aggregate.ranked_rows import PartialRanking, RankedRows, Ranking
from operators.aggregate.result_changes import added_up, count_changes
from operators.names import a_column, one_or_more, order_problems, order_terms
from operators.problems import all_problems

T = TypeVar("T", default=Any)
Nulls = Literal["first", "last"]
_ALL = 1 << 62
"""More rows than there are."""


@attrs.define
class Sort(Operator, Generic[T]):
    """Put all rows in an order; with `limit`, keep the first of them. `ORDER BY … LIMIT …` of SQL.

    It belongs before a sink that keeps the current result, as one without a `mode` does: its files then have the rows in their
    order, one file after the other by name. A table of a database has no order, nor has a stream: other operators behind it get
    the same rows, as an outer query does in SQL. A sink that appends is refused, since later rows may belong before earlier ones.

    Args:
        by: the columns that decide, the first one first; `"-price"` descends. Rows that are equal in them are ordered by all
            columns, by name: so it does not matter in which order they came.
        limit: the number of rows. None: all.
        nulls: whether nulls come `last` or `first`, in both directions. NaN is larger than all numbers.
        combiner: whether the first rows are selected before the exchange too, so that few cross it.

    The rows reach one task, which has them in memory; without `limit` these are all that stand. They are kept over windows and
    launches: where rows may be taken back, all of them, else the first `limit`.

    >>> import pyarrow as pa
    >>> from dagflow.testing import run_operator
    >>> sales = pa.record_batch({"shop": ["b", "a", "c"], "price": [5, 7, 7]})
    >>> run_operator(Sort(["-price", "shop"], limit=2), {"input": [sales]})["output"]
    [{'shop': 'a', 'price': 7}, {'shop': 'c', 'price': 7}]
    """

    scope: ClassVar[Any] = "all"
    takes_changes: ClassVar[bool] = True
    selects_rows: ClassVar[bool] = True
    partition_key_fixed: ClassVar[bool] = True

    by: tuple[str, ...] = attrs.field(converter=one_or_more, validator=attrs.validators.deep_iterable(a_column))
    limit: int | None = attrs.field(default=None, validator=attrs.validators.optional(integer_from(1)))
    nulls: Nulls = attrs.field(default="last", kw_only=True, validator=one_of(get_args(Nulls)))
    combiner: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))

    input = InputPort[T]()
    output = OutputPort[T]()
    ranked = WindowState[RankedRows](factory=RankedRows)
    kept = TableState(record_key=record_key)

    @property
    def emits_changes(self) -> bool | None:  # type: ignore[override]
        """True: more input may come before what was emitted, or push it out."""
        return True

    def check(self) -> None:
        """Raise ValueError where `by` names no column, or one twice."""
        with all_problems(super().check) as problems:
            problems.extend(order_problems("by", self.by))

    @property
    def _ranking(self) -> Ranking:
        names, descends = order_terms(self.by)
        return Ranking(self.limit or _ALL, None, names, descending=descends, nulls_first=self.nulls == "first", setting="by")

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, which tells whether rows are taken back."""
        self._context = context

    def state_properties(self) -> tuple[str, ...]:
        """Return the properties that decide which rows are kept, and in which order."""
        return ("by", "limit", "nulls")

    def state_size(self, changing: Collection[str]) -> StateSize:
        """Return that the first rows are kept; where rows may be taken back, all."""
        return StateSize("all rows") if changing or self.limit is None else StateSize(f"{self.limit} rows", "")

    def partition_key(self, port: str) -> Any:
        """Return one key for all rows: an order of all needs all in one partition."""
        return no_key

    def needed_columns(self, port: str) -> dict[str, tuple[str, ...]]:
        """Return the columns of the order."""
        return {"by": order_terms(self.by)[0]} if port == "input" else {}

    def result_columns(self, port: str, arriving: Callable[[str], StreamColumns]) -> StreamColumns | None:
        """Return the columns that arrive."""
        if port != "output":
            return None
        return arriving("input").also_unique() if self.limit == 1 else arriving("input")

    def partial_aggregation(self, port: str) -> tuple[Operator, str] | None:
        """Return the selection of the first rows of one partition."""
        if not self.combiner or self.limit is None:
            return None
        return PartialRanking[Any](self._ranking, on_error=self.on_error), port

    def emitting_result(self) -> Operator | None:
        """Return the operator that emits the rows in their order at emission points."""
        return self.ordering()

    def ordering(self) -> Operator | None:
        """Return the same operator: of rows in an order, it changes none."""
        return SortResult(**{field.name: getattr(self, field.name) for field in attrs.fields(type(self)) if field.init})

    @property
    def _keeps_all(self) -> bool:
        return self.limit is None or self.input.is_changing

    @input.batch
    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows in."""
        rows = self._ranking.table(batch, self._context.sign, self.input)
        self.ranked.add(rows, self._ranking, keeps_all=self._keeps_all)

    def end_window(self) -> None:
        """Emit what has changed: rows that are no longer among the first, then those that are now, in their order."""
        self._change(self.output)

    def _change(self, output: OutputPort[Any]) -> None:
        self.ranked.emit_change(self.kept, self._ranking, self.input, output, self._context, keeps_all=self._keeps_all)


@attrs.define
class SortResult(Sort[T], Generic[T]):
    """A `Sort` before a sink that writes its result whole: at emission points it emits all rows in their order.

    The planner puts it in the place of a `Sort`, since the rows that stand have no order elsewhere. A batch without rows where
    none is left.
    """

    waits_for_emission: ClassVar[bool] = True

    output = OutputPort[T](empty_batches=True)
    uncounted = State[list[int]](factory=lambda: [0, 0], merge=added_up)

    @property
    def emits_changes(self) -> bool | None:  # type: ignore[override]
        """False: the rows of a result replace those of the one before."""
        return False

    def end_window(self) -> None:
        """Emit all rows, at an emission point."""
        counted, changes = [0, 0], OutputPort[Any]()

        def count(at: int, batch: pa.RecordBatch) -> None:
            counted[at] += batch.num_rows

        changes.emit_batch, changes.retract_batch = (lambda batch: count(0, batch)), (lambda batch: count(1, batch))
        self._change(changes)
        self.uncounted = count_changes(self._context, self.uncounted, *counted)
        if not self._context.emits:
            self._context.hold(sum(counted))
        else:
            RankedRows.emit_standing(self.kept, self._ranking, self.output)

"""TopN: the records with the largest values, of each key or of all."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, ClassVar, Generic, cast, get_args

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OperatorContext, OutputPort, StateSize, StreamColumns, TableState, WindowState
from dagflow.config import integer_from, one_of
from operators.aggregate.fields import (
    VALUE,
    ResultScope,
    a_field,
    a_key,
    check_keys,
    check_objects,
    check_values,
    getter,
    names_of,
    needed_of,
    no_key,
    one_nan,
)
from operators.aggregate.kept_keys import record_key
from operators.aggregate.ranked_rows import PartialRanking, RankedRows, Ranking
from operators.aggregate.window_groups import MAX_PARTIAL_GROUPS
from operators.conditions import no_function
from operators.names import a_column, one_or_more, order_problems, order_terms
from operators.problems import all_problems
from operators.transform.content import column_contents, contents

T = TypeVar("T", default=Any)

MAX_WAITING_ROWS = 50_000
MAX_WAITING_BYTES = 64 << 20
"""The most rows of batches that wait, or bytes, unless more are on top, before all but the top rows are dropped."""
MAX_PARTIAL_BYTES = 256 << 20
"""The most bytes of top rows that a partial aggregation keeps. When there are more, it emits them."""


Entry = tuple[Any, bytes, Any]
"""A value, the content of its record, the record."""


@attrs.define
class PartialTopN(Operator, Generic[T]):
    """The partial aggregation of a `TopN`: the top records of one partition."""

    selects_rows: ClassVar[bool] = True

    n: int = attrs.field(validator=integer_from(1))
    of: Callable[[T], Any] | str = attrs.field(default="value", validator=a_field)
    by: Callable[[T], object] | str | tuple[str, ...] | None = attrs.field(default=None, kw_only=True, validator=a_key)
    smallest: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))

    input = InputPort[T]()
    output = OutputPort[T]()
    groups = WindowState[dict[Any, list[Entry]]](factory=dict)
    batches = WindowState[list[Any]](factory=list)
    waiting = WindowState((0, 0))
    top_size = WindowState((0, 0))

    @input.stream
    def add_all(self, records: Iterator[T]) -> None:
        """Take records in."""
        n, smallest, groups = self.n, self.smallest, self.groups
        key_of, value_of = getter(self.by), getter(self.of)
        for record in records:
            key, value = key_of(record), value_of(record)
            if value is None or value != value:
                continue
            entries = groups.setdefault(one_nan(key), [])
            if len(entries) >= n:
                worst = entries[n - 1][0]  # the first n are in order: they were the top when they were last sorted
                if (value > worst) if smallest else (value < worst):
                    continue
            entries.append((value, b"\0".join(contents(record)), record))
            if len(entries) == n or len(entries) > 2 * n + 8:
                self._cut(entries)
        if len(groups) > MAX_PARTIAL_GROUPS:
            self._bound()

    def _bound(self) -> None:
        """Emit the top records, and forget them: there are more than a partial aggregation keeps."""
        self._send()
        self.groups, self.batches, self.waiting, self.top_size = {}, [], (0, 0), (0, 0)

    def _cut(self, entries: list[Entry]) -> None:
        entries.sort(key=lambda entry: entry[1])  # so that it does not matter in which order equal values came
        entries.sort(key=lambda entry: entry[0], reverse=not self.smallest)
        del entries[self.n :]

    @input.batch(when=no_function("by", "of"))
    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Take a batch in."""
        check_keys(batch, self.by)
        check_values(batch.schema, self.of, "sort")
        check_objects(batch, tuple(batch.schema.names))
        self.batches.append(batch)
        rows, size = self.waiting = self.waiting[0] + batch.num_rows, self.waiting[1] + batch.nbytes
        if rows > max(MAX_WAITING_ROWS, self.top_size[0]) or size > max(MAX_WAITING_BYTES, self.top_size[1]):
            top = self._top()
            self.batches, self.waiting, self.top_size = [top], (0, 0), (top.num_rows, top.nbytes)
            if top.num_rows > MAX_PARTIAL_GROUPS or top.nbytes > MAX_PARTIAL_BYTES:
                self._bound()

    def _top(self) -> pa.RecordBatch:
        """Return the top rows of the batches that wait, those of each key together."""
        (of,) = names_of(self.of)
        rows = pa.concat_batches(self.batches)
        values = rows.column(of)
        rows = rows.filter(pc.equal(values, values))  # neither null nor NaN
        codes = np.zeros(rows.num_rows, np.int64)
        for name in names_of(self.by):
            column = rows.column(name)
            if pa.types.is_floating(column.type):
                column = pc.add(column.cast(pa.float64()), 0.0)  # -0.0 becomes 0.0, which it equals
            column = pc.dictionary_encode(column, null_encoding="encode")
            pairs = pa.array(codes * (len(column.dictionary) + 1) + column.indices.to_numpy())
            codes = pc.dictionary_encode(pairs).indices.to_numpy().astype(np.int64)
        ties = map(b"\0".join, zip(*column_contents(rows), strict=True))
        table = pa.table({"key": codes, "value": rows.column(of), "tie": pa.array(ties, pa.binary())})
        direction = "ascending" if self.smallest else "descending"
        order = pc.sort_indices(table, [("key", "ascending"), ("value", direction), ("tie", "ascending")]).to_numpy()
        codes = codes[order]
        starts = np.searchsorted(codes, codes, side="left")
        return rows.take(pa.array(order[np.arange(len(order)) - starts < self.n]))

    def end_window(self) -> None:
        """Emit the top records, those of each key together, in the order of the first records of keys."""
        self._send()

    def _send(self) -> None:
        if self.batches:
            top = self._top()
            if top.num_rows:
                self.output.emit_batch(top)
        for entries in self.groups.values():
            self._cut(entries)
            self.output.emit_all([cast("T", entry[2]) for entry in entries])


def _ranks_rows(operator: TopN[Any]) -> bool:
    """Return True if rows are ranked by their columns, as those that are kept are; else records of a window, by their values."""
    return operator.scope == "all" or operator.order_by is not None


@attrs.define
class TopN(PartialTopN[T], Generic[T]):
    """The `n` records with the largest values, or those that are first in an order, of each key or of all.

    The largest comes first; records of one key come together. Records without a value (None or NaN) are left out. Of records with
    equal values, those are first whose columns are smaller, compared by name: so it does not matter in which order they came.
    With `order_by`, no record is left out: nulls come last, and NaN is larger than all numbers, as in `Sort`.

    Args:
        n: the number of records.
        of: the value: a function of the record, or the name of a column (`value` of a bare builtin).
        by: the key of a record: a function of the record, or names of columns. None: all records are one group.
        smallest: whether to emit the smallest values instead.
        order_by: columns that say the order in the place of `of`, the most important one first; `"-price"` descends.
            None: `of` says it.
        scope: the input that is compared. `all`: all input so far. What is on top is kept over windows and launches: a record
            that leaves the top is taken back. Records need columns. `window`: a window, however the input is cut; of any records,
            unless there is an `order_by`.
        combiner: whether the top records are selected before the exchange too, so that few cross it.

    Where records may be taken back, all of them are kept, else those on top.

    >>> from dagflow.testing import run_operator
    >>> run_operator(TopN(2), {"input": [3, 9, 4, 9]})["output"]
    [9, 9]
    >>> run_operator(TopN(1, len, by=lambda word: word[0], smallest=True), {"input": ["apple", "axe", "bee"]})["output"]
    ['axe', 'bee']
    >>> import pyarrow as pa
    >>> sales = pa.record_batch({"shop": ["a", "a", "b"], "price": [5, 7, 7], "day": [1, 1, 2]})
    >>> run_operator(TopN(1, by="shop", order_by=["day", "-price"]), {"input": [sales]})["output"]
    [{'shop': 'a', 'price': 7, 'day': 1}, {'shop': 'b', 'price': 7, 'day': 2}]
    """

    partition_key_fixed: ClassVar[bool] = True

    order_by: tuple[str, ...] | None = attrs.field(
        default=None,
        kw_only=True,
        converter=attrs.converters.optional(one_or_more),
        validator=attrs.validators.optional(attrs.validators.deep_iterable(a_column)),  # type: ignore[arg-type]  # typed for None
    )
    combiner: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))
    scope: ResultScope = attrs.field(default="all", kw_only=True, validator=one_of(get_args(ResultScope)))  # type: ignore[misc]

    input = InputPort[T]()
    ranked = WindowState[RankedRows](factory=RankedRows)
    kept = TableState(record_key=record_key)

    def check(self) -> None:
        """Raise ValueError where `order_by` and `of` both say the order, or `order_by` names no column, or one twice."""
        with all_problems(super().check) as problems:
            if self.order_by is not None:
                problems.extend(order_problems("order_by", self.order_by))
                if self.of != VALUE or self.smallest:
                    problems.append("order_by says the order: leave out of and smallest")

    @property
    def takes_changes(self) -> bool:  # type: ignore[override]
        """True unless a window has a part of the input."""
        return self.scope == "all"

    @property
    def emits_changes(self) -> bool | None:  # type: ignore[override]
        """True where more input changes results."""
        return self.scope == "all"

    def keeps_state(self, name: str) -> bool:
        """Return whether records are kept over windows."""
        return self.scope == "all"

    def state_properties(self) -> tuple[str, ...]:
        """Return the properties that decide which records are on top."""
        return ("scope", "n", "of", "by", "smallest", "order_by") if self.scope == "all" else ("scope",)

    def state_size(self, changing: Collection[str]) -> StateSize:
        """Return that the rows on top are kept; where rows may be taken back, all."""
        if changing:
            return StateSize("all rows")
        return (
            StateSize(f"{self.n} rows", "") if self.by is None else StateSize(f"{self.n} rows for each key", "the different keys")
        )

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, which tells whether rows are taken back."""
        self._context = context

    @input.stream(when=lambda operator: not _ranks_rows(operator))
    def add_all(self, records: Iterator[T]) -> None:
        """Take the records of a window in."""
        super().add_all(records)

    @input.batch(when=lambda operator: _ranks_rows(operator) or no_function("by", "of")(operator))
    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Take a batch in."""
        if not _ranks_rows(self):
            super().add_batch(batch)
            return
        rows = self._ranking.table(batch, self._context.sign, self.input)
        self.ranked.add_bounded(rows, self._ranking, self.input, keeps_all=self.input.is_changing)

    @property
    def _ranking(self) -> Ranking:
        if self.order_by:
            names, descends = order_terms(self.order_by)
            return Ranking(self.n, self.by, names, descending=descends, nulls_first=False, setting="order_by")
        return Ranking(self.n, self.by, self.of, descending=not self.smallest, needs_value=True)

    def _bound(self) -> None:
        """Keep all records: this is the last step."""

    def partition_key(self, port: str) -> Any:
        """Return the key: all records of a group reach one partition."""
        return no_key if self.by is None else self.by

    def result_columns(self, port: str, arriving: Callable[[str], StreamColumns]) -> StreamColumns | None:
        """Return the columns that arrive; those of the key identify the one row on top."""
        if port != "output":
            return None
        is_one = self.n == 1 and self.scope == "all" and not callable(self.by)
        return arriving("input").also_unique(*names_of(self.by)) if is_one else arriving("input")

    def needed_columns(self, port: str) -> dict[str, tuple[str, ...]]:
        """Return the columns of the order."""
        return needed_of(port, order_by=order_terms(self.order_by)[0]) if self.order_by else needed_of(port, of=self.of)

    def end_window(self) -> None:
        """Emit the records on top, those of each key together: of all keys of a window, or what has changed."""
        if not _ranks_rows(self):
            super().end_window()
        elif self.scope == "window":
            self.ranked.emit_best(self._ranking, self.output)
        else:
            self.ranked.emit_change(
                self.kept, self._ranking, self.input, self.output, self._context, keeps_all=self.input.is_changing
            )

    def partial_aggregation(self, port: str) -> tuple[Operator, str] | None:
        """Return the selection of the records of one partition."""
        if not self.combiner:
            return None
        if _ranks_rows(self):
            return PartialRanking[Any](self._ranking, on_error=self.on_error), port
        return PartialTopN[Any](self.n, self.of, by=self.by, smallest=self.smallest, on_error=self.on_error), port

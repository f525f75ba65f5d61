"""TopN: the records with the largest values, of each key or of all."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Generic, cast

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import TypeVar

from dagflow import InputPort, MapState, Operator, OutputPort, WindowState
from dagflow.config import integer_from
from operators.aggregate.aggregate import MOST_AHEAD
from operators.aggregate.fields import a_field, a_key, check_keys, check_values, getter, names_of, needed_of, no_key, one_nan
from operators.aggregate.groups.totals import as_plain, entry_of, from_plain, key_of
from operators.conditions import no_function
from operators.problems import all_problems
from operators.transform.content import column_contents, contents

T = TypeVar("T", default=Any)

MOST_ROWS = 50_000
MOST_BYTES = 64 << 20
"""So many rows of batches wait, or bytes of them, and as many as there are top ones, before all but the top ones go."""
BYTES_AHEAD = 256 << 20
"""The bytes of top rows that are kept where records come from. When there are more, they are sent on."""


Entry = tuple[Any, bytes, Any]
"""A value, the content of its record, the record."""


@attrs.define
class Ranked(Operator, Generic[T]):
    """The top records of one partition: `TopN` where the records come from."""

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

    def takes_records(self) -> bool:
        """Return False to be given batches only."""
        return True

    @input.stream(when=lambda operator: operator.takes_records())
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
        if len(groups) > MOST_AHEAD:
            self._bound()

    def _bound(self) -> None:
        """There are more groups, or rows on top, than are kept where records come from: what is known of them is sent on."""
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
        self.batches.append(batch)
        rows, size = self.waiting = self.waiting[0] + batch.num_rows, self.waiting[1] + batch.nbytes
        if rows > max(MOST_ROWS, self.top_size[0]) or size > max(MOST_BYTES, self.top_size[1]):
            top = self._top()
            self.batches, self.waiting, self.top_size = [top], (0, 0), (top.num_rows, top.nbytes)
            if top.num_rows > MOST_AHEAD or top.nbytes > BYTES_AHEAD:
                self._bound()

    def _top(self) -> pa.RecordBatch:
        """The top rows of the batches that wait, those of each key together."""
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
        """Emit the top records, those of each key together, the keys that came first first."""
        self._send()

    def _send(self) -> None:
        if self.batches:
            top = self._top()
            if top.num_rows:
                self.output.emit_batch(top)
        for entries in self.groups.values():
            self._cut(entries)
            self.output.emit_all([cast("T", entry[2]) for entry in entries])


@attrs.define
class TopN(Ranked[T], Generic[T]):
    """Emit the `n` records of each window with the largest values: of each key, or of all.

    They come in order, the largest first; those of each key together. Records with equal values are in the order of their
    contents, so that it does not matter how they are partitioned. Records without a value (None, or not a number) are left out.

    Args:
        n: how many.
        of: the value: a function of the record, or the name of a column (`value` of a bare builtin).
        by: what makes records a group: a function, or names of columns. Functions are called with records, names do for
            batches too. None: all records are one group.
        smallest: the smallest values instead.
        running: whether they are the top ones of all windows so far, of the groups that a window has records of. They are kept
            over windows and launches (a `MapState`); a launch that continues with other properties is refused. `of` and `by`
            must be names, and records of a class that has columns.
        combiner: whether the top records are sought where they come from too, so that few cross the exchange.

    >>> from dagflow.testing import run_operator
    >>> run_operator(TopN(2), {"input": [3, 9, 4, 9]})["output"]
    [9, 9]
    >>> run_operator(TopN(1, len, by=lambda word: word[0], smallest=True), {"input": ["apple", "axe", "bee"]})["output"]
    ['axe', 'bee']
    """

    partition_key_fixed: ClassVar[bool] = True

    combiner: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))
    running: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))

    totals = MapState[str | int, list[Any]](partition_by=key_of)

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            if self.running and (callable(self.of) or callable(self.by)):
                problems.append("running=True keeps rows: name columns in of and by, which a Map before it can make")

    def keeps_state(self, name: str) -> bool:
        """Totals only where they are asked for: else windows may overlap."""
        return self.running or name != "totals"

    def state_properties(self) -> tuple[str, ...]:
        """The top records of all windows so far depend on all properties."""
        return ("running", "n", "of", "by", "smallest") if self.running else ("running",)

    def takes_records(self) -> bool:
        """Running totals keep rows."""
        return not self.running

    def _bound(self) -> None:
        """All are kept here, where they come together."""

    def partition_key(self, port: str) -> Any:
        """All of a group come to one partition."""
        return no_key if self.by is None else self.by

    def needed_columns(self, port: str) -> dict[str, tuple[str, ...]]:
        """The column of the values."""
        return needed_of(port, of=self.of)

    def end_window(self) -> None:
        """Emit the top records, those of each key together, the keys that came first first."""
        if self.running and self.batches:
            self._add_totals()
        super().end_window()

    def _add_totals(self) -> None:
        """Put what was on top before beside the window's records, of the groups that these have; keep what is on top now."""
        top = self._top()
        before = [row for entry in self._by_entry(top) for row in self.totals.get(entry, ())]
        if before:
            self.batches = [top, pa.RecordBatch.from_pylist(list(map(from_plain, before)), schema=top.schema)]
            top = self._top()
        self.batches = [top]
        self.totals.update(self._by_entry(top))

    def _by_entry(self, batch: pa.RecordBatch) -> dict[str | int, list[Any]]:
        """The rows as plain data, by what their group is kept under."""
        names, rows = names_of(self.by), dict[str | int, list[Any]]()
        for row in batch.to_pylist():
            key = tuple(row[name] for name in names)
            rows.setdefault(entry_of(key if len(key) > 1 else key[0] if key else None), []).append(as_plain(row))
        return rows

    def partial_aggregation(self, port: str) -> tuple[Operator, str] | None:
        """The same where the records come from."""
        if not self.combiner:
            return None
        return Ranked[Any](self.n, self.of, by=self.by, smallest=self.smallest, on_error=self.on_error), port

"""Records on their way into windows of event time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
import pyarrow as pa

from dagflow import OperatorContext
from operators.aggregate.event_time.spans import Spans
from operators.aggregate.event_time.times import microseconds, times_of
from operators.aggregate.fields import check_columns, check_keys, getter, names_of, one_nan
from operators.aggregate.groups.columns import ColumnGroups
from operators.aggregate.groups.grouping import Grouping, Groups

_START = "__start__"


@attrs.frozen
class Intake:
    """Group records by window and key: `(start, key)`. Late ones are counted and go to `emit`.

    Attributes:
        time, by: the event time and the key of a record.
        grouping: the values that are kept of the records; without `by`.
    """

    time: Any
    by: Any
    grouping: Grouping
    spans: Spans
    context: OperatorContext

    def add_records(self, groups: Groups, records: Iterator[Any], emit: Callable[[Any], None]) -> None:
        """Take records in. Raises TypeError, ValueError for a record without an event time in a window."""
        time_of, key_of, value_of = getter(self.time), getter(self.by), getter(self.grouping.of)
        add, saw, start_of, is_late = self.grouping.add, self.context.saw, self.spans.start_of, self.spans.is_late
        counts_records = self.grouping.merge is None
        for record in records:
            at = microseconds(time_of(record))
            start = start_of(at)
            if is_late(start):
                self.context.count("late")
                emit(record)
                continue
            value = None if counts_records else value_of(record)
            add(groups, (start, one_nan(key_of(record))), value, 1 if counts_records else int(value is not None))
            saw(at)

    def add_batch(self, groups: Groups, batch: pa.RecordBatch, emit: Callable[[pa.RecordBatch], None]) -> None:
        """Take a batch in. Raises as for records, and ColumnNotThere, KeyColumnRefused, ValueColumnRefused."""
        if not batch.num_rows:
            return
        check_keys(batch, self.by)
        for name, what in (("time", self.time), ("of", self.grouping.of)):
            check_columns(batch.schema, name, what)
        times = times_of(batch.column(names_of(self.time)[0]))
        latest = int(times.max())
        for extreme in (int(times.min()), latest):
            self.spans.start_of(extreme)
        starts = times - times % self.spans.size
        is_late = self.spans.is_late(starts)
        late = 0 if is_late is False else int(is_late.sum())
        if late:
            emit(batch.filter(pa.array(is_late)))
            batch, starts = batch.filter(pa.array(~is_late)), starts[~is_late]
        for (start, *parts), (value, count) in self._groups_of(batch, starts).items():
            key = None if self.by is None else parts[0] if isinstance(self.by, str) else tuple(parts)
            self.grouping.add(groups, (start, one_nan(key)), value, count)
        self.context.saw(latest)
        if late:
            self.context.count("late", late)

    def _groups_of(self, batch: pa.RecordBatch, starts: Any) -> Groups:
        """Return the groups of the rows of a batch, by the starts of their windows and the columns of the key."""
        names = names_of(self.by)
        keys = [_START, *(f"__key{number}__" for number in range(len(names)))]
        values = () if self.grouping.merge is None else names_of(self.grouping.of)
        columns = [pa.array(np.ascontiguousarray(starts)), *(batch.column(name) for name in (*names, *values))]
        groups: Groups = {}
        grouping, folded = attrs.evolve(self.grouping, by=tuple(keys)), ColumnGroups()
        grouping.add_batch(groups, folded, pa.RecordBatch.from_arrays(columns, names=[*keys, *values]))
        grouping.fold(groups, folded)
        return groups

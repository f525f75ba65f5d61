"""The base of aggregates of records by key: forms of `GroupBy` for records, with one aggregate."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import compress
from typing import Any, ClassVar, Generic, get_args

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OperatorContext, OutputPort, StateSize, StreamColumns, TableState, WindowState
from dagflow.config import one_of
from operators.aggregate.accumulators import OF_ORDERED_VALUES, ROWS, Accumulator, Function
from operators.aggregate.agg import Aggregation
from operators.aggregate.errors import TotalNotHeld
from operators.aggregate.fields import (
    ResultScope,
    a_field,
    a_key,
    alone,
    check_columns,
    check_objects,
    getter,
    key_of_groups,
    key_type_problems,
    names_of,
    needed_of,
    one_nan,
)
from operators.aggregate.kept_groups import Report, add_groups, equal_rows, key_columns, without_overflows
from operators.aggregate.kept_keys import as_kept, record_key
from operators.aggregate.record_groups import CODE, VALUE, Partial, RecordGrouping, RecordGroups
from operators.aggregate.window_groups import MAX_PARTIAL_GROUPS, ROWS_OF_A_BATCH, Grouping, Groups
from operators.problems import all_problems

_KINDS = {int: pa.int64(), str: pa.string(), bytes: pa.binary()}
"""The types of keys of records as they are kept, in the order in which results come."""
T = TypeVar("T", default=Any)
K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)


@attrs.frozen
class KeyValue(Generic[K, V]):
    """The result for a group. `key` is None where all records are one group."""

    key: K
    value: V


@attrs.define
class _OneAggregate(Operator, Generic[T, K, V]):
    """The base of aggregates and of their partial aggregation: groups rows by columns, or records by any objects."""

    by: Callable[[T], K] | str | tuple[str, ...] | None = attrs.field(default=None, kw_only=True, validator=a_key)

    input = InputPort[T]()
    groups = WindowState[Groups](factory=Groups)
    records = WindowState[RecordGroups](factory=RecordGroups)

    @property
    def aggregate(self) -> tuple[Function, Callable[[T], V] | str | None]:
        """The aggregate, and the values that it is of; None where records are counted."""
        raise NotImplementedError

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, and make the groupings: by columns, and of records by their number."""
        self._context = context
        (function, values), name = self.aggregate, type(self).__name__
        self._by_columns = Grouping(name, names_of(self.by), {VALUE: Aggregation(function, next(iter(names_of(values)), None))})
        column = values if isinstance(values, str) else VALUE if values else None
        by_code = Grouping(name, (CODE,), {VALUE: Aggregation(function, column)})
        self._of_records = RecordGrouping(getter(alone(self.by)), None if values is None else getter(values), by_code)

    @property
    def sent(self) -> tuple[str, ...]:
        """The fields, or columns, of the key in partial results."""
        names = names_of(alone(self.by))
        return ("key",) if len(names) < 2 else tuple(f"key{number}" for number in range(len(names)))

    def has_functions(self) -> bool:
        """Return True if a property is a function of the record, which a batch handler cannot call."""
        return callable(self.by) or callable(self.aggregate[1])

    @property
    def has_rows(self) -> bool:
        """True if results are rows, with the columns of the key: where a tuple names them."""
        return isinstance(self.by, tuple)

    def emitted_type(self, port: str) -> Any:
        """Return that results are rows where a tuple names the columns of the key."""
        return Any if port == "output" and self.has_rows else None

    @input.stream
    def add_all(self, records: Iterator[T]) -> None:
        """Take records in."""
        self._of_records.add(self.records, records, self._context.sign, keeps_all=self.input.is_changing)
        self.bound_groups()

    @input.batch(when=lambda operator: not operator.has_functions())
    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Take a batch in."""
        sign, of, keeps_all = self._context.sign, self.aggregate[1], self.input.is_changing
        check_columns(batch.schema, "of", of)
        check_columns(batch.schema, "by", self.by)
        check_objects(batch, self.by, of)
        if self.by is None:
            column = batch.column(of) if isinstance(of, str) else None
            self._of_records.add_column(self.records, batch.num_rows, column, sign, keeps_all=keeps_all)
        else:
            self._by_columns.add(self.groups, batch, sign, keeps_all=keeps_all)
        self.bound_groups()

    def bound_groups(self) -> None:
        """Bound the groups that are kept: for partial aggregations."""


@attrs.define
class PartialAggregation(_OneAggregate[T, K, V], Generic[T, K, V]):
    """The partial aggregation of an `Aggregate`, before the exchange, so that few records cross it."""

    takes_changes: ClassVar[bool] = True

    function: Function = attrs.field(default="count", kw_only=True)
    of: Callable[[T], Any] | str | None = attrs.field(default=None, kw_only=True)

    output = OutputPort[Any]()

    @property
    def aggregate(self) -> tuple[Function, Callable[[T], V] | str | None]:
        """The aggregate, and the values that it is of."""
        return self.function, self.of

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return batches of groups by columns, records of others."""
        return frozenset({"batch" if handled == "batch" and self.by is not None else "record"})

    def bound_groups(self) -> None:
        """Emit the groups so far, if there are many."""
        if len(self.records.codes) + sum(table.num_rows for table in self.groups.tables) > MAX_PARTIAL_GROUPS:
            self.end_window()

    def end_window(self) -> None:
        """Emit the partial result of each group."""
        for batch in self._by_columns.drained(self.groups):
            self.output.emit_batch(batch.rename_columns([*self.sent, *batch.schema.names[len(self.sent) :]]))
        self.output.emit_all(self._of_records.partials(self.records))


@attrs.define
class Aggregate(_OneAggregate[T, K, V], Generic[T, K, V]):
    """One value for each group of records: the base of `Count`, `Sum`, `Min`, `Max` and `Average`.

    Each is a form of `GroupBy` with one aggregate, for records, whose results are records too. Rows of named columns are grouped
    as by `GroupBy`; keys that a function makes may be any objects that have a hash.

    Args:
        by: the key of a record: a function of the record, or the name of a column (a field of its class, `value` of a bare
            builtin), with which batches stay batches. A tuple of names: results are rows with these columns and `value`, as those
            of `GroupBy`, and no `KeyValue`. None: all records are one group.
        combiner: whether records are aggregated before the exchange too, so that few cross it. The result is the same.
        scope: the input that a result covers. `all`: all input so far. The groups are kept over windows and launches: a result
            that no longer holds is taken back, and the new one emitted. A launch that resumes with another `by` or `of` is
            refused (functions cannot be compared, and are not checked). `window`: a window, however the input is cut.
    """

    partition_key_fixed: ClassVar[bool] = True
    function: ClassVar[Function]

    combiner: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))
    scope: ResultScope = attrs.field(default="all", kw_only=True, validator=one_of(get_args(ResultScope)))  # type: ignore[misc]

    partials = InputPort[Any](optional=True)
    output = OutputPort[KeyValue[K, V]]()
    kept = TableState(record_key=record_key)

    @property
    def takes_changes(self) -> bool:  # type: ignore[override]
        """True unless a window has a part of the input."""
        return self.scope == "all"

    @property
    def emits_changes(self) -> bool | None:  # type: ignore[override]
        """True where more input changes results."""
        return self.scope == "all"

    @property
    def aggregate(self) -> tuple[Function, Callable[[T], V] | str | None]:
        """The aggregate, and the values that it is of; None where records are counted."""
        return self.function, None

    def keeps_state(self, name: str) -> bool:
        """Return whether groups are kept over windows."""
        return self.scope == "all"

    def state_properties(self) -> tuple[str, ...]:
        """Return the properties that give groups their meaning."""
        return ("scope", "by", "of") if self.scope == "all" else ("scope",)

    def state_size(self, changing: Collection[str]) -> StateSize:
        """Return that there is a row for each key; with all values where the largest of those that are left is looked for."""
        row = "one row" if self.by is None else "a row for each key"
        if changing and self.function in OF_ORDERED_VALUES:
            return StateSize(f"{row} with all different values")
        return StateSize(row, "" if self.by is None else "the different keys")

    def check(self) -> None:
        """Raise ValueError where `by` makes other keys than are declared."""
        with all_problems(super().check) as problems:
            problems.extend(key_type_problems(self, self.by))
            if len({*names_of(self.by)}) < len(names_of(self.by)):
                problems.append(f"by={self.by!r} names a column twice")
            if self.has_rows and VALUE in names_of(self.by):
                name = type(self).__name__.lower()
                advice = (
                    f"GroupBy({', '.join(map(repr, names_of(self.by)))}, {name}=agg.{self.function}(…)) gives it another name"
                )
                problems.append(f"by={self.by!r} names the column of the result, {VALUE!r}: {advice}")

    def partition_key(self, port: str) -> Any:
        """Return the key: all records of a group reach one partition."""
        return key_of_groups(self.by) if port == "input" else self.sent if len(self.sent) > 1 else "key"

    def result_columns(self, port: str, arriving: Callable[[str], StreamColumns]) -> StreamColumns | None:
        """Return that a key has one result. The columns are those of the key and `value`, or those of the port's type."""
        if port != "output":
            return None
        key, types = names_of(self.by) if self.has_rows else () if self.by is None else ("key",), None
        if self.has_rows:
            (function, of), before = self.aggregate, arriving("input").types or {}
            column = of if isinstance(of, str) else None
            types = {name: before.get(name) for name in key}
            types[VALUE] = Aggregation(function, column).result_type(before.get(column or "")) if of == column else None
        return StreamColumns(types, [key] if self.scope == "all" else ())

    def partial_aggregation(self, port: str) -> tuple[Operator, str] | None:
        """Return the partial aggregation."""
        if port != "input" or not self.combiner:
            return None
        function, values = self.aggregate
        return PartialAggregation(by=self.by, function=function, of=values, on_error=self.on_error), "partials"

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return batches for groups by columns."""
        return frozenset({"batch" if handled == "batch" and self.by is not None and port == "output" else "record"})

    @partials.stream
    def add_partials(self, partials: Iterator[Partial]) -> None:
        """Take partial results in."""
        self._of_records.add_partials(self.records, partials)

    @partials.batch(when=lambda operator: not operator.has_functions() and operator.by is not None)
    def add_batch_of_partials(self, batch: pa.RecordBatch) -> None:
        """Take groups in."""
        names = [*self._by_columns.keys, *batch.schema.names[len(self.sent) :]]
        self._by_columns.add_groups(self.groups, pa.Table.from_batches([batch.rename_columns(names)]))

    def end_window(self) -> None:
        """Emit the results of groups that have changed, in the order of their keys."""
        self._by_columns.gather(self.groups)
        if (rows := self._by_columns.merge(self.groups)) is not None:
            rows = rows.sort_by([(name, "ascending") for name in self.groups.keys])
            self._emit(rows, self.groups.accumulators, key_columns(rows, self.groups.keys), None)
            self.groups = Groups()
        keys, table = self._of_records.drained(self.records, as_kept if self.scope == "all" else one_nan)
        accumulators, self.records = self.records.groups.accumulators, RecordGroups()
        if table is None:
            return
        table = table.set_column(table.column_names.index(CODE), CODE, pa.array(np.arange(len(keys))))
        if self.scope == "window":
            self._emit(table, accumulators, None, keys)
            return
        by_kind: dict[Any, list[int]] = {}
        kept = list(map(as_kept, keys))
        for place, key in enumerate(kept):
            by_kind.setdefault(type(key), []).append(place)
        for kind in filter(by_kind.__contains__, _KINDS):
            places = sorted(by_kind[kind], key=kept.__getitem__)
            self._emit(table.take(places), accumulators, pa.array([kept[at] for at in places], _KINDS[kind]), keys)

    def _emit(self, table: pa.Table, accumulators: tuple[Accumulator, ...], kept: Any, keys: list[Any] | None) -> None:
        """Emit the results of groups that have changed: first those that no longer hold. `keys`: of records."""
        if self.scope == "window":
            table = table.filter(pc.greater(table.column(ROWS), 0))
            try:
                values = self.results(accumulators[0], table)
            except TotalNotHeld:
                table = without_overflows(table, accumulators, self._reports(table, keys))
                table = table.filter(pc.greater(table.column(ROWS), 0))
                values = self.results(accumulators[0], table)
            self._send(table, keys, values, retracts=False)
            return
        names = self._by_columns.keys if keys is None else ()
        change = add_groups(self.kept, table, kept, self._by_columns.aggregates, accumulators, names, context=self._context)
        try:
            old, new = (self.results(change.accumulators[0], each) for each in (change.before, change.after))
        except TotalNotHeld:
            change = change.without_overflows(self._reports(change.after, keys))
            old, new = (self.results(change.accumulators[0], each) for each in (change.before, change.after))
        if isinstance(old, list) or isinstance(new, list):  # values that no column holds
            old, new = (each if isinstance(each, list) else each.to_pylist() for each in (old, new))
            is_equal = np.array([one == new[at] or one != one for one, at in zip(old, change.places.tolist(), strict=True)], bool)
            no_longer, anew = change.masks(is_equal)
            old, new = list(compress(old, no_longer.to_pylist())), list(compress(new, anew.to_pylist()))
        else:
            no_longer, anew = change.masks(equal_rows([old], [new.take(pa.array(change.places))], len(old)))
            old, new = old.filter(no_longer), new.filter(anew)
        self._send(change.before.filter(no_longer), keys, old, retracts=True)
        self._send(change.after.filter(anew), keys, new, retracts=False)

    def _reports(self, table: pa.Table, keys: list[Any] | None) -> Report:
        """Return the function that reports groups of a table as bad records, which show their keys."""
        names = names_of(self.by)

        def report(at: int, error: Exception) -> None:
            if keys is None:
                (record,) = table.slice(at, 1).select(list(names)).to_pylist()
            else:
                key = keys[table.column(CODE)[at].as_py()]
                record = dict(zip(names, key if len(names) > 1 else (key,), strict=True))
            self._context.bad_record(error, record)

        return report

    def _send(self, table: pa.Table, keys: list[Any] | None, values: list[Any] | pa.Array, *, retracts: bool) -> None:
        """Emit results for the groups of a table, or take them back."""
        names = names_of(self.by)
        if keys is None and (self.has_rows or self.output.wants_batches) and not isinstance(values, list):
            columns = {name if self.has_rows else "key": table.column(name).combine_chunks() for name in names}
            batch = pa.record_batch({**columns, VALUE: values})
            emit_batch = self.output.retract_batch if retracts else self.output.emit_batch
            for start in range(0, batch.num_rows, ROWS_OF_A_BATCH):
                emit_batch(batch.slice(start, ROWS_OF_A_BATCH))
            return
        group_keys: Iterable[Any] = table.column(names[0] if keys is None else CODE).to_pylist()
        group_keys = group_keys if keys is None else map(keys.__getitem__, group_keys)
        emit: Callable[[Any], None] = self.output.retract if retracts else self.output.emit
        for key, value in zip(group_keys, values if isinstance(values, list) else values.to_pylist(), strict=True):
            if self.has_rows:
                emit({**dict(zip(names, key if len(names) > 1 else (key,), strict=True)), VALUE: value})
            else:
                emit(KeyValue(key, value))

    def results(self, accumulator: Accumulator, table: pa.Table) -> list[Any] | pa.Array:
        """Return the results for the groups of a table: as a column, or as a list where no column holds them.

        Raises TotalNotHeld where rows have the results.
        """
        try:
            return accumulator.results(table)
        except TotalNotHeld:
            if self.has_rows:
                raise
            return [total if count else None for count, total in accumulator.totals(table)]


@attrs.define
class AggregateOfValues(Aggregate[T, K, V], Generic[T, K, V]):
    """An aggregate of values of the records: of a function of the record, or of a column. None is not a value."""

    of: Callable[[T], V] | str = attrs.field(default="value", validator=a_field)

    @property
    def aggregate(self) -> tuple[Function, Callable[[T], V] | str | None]:
        """The aggregate, and the values that it is of."""
        return self.function, self.of

    def needed_columns(self, port: str) -> dict[str, tuple[str, ...]]:
        """Return the column of the values."""
        return needed_of(port, of=self.of)

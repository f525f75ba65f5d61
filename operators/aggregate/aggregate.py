"""The base of aggregates of records by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Generic, Literal, get_args

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OperatorContext, OutputPort, TableState, WindowState
from dagflow.config import one_of
from operators.aggregate.fields import ResultScope, a_field, a_key, has_classes, key_of_groups, key_type_problems, needed_of
from operators.aggregate.groups.columns import COUNT, KEY, VALUE, ColumnGroups
from operators.aggregate.groups.grouping import Grouping, Groups, Merge
from operators.aggregate.groups.running import COLUMNS, Total, add_columns, add_groups, all_totals, can_add_columns, record_key
from operators.conditions import no_function
from operators.problems import all_problems

T = TypeVar("T", default=Any)
K = TypeVar("K", default=Any)
V = TypeVar("V", default=Any)

MAX_PARTIAL_GROUPS = 100_000
"""The most groups that a partial aggregation keeps. When there are more, it emits them."""
ROWS_OF_A_BATCH = 1 << 15
OutputMode = Literal["update", "complete"]
"""The groups whose running totals a window emits: those that it has records of, or all."""
_LARGE = 1 << 63


@attrs.frozen
class KeyValue(Generic[K, V]):
    """The result for a group. `key` is None where all records are one group, a tuple for several columns."""

    key: K
    value: V


@attrs.frozen
class Partial(Generic[K, V]):
    """The partial result of a group in one partition, from `count` records or values.

    An integer that no column holds is `large`, in hexadecimal digits, and `value` is None.
    """

    key: K
    value: V | None
    count: int
    large: str | None = None

    @classmethod
    def of(cls, key: K, value: V | None, count: int) -> Partial[K, V]:
        """Return a partial result whose value fits into a column.

        >>> Partial.of("a", 5, 2), Partial.of("a", 2**63, 2).large
        (Partial(key='a', value=5, count=2, large=None), '0x8000000000000000')
        """
        if type(value) is int and not -_LARGE <= value < _LARGE:
            return cls(key, None, count, hex(value))
        return cls(key, value, count)


@attrs.define
class PartialAggregation(Operator, Generic[T, K, V]):
    """The partial aggregation of an `Aggregate`, before the exchange, so that few records cross it."""

    by: Callable[[T], K] | str | tuple[str, ...] | None = attrs.field(default=None, kw_only=True)
    of: Callable[[T], V] | str | None = attrs.field(default=None, kw_only=True)
    merge: Merge | None = attrs.field(default=None, kw_only=True)

    input = InputPort[T]()
    output = OutputPort[Partial[K, V]]()
    groups = WindowState[Groups](factory=dict)
    columns = WindowState[ColumnGroups](factory=ColumnGroups)

    def setup(self, context: object) -> None:
        """Make the grouping."""
        self._grouping = Grouping(self.by, self.of, self.merge)

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return batches too for groups by one column."""
        return frozenset({"record", "batch"} if handled == "batch" and type(self.by) is str else {"record"})

    @input.stream
    def add_all(self, records: Iterator[T]) -> None:
        """Take records in."""
        self._grouping.add_records(self.groups, records)
        self._bound()

    @input.batch(when=no_function("by", "of"))
    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Take a batch in."""
        if has_classes(batch, self.by, self.input):
            self.add_all(iter(self.input.records_of(batch)))
            return
        self._grouping.add_batch(self.groups, self.columns, batch)
        self._bound()

    def _bound(self) -> None:
        if len(self.groups) + len(self.columns) > MAX_PARTIAL_GROUPS:
            self.end_window()

    def end_window(self) -> None:
        """Emit the partial result of each group."""
        if self.output.wants_batches and not self.groups and (table := self.columns.as_one()) is not None:
            self.columns = ColumnGroups()
            for batch in table.to_batches(max_chunksize=ROWS_OF_A_BATCH):
                self.output.emit_batch(_partials(batch))
            return
        self._grouping.fold(self.groups, self.columns)
        self._grouping.settle(self.groups)
        self.output.emit_all([Partial.of(key, value, count) for key, (value, count) in self.groups.items()])
        self.groups = {}


@attrs.define
class Aggregate(Operator, Generic[T, K, V]):
    """One value for each group of records: the base of `Count`, `Sum`, `Min`, `Max` and `Average`.

    A subclass returns its `grouping`: the key, and a value with a `Merge` of two values into one, which pyarrow must know too.
    An operator by key whose values do not merge like that, a median say, derives from `Operator`; `Deduplicate` is an example.

    Args:
        by: the key of a record: a function of the record, or names of columns (fields of its class, `value` of a bare builtin),
            with which batches stay batches. None: all records are one group.
        combiner: whether records are aggregated before the exchange too, so that few cross it. The result is the same.
        scope: the input that a result covers. `all`: a launch takes its input as one window, and a later launch with more input
            is refused, unless `running`. `window`: a window, however the input is cut.
        running: whether a window's results are those of all windows so far. The groups are kept over windows and launches (a
            `TableState`), so windows run one after the other. A launch that resumes with another `running`, `by` or `of` is
            refused (functions cannot be compared, and are not checked).
        output_mode: the results of a window if `running`, as in Spark: `update` emits those of the groups that the window has
            records of, `complete` those of all groups so far, for a sink that replaces its rows.
    """

    partition_key_fixed: ClassVar[bool] = True

    by: Callable[[T], K] | str | tuple[str, ...] | None = attrs.field(default=None, kw_only=True, validator=a_key)
    combiner: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))
    scope: ResultScope = attrs.field(default="all", kw_only=True, validator=one_of(get_args(ResultScope)))  # type: ignore[misc]
    running: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))
    output_mode: OutputMode = attrs.field(default="update", kw_only=True, validator=one_of(get_args(OutputMode)))

    input = InputPort[T]()
    partials = InputPort[Partial[K, V]](optional=True, partition_by="key")
    output = OutputPort[KeyValue[K, V]]()
    groups = WindowState[Groups](factory=dict)
    columns = WindowState[ColumnGroups](factory=ColumnGroups)
    totals = TableState(COLUMNS, record_key=record_key)

    def grouping(self) -> Grouping:
        """Return how records are grouped, and the values that are kept of them."""
        raise NotImplementedError

    def result(self, value: Any, count: int) -> Any:
        """Return the result for a group: its value, or None without any."""
        return value

    def result_column(self) -> str | None:
        """Return `value` or `count` if `result` is one of them, otherwise None."""
        return VALUE if type(self).result is Aggregate.result else None

    def keeps_state(self, name: str) -> bool:
        """Return False for the totals unless `running`, so that windows may overlap."""
        return self.running or name != "totals"

    def check(self) -> None:
        """Raise ValueError where `by` makes other keys than are declared."""
        with all_problems(super().check) as problems:
            problems.extend(key_type_problems(self, self.by))
            problems.extend(output_mode_problems(self.output_mode, running=self.running))

    def state_properties(self) -> tuple[str, ...]:
        """Return the properties that give totals their meaning."""
        return ("running", "by", "of") if self.running else ("running",)

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, and make the grouping."""
        self._context = context
        self._grouping = self.grouping()

    def partition_key(self, port: str) -> Any:
        """Return the key: all records of a group reach one partition."""
        if port == "input":
            return key_of_groups(self.by)
        return super().partition_key(port)

    def partial_aggregation(self, port: str) -> tuple[Operator, str] | None:
        """Return the partial aggregation."""
        if port != "input" or not self.combiner:
            return None
        how = self.grouping()
        _, key, value, *_ = (*get_args(self.__dict__.get("__orig_class__")), Any, Any, Any)
        kind: Any = PartialAggregation
        partial: Operator = kind[Any, key, value if how.merge is not None else int](  # without values: None, of any type
            by=how.by, of=how.of, merge=how.merge, on_error=self.on_error
        )
        return partial, "partials"

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return batches too for groups by one column, where a column is the result."""
        is_column = type(self.by) is str and self.result_column() is not None and self.output_mode == "update"
        return frozenset({"record", "batch"} if handled == "batch" and is_column else {"record"})

    @input.stream
    def add_all(self, records: Iterator[T]) -> None:
        """Take records in."""
        self._grouping.add_records(self.groups, records)

    @input.batch(when=lambda operator: operator.grouping().is_by_names)
    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Take a batch in."""
        if has_classes(batch, self.by, self.input):
            self.add_all(iter(self.input.records_of(batch)))
            return
        self._grouping.add_batch(self.groups, self.columns, batch)

    @partials.stream
    def add_partials(self, partials: Iterator[Partial[K, V]]) -> None:
        """Take partial results in."""
        add, groups = self._grouping.add, self.groups
        for partial in partials:
            add(groups, partial.key, partial.value if partial.large is None else int(partial.large, 16), partial.count)

    @partials.batch
    def add_batch_of_partials(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch."""
        if has_classes(batch, "key", self.partials):
            self.add_partials(iter(self.partials.records_of(batch)))
            return
        self._grouping.add_partials(self.groups, self.columns, batch)

    def end_window(self) -> None:
        """Emit the result of each group, in the order of their first records."""
        table = None if self.groups else self.columns.as_one()
        if table is not None and self.output.wants_batches and not self.running:
            for batch in table.select([KEY, str(self.result_column())]).to_batches(max_chunksize=ROWS_OF_A_BATCH):
                self.output.emit_batch(batch.rename_columns(["key", "value"]))
            return
        if table is not None and self.running and self.output_mode == "update" and can_add_columns(table, self._grouping):
            self._emit_columns(table)
            return
        self._grouping.fold(self.groups, self.columns)
        self._grouping.settle(self.groups)
        if self.running:
            add_groups(self.totals, self.groups, self._grouping, whole=self.output_mode == "complete")
        is_complete = self.output_mode == "complete"
        self.output.emit_all(self._results(all_totals(self.totals) if is_complete else _totals_of(self.groups)))

    def _emit_columns(self, table: pa.Table) -> None:
        """Add groups to the totals, and emit their results, as batches where these are wanted."""
        for part in add_columns(self.totals, table, self._grouping):
            if isinstance(part, dict):
                self.output.emit_all(self._results(_totals_of(part)))
                continue
            keys, values, counts = part
            if self.output.wants_batches:
                results = counts if self.result_column() == COUNT else values
                batch = pa.RecordBatch.from_arrays([keys, results], names=["key", "value"])
                for at in range(0, len(keys), ROWS_OF_A_BATCH):
                    self.output.emit_batch(batch.slice(at, ROWS_OF_A_BATCH))
            else:
                columns = (keys, pa.nulls(len(keys)) if values is None else values, counts)
                self.output.emit_all(self._results(zip(*(each.to_pylist() for each in columns), strict=True)))

    def _results(self, totals: Iterable[Total]) -> Iterator[KeyValue[K, V]]:
        for key, value, count in totals:
            try:
                yield KeyValue(key, self.result(value, count))
            except Exception as error:
                self._context.blame(error, Partial(key, value, count), self._context.place)
                raise


def _totals_of(groups: Groups) -> Iterator[Total]:
    yield from ((key, value, count) for key, (value, count) in groups.items())


@attrs.define
class AggregateOfValues(Aggregate[T, K, V], Generic[T, K, V]):
    """An aggregate of values of the records: of a function of the record, or of a column. None is not a value."""

    of: Callable[[T], V] | str = attrs.field(default="value", validator=a_field)

    def needed_columns(self, port: str) -> dict[str, tuple[str, ...]]:
        """Return the column of the values."""
        return needed_of(port, of=self.of)


def output_mode_problems(output_mode: OutputMode, *, running: bool) -> Iterator[str]:
    """Yield the problem of results of all groups where they are not kept."""
    if output_mode == "complete" and not running:
        yield "output_mode='complete' needs running=True: without it, a window knows its own groups only"


def _partials(groups: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch of the `Partial`s of groups."""
    count = groups.num_rows
    value = groups.column(VALUE) if VALUE in groups.schema.names else pa.nulls(count, pa.int64())
    columns = [groups.column(KEY), value, groups.column(COUNT), pa.nulls(count, pa.string())]
    return pa.RecordBatch.from_arrays(columns, names=["key", "value", "count", "large"])

"""GroupBy: any number of aggregates of groups of rows, which follow changes."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, get_args

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from dagflow import InputPort, Operator, OperatorContext, OutputPort, State, StateSize, StreamColumns, TableState, WindowState
from dagflow.arrow_types.buffers import order_of
from dagflow.config import one_of
from operators.aggregate.accumulators import OF_ALL_VALUES, OF_ORDERED_VALUES, ROWS, Accumulator
from operators.aggregate.agg import Aggregation
from operators.aggregate.errors import TotalNotHeld
from operators.aggregate.event_time.time_window import END, START, TimeWindow
from operators.aggregate.fields import ResultScope, no_key
from operators.aggregate.kept_groups import (
    Change,
    Report,
    add_groups,
    as_groups,
    equal_rows,
    key_columns,
    without_overflows,
)
from operators.aggregate.result_changes import added_up, count_changes
from operators.aggregate.window_groups import MAX_PARTIAL_GROUPS, ROWS_OF_A_BATCH, Grouping, Groups
from operators.names import a_column, constructor_arguments, one_or_more
from operators.portions import MAX_BYTES
from operators.problems import all_problems


def _aggregations(_: object, attribute: attrs.Attribute[Any], value: Mapping[str, Any]) -> None:
    for name, each in value.items():
        if not isinstance(each, Aggregation):
            raise TypeError(f"{name}={each!r} is not an aggregate: write {name}=agg.count(), or agg.sum('x')")


@attrs.define
class _Rows(Operator):
    """The base of `GroupBy` and its partial aggregation: makes tables of groups of rows."""

    keys: tuple[str, ...] = attrs.field(default=(), converter=one_or_more, validator=attrs.validators.deep_iterable(a_column))
    aggregates: Mapping[str, Aggregation] = attrs.field(factory=dict, validator=_aggregations)
    window: TimeWindow | None = attrs.field(
        default=None, kw_only=True, validator=attrs.validators.optional(attrs.validators.instance_of(TimeWindow))
    )

    input = InputPort[Any]()
    output = OutputPort[Any]()
    groups = WindowState[Groups](factory=Groups)

    takes_changes: ClassVar[bool] = True

    @property
    def columns_of_key(self) -> tuple[str, ...]:
        """The columns of the key that rows have when they come: all but those of the time window."""
        return self.keys if self.window is None else tuple(name for name in self.keys if name != START)

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, which tells whether rows are taken back."""
        self._context = context
        self._grouping = Grouping(type(self).__name__, self.keys, self.aggregates)

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return batches: rows have columns."""
        return frozenset({"batch"} if port == "output" else {"record"})

    def source_columns(self, port: str, columns: Sequence[str], made: Sequence[str]) -> dict[str, str]:
        """Return the columns of the key: a row was made of all rows with its values in them."""
        keys = self.keys or (() if self.aggregates else columns)
        return {name: name for name in keys if name in made}

    def with_key(self, port: str, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch] | None:
        """Return rows with the starts of their time windows; None where they have none, or have them."""
        return self.window.assigned(rows) if self.window is not None and port == "input" else None

    @input.batch
    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows in."""
        for rows in self.with_key("input", batch) or (batch,):
            self._grouping.add(self.groups, rows, self._context.sign, keeps_all=self.input.is_changing)


@attrs.define
class PartialGroupBy(_Rows):
    """The partial aggregation of a `GroupBy`, before the exchange, so that few rows cross it."""

    @_Rows.input.batch
    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows in, and emit groups where there are many."""
        super().add(batch)
        if len(self.groups.tables) == 1 and self.groups.tables[0].num_rows > MAX_PARTIAL_GROUPS:
            self.end_window()

    def end_window(self) -> None:
        """Emit the groups, with what is kept of them."""
        for batch in self._grouping.drained(self.groups):
            self.output.emit_batch(batch)


@attrs.define(init=False)
class GroupBy(_Rows):
    """One row for each group of rows: the columns of the key, and any number of aggregates. `GROUP BY` of SQL.

    Args:
        keys: the columns that are the key. Without any, all rows are one group. Nulls are one key, and so are all NaN. One may
            be a time window, `window("time", "10m")`, which is the columns `window_start` and `window_end`.
        aggregates: the other columns, by name: `agg.count()`, `agg.sum("price")`, `agg.mean`, `agg.min`, `agg.max`.
        scope: the input that a row covers. `all`: all input so far. The groups are kept over windows and launches: a row that no
            longer holds is taken back, and the new one emitted. `window`: a window, however the input is cut; rows that are taken
            back are refused, as they may be in others.
        combiner: whether rows are aggregated before the exchange too, so that few cross it. The result is the same.
        window: the time window among the keys, which are names then: `keys=("window_start", "shop")`.

    Rows come in the order of their keys, those that are taken back first. No row is ever late for a time window: its result
    changes with the rows that come.

    >>> from dagflow.testing import run_operator
    >>> from operators import agg
    >>> import pyarrow as pa
    >>> sales = pa.record_batch({"shop": ["b", "a", "b"], "price": [5, 7, 6]})
    >>> run_operator(GroupBy("shop", sold=agg.count(), revenue=agg.sum("price")), {"input": [sales]})["output"]
    [{'shop': 'a', 'sold': 1, 'revenue': 7}, {'shop': 'b', 'sold': 2, 'revenue': 11}]
    """

    partition_key_fixed: ClassVar[bool] = True

    scope: ResultScope = attrs.field(default="all", kw_only=True, validator=one_of(get_args(ResultScope)))  # type: ignore[misc]
    combiner: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))

    partials = InputPort[Any](optional=True)
    kept = TableState(record_key=no_key)

    @property
    def takes_changes(self) -> bool:  # type: ignore[override]
        """True unless a window has a part of the input."""
        return self.scope == "all"

    @property
    def emits_changes(self) -> bool | None:  # type: ignore[override]
        """True where more input changes results."""
        return self.scope == "all"

    def keeps_state(self, name: str) -> bool:
        """Return whether groups are kept over windows."""
        return self.scope == "all"

    def state_properties(self) -> tuple[str, ...]:
        """Return the properties that give groups their meaning."""
        if self.scope == "window":
            return ("scope",)
        return ("scope", "keys", "aggregates", *(() if self.window is None else ("window",)))

    def state_size(self, changing: Collection[str]) -> StateSize:
        """Return that there is a row for each group; with the values of those aggregates that need all. Time has no end."""
        of_all = OF_ORDERED_VALUES if changing else OF_ALL_VALUES
        every = [name for name, each in self.aggregates.items() if each.function in of_all]
        row = "a row for each group" if self.keys else "one row"
        if every:
            return StateSize(f"{row} with all different values of {', '.join(every)}")
        if self.window is not None:
            return StateSize(row)
        return StateSize(row, f"the different values of {', '.join(self.keys)}" if self.keys else "")

    def __init__(self, *keys: str | TimeWindow, **properties: Any) -> None:
        given = ("keys", keys), ("aggregates", properties)
        own = constructor_arguments(GroupBy, *given, is_column=lambda value: isinstance(value, Aggregation))
        if isinstance(own["keys"], tuple | list):
            windows = [each for each in own["keys"] if isinstance(each, TimeWindow)]
            own["keys"] = [START if isinstance(each, TimeWindow) else each for each in own["keys"]]
            if len(windows) + (own.get("window") is not None) > 1:
                raise TypeError(f"{type(self).__name__} takes one time window: give each an operator of its own")
            if windows:
                own["window"] = windows[0]
        self.__attrs_init__(**own)  # made by attrs

    def check(self) -> None:
        """Raise ValueError where names contradict each other."""
        with all_problems(super().check) as problems:
            names = [*self.keys, *self.aggregates, *([] if self.window is None else [END])]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                problems.append(f"the column {twice[0]!r} would be there twice: give the aggregate, or the key, another name")
            problems += [f"{name!r} has a '#', which marks what is kept of groups: rename it" for name in names if "#" in name]
            if self.window is not None:
                if START not in self.keys:
                    problems.append(f"keys={self.keys!r} lacks {START!r}, the start of {self.window}")
                read = {name for each in self.aggregates.values() for name in each.columns} & {START, END}
                problems += [f"aggregates read {name!r}, which the time window makes: rename it" for name in sorted(read)]
            if not names and (lack := self.lacks()):
                problems.append(lack)

    def lacks(self) -> str:
        """Return the problem of having neither keys nor aggregates."""
        return "it has neither keys nor aggregates: GroupBy('shop', sold=agg.count())"

    def partition_key(self, port: str) -> Any:
        """Return the key, without the time window, which rows get later: all rows of a group reach one partition."""
        return self.columns_of_key or no_key

    def needed_columns(self, port: str) -> dict[str, tuple[str, ...]]:
        """Return the columns that are aggregated, by the name of the aggregate."""
        columns = {name: each.columns for name, each in self.aggregates.items()} if port == "input" else {}
        if port == "input" and self.window is not None:
            columns["window"] = (self.window.column,)
        return {name: some for name, some in columns.items() if some}

    def emitting_result(self) -> Operator | None:
        """Return the operator that emits all groups at emission points."""
        if self.scope == "window" or not (self.keys or self.aggregates):
            return None
        return GroupByResult(**{field.name: getattr(self, field.name) for field in attrs.fields(type(self)) if field.init})

    def columns_read(self, port: str, wanted: Callable[[str], frozenset[str] | None]) -> frozenset[str] | None:
        """Return the keys and the columns of aggregates; without any, whole rows are compared."""
        if not (self.keys or self.aggregates):
            return None
        return frozenset(self.keys).union(*self.needed_columns(port).values())

    def result_columns(self, port: str, arriving: Callable[[str], StreamColumns]) -> StreamColumns | None:
        """Return the columns of the key, which identify a row, and the aggregates."""
        if port != "output":
            return None
        before = arriving("input").types or {}
        types: dict[str, str | None] = {}
        for name in self.keys:
            types[name] = before.get(name)
            if self.window is not None and name == START:
                types |= dict.fromkeys((START, END), self.window.result_type(before.get(self.window.column)))
        types |= {name: each.result_type(before.get(each.column or "")) for name, each in self.aggregates.items()}
        unique = [self.keys] if self.window is None else [self.keys, (*self.columns_of_key, END)]
        return StreamColumns(types, unique if self.scope == "all" else ())

    def partial_aggregation(self, port: str) -> tuple[Operator, str] | None:
        """Return the partial aggregation."""
        if port != "input" or not self.combiner:
            return None
        return (
            PartialGroupBy(keys=self.keys, aggregates=self.aggregates, window=self.window, on_error=self.on_error),
            "partials",
        )

    @partials.batch
    def add_partials(self, batch: pa.RecordBatch) -> None:
        """Take groups in."""
        self._grouping.add_groups(self.groups, pa.Table.from_batches([batch]))

    def end_window(self) -> None:
        """Emit the rows of groups that have changed, in the order of their keys."""
        self._grouping.gather(self.groups)
        if (table := self._grouping.merge(self.groups)) is None:
            return
        keys = self.groups.keys
        if self.scope == "all":
            old, new = self._differences(self._change(table, is_last=not self.kept.is_saved))
            _emit(old, keys, self.output.retract_batch)
        else:
            new = self._results_held(table.filter(pc.greater(table.column(ROWS), 0)), self.groups.accumulators, list(keys))
        _emit(new, keys, self.output.emit_batch)
        self.groups = Groups()

    def _change(self, table: pa.Table, *, with_keys: bool = False, is_last: bool = False) -> Change:
        """Add the groups of the window to those that are kept. See `add_groups`."""
        names = self.keys or sorted(self.groups.keys)  # in whatever order they come, all columns are the same key
        keys, accumulators = key_columns(table, names), self.groups.accumulators
        if not (self.keys or self.aggregates) and isinstance(keys, pa.RecordBatch):  # whole rows
            keys = self.input.keys_of(keys)
        elif self.window is not None and isinstance(keys, pa.RecordBatch):  # the partition is that of the other columns
            sent = self.columns_of_key
            keys = self.input.keys_of(keys, names, by=sent) if sent else self.input.keys_of(keys, names).column("key")
        return add_groups(
            self.kept,
            table,
            keys,
            self.aggregates,
            accumulators,
            names,
            context=self._context,
            with_keys=with_keys,
            is_last=is_last,
        )

    def _results(self, table: pa.Table, accumulators: Iterable[Accumulator], keys: Iterable[str] | None = None) -> pa.Table:
        """Return the rows of groups. `keys`: the columns of their keys, if they are not of the window of the run."""
        columns: dict[str, Any] = {}
        for name in self.groups.keys if keys is None else keys:
            columns[name] = table.column(name)
            if self.window is not None and name == START:
                columns[END] = self.window.ends(columns[name])
        return pa.table({**columns, **{each.name: each.results(table) for each in accumulators}})

    def _reports(self, table: pa.Table, keys: Sequence[str]) -> Report:
        """Return the function that reports groups of a table as bad records, which show their keys."""
        return lambda at, error: self._context.bad_record(error, table.slice(at, 1).select(list(keys)).to_pylist()[0])

    def _results_held(
        self, table: pa.Table, accumulators: Sequence[Accumulator], keys: Sequence[str], *, report: bool = True
    ) -> pa.Table:
        """Return the rows of groups without those whose results their columns cannot hold. `report`: as bad records."""
        try:
            return self._results(table, accumulators, keys)
        except TotalNotHeld:
            table = without_overflows(table, accumulators, self._reports(table, keys) if report else None)
            return self._results(table.filter(pc.greater(table.column(ROWS), 0)), accumulators, keys)

    def _differences(self, change: Change, *, report: bool = True) -> tuple[pa.Table, pa.Table]:
        """Return the results that no longer hold, and those that are new. `report`: those that no column holds."""
        try:
            old, new = (self._results(each, change.accumulators) for each in (change.before, change.after))
        except TotalNotHeld:
            change = change.without_overflows(self._reports(change.after, list(self.groups.keys)) if report else None)
            old, new = (self._results(each, change.accumulators) for each in (change.before, change.after))
        again = new.take(pa.array(change.places))
        no_longer, anew = change.masks(equal_rows(old.columns, again.columns, old.num_rows))
        return old.filter(no_longer), new.filter(anew)


@attrs.define(init=False)
class GroupByResult(GroupBy):
    """A `GroupBy` before a sink that writes its result whole: at emission points it emits the rows of all groups.

    The planner puts it in the place of a `GroupBy`, so that the rows need not be kept once more. Rows come in the order of their
    keys; if there are very many, some after others. A batch without rows where no group is left.
    """

    waits_for_emission: ClassVar[bool] = True

    output = OutputPort[Any](empty_batches=True)
    uncounted = State[list[int]](factory=lambda: [0, 0], merge=added_up)

    @property
    def emits_changes(self) -> bool | None:  # type: ignore[override]
        """False: the rows of a result replace those of the one before."""
        return False

    def end_window(self) -> None:
        """Emit the rows of all groups, at an emission point."""
        self._grouping.gather(self.groups)
        inserted = retracted = 0
        if (table := self._grouping.merge(self.groups)) is not None:
            change = self._change(table, with_keys=True)
            report = self.on_error != "fail"  # where they end the run, those count that are there at an emission point
            if change.before.num_rows:
                retracted, inserted = (each.num_rows for each in self._differences(change, report=report))
            else:
                reports = self._reports(change.after, list(self.groups.keys)) if report else None
                after = without_overflows(change.after, change.accumulators, reports)
                inserted = int(np.count_nonzero(after.column(ROWS).to_numpy() > 0))
            self.groups = Groups()
        self.uncounted = count_changes(self._context, self.uncounted, inserted, retracted)
        if not self._context.emits:
            self._context.hold(0 if table is None else table.num_rows)
        elif (columns := self.kept.columns) is not None:
            keys = [name[1:] for name in columns.names if name.startswith("=")]
            for some in self.kept.portions(MAX_BYTES):
                rows = pa.Table.from_batches([batch.select(columns.names) for batch in some], columns)
                groups, accumulators = as_groups(rows, self.aggregates)
                groups = groups.rename_columns([name.removeprefix("=") for name in groups.column_names])
                results = self._results_held(groups, accumulators, keys, report=self.on_error == "fail")
                _emit(results, keys, self.output.emit_batch)
                if not results.num_rows:
                    self.output.emit_batch(pa.RecordBatch.from_pylist([], results.schema))


def _emit(rows: pa.Table, keys: Sequence[str], emit: Callable[[pa.RecordBatch], None]) -> None:
    """Emit rows in the order of their keys."""
    first = rows.column(keys[0]) if len(keys) == 1 else None
    if first is not None and t.is_integer(first.type) and not first.null_count:
        rows = rows.take(order_of(first.to_numpy()))  # much faster
    elif keys:
        rows = rows.sort_by([(name, "ascending") for name in keys])
    for batch in rows.to_batches(max_chunksize=ROWS_OF_A_BATCH):
        emit(batch)

"""GroupBy: any number of aggregates of groups of rows, which follow changes."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, get_args

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from dagflow import InputPort, Operator, OperatorContext, OutputPort, TableState, WindowState
from dagflow.config import one_of
from dagflow.errors import ColumnNotThere
from operators.aggregate.accumulators import MAX_ROWS, ROWS, Accumulator, accumulated, check_alike, merged, retyped
from operators.aggregate.agg import Aggregation
from operators.aggregate.aggregate import MAX_PARTIAL_GROUPS, ROWS_OF_A_BATCH
from operators.aggregate.errors import OtherColumns
from operators.aggregate.fields import ResultScope, no_key
from operators.aggregate.kept_groups import add_groups
from operators.problems import all_problems

WAITING_ROWS = 1 << 17
"""Rows of batches that wait to be grouped at once."""


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _aggregations(_: object, attribute: attrs.Attribute[Any], value: Mapping[str, Any]) -> None:
    for name, each in value.items():
        if not isinstance(each, Aggregation):
            raise TypeError(f"{name}={each!r} is not an aggregate: write {name}=agg.count(), or agg.sum('x')")


@attrs.define
class _Groups:
    """The groups of the rows so far: rows that wait, all with one schema and one sign, tables of groups, what is kept of each."""

    accumulators: tuple[Accumulator, ...] = ()
    waiting: list[pa.RecordBatch] = attrs.field(factory=list)
    sign: int = 1
    rows: int = 0
    tables: list[pa.Table] = attrs.field(factory=list)
    key_types: dict[str, pa.DataType] = attrs.field(factory=dict)
    keys: tuple[str, ...] = ()

    def __deepcopy__(self, memo: object) -> _Groups:
        return attrs.evolve(self, waiting=self.waiting[:], tables=self.tables[:], key_types=dict(self.key_types))


@attrs.define
class _Grouping(Operator):
    """The base of `GroupBy` and its partial aggregation: makes tables of groups of rows."""

    keys: tuple[str, ...] = attrs.field(
        default=(), converter=_names, validator=attrs.validators.deep_iterable(attrs.validators.instance_of(str))
    )
    aggregates: Mapping[str, Aggregation] = attrs.field(factory=dict, validator=_aggregations)

    input = InputPort[Any]()
    output = OutputPort[Any]()
    groups = WindowState[_Groups](factory=_Groups)

    takes_changes: ClassVar[bool] = True
    emits_changes: ClassVar[bool | None] = False

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, which tells whether rows are taken back."""
        self._context = context

    def emitted_forms(self, port: str, handled: str) -> frozenset[str]:
        """Return batches: rows have columns."""
        return frozenset({"batch"} if port == "output" else {"record"})

    @input.batch
    def add(self, batch: pa.RecordBatch) -> None:
        """Take rows in."""
        groups, sign = self.groups, -1 if self._context.retracts else 1
        self._take_keys(batch.schema)
        names = list(
            dict.fromkeys([*groups.keys, *(each.column for each in self.aggregates.values() if each.column is not None)])
        )
        for name in names:
            if name not in batch.schema.names:
                raise ColumnNotThere.of("`keys`" if name in groups.keys else "an aggregate", name, batch.schema)
        rows = batch.select(names)
        is_alike = bool(groups.waiting) and groups.waiting[0].schema == rows.schema and groups.sign == sign
        if not is_alike or groups.rows + rows.num_rows > MAX_ROWS:
            self._gather()
            self._take_types(rows.schema)
        groups.sign = sign
        for start in range(0, rows.num_rows, MAX_ROWS):
            groups.waiting.append(rows.slice(start, MAX_ROWS))
            groups.rows += groups.waiting[-1].num_rows
            if groups.rows >= WAITING_ROWS:
                self._gather()

    def _take_keys(self, schema: pa.Schema) -> None:
        """Take the names of the key: without keys and aggregates all columns. Raises OtherColumns where others came before."""
        names = self.keys if self.keys or self.aggregates else tuple(name for name in schema.names if name != ROWS)
        self.groups.keys = self.groups.keys or names
        if {*names} != {*self.groups.keys}:
            raise OtherColumns(operator=type(self).__name__, before=self.groups.keys, now=names)

    def _take_types(self, schema: pa.Schema) -> None:
        """Take the types of columns. Raises ValueColumnRefused, and ColumnTypeChanged where the groups so far have others."""
        groups = self.groups
        fresh = []
        for name, each in self.aggregates.items():
            kind = pa.int64() if each.column is None else schema.field(each.column).type
            fresh.append(Accumulator.of(name, each.function, each.column, kind, keeps_all=self.input.is_changing))
        self._check_keys(schema)
        groups.tables, groups.accumulators = retyped(groups.tables, groups.accumulators, fresh)

    def _check_keys(self, schema: pa.Schema) -> None:
        """Raise ColumnTypeChanged where a key has another kind of values than those so far."""
        kinds = self.groups.key_types
        for name in self.groups.keys:
            kind = schema.field(name).type
            check_alike(name, kinds.setdefault(name, kind), kind)
            if pa.types.is_null(kinds[name]):
                kinds[name] = kind

    def _gather(self) -> None:
        """Group the rows that wait."""
        groups = self.groups
        if not groups.waiting:
            return
        rows = pa.concat_batches(groups.waiting)
        groups.waiting, groups.rows = [], 0
        groups.tables.append(accumulated(rows, self.groups.keys, groups.accumulators, groups.sign))
        self._merge(least=2 * MAX_PARTIAL_GROUPS)

    def _merge(self, least: int = 0) -> pa.Table | None:
        """Merge the tables of groups to one, if they have so many rows. Return it; None without groups."""
        groups = self.groups
        if len(groups.tables) > 1 and sum(table.num_rows for table in groups.tables) >= least:
            groups.tables = [merged(groups.tables, self.groups.keys, groups.accumulators)]
        return groups.tables[0] if groups.tables else None


@attrs.define
class PartialGroupBy(_Grouping):
    """The partial aggregation of a `GroupBy`, before the exchange, so that few rows cross it."""

    def _gather(self) -> None:
        super()._gather()
        if len(self.groups.tables) == 1 and self.groups.tables[0].num_rows > MAX_PARTIAL_GROUPS:
            self._send()

    def end_window(self) -> None:
        """Emit the groups, with what is kept of them."""
        super()._gather()
        self._send()

    def _send(self) -> None:
        if (table := self._merge()) is not None:
            for batch in table.to_batches():
                self.output.emit_batch(batch)
        self.groups.tables = []  # the types stay: a batch may be going on


@attrs.define(init=False)
class GroupBy(_Grouping):
    """One row for each group of rows: the columns of the key, and any number of aggregates. `GROUP BY` of SQL.

    Args:
        keys: the columns that are the key. Without any, all rows are one group. Nulls are one key, and so are all NaN.
        aggregates: the other columns, by name: `agg.count()`, `agg.sum("price")`, `agg.mean`, `agg.min`, `agg.max`.
        scope: the input that a row covers. `all`: all input so far. The groups are kept over windows and launches: a row that no
            longer holds is taken back, and the new one emitted. `window`: a window, however the input is cut; rows that are taken
            back are refused, as they may be in others.
        combiner: whether rows are aggregated before the exchange too, so that few cross it. The result is the same.

    Rows come in the order of their keys, those that are taken back first.

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
        return ("scope", "keys", "aggregates") if self.scope == "all" else ("scope",)

    def __init__(self, *keys: str, **properties: Any) -> None:
        known = {field.name for field in attrs.fields(GroupBy) if field.init}
        own = {name: properties.pop(name) for name in known & properties.keys() if not isinstance(properties[name], Aggregation)}
        for name, given in (("keys", keys), ("aggregates", properties)):
            if name not in own:
                own[name] = given
            elif given:
                raise TypeError(f"GroupBy got {name}={own[name]!r} and more of them: give all in one place")
        self.__attrs_init__(**own)  # made by attrs

    def check(self) -> None:
        """Raise ValueError where names contradict each other."""
        with all_problems(super().check) as problems:
            names = [*self.keys, *self.aggregates]
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                problems.append(f"the column {twice[0]!r} would be there twice: give the aggregate, or the key, another name")
            problems += [f"{name!r} has a '#', which marks what is kept of groups: rename it" for name in names if "#" in name]
            if not names and (lack := self.lacks()):
                problems.append(lack)

    def lacks(self) -> str:
        """Return the problem of having neither keys nor aggregates."""
        return "it has neither keys nor aggregates: GroupBy('shop', sold=agg.count())"

    def partition_key(self, port: str) -> Any:
        """Return the key: all rows of a group reach one partition."""
        return self.keys or no_key

    def partial_aggregation(self, port: str) -> tuple[Operator, str] | None:
        """Return the partial aggregation."""
        if port != "input" or not self.combiner:
            return None
        return PartialGroupBy(keys=self.keys, aggregates=self.aggregates, on_error=self.on_error), "partials"

    @partials.batch
    def add_partials(self, batch: pa.RecordBatch) -> None:
        """Take groups in."""
        groups = self.groups
        fresh = [Accumulator.of_parts(name, each.function, each.column, batch.schema) for name, each in self.aggregates.items()]
        self._take_keys(batch.schema)
        self._check_keys(batch.schema)
        groups.tables, groups.accumulators = retyped(groups.tables, groups.accumulators, fresh)
        groups.tables += retyped([pa.Table.from_batches([batch])], fresh, groups.accumulators)[0]
        self._merge(least=2 * MAX_PARTIAL_GROUPS)

    def end_window(self) -> None:
        """Emit the rows of groups that have changed, in the order of their keys."""
        self._gather()
        if (table := self._merge()) is None:
            return
        if self.scope == "all":
            keys = self.keys or sorted(self.groups.keys)  # in whatever order they come, all columns are the same key
            change = add_groups(self.kept, table, keys, self.aggregates, self.groups.accumulators)
            old, new = change.rows(self._results)
            self._emit(old, self.output.retract_batch)
        else:
            new = self._results(table.filter(pc.greater(table.column(ROWS), 0)), self.groups.accumulators)
        self._emit(new, self.output.emit_batch)
        self.groups = _Groups()

    def _results(self, table: pa.Table, accumulators: Iterable[Accumulator]) -> pa.Table:
        """Return the rows of groups."""
        columns = {name: table.column(name) for name in self.groups.keys}
        return pa.table({**columns, **{each.name: each.results(table) for each in accumulators}})

    def _emit(self, rows: pa.Table, emit: Callable[[pa.RecordBatch], None]) -> None:
        if self.groups.keys:
            rows = rows.sort_by([(name, "ascending") for name in self.groups.keys])
        for batch in rows.to_batches(max_chunksize=ROWS_OF_A_BATCH):
            emit(batch)

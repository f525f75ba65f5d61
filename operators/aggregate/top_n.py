"""TopN: the records with the largest values, of each key or of all."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, ClassVar, Generic, cast, get_args

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import TypeVar

from dagflow import InputPort, MapState, Operator, OutputPort, WindowState
from dagflow.arrow_types import type_named, type_text
from dagflow.config import integer_from, one_of
from operators.aggregate.aggregate import MAX_PARTIAL_GROUPS, ROWS_OF_A_BATCH, OutputMode, output_mode_problems
from operators.aggregate.fields import (
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
from operators.aggregate.groups.totals import as_plain, entry_of, from_plain, key_of
from operators.conditions import no_function
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


@attrs.define
class TopN(PartialTopN[T], Generic[T]):
    """Emit the `n` records with the largest values of each window: of each key, or of all.

    The largest comes first; records of one key come together. Records with equal values are in the order of their contents, so
    that partitions make no difference. Records without a value (None or NaN) are left out.

    Args:
        n: the number of records.
        of: the value: a function of the record, or the name of a column (`value` of a bare builtin).
        by: the key of a record: a function of the record, or names of columns, with which batches stay batches. None: all
            records are one group.
        smallest: whether to emit the smallest values instead.
        scope: see `Aggregate`.
        running: whether the result is that of all windows so far, for the groups that the window has records of. Records are kept
            over windows and launches (a `MapState`); a launch that resumes with other properties is refused. `of` and `by`
            must be names, and records of a class that has columns.
        output_mode: the results of a window if `running`: `update` emits the records of the groups that the window has records
            of, `complete` those of all groups so far, for a sink that replaces its rows.
        combiner: whether the top records are selected before the exchange too, so that few cross it.

    >>> from dagflow.testing import run_operator
    >>> run_operator(TopN(2), {"input": [3, 9, 4, 9]})["output"]
    [9, 9]
    >>> run_operator(TopN(1, len, by=lambda word: word[0], smallest=True), {"input": ["apple", "axe", "bee"]})["output"]
    ['axe', 'bee']
    """

    partition_key_fixed: ClassVar[bool] = True

    combiner: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))
    scope: ResultScope = attrs.field(default="all", kw_only=True, validator=one_of(get_args(ResultScope)))  # type: ignore[misc]
    running: bool = attrs.field(default=False, kw_only=True, validator=attrs.validators.instance_of(bool))
    output_mode: OutputMode = attrs.field(default="update", kw_only=True, validator=one_of(get_args(OutputMode)))

    totals = MapState[str | int, list[Any]](partition_by=key_of)
    """The rows on top of each group. If `complete`, the text of their types comes first: a window may have no rows of its own."""

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            problems.extend(output_mode_problems(self.output_mode, running=self.running))
            if self.running and (callable(self.of) or callable(self.by)):
                problems.append("running=True keeps rows: name columns in of and by, which a Map before it can make")

    def keeps_state(self, name: str) -> bool:
        """Return False for the totals unless `running`, so that windows may overlap."""
        return self.running or name != "totals"

    def state_properties(self) -> tuple[str, ...]:
        """Return the properties that decide which records are on top."""
        return ("running", "n", "of", "by", "smallest", "output_mode") if self.running else ("running",)

    def takes_records(self) -> bool:
        """Return False for running totals, which are rows."""
        return not self.running

    def _bound(self) -> None:
        """Keep all records: this is the last step."""

    def partition_key(self, port: str) -> Any:
        """Return the key: all records of a group reach one partition."""
        return no_key if self.by is None else self.by

    def needed_columns(self, port: str) -> dict[str, tuple[str, ...]]:
        """Return the column of the values."""
        return needed_of(port, of=self.of)

    def end_window(self) -> None:
        """Emit the top records, those of each key together: in the order of the first records of keys, unless `complete`."""
        if self.running and self.batches:
            self._add_totals()
        if self.output_mode == "complete":
            self._send_totals()
        else:
            super().end_window()

    def _add_totals(self) -> None:
        """Add the top records of earlier windows to the window's groups; keep those that are on top now."""
        top = self._top()
        before = [row for entry in self._by_entry(top) for row in _rows_of(self.totals.get(entry, ()))]
        if before:
            self.batches = _beside(top, list(map(from_plain, before)))
            top = self._top()
        self.batches = [top]
        types = [type_text(pa.struct(list(top.schema)))] if self.output_mode == "complete" else []
        self.totals.update({entry: types + rows for entry, rows in self._by_entry(top).items()})

    def _send_totals(self) -> None:
        """Emit the rows of all groups, with the types that are wide enough for all."""
        kept = self.totals.values()
        texts = dict.fromkeys(each[0] for each in kept if type(each[0]) is str)
        schemas = [pa.schema(list(cast("pa.StructType", type_named(text)))) for text in texts]
        schema = pa.unify_schemas(schemas, promote_options="permissive") if schemas else None
        rows = (from_plain(row) for each in kept for row in _rows_of(each))
        while some := list(islice(rows, ROWS_OF_A_BATCH)):
            self.output.emit_batch(pa.RecordBatch.from_pylist(some, schema=schema))

    def _by_entry(self, batch: pa.RecordBatch) -> dict[str | int, list[Any]]:
        """Return rows as plain data, by the names under which their groups are kept."""
        names, rows = names_of(self.by), dict[str | int, list[Any]]()
        for row in batch.to_pylist():
            key = tuple(row[name] for name in names)
            rows.setdefault(entry_of(key if len(key) > 1 else key[0] if key else None), []).append(as_plain(row))
        return rows

    def partial_aggregation(self, port: str) -> tuple[Operator, str] | None:
        """Return the same operator for the records of one partition."""
        if not self.combiner:
            return None
        return PartialTopN[Any](self.n, self.of, by=self.by, smallest=self.smallest, on_error=self.on_error), port


def _beside(top: pa.RecordBatch, kept: list[dict[str, Any]]) -> list[pa.RecordBatch]:
    """Return a window's rows and those that were kept before it, with columns and types that take both as they are."""
    schema = top.schema
    others = dict.fromkeys(name for row in kept for name in row if name not in schema.names and row[name] is not None)
    for name in [*schema.names, *others]:
        values = [row.get(name) for row in kept]
        if name in others:
            schema = schema.append(pa.field(name, pa.array(values).type))
        elif not _takes(schema.field(name).type, values):
            both = pa.unify_schemas(
                [pa.schema([schema.field(name)]), pa.schema({name: pa.array(values).type})], promote_options="permissive"
            )
            schema = schema.set(schema.get_field_index(name), both.field(0))
    rows = pa.RecordBatch.from_pylist(kept, schema=schema)
    if schema.equals(top.schema):
        return [top, rows]
    table = pa.concat_tables(map(pa.Table.from_batches, ([top], [rows])), promote_options="permissive")
    return cast("list[pa.RecordBatch]", table.combine_chunks().to_batches())


def _takes(kind: pa.DataType, values: list[Any]) -> bool:
    """Return whether a type takes values as they are. Arrow makes 2 of 2.5 for a column of integers."""
    if not pa.types.is_primitive(kind):
        return True
    try:
        stored = pa.array(values, kind).to_pylist()
    except (pa.ArrowInvalid, OverflowError):
        return False
    return all(own == value or value != value for own, value in zip(stored, values, strict=True))


def _rows_of(total: Iterable[Any]) -> Iterator[Any]:
    """Yield what is kept of a group, without the text of the types."""
    return (row for row in total if type(row) is not str)

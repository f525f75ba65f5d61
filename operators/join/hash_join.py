"""HashJoin: each record with those of another stream that have the same key."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, get_args

import attrs
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OperatorContext, OutputPort, RenamedProperty, WindowState
from dagflow.config import Bytes, one_of
from dagflow.scan import TableSchema
from operators.aggregate.fields import a_key, check_columns, getter, names_of, one_nan
from operators.conditions import is_function, no_function
from operators.join.errors import (
    LARGEST,
    JoinColumnsClash,
    JoinColumnsDiffer,
    JoinColumnsUnknown,
    JoinKeyRefused,
    JoinSideTooLarge,
)
from operators.join.held import Held
from operators.join.lookup import MOST_PAIRS, Lookup
from operators.join.sizes import portions, row_bytes

if TYPE_CHECKING:
    import pyarrow as pa

L = TypeVar("L", default=Any)
R = TypeVar("R", default=Any)
O = TypeVar("O", default=Any)  # noqa: E741  # as L and R

How = Literal["inner", "left"]

MOST_LEFT_ROWS = 1 << 20
MOST_LEFT_BYTES = 256 << 20
"""The rows and bytes of the left side that wait in memory for the window's end. More wait in a temporary file."""
MOST_BYTES = 64 << 20
"""The largest size of a batch of joined rows, in bytes. A single row may be larger."""


@attrs.define
class HashJoin(Operator, Generic[L, R, O]):
    """Brings together the records of a window that have equal keys: each of `left` with all of `right`, in the order of `left`.

    Without `combine`, rows are joined: batches with the columns of both sides, those of the key once (as `left` has them). Of
    another name that both have, the right side's gets `suffix`. With `combine`, records are.

    Keys that are None match nothing, nor do tuples with a None; NaN matches NaN, 1 matches 1.0. Keys that several records have
    multiply: 2 on the left and 3 on the right give 6.

    Args:
        by: the key: names of columns (fields of the records' classes); with `combine` also a function of the record.
        right_by: that of `right`, where it is another one.
        how: "inner", or "left": records of `left` without a partner come too, with None (rows: nulls) for it.
        combine: makes a record of one of each side. What it raises ends the run, whatever `on_error` says.
        suffix: see above.
        right_columns: names and types of all columns of the right side, `"name: string, people: int64"`, with the key's, for rows
            of a left join where nothing comes on the right side and nothing else says them. What comes must have these.
        max_right_rows: so many records of the right side a partition keeps in memory; connect the smaller stream there. The left
            side waits in a temporary file where it is large.
        max_right_bytes: so many bytes of its rows, at most 2 GiB less one: a column of text has room for so many. Records that
            are joined with `combine` are counted only.

    Raises JoinSideTooLarge, JoinColumnsClash, JoinColumnsUnknown, JoinColumnsDiffer, JoinKeyRefused, ColumnNotThere.

    >>> from dagflow.testing import run_operator
    >>> sides = {"left": [("lund", 1), ("oslo", 2), ("rome", 3)], "right": [("lund", "se"), ("oslo", "no"), ("oslo", "NO")]}
    >>> run_operator(HashJoin(lambda pair: pair[0], combine=lambda one, other: (*one, other[1])), sides)["output"]
    [('lund', 1, 'se'), ('oslo', 2, 'no'), ('oslo', 2, 'NO')]
    >>> import pyarrow as pa
    >>> tables = {"left": [pa.table({"town": ["lund", "rome"]})], "right": [pa.table({"town": ["lund"], "country": ["se"]})]}
    >>> run_operator(HashJoin("town", how="left"), tables)["output"]
    [{'town': 'lund', 'country': 'se'}, {'town': 'rome', 'country': None}]
    """

    partition_key_fixed: ClassVar[bool] = True

    by: Callable[[L], object] | str | tuple[str, ...] = attrs.field(validator=a_key)
    right_by: Callable[[R], object] | str | tuple[str, ...] | None = attrs.field(default=None, kw_only=True, validator=a_key)
    how: How = attrs.field(default="inner", kw_only=True, validator=one_of(get_args(How)))
    combine: Callable[[L, Any], O] | None = attrs.field(
        default=None, kw_only=True, validator=attrs.validators.optional(attrs.validators.is_callable())
    )
    suffix: str = attrs.field(default="_right", kw_only=True, validator=attrs.validators.instance_of(str))
    right_columns: str | None = attrs.field(default=None, kw_only=True)
    max_right_rows: int = attrs.field(
        default=5_000_000, kw_only=True, validator=[attrs.validators.instance_of(int), attrs.validators.ge(1)]
    )
    max_right_bytes: Bytes = attrs.field(
        default=LARGEST,
        kw_only=True,
        validator=[attrs.validators.instance_of(int), attrs.validators.ge(1), attrs.validators.le(LARGEST)],
    )

    most_right_rows = RenamedProperty("max_right_rows")
    most_right_bytes = RenamedProperty("max_right_bytes")

    left = InputPort[L]()
    right = InputPort[R]()
    output = OutputPort[O]()
    known = WindowState[dict[Any, list[Any]]](factory=dict)
    batches = WindowState[list[Any]](factory=list)
    rows = WindowState(0)
    bytes_held = WindowState(0)

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        if self.by is None:
            raise ValueError("by is None: what is the key?")
        keys = (self.by, self._right_by())
        if self.combine is None and any(map(callable, keys)):
            raise ValueError("a key that is a function needs combine=…, which makes a record of two; rows are joined by names")
        lefts, rights = map(names_of, keys)
        if lefts and rights and len(lefts) != len(rights):
            raise ValueError(f"by names {len(lefts)} columns and right_by {len(rights)}")
        if self.right_columns is not None:
            said = TableSchema.of(self.right_columns).arrow.names
            missing = [name for name in rights if name not in said]
            if missing:
                names = ", ".join(map(repr, missing))
                raise ValueError(f"right_columns lacks the key {names}: it must name all columns of the right side")

    def _right_by(self) -> Any:
        return self.by if self.right_by is None else self.right_by

    def partition_key(self, port: str) -> Any:
        """Equal keys come to one partition."""
        return self.by if port == "left" else self._right_by()

    def setup(self, context: OperatorContext) -> None:
        """Make room for the left side."""
        self._context = context
        self._held = Held(MOST_LEFT_ROWS, MOST_LEFT_BYTES)

    def teardown(self) -> None:
        """Remove the temporary file."""
        self._held.forget()

    @left.stream(when=is_function("combine"))
    def hold_all(self, records: Iterator[L]) -> None:
        """Keeps the records of the left side for the end of the window."""
        chunk = list(records)
        self._held.add((self._context.place, chunk), len(chunk))

    @left.batch(when=no_function("combine"))
    def hold_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch."""
        self._check_keys("left", batch.schema)
        self._held.add(batch, batch.num_rows)

    @right.stream(when=is_function("combine"))
    def add_all(self, records: Iterator[R]) -> None:
        """Takes in the records of the right side."""
        key_of, known = getter(self._right_by()), self.known
        for record in records:
            key = key_of(record)
            if not _is_null(key):
                known.setdefault(one_nan(key), []).append(record)
                self._count(1)

    @right.batch(when=no_function("combine"))
    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch."""
        self._check_keys("right", batch.schema)
        self.batches.append(batch)
        self._count(batch.num_rows, batch.nbytes)

    def _check_keys(self, side: str, schema: pa.Schema) -> None:
        """Raises ColumnNotThere, and JoinKeyRefused."""
        import pyarrow as pa

        names = names_of(self.partition_key(side))
        check_columns(schema, "right_by" if side == "right" and self.right_by is not None else "by", names, side)
        for name in names:
            if pa.types.is_nested(kind := schema.field(name).type):
                raise JoinKeyRefused(operator=self._context.name, side=side, column=name, type=str(kind))

    def _count(self, rows: int, size: int = 0) -> None:
        self.rows += rows
        self.bytes_held += size
        if self.rows > self.max_right_rows:
            raise self._too_large("max_right_rows", self.rows)
        if self.bytes_held > self.max_right_bytes:
            raise self._too_large("max_right_bytes", self.bytes_held)

    def _too_large(self, setting: str, found: int) -> JoinSideTooLarge:
        context = self._context
        return JoinSideTooLarge(
            operator=context.name,
            window=context.window,
            setting=setting,
            most=getattr(self, setting),
            found=found,
            partition=context.partition,
            partitions=context.partitions,
        )

    def end_window(self) -> None:
        """Emits what has come together."""
        chunks = self._held.take()
        if self.combine is None:
            self._join_batches(chunks)
        else:
            for place, records in chunks:
                self.output.emit_all(self._joined(records, place, self.combine))

    def _joined(self, records: list[L], place: Any, combine: Callable[[L, Any], O]) -> Iterator[O]:
        key_of, known, keep_all = getter(self.by), self.known, self.how == "left"
        for record in records:
            try:
                key = key_of(record)
                partners = () if _is_null(key) else known.get(one_nan(key), ())
                for partner in partners:
                    yield combine(record, partner)
                if keep_all and not partners:
                    yield combine(record, None)
            except Exception as error:
                self._context.blame(error, record, place)
                raise

    def _join_batches(self, chunks: Iterator[pa.RecordBatch]) -> None:
        import numpy as np
        import pyarrow as pa
        import pyarrow.compute

        compute: Any = pyarrow.compute
        first = next(chunks, None)
        right = None if first is None else self._right()
        if first is None or right is None:
            return
        keys = names_of(self._right_by())
        lookup = Lookup.of([right.column(name) for name in keys])
        right = right.select([name for name in right.schema.names if name not in keys])
        bytes_of_right = np.append(row_bytes(right.columns, right.num_rows), 0)  # at the end: of no partner
        for left in _together(itertools.chain([first], chunks)):
            columns = [left.column(name) for name in names_of(self.by)]
            names = self._names(left.schema.names, right.schema.names)
            bytes_of_left = row_bytes(left.columns, left.num_rows)
            is_small = int(bytes_of_left.max(initial=0) + bytes_of_right.max()) * MOST_PAIRS <= MOST_BYTES
            for rows, partners in lookup.pairs(columns, keep_all=self.how == "left"):
                if is_small:
                    runs: Iterable[slice] = [slice(None)]
                else:
                    sizes = bytes_of_left[rows] + bytes_of_right[compute.fill_null(partners, -1).to_numpy()]
                    runs = portions(sizes, MOST_BYTES)
                for some in runs:
                    joined = [*left.take(rows[some]).columns, *right.take(partners[some]).columns]
                    self.output.emit_batch(pa.RecordBatch.from_arrays(joined, names=names))

    def _right(self) -> pa.RecordBatch | None:
        """The rows of the right side; None where nothing is known of it, and need not be."""
        import pyarrow as pa

        said = None if self.right_columns is None else TableSchema.of(self.right_columns).arrow
        known = self.right.schema
        if said is not None and known is not None:
            self._check_right(said, known)
        if self.batches:
            table = pa.concat_tables(map(pa.Table.from_batches, ([batch] for batch in self.batches)), promote_options="default")
            if said is not None:
                self._check_right(said, table.schema)
                table = table.select(said.names).cast(said)
            columns = [column.combine_chunks() for column in table.columns]  # fewer bytes than one holds: see max_right_bytes
            return pa.RecordBatch.from_arrays(columns, schema=table.schema)
        schema = known if said is None else said
        if schema is None and self.how == "left":
            context = self._context
            raise JoinColumnsUnknown(
                operator=context.name, window=context.window, partition=context.partition, partitions=context.partitions
            )
        return None if schema is None else pa.RecordBatch.from_pylist([], schema=schema)

    def _check_right(self, said: pa.Schema, found: pa.Schema) -> None:
        """Raises JoinColumnsDiffer where columns have other names than those that were said, or types; their order is free."""
        import pyarrow as pa

        types = {field.name: field.type for field in said}
        is_same = sorted(types) == sorted(found.names)
        if not is_same or any(field.type not in (types[field.name], pa.null()) for field in found):  # null: of nulls only
            shown = (tuple((field.name, str(field.type)) for field in schema) for schema in (found, said))
            context = self._context
            raise JoinColumnsDiffer(operator=context.name, window=context.window, found=next(shown), said=next(shown))

    def _names(self, left: list[str], right: list[str]) -> list[str]:
        """The names of the columns of both. Raises JoinColumnsClash."""
        names = [*left, *(f"{name}{self.suffix}" if name in left else name for name in right)]
        twice = tuple(name for name in dict.fromkeys(names) if names.count(name) > 1)
        if twice:
            context = self._context
            raise JoinColumnsClash(operator=context.name, window=context.window, columns=twice, suffix=self.suffix)
        return names


def _together(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of many rows: what is looked up is prepared anew for each."""
    import pyarrow as pa

    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        is_full = rows >= MOST_LEFT_ROWS or size + batch.nbytes > MOST_LEFT_BYTES
        if waiting and (is_full or batch.schema != waiting[0].schema):
            yield pa.concat_batches(waiting)
            waiting, rows, size = [], 0, 0
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    yield pa.concat_batches(waiting)


def _is_null(key: Any) -> bool:
    return key is None or (type(key) is tuple and None in key)

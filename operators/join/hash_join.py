"""HashJoin: the records of two streams that have equal keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Generic, Literal, get_args

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OperatorContext, OutputPort, RenamedProperty, WindowState
from dagflow.config import Bytes, one_of, size_of
from dagflow.scan import TableSchema
from operators.aggregate.fields import ResultScope, a_key, getter, names_of
from operators.conditions import is_function, no_function
from operators.join.buffer import ChunkBuffer
from operators.join.errors import LARGEST
from operators.join.right_side import RightSide, SideLimits
from operators.join.row_join import RowJoin
from operators.join.rules import join_problems
from operators.problems import all_problems

L = TypeVar("L", default=Any)
R = TypeVar("R", default=Any)
O = TypeVar("O", default=Any)  # noqa: E741  # as L and R

How = Literal["inner", "left"]


@attrs.define
class HashJoin(Operator, Generic[L, R, O]):
    """Join the records that have equal keys: each record of `left` with all of `right`, in the order of `left`.

    Without `combine`, it joins rows: batches with the columns of both sides. The columns of the key come once, as `left` has
    them. With `combine`, it joins records.

    A key that is None, or a tuple with a None, matches nothing. NaN matches NaN, 1 matches 1.0. Two records on the left and three
    on the right with the same key give six.

    Args:
        by: the key: names of columns (fields of the records' classes); with `combine` also a function of the record.
        right_by: the key of `right`, where it has another name.
        how: `inner`; or `left`, which also emits records of `left` without a partner, with None (rows: nulls) for it.
        scope: the input within which records are joined: see `Aggregate`.
        combine: makes a record of one of each side. An exception in it ends the run, whatever `on_error` says.
        suffix: the end of the names of right columns whose names the left side has too.
        right_columns: names and types of all columns of the right side, `"name: string, people: int64"`, with the key. A left
            join of rows needs them if nothing arrives on the right side and its type does not declare them.
        max_right_rows: the most records of the right side that a partition keeps in memory. Connect the smaller stream there; the
            left side waits in a temporary file where it is large.
        max_right_bytes: the most bytes of its rows, at most 2 GiB less one, which is the most that a column of text holds. It
            does not apply to records that are joined with `combine`.

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
    scope: ResultScope = attrs.field(default="all", kw_only=True, validator=one_of(get_args(ResultScope)))  # type: ignore[misc]
    suffix: str = attrs.field(default="_right", kw_only=True, validator=attrs.validators.instance_of(str))
    right_columns: str | None = attrs.field(default=None, kw_only=True)
    max_right_rows: int = attrs.field(
        default=5_000_000, kw_only=True, validator=[attrs.validators.instance_of(int), attrs.validators.ge(1)]
    )
    max_right_bytes: Bytes = attrs.field(
        default=LARGEST,
        kw_only=True,
        converter=size_of,
        validator=[attrs.validators.instance_of(int), attrs.validators.ge(1), attrs.validators.le(LARGEST)],
    )

    most_right_rows = RenamedProperty("max_right_rows")
    most_right_bytes = RenamedProperty("max_right_bytes")

    left = InputPort[L]()
    right = InputPort[R]()
    output = OutputPort[O]()
    side = WindowState[RightSide](factory=RightSide)

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            problems.extend(join_problems(self.by, self.partition_key("right"), self.combine, self.right_columns))

    def partition_key(self, port: str) -> Any:
        """Return the key of a side: equal keys come to one partition."""
        return self.by if port == "left" or self.right_by is None else self.right_by

    def setup(self, context: OperatorContext) -> None:
        """Make room for the left side."""
        self._context = context
        self._waiting = ChunkBuffer.of_left_side()
        self._limits = SideLimits(context, self.max_right_rows, self.max_right_bytes)
        self._rows = RowJoin(
            context=context,
            by=names_of(self.by),
            right_by=names_of(self.partition_key("right")),
            right_property="by" if self.right_by is None else "right_by",
            keep_all=self.how == "left",
            suffix=self.suffix,
            right_schema=None if self.right_columns is None else TableSchema.of(self.right_columns).arrow,
        )

    def teardown(self) -> None:
        """Remove the temporary file."""
        self._waiting.forget()

    @left.stream(when=is_function("combine"))
    def hold_all(self, records: Iterator[L]) -> None:
        """Keep the records of the left side for the end of the window."""
        chunk = list(records)
        self._waiting.add((self._context.place, chunk), len(chunk))

    @left.batch(when=no_function("combine"))
    def hold_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch."""
        self._rows.check_key("left", batch.schema)
        self._waiting.add(batch, batch.num_rows)

    @right.stream(when=is_function("combine"))
    def add_all(self, records: Iterator[R]) -> None:
        """Take the records of the right side in."""
        self.side.add_records(records, getter(self.partition_key("right")), self._limits)

    @right.batch(when=no_function("combine"))
    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch."""
        self._rows.check_key("right", batch.schema)
        self.side.add_batch(batch, self._limits)

    def end_window(self) -> None:
        """Emit the records of the left side with their partners."""
        chunks = self._waiting.take()
        if self.combine is None:
            for batch in self._rows.joined(chunks, self.side.batches, self.right.schema):
                self.output.emit_batch(batch)
        else:
            for place, records in chunks:
                self.output.emit_all(self._combined(records, place, self.combine))

    def _combined(self, records: list[L], place: Any, combine: Callable[[L, Any], O]) -> Iterator[O]:
        key_of, side, alone = getter(self.by), self.side, [None] if self.how == "left" else []
        for record in records:
            try:
                for partner in side.partners_of(key_of(record)) or alone:
                    yield combine(record, partner)
            except Exception as error:
                self._context.blame(error, record, place)
                raise

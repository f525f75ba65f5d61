"""HashJoin: the records of two streams that have equal keys."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, get_args

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import (
    InputPort,
    Operator,
    OperatorContext,
    OutputPort,
    StateSize,
    StreamColumns,
    TableState,
    WindowState,
)
from dagflow.config import Bytes, one_of, size_of
from dagflow.scan import TableSchema
from operators.aggregate.fields import ResultScope, a_key, getter, names_of, no_key
from operators.conditions import is_function, no_function
from operators.join.at_once import pairs_at_once
from operators.join.buffer import ChunkBuffer
from operators.join.change import KINDS, How, Pairs, changed, pairs_where
from operators.join.errors import LARGEST
from operators.join.kept_rows import KeptRows, Marks
from operators.join.right_side import RightSide, SideLimits
from operators.join.row_join import RowJoin, one_table
from operators.join.rules import join_problems
from operators.join.sides import RecordSide, RowSide
from operators.portions import MAX_BYTES, MAX_ROWS, Chunks, Portions
from operators.problems import all_problems
from operators.transform.expressions import AnyExpression, an_expression, read_by

L = TypeVar("L", default=Any)
R = TypeVar("R", default=Any)
O = TypeVar("O", default=Any)  # noqa: E741  # as L and R


def a_key_or_none(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Validate a key, or `()` for none."""
    if value != ():
        a_key(instance, attribute, value)


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
        how: `inner`; `left`, `right` or `full`, which also emit records of that side, or of both, without a partner, with None
            (rows: nulls) for it; `semi` or `anti`, which emit the rows of `left` that have a partner, or do not have one.
        scope: the input within which records are joined. `all`: all input so far. Both sides are kept over windows and launches;
            a row that no longer holds is taken back. `window`: that of a window, however the input is cut (`inner` or `left`).
        where: a further condition of pairs with equal keys, as an expression over the columns of joined rows. A row whose pairs
            do not meet it has no partner. For the join of rows over all input.
        combine: makes a record of one of each side. An exception in it ends the run, whatever `on_error` says.
        suffix: the end of the names of right columns whose names the left side has too.
        right_columns: names and types of all columns of the right side, `"name: string, people: int64"`, with the key. A left
            join of rows needs them if nothing arrives on the right side and its type does not declare them.
        max_right_rows: the most records of the right side that a partition has in memory: of rows over all input, those with
            some of the keys where they are many, else all of a window.
        max_right_bytes: the most bytes of its rows, at most 2 GiB less one, which is the most that a column of text holds. It
            does not apply to records that are joined with `combine`.

    Raises JoinSideTooLarge, JoinColumnsClash, JoinColumnsUnknown, JoinColumnsDiffer, JoinColumnChanged, JoinRecordNotKept,
    JoinKeyRefused, ColumnNotThere; NeverInserted where a row is taken back that has not come.

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

    by: Callable[[L], object] | str | tuple[str, ...] = attrs.field(validator=a_key_or_none)
    right_by: Callable[[R], object] | str | tuple[str, ...] | None = attrs.field(
        default=None, kw_only=True, validator=a_key_or_none
    )
    how: How = attrs.field(default="inner", kw_only=True, validator=one_of(get_args(How)))
    where: AnyExpression | None = attrs.field(default=None, kw_only=True, validator=attrs.validators.optional(an_expression))
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

    left = InputPort[L]()
    right = InputPort[R]()
    output = OutputPort[O]()
    side = WindowState[RightSide](factory=RightSide)
    portions = WindowState[Portions | None](None)
    left_rows = TableState()
    right_rows = TableState()
    counts = TableState({"left_rows": "int32", "right_rows": "int32"})

    @property
    def takes_changes(self) -> bool:  # type: ignore[override]
        """True unless a window has a part of the input."""
        return self.scope == "all"

    @property
    def emits_changes(self) -> bool | None:  # type: ignore[override]
        """True where a later partner takes back a row without one, or with one."""
        return True if self.scope == "all" and self.how != "inner" else None

    def keeps_state(self, name: str) -> bool:
        """Return whether the rows of both sides are kept over windows."""
        return self.scope == "all"

    def state_size(self, changing: Collection[str]) -> StateSize:
        """Return that both sides are kept."""
        return StateSize("all rows of both sides")

    def state_properties(self) -> tuple[str, ...]:
        """Return the properties that give what is kept its meaning."""
        return ("scope", "how", "by", "right_by", "where") if self.scope == "all" else ("scope",)

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            right_by, has_where = self._key("right"), self.where is not None
            problems.extend(join_problems(self.by, right_by, self.combine, self.right_columns, self.how, self.scope, has_where))

    def partition_key(self, port: str) -> Any:
        """Return the key of a side: equal keys come to one partition; all rows where there is no key."""
        return no_key if (key := self._key(port)) == () else key

    def _key(self, port: str) -> Any:
        return self.by if port == "left" or self.right_by is None else self.right_by

    def source_columns(self, port: str, columns: Sequence[str], made: Sequence[str]) -> dict[str, str] | None:
        """Return the columns of a side, with those of the output that have their values."""
        if self.combine is not None:
            return None
        by, key = names_of(self.by), names_of(self.partition_key(port))
        names = dict(zip(key, by, strict=True))
        if port == "left":
            return {**{name: name for name in columns}, **names}
        if not KINDS[self.how].pairs:
            return names
        others = {name: name + self.suffix if name + self.suffix in made else name for name in columns if name not in key}
        return {**others, **names}

    def columns_read(self, port: str, wanted: Callable[[str], frozenset[str] | None]) -> frozenset[str] | None:
        """Return the key of a side, and the columns that a condition and operators behind the join read.

        Both sides get the same names, without the suffix too: which of them get a suffix must stay. A right side whose columns
        are declared is compared with them, and has them all.
        """
        if self.combine is not None or callable(self.by) or callable(self._key(port)):
            return None
        read = wanted("output") if KINDS[self.how].pairs or port == "left" else frozenset[str]()
        if self.where is not None:
            read = read_by(self.where, read)
        if read is None:
            return None
        declared = [] if self.right_columns is None else TableSchema.of(self.right_columns).columns
        read = read.union(declared)
        return read | {name.removesuffix(self.suffix) for name in read} | {*names_of(self.by), *names_of(self._key(port))}

    def result_columns(self, port: str, arriving: Callable[[str], StreamColumns]) -> StreamColumns | None:
        """Return the columns of both sides, and which of them identify a row."""
        if port != "output" or self.combine is not None:
            return None
        left, right = arriving("left"), arriving("right")
        if not KINDS[self.how].pairs:
            return left
        by, right_by = names_of(self.by), names_of(self.by if self.right_by is None else self.right_by)
        names = {name: name + self.suffix if name in (left.types or ()) else name for name in right.types or ()}
        names |= dict(zip(right_by, by, strict=True))
        types = dict(left.types or {})
        for name, kind in (right.types or {}).items():
            types.setdefault(names[name], kind)
        unique: list[Iterable[str]] = []
        if self.how in ("inner", "left"):  # rows of the right side alone have no columns of the left one
            unique += left.unique if right.identifies(right_by) else ()
            known = names.keys() if left.types is not None else set(right_by)  # others may get a suffix
            others = [[names[name] for name in other] for other in right.unique if other <= known]
            unique += [[*one, *other] for one in left.unique for other in others]
        return StreamColumns(None if left.types is None or right.types is None else types, unique)

    def setup(self, context: OperatorContext) -> None:
        """Make room for both sides."""
        self._context = context
        self._waiting = ChunkBuffer.of_left_side()
        right_by = self._key("right")
        self._rows = RowJoin(
            context=context,
            by=names_of(self.by),
            right_by=names_of(right_by),
            right_property="by" if self.right_by is None else "right_by",
            keep_all=self.how == "left",
            suffix=self.suffix,
            right_schema=None if self.right_columns is None else TableSchema.of(self.right_columns).arrow,
        )
        left = (self.left, self.by, KeptRows("left", self.left_rows, context), SideLimits(context, "left", None, LARGEST))
        self._limits = SideLimits(context, "right", self.max_right_rows, self.max_right_bytes)
        right = (self.right, right_by, KeptRows("right", self.right_rows, context), self._limits)
        self._row_sides = [RowSide(port, names_of(by), kept, limits) for port, by, kept, limits in (left, right)]
        self._record_sides = [
            RecordSide(context.name, port, getter(by), kept, limits) for port, by, kept, limits in (left, right)
        ]

    def teardown(self) -> None:
        """Remove the temporary file."""
        self._waiting.forget()

    @left.stream(when=is_function("combine"))
    def hold_all(self, records: Iterator[L]) -> None:
        """Keep the records of the left side for the end of the window."""
        if self.scope == "all":
            self._record_sides[0].add(records, self._context.place, self._context.sign)
            return
        chunk = list(records)
        self._waiting.add((self._context.place, chunk), len(chunk))

    @left.batch(when=no_function("combine"))
    def hold_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch."""
        self._rows.check_key("left", batch.schema)
        if self.scope == "all":
            self._waiting_rows().add(batch, self._context.sign, 0)
        else:
            self._waiting.add(batch, batch.num_rows)

    @right.stream(when=is_function("combine"))
    def add_all(self, records: Iterator[R]) -> None:
        """Take the records of the right side in."""
        if self.scope == "all":
            self._record_sides[1].add(records, self._context.place, self._context.sign)
        else:
            self.side.add_records(records, getter(self.partition_key("right")), self._limits)

    @right.batch(when=no_function("combine"))
    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch."""
        self._rows.check_key("right", batch.schema)
        if self.scope == "all":
            self._waiting_rows().add(batch, self._context.sign, 1)
        else:
            self.side.add_batch(batch, self._limits)

    def _waiting_rows(self) -> Portions:
        if self.portions is None:
            groups = [side.groups for side in self._row_sides]
            if self.counts.is_saved:
                self.portions = Portions(groups)
            else:  # rows are looked at once, and need no more memory than their own
                rows = [8 * MAX_ROWS, max(MAX_ROWS, min(4 * MAX_ROWS, self.max_right_rows))]
                self.portions = Portions(groups, rows, max(MAX_BYTES, min(4 * MAX_BYTES, self.max_right_bytes)))
        return self.portions

    def end_window(self) -> None:
        """Emit the records of the left side with their partners."""
        if self.scope == "all":
            if self.combine is None:
                for lefts, rights in self._waiting_rows().take():
                    self._change_rows(lefts, rights)
            else:
                self._change_records(self.combine)
        elif self.combine is None:
            for batch in self._rows.joined(self._waiting.take(), self.side.batches, self.right.schema):
                self.output.emit_batch(batch)
        else:
            for origin, records in self._waiting.take():
                self.output.emit_all(self._joined(records, origin, self.combine))

    def _joined(self, records: list[L], origin: Any, combine: Callable[[L, Any], O]) -> Iterator[O]:
        key_of, side, alone = getter(self.by), self.side, [None] if self.how == "left" else []
        for record in records:
            with self._blaming(record, origin):
                for partner in side.partners_of(key_of(record)) or alone:
                    yield combine(record, partner)

    @contextmanager
    def _blaming(self, record: Any, origin: Any) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if origin is not None:
                self._context.blame(error, record, origin)
            raise

    def _change_rows(self, lefts_of: Chunks, rights_of: Chunks) -> None:
        """Emit the joined rows that rows of both sides change."""
        left, right = self._row_sides
        left_table = left.table(lefts_of, lambda batches: one_table(batches, self.left.schema))
        right_table = right.table(rights_of, lambda batches: self._rows.right_table(batches, self.right.schema))
        is_whole = not self.counts.is_saved and all(sign > 0 for _, sign in (*lefts_of, *rights_of))
        if left_table is None or right_table is None:
            is_whole = False  # without rows of a side, its columns need not be known
        elif is_whole and self.where is None:
            joined = self._rows.at_once(self.how, left_table, right_table)
            if joined is not None:
                for batch in joined:
                    self.output.emit_batch(batch)
                return
        (lefts, knows_left), (rights, knows_right) = left.rows_of(left_table), right.rows_of(right_table)
        kind = KINDS[self.how]
        if kind.pairs and kind.left is False and not knows_right and lefts.num_rows:
            raise self._rows.unknown("right")
        if kind.right and not knows_left and rights.num_rows:
            raise self._rows.unknown("left")
        tries_all = self.where is not None and not kind.is_inner
        at_once = pairs_at_once(self.how, lefts.select(left.by), rights.select(right.by)) if is_whole and not tries_all else None
        if at_once is not None:

            def holds(pair: Pairs) -> Marks:
                return self._rows.holds(lefts, rights, pair, self.where)

            pairs: Any = [(), at_once if self.where is None else (pairs_where(pair, holds) for pair in at_once)]
        else:
            arrived = left.arrived(lefts, lefts_of), right.arrived(rights, rights_of)
            change = changed(kind, *arrived, (left.kept, right.kept), self.counts, loads_all=tries_all)
            lefts, rights = change.left.rows, change.right.rows
            pairs = [change.rows(retracts=True), change.rows(retracts=False)]
            if self.where is not None:
                pairs = change.rows_where(lambda pair: self._rows.holds(lefts, rights, pair, self.where))
        others = rights if kind.pairs else rights.select([])
        for some, emit in zip(pairs, (self.output.retract_batch, self.output.emit_batch), strict=True):
            for batch in self._rows.batches(lefts, others, some):
                emit(batch)

    def _change_records(self, combine: Callable[[Any, Any], O]) -> None:
        """Emit the joined records that the window changes."""
        left, right = self._record_sides
        change = changed(KINDS[self.how], left.arrived(), right.arrived(), (left.kept, right.kept), self.counts)
        lefts, rights = left.records_of(change.left), right.records_of(change.right)
        for retracts, emit in ((True, self.output.retract), (False, self.output.emit)):
            for ones, others in change.rows(retracts=retracts):
                for one, other in zip(ones.to_pylist(), others.to_pylist(), strict=True):
                    record, origin = (None, None) if one is None else lefts[one]
                    partner = None if other is None else rights[other][0]
                    with self._blaming(record, origin):
                        joined = combine(record, partner)
                    emit(joined)
        left.clear()
        right.clear()

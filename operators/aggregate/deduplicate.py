"""Deduplicate: one of the records that are equal, or have equal keys."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import compress
from typing import Any, ClassVar, Generic, Literal, get_args

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import TypeVar

from dagflow import InputPort, Operator, OperatorContext, OutputPort, StateSize, StreamColumns, TableState, WindowState
from dagflow.config import one_of
from operators.aggregate.fields import ResultScope, a_key, check_columns, getter, names_of, needed_of
from operators.aggregate.kept_keys import record_key
from operators.aggregate.ranked_rows import ROWS, PartialRanking, RankedRows, Ranking
from operators.conditions import no_function
from operators.problems import all_problems
from operators.transform.content import column_contents, content_of, contents, contents_of_column

T = TypeVar("T", default=Any)

MAX_PARTIAL_KEYS = 100_000
"""The most keys that the partial operator remembers. With more, it forgets all, and some records cross the exchange twice."""

Content = tuple[bytes, ...]
Keep = Literal["first", "last"]


@attrs.define
class FirstOfEach(Operator, Generic[T]):
    """Keep the first record of each key in this partition: the part of `Deduplicate` before the exchange."""

    takes_changes: ClassVar[bool] = True
    selects_rows: ClassVar[bool] = True

    by: Callable[[T], object] | str | tuple[str, ...] | None = attrs.field(default=None, kw_only=True, validator=a_key)

    most: int | None = attrs.field(default=None, kw_only=True)
    """The most keys that are remembered; None: all of a window."""

    input = InputPort[T]()
    output = OutputPort[T]()
    keys = WindowState[set[Content]](factory=set)

    @input.stream
    def pass_all(self, records: Iterator[T]) -> None:
        """Emit the records that are first; all, where some may be taken back."""
        of_record, is_first, emit = content_by(self.by), self._is_first, self.output.emit
        for record in records:
            if self.input.is_changing or is_first(of_record(record)):
                emit(record)

    @input.batch(when=no_function("by"))
    def pass_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch."""
        rows = batch if self.input.is_changing else batch.filter(self._where(batch, self._is_first))
        if rows.num_rows:
            self.output.emit_batch(rows)

    def _where(self, batch: pa.RecordBatch, holds: Callable[[Content], bool]) -> pa.Array:
        """Return for each row of a batch whether something holds for the content of its key."""
        names = names_of(self.by)
        check_columns(batch.schema, "by", names)
        columns: list[Iterable[bytes]] = [contents_of_column(batch.column(name)) for name in names] or column_contents(batch)
        return pa.array(map(holds, zip(*columns, strict=True)), pa.bool_())

    def _is_first(self, key: Content) -> bool:
        if key in self.keys:
            return False
        if self.most is not None and len(self.keys) >= self.most:
            self.keys.clear()
        self.keys.add(key)
        return True


def content_by(by: Any) -> Callable[[Any], Content]:
    """Return the function of the content of a record's key; of the whole record where `by` is None."""
    if by is None:
        return contents
    field = getter(by)
    if isinstance(by, tuple):
        return lambda record: tuple(map(content_of, field(record)))
    return lambda record: (content_of(field(record)),)


def key_of_content(content: Content) -> bytes:
    r"""Return the content of a record as one key, from which `content_of_key` makes it again.

    >>> key_of_content((b"a", b"")), content_of_key(key_of_content((b"a", b"")))
    (b'\x001:a0:', (b'a', b''))
    """
    return b"\0" + b"".join(b"%d:%b" % (len(part), part) for part in content)


def content_of_key(key: bytes) -> Any:
    """Return the key of the records that a key of the state goes with: their content, or what `json_of` has written."""
    if not key.startswith(b"\0"):
        return record_key(key)
    parts, rest = list[bytes](), key[1:]
    while rest:
        size, _, rest = rest.partition(b":")
        parts.append(rest[: int(size)])
        rest = rest[int(size) :]
    return tuple(parts)


@attrs.define
class Deduplicate(FirstOfEach[T], Generic[T]):
    """Keep one of the records that are equal, or that have equal keys.

    Of records with equal keys it keeps the first in the order of `order_by`, then of all columns, by name (lists by their
    text). So it does not matter in which order they came. Where a better one comes later, the one before it is taken back.

    Without `by`, values are equal if they are equal in Python (1 and 1.0; ten o'clock UTC and noon two hours east of it), or if
    a column cannot distinguish them (a list and a tuple, an enumeration and its value, records of two classes with the same
    fields). All fields count, also those with `eq=False`. None and "None", 1 and "1" differ. The position of a `ReaderRecord`
    counts: `by="record"` compares lines.

    Args:
        by: the key: a function of the record, or names of columns. None: the whole record.
        keep: which record of a key to keep, `first` or `last`.
        order_by: the order of records with equal keys: a function of the record, or names of columns. Nulls are never preferred.
        combiner: whether records are compared before the exchange too, so that few cross it.
        scope: the input within which records are compared. `all`: all input so far. Keys are kept over windows and launches, and
            with `by` a record of each, which needs columns. `window`: a window, however the input is cut; any records, of
            which the first to come is kept.

    Where records may be taken back, all of them are kept. The keys of a window are in memory while it lasts.

    >>> from dagflow.testing import run_operator
    >>> run_operator(Deduplicate(), {"input": ["to", "be", "or", "not", "to", "be"]})["output"]
    ['to', 'be', 'or', 'not']
    >>> run_operator(Deduplicate(by=str.lower, keep="last"), {"input": ["To", "be", "to"]})["output"]
    ['be', 'to']
    """

    partition_key_fixed: ClassVar[bool] = True

    keep: Keep = attrs.field(default="first", kw_only=True, validator=one_of(get_args(Keep)))
    order_by: Callable[[T], Any] | str | tuple[str, ...] | None = attrs.field(default=None, kw_only=True, validator=a_key)
    combiner: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))
    scope: ResultScope = attrs.field(default="all", kw_only=True, validator=one_of(get_args(ResultScope)))  # type: ignore[misc]

    input = InputPort[T]()
    numbers = WindowState[dict[Content, int]](factory=dict)
    first = WindowState[list[Any]](factory=list)
    ranked = WindowState[RankedRows](factory=RankedRows)
    kept = TableState(record_key=content_of_key)

    @property
    def takes_changes(self) -> bool:  # type: ignore[override]
        """True unless a window has a part of the input."""
        return self.scope == "all"

    @property
    def emits_changes(self) -> bool | None:  # type: ignore[override]
        """True where a better record may come."""
        return self.is_ranked or (None if self.scope == "all" else False)

    @property
    def is_ranked(self) -> bool:
        """True if there is a best record of each key."""
        return self.scope == "all" and self.by is not None

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            if not self.is_ranked and (self.keep != "first" or self.order_by is not None):
                problems.append("keep and order_by need a key and all input: by='id', scope='all'")

    def keeps_state(self, name: str) -> bool:
        """Return whether keys are kept over windows."""
        return self.scope == "all"

    def state_size(self, changing: Collection[str]) -> StateSize:
        """Return that there is a row for each key; where rows may be taken back, all rows are kept."""
        if not self.is_ranked:
            return StateSize("all different rows")
        return StateSize("all rows") if changing else StateSize("a row for each key", "the different keys")

    def state_properties(self) -> tuple[str, ...]:
        """Return the properties that decide which records are kept."""
        return ("scope", "by", "keep", "order_by") if self.scope == "all" else ("scope",)

    def result_columns(self, port: str, arriving: Callable[[str], StreamColumns]) -> StreamColumns | None:
        """Return the columns that arrive; those of the key, or all, identify a row."""
        if port != "output":
            return None
        before = arriving("input")
        if self.scope == "window" or callable(self.by):
            return before
        by = tuple(before.types or ()) if self.by is None else names_of(self.by)
        return before.also_unique(*by) if by else before

    def needed_columns(self, port: str) -> dict[str, tuple[str, ...]]:
        """Return the columns of the order."""
        return needed_of(port, order_by=self.order_by)

    def setup(self, context: OperatorContext) -> None:
        """Keep the context, which tells whether records are taken back."""
        self._context = context

    @input.stream(when=lambda operator: not operator.is_ranked)
    def pass_all(self, records: Iterator[T]) -> None:
        """Emit the records that are first in a window, or take records in."""
        if self.scope == "window":
            super().pass_all(records)
            return
        for record in records:
            if self._is_new(contents(record)):
                self.first.append(record)

    @input.batch(when=lambda operator: operator.is_ranked or not callable(operator.by))
    def pass_batch(self, batch: pa.RecordBatch) -> None:
        """Do the same for a batch."""
        if self.scope == "window":
            super().pass_batch(batch)
        elif self.is_ranked:
            table = self._ranking.table(batch, self._context.sign, self.input)
            self.ranked.add_bounded(table, self._ranking, self.input, keeps_all=self.input.is_changing)
        else:
            is_untyped = self.input.record_type is Any  # such rows cross the exchange as dicts, which are one value
            rows = map(contents, self.input.records_of(batch)) if is_untyped else zip(*column_contents(batch), strict=True)
            self.first.append(batch.filter(pa.array(map(self._is_new, rows), pa.bool_())))

    def _is_new(self, content: Content) -> bool:
        before = self.numbers.get(content)
        self.numbers[content] = (before or 0) + self._context.sign
        return before is None

    @property
    def _ranking(self) -> Ranking:
        is_last = self.keep == "last"
        return Ranking(1, self.by, self.order_by, descending=is_last, all_descending=is_last, setting="order_by")

    def end_window(self) -> None:
        """Emit the records that are new, and take back those that are gone."""
        if self.is_ranked:
            self.ranked.emit_change(
                self.kept, self._ranking, self.input, self.output, self._context, keeps_all=self.input.is_changing
            )
        elif self.numbers:
            self._emit_change()

    def _emit_change(self) -> None:
        """Count how often each record is there; where none may be taken back, once is enough."""
        keys, numbers = pa.array(map(key_of_content, self.numbers), pa.binary()), np.array([*self.numbers.values()])
        looked_up = self.kept.lookup(keys)
        before = pc.fill_null(looked_up.column(ROWS), 0).to_numpy() if looked_up.num_columns else numbers * 0
        now = before + numbers if self.input.is_changing else np.ones(len(keys), np.int64)
        now = self._context.standing(now, lambda at: {"content": b", ".join(list(self.numbers)[at])})
        came, changed, gone = (before == 0) & (now > 0), (before != now) & (now > 0), (before > 0) & (now == 0)
        self.kept.put(keys.filter(pa.array(changed)), {ROWS: pa.array(now[changed])})
        self.kept.remove(keys.filter(pa.array(gone)))
        for some, one, whole in (
            (gone, self.output.retract, self.output.retract_batch),
            (came, self.output.emit, self.output.emit_batch),
        ):
            if isinstance(self.first[0], pa.RecordBatch):
                rows = pa.concat_tables(map(pa.Table.from_batches, zip(self.first)), promote_options="permissive")
                for batch in rows.filter(pa.array(some)).to_batches():
                    whole(batch)
            else:
                for record in compress(self.first, some):
                    one(record)

    def partition_key(self, port: str) -> Any:
        """Return the key: equal records reach one partition."""
        return contents if self.by is None else self.by

    def partial_aggregation(self, port: str) -> tuple[Operator, str] | None:
        """Return the comparison of the records of one partition."""
        if not self.combiner:
            return None
        if self.is_ranked:
            return PartialRanking[Any](self._ranking, on_error=self.on_error), port
        return FirstOfEach[Any](by=self.by, most=MAX_PARTIAL_KEYS, on_error=self.on_error), port

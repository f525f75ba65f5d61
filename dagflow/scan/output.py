"""The conversion of loaded batches to the output of the scan: projection, types, nulls, implicit columns, bad rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute

from dagflow.arrow_types import type_text, wider
from dagflow.arrow_types.held import objects
from dagflow.scan.bad_rows import SHOWN_CHARACTERS, BadRow, RowOrigin
from dagflow.scan.errors import ColumnExtra, ColumnTwice, KeyMisfit
from dagflow.scan.readers.loader import Harvest, rows_without_columns
from dagflow.scan.schema.cast import PLAIN, converted, text_of, unknown_field
from dagflow.scan.schema.implicit import FileFacts
from dagflow.scan.schema.numbers import INFERRED
from dagflow.scan.schema.shape import OutputColumn, Shape
from dagflow.scan.schema.table import Drift
from dagflow.scan.schema.types import above

pc: Any = pyarrow.compute  # its functions are made at run time
LONG = r"^\s*[-+]?[0-9]{16,}\s*$"
"""Integers that may not be distinct from their neighbours as float64."""


@attrs.define(eq=False, kw_only=True)
class Output:
    """The conversion of loaded batches to batches of the scan.

    `shape`: the columns that the scan returns; it changes only if `drift` says "widen". `file_columns`: the columns of the
        current file; None if only its rows say them. `spelled`: of the columns that it lacks, those that it has in another case.
    `only`: the columns that batches have; None: all. `left_out`: those that the reader of the current file does not load.
    """

    shape: Shape
    drift: Drift
    report: Callable[[BadRow], None]
    count: Callable[[str, int], None]
    only: frozenset[str] | None = None
    left_out: frozenset[str] = attrs.field(init=False, default=frozenset())
    file_columns: frozenset[str] | None = attrs.field(init=False, default=None)
    spelled: Mapping[str, str] = attrs.field(init=False, factory=dict)
    _schema: pa.Schema | None = attrs.field(init=False, default=None)
    _of: Shape | None = attrs.field(init=False, default=None)
    _accepted: pa.Schema | None = attrs.field(init=False, default=None)
    _made: tuple[Harvest, list[bool] | None] | None = attrs.field(
        init=False, default=None
    )  # the last batch, and which rows were kept

    @property
    def schema(self) -> pa.Schema:
        """The schema of the batches, as it is now."""
        if self._schema is None or self._of is not self.shape:
            self._schema, self._of = pa.schema([column.field for column in self.columns]), self.shape
        return self._schema

    @property
    def columns(self) -> tuple[OutputColumn, ...]:
        """The columns of the batches."""
        return self.shape.columns if self.only is None else tuple(each for each in self.shape.columns if each.name in self.only)

    def leave_out(self, schema: pa.Schema | None) -> frozenset[str]:
        """Return the columns of a file that need not be loaded: nothing reads them, and no row is bad for a value in them.

        A file that has the type of the scan has only such values. Others are converted, so that bad rows are found. `schema`: the
        columns of the file; None: its rows tell them.
        """
        self.left_out = frozenset()
        if self.only is None or schema is None:
            return self.left_out
        read = {column.path.root for column in self.columns}
        self.left_out = frozenset(
            root
            for root, column in self.shape.roots.items()
            if root not in read
            and schema.get_field_index(root) >= 0
            and schema.field(root).type.equals(column.type)
            and (column.column is None or column.column.nullable)
        )
        return self.left_out

    def make(self, loaded: Harvest, facts: FileFacts) -> pa.RecordBatch:
        """Return the batch of the scan for a loaded one. Rows that cannot be read are left out."""
        batch = loaded.batch
        extra = self._extra(batch.schema, facts.path)
        problems = _Problems(batch.num_rows)
        loaded_roots = ((root, column) for root, column in self.shape.roots.items() if root not in self.left_out)
        roots = {root: self._column(batch, column, problems, facts) for root, column in loaded_roots}
        if extra:
            problems.rescue(batch, extra)
        is_kept = self._kept(batch, problems, loaded, facts) if problems.bad else None
        self._made = loaded, is_kept
        arrays = [self._array(column, roots, loaded, facts, problems) for column in self.columns]
        if not arrays:
            return rows_without_columns(batch.num_rows if is_kept is None else sum(is_kept))
        result = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        return result if is_kept is None else result.filter(pa.array(is_kept, pa.bool_()))

    def origin(self, row: int) -> RowOrigin:
        """Return the origin of a row of the batch that was made last. Empty where the format does not tell it."""
        loaded, kept = self._made or (None, None)
        if loaded is None or loaded.origin is None:
            return RowOrigin()
        return loaded.origin(row if kept is None else [n for n, is_kept in enumerate(kept) if is_kept][row])

    def release(self) -> None:
        """Release the last batch."""
        self._made = None

    # Columns of files

    def _extra(self, schema: pa.Schema, path: str) -> list[str]:
        """Return the unknown columns that are to be rescued. Others are added, ignored or refused."""
        if not self.shape.is_open or schema is self._accepted:
            return []
        extra = [f for f in schema if f.name not in self.shape.known]
        if not extra:
            self._accepted = schema
            return []
        match self.drift.extra:
            case "error":
                raise ColumnExtra(path=path, extra=tuple(f.name for f in extra), known=tuple(self.shape.known))
            case "widen":
                self.shape = self.shape.with_columns([f for f in extra if not pa.types.is_null(f.type)])
                return []
            case "ignore":
                return []
        return [f.name for f in extra]

    def _column(self, batch: pa.RecordBatch, column: OutputColumn, problems: _Problems, facts: FileFacts) -> pa.Array:
        root = column.path.root
        at = batch.schema.get_field_index(root)
        settings = column.column
        if at < 0:
            if batch.schema.get_all_field_indices(root):
                raise ColumnTwice(path=facts.path, column=root)
            default = None if settings is None else settings.default
            values = pa.nulls(batch.num_rows, column.type) if default is None else repeated(default, column.type, batch.num_rows)
        else:
            values = self._converted(batch.column(at), column, root, problems)
        if (
            values.null_count
            and (self.file_columns is None or root not in self.file_columns)
            and (value := facts.keys.get(root)) is not None
        ):
            is_inferred = column.numbers.is_inferred
            values = pc.fill_null(values, value_of_key(root, value, column.type, facts.path, is_inferred=is_inferred))
        if settings is None:
            return values
        if settings.default is not None and values.null_count:
            values = pc.fill_null(values, repeated(settings.default, column.type, 1)[0])
        if not settings.nullable and values.null_count:
            other = f": the file has {self.spelled[root]!r}, in another case" if root in self.spelled else ""
            problems.add(root, pc.is_null(values), f"is null, but the column must have a value{other}")
            values = pc.fill_null(values, _any_value(column.type))  # these rows are dropped
        return values

    def _converted(self, values: pa.Array, column: OutputColumn, root: str, problems: _Problems) -> pa.Array:
        if self.drift.changed == "widen" and not pa.types.is_null(values.type):
            wide = wider(column.type, values.type) if not values.type.equals(column.type) else column.type
            if not wide.equals(column.type) and not _is_text(values.type):
                self.shape = self.shape.with_type(root, wide)
                column = attrs.evolve(column, type=wide)
        result, bad = converted(values, column.type, column.column, drops=self.drift.extra == "ignore", numbers=column.numbers)
        if bad is None:
            return result
        match self.drift.changed:
            case "widen":
                kind, result, bad = _widened(values, column)
                self.shape = self.shape.with_type(root, kind)
                if bad is not None:
                    problems.add(root, bad, f"is not a valid {type_text(kind)}", values)
            case "null":
                self.count("values_nulled", pc.sum(bad).as_py())
            case "rescue":
                self.count("values_rescued", pc.sum(bad).as_py())
                problems.rescue_values(root, values, bad)
            case "error":
                problems.add(root, bad, f"is not a valid {type_text(column.type)}{_why(values, bad, column)}", values)
        return result

    # Rows

    def _kept(self, batch: pa.RecordBatch, problems: _Problems, loaded: Harvest, facts: FileFacts) -> list[bool]:
        is_kept = [True] * batch.num_rows
        for row, (column, reason, values) in sorted(problems.bad.items()):
            is_kept[row] = False
            origin = loaded.origin(row) if loaded.origin is not None else RowOrigin()
            value = objects(values.slice(row, 1))[0] if values is not None else None
            text = reason if value is None else f"{_shorten(value)} {reason}{self._extra_field(column, value)}"
            raw = origin.raw or ("" if value is None else text_of(value))
            self.report(BadRow(facts.path, origin.position, origin.line, column, text, raw[:SHOWN_CHARACTERS]))
        return is_kept

    def _extra_field(self, column: str, value: Any) -> str:
        """Return the reason for a bad value if it has a field that the structs of its column do not have, else an empty text."""
        kind = self.shape.known.get(column)
        field = None if kind is None else unknown_field(value, kind)
        return "" if field is None else f", which has no field {field!r} (drift.extra = 'ignore' leaves it out)"

    def _array(
        self, column: OutputColumn, roots: dict[str, pa.Array], loaded: Harvest, facts: FileFacts, problems: _Problems
    ) -> pa.Array:
        rows = loaded.batch.num_rows
        match column.kind:
            case "table":
                return part_of(roots[column.path.root], column)
            case "rescued":
                return problems.rescued()
            case "key":
                value, is_inferred = facts.keys.get(column.name), column.numbers.is_inferred
                key = value_of_key(column.name, value, column.type, facts.path, is_inferred=is_inferred)
                return repeated(key, column.type, rows)
        if column.name == "block_offset":
            positions = pa.nulls(rows, pa.int64()) if loaded.positions is None else loaded.positions
            return pc.run_end_decode(positions) if pa.types.is_run_end_encoded(positions.type) else positions
        return repeated(facts.value(column.name), column.type, rows)


def _widened(values: pa.Array, column: OutputColumn) -> tuple[pa.DataType, pa.Array, pa.Array | None]:
    """Return the narrowest wider type to which all values convert, else text, with the converted values and which are bad."""
    if _is_text(values.type) and (column.column is None or column.column.format is None):
        for kind in above(column.type):
            result, bad = converted(values, kind, column.column, numbers=column.numbers)
            if bad is None and not (pa.types.is_floating(kind) and pc.any(pc.match_substring_regex(values, LONG)).as_py()):
                return kind, result, None
    return pa.string(), *converted(values, pa.string())


def _why(values: pa.Array, bad: pa.Array, column: OutputColumn) -> str:
    """Return the reason for values that would be valid if the type was not inferred, else an empty text."""
    if not column.numbers.is_inferred or not _is_text(values.type):
        return ""
    _, wrong = converted(values.filter(bad), column.type, numbers=attrs.evolve(column.numbers, is_inferred=False))
    is_other = wrong is None or not pc.all(wrong).as_py()
    return ", the type that the sample has: written again, it would be another text" if is_other else ""


def value_of_key(key: str, value: str | None, kind: pa.DataType, path: str, *, is_inferred: bool = True) -> pa.Scalar:
    """Return the value of a key of folders, converted to a type, which was inferred from all folders or given by the user.

    Raises KeyMisfit.
    """
    result, bad = converted(pa.array([value], pa.string()), kind, numbers=INFERRED if is_inferred else PLAIN)
    if bad is not None:
        raise KeyMisfit(path=path, key=key, value=value or "", type=type_text(kind))
    return result[0]


def _shorten(value: Any) -> str:
    text = repr(text_of(value))
    return text if len(text) <= 100 else text[:100] + "…"


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _any_value(kind: pa.DataType) -> pa.Scalar:
    """Return any value of a type, in place of a null that is not allowed, in rows that are dropped."""
    types = pa.types
    if types.is_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.scalar(b"\0" * (kind.byte_width if types.is_fixed_size_binary(kind) else 0), kind)
    if types.is_struct(kind):
        return pa.scalar({f.name: None for f in kind}, kind)
    if types.is_list(kind) or types.is_map(kind):
        return pa.scalar([], kind)
    if types.is_string(kind) or types.is_large_string(kind):
        return pa.scalar("", kind)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bytes(32))])[0]  # zero, in the bytes of any other type


def repeated(value: Any, kind: pa.DataType, rows: int) -> pa.Array:
    """Return a column of one value. Text is parsed as other types.

    >>> repeated("5", pa.int8(), 2).to_pylist()
    [5, 5]
    """
    if isinstance(value, pa.Scalar):
        return pa.repeat(value, rows)
    if isinstance(value, str) and not _is_text(kind):
        result, bad = converted(pa.array([value]), kind)
        if bad is not None:
            raise ValueError(f"{value!r} is not a valid {type_text(kind)}")
        return pa.repeat(result[0], rows)
    return pa.repeat(pa.scalar(value, kind), rows)


def part_of(values: pa.Array, column: OutputColumn) -> pa.Array:
    """Return the selected part of a column. A missing element of a list and a field of null are null."""
    for step in column.path.steps:
        if isinstance(step, int):
            long = pc.if_else(pc.greater(pc.list_value_length(values), step), values, pa.scalar(None, values.type))
            padded = pc.list_slice(long, step, step + 1, return_fixed_size_list=True)
            values = pc.list_element(padded, 0)
        else:
            values = pc.struct_field(values, [step])
    return values


@attrs.define(eq=False)
class _Problems:
    """The problems of one batch: bad rows, and values that are rescued."""

    rows: int
    bad: dict[int, tuple[str, str, pa.Array | None]] = attrs.field(factory=dict)
    _values: dict[int, dict[str, Any]] = attrs.field(factory=dict)

    def add(self, column: str, bad: pa.Array, reason: str, values: pa.Array | None = None) -> None:
        """Record bad rows, each with the first column that is to blame."""
        for row in pc.indices_nonzero(bad).to_pylist():
            self.bad.setdefault(row, (column, reason, values))

    def rescue_values(self, column: str, values: pa.Array, bad: pa.Array) -> None:
        """Record values that do not have the type of their column."""
        for row in pc.indices_nonzero(bad).to_pylist():
            self._values.setdefault(row, {})[column] = objects(values.slice(row, 1))[0]

    def rescue(self, batch: pa.RecordBatch, columns: list[str]) -> None:
        """Record the values of unknown columns."""
        for name in columns:
            values = batch.column(name)
            for row in pc.indices_nonzero(pc.is_valid(values)).to_pylist():
                self._values.setdefault(row, {})[name] = objects(values.slice(row, 1))[0]

    def rescued(self) -> pa.Array:
        """Return the column `_rescued`."""
        texts: list[str | None] = [None] * self.rows
        for row, values in self._values.items():
            texts[row] = json.dumps(values, ensure_ascii=False, default=text_of)
        return pa.array(texts, pa.string())

"""The schema that a user provides for a scan, and the policy for files that differ from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import attrs

from dagflow.model.operator.validators import one_of
from dagflow.scan.schema.time_formats import format_problem

if TYPE_CHECKING:
    import pyarrow as pa

    from dagflow.scan.schema.numbers import NumberText

ON_MISSING = ("null", "error")
ON_EXTRA = ("error", "ignore", "widen", "rescue")
ON_CHANGED = ("error", "null", "widen", "rescue")
RESCUED = "_rescued"
"""The column of rescued values: a JSON object of column names and values; null if there are none."""


def _a_format(column: Column, _: object, written: str | None) -> None:
    if written is None or column.type is None:  # without a type, it is checked once the column has that of its field
        return
    if (problem := format_problem(written, column.arrow)) is not None:
        raise ValueError(f"{problem} (it is {written!r})")


@attrs.frozen
class Column:
    """A column of a scan: its type, and the way in which text becomes a value of it.

    Args:
        type: an Arrow type or its text, `decimal128(10, 2)`. None: that of the field in the record class (`ScanReader[Trip]`).
        nullable: if False, a null is a bad row, unless there is a default.
        default: the value in place of nulls, and in files that lack the column.
        format: of dates and times, with directives as in `strptime` (docs/reference/formats.md lists them); ISO by default.
        blank: the meaning of text that consists of spaces, in columns of other types: "null" or "zero".
        decimal, thousands: the decimal point of numbers in text, and the character between groups of three digits; None: as the
            format has them, by default a point and none.
    """

    type: Any = None
    nullable: bool = attrs.field(default=True, kw_only=True)
    default: Any = attrs.field(default=None, kw_only=True)
    format: str | None = attrs.field(default=None, kw_only=True, validator=_a_format)
    blank: Literal["null", "zero"] = attrs.field(default="null", kw_only=True, validator=one_of(("null", "zero")))
    decimal: str | None = attrs.field(default=None, kw_only=True)
    thousands: str | None = attrs.field(default=None, kw_only=True)

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type. Raises ValueError if the text does not name one."""
        from dagflow.scan.schema.types import to_type

        if self.type is None:
            raise ValueError("a Column has no type: Column('date32', …); only those of a class of records may do without")
        return to_type(self.type)

    @property
    def spells_numbers(self) -> bool:
        """Return whether the column has a spelling of numbers of its own."""
        return self.decimal is not None or self.thousands is not None

    def numbers(self, of_format: NumberText) -> NumberText:
        """Return the spelling of numbers in the column, in files of a format with another one."""
        from dagflow.scan.schema.numbers import NumberText

        usual = "" if self.decimal is not None else of_format.thousands  # a point of its own needs no separator of the format
        thousands = self.thousands if self.thousands is not None else usual
        return NumberText(self.decimal if self.decimal is not None else of_format.decimal, thousands)


def to_columns(source: Any) -> dict[str, Column]:
    """Return columns by name, from any argument of TableSchema.of."""
    if isinstance(source, str):
        source = _pairs(source)
    elif hasattr(source, "names") and hasattr(source, "field"):
        source = [(f.name, Column(f.type, nullable=f.nullable)) for f in source]
    elif isinstance(source, Mapping):
        source = source.items()
    elif (fields := _of_class(source)) is not None:
        source = fields
    if not isinstance(source, Iterable):
        raise TypeError(f"{source!r} is not a schema: write {{'name': 'int64', …}} or 'name: int64, …'")
    columns: dict[str, Column] = {}
    for name, kind in source:
        if name in columns:
            raise ValueError(f"column {name!r} is in the schema twice")
        column = kind if isinstance(kind, Column) else Column(kind)
        if column.type is not None:
            _ = column.arrow
        columns[name] = column
    return columns


def _of_class(kind: Any) -> list[tuple[str, Column]] | None:
    """Return the columns of the records of a class with fields; a field that may not be None is a column without nulls."""
    from dagflow.model.types.columns import fields_of_type
    from dagflow.model.types.comparison import type_name
    from dagflow.model.types.forms import arrow_type, columns_of

    if not (isinstance(kind, type) or get_origin(kind) is not None):
        return None
    if (fields := columns_of(kind)) is None:
        for name, of_field in fields_of_type(kind).items():
            if arrow_type(of_field) is None:
                raise ValueError(
                    f"field {name!r} of class {type_name(kind)} is a {type_name(of_field)}, which no column has (a Decimal "
                    "does not say its digits): make it a float, int or str, or read rows without a class, by a schema: "
                    f'"{name}: decimal128(12, 2), …"'
                )
        return None
    types = fields_of_type(kind)
    return [(f.name, Column(f.type, nullable=type(None) in get_args(types[f.name]))) for f in fields]


def _pairs(text: str) -> list[tuple[str, str]]:
    """Return the names and types of `a: int64, b: list<struct<c: string>>`."""
    parts, depth, begin = [], 0, 0
    for at, character in enumerate(text):
        depth += (character in "<([") - (character in ">)]")
        if character == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    parts.append(text[begin:])
    pairs = []
    for part in filter(str.strip, parts):
        match = re.fullmatch(r"\s*(`[^`]+`|[^:`]+?)\s*:\s*(.+?)\s*", part, re.DOTALL)
        if match is None:
            raise ValueError(f"{part.strip()!r} is not a column: write NAME: TYPE")
        pairs.append((match[1].strip("`"), match[2]))
    return pairs


@attrs.frozen
class TableSchema:
    """The columns of a scan that the user provides, in their order.

    If it is not `strict`, `*` selects these columns, then all others of the files. If it is strict, `*` selects exactly these;
    other columns of files are left out, and may not be selected; keys of folders may. `record_class`: the name of the class that
    it was made of.

    >>> TableSchema.of("id: int64, tags: list<string>").columns["tags"].arrow
    ListType(list<item: string>)
    """

    columns: Mapping[str, Column] = attrs.field(converter=to_columns)
    strict: bool = attrs.field(default=False, kw_only=True)
    record_class: str = attrs.field(default="", kw_only=True, eq=False)

    @classmethod
    def of(cls, source: Any, *, strict: bool = False) -> TableSchema:
        """Make a schema from a `pyarrow.Schema`, a mapping of names to types, a string, or a class with fields.

        Raises ValueError, TypeError.
        """
        if isinstance(source, cls):
            return source
        kind = get_origin(source) or source
        return cls(source, strict=strict, record_class=kind.__name__ if isinstance(kind, type) else "")

    def with_formats(self, formats: TableSchema) -> TableSchema:
        """Return this schema, which a class gives, with the formats, defaults and spellings of columns of another.

        Raises ValueError for columns that the class does not have, and for other types.

        >>> own = TableSchema("day: date32, n: int64", record_class="Trip")
        >>> own.with_formats(TableSchema({"day": Column(format="%d.%m.%Y")})).columns["day"]
        Column(type='date32', nullable=True, default=None, format='%d.%m.%Y', blank='null', decimal=None, thousands=None)
        """
        from dagflow.arrow_types import type_text
        from dagflow.errors.wording import did_you_mean

        columns = dict(self.columns)
        for name, column in formats.columns.items():
            own = columns.get(name)
            if own is None:
                near = did_you_mean(name, columns, otherwise=f" Its fields: {', '.join(columns)}")
                raise ValueError(f"schema has the column {name!r}, which is not a field of {self.record_class}.{near}")
            if column.type is not None and not column.arrow.equals(own.arrow):
                raise ValueError(
                    f"column {name!r} is {type_text(column.arrow)} in schema, and {type_text(own.arrow)} in class "
                    f"{self.record_class}: leave the type out, Column(format=…), or change the class"
                )
            columns[name] = attrs.evolve(column, type=own.type, nullable=own.nullable and column.nullable)
        return attrs.evolve(self, columns=columns)

    @property
    def parsed(self) -> frozenset[str]:
        """The columns whose text is parsed in a special way: with a format, or with blanks that are zero."""
        return frozenset(name for name, column in self.columns.items() if column.format is not None or column.blank != "null")

    @property
    def arrow(self) -> pa.Schema:
        """The schema as Arrow has it."""
        import pyarrow as pa

        return pa.schema([pa.field(name, column.arrow, nullable=column.nullable) for name, column in self.columns.items()])


@attrs.frozen(kw_only=True)
class Drift:
    """The policy for files that differ from the schema that was given or agreed.

    Args:
        missing: for a file that lacks a column, in its folders, too: "null" (or the column's default), or "error". Formats that
            do not declare columns, and are read in parts, do not support "error" (MissingUntold).
        extra: for a file with a further column: "error"; "ignore" it; "widen": it is a column from there on; "rescue" its values
            into the column `_rescued`. It matters only if all columns are selected.
        changed: for a value that does not have its column's type: "error": its row is a bad row (see `on_bad_row`); "null" in
            its place; "widen": the column's type becomes wide enough, float64 for numbers, at worst text; "rescue" it into
            `_rescued`, with null in its place.
    """

    missing: Literal["null", "error"] = attrs.field(default="null", validator=one_of(ON_MISSING))
    extra: Literal["error", "ignore", "widen", "rescue"] = attrs.field(default="error", validator=one_of(ON_EXTRA))
    changed: Literal["error", "null", "widen", "rescue"] = attrs.field(default="error", validator=one_of(ON_CHANGED))

    @property
    def rescues(self) -> bool:
        """Return whether there is a column `_rescued`."""
        return "rescue" in (self.extra, self.changed)

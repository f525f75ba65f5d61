"""Errors of joins."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import RunError, error

LARGEST = (1 << 31) - 1
"""The most bytes that a string column of Arrow holds in one piece, and so the largest side of a join."""


@error(kw_only=True)
class JoinSideTooLarge(RunError):
    """A side of a join has more records in one partition than the limits of memory allow.

    Attributes:
        side: `left` or `right`.
        unit: `records` or `bytes`.
        most, found: the limit, and the amount that had arrived when it was exceeded.
    """

    code: ClassVar[str] = "DF386"
    example = {
        "operator": "join",
        "window": 3,
        "side": "right",
        "unit": "records",
        "most": 5_000_000,
        "found": 5_000_001,
        "partition": 0,
        "partitions": 2,
    }
    is_fatal: ClassVar[bool] = True

    operator: str
    window: int
    side: str
    unit: str
    most: int
    found: int
    partition: int
    partitions: int

    def message(self) -> str:
        setting = "max_right_rows" if self.unit == "records" else "max_right_bytes"
        has_setting = self.side == "right" and (self.most < LARGEST or self.unit == "records")
        room = f"; or, if memory allows, raise {setting}" if has_setting else ""
        smaller = "connect the smaller stream to `right`; or " if self.side == "right" else ""
        return (
            f"operator {self.operator!r}: in window {self.window}, the {self.side} side has more than {self.most:,} {self.unit} "
            f"in partition {self.partition} of {self.partitions}, which keeps them in memory ({self.found:,} so far)\n"
            f"  help: {smaller}spread it over more partitions,\n"
            f"        -D operator.{self.operator}.partitioner={max(4 * self.partitions, 8)}{room}"
        )


@error(kw_only=True)
class JoinColumnsClash(RunError, ValueError):
    """Columns of both sides have the same name, even with the suffix of the right side."""

    code: ClassVar[str] = "DF387"
    example = {"operator": "join", "window": 3, "columns": ("city_right",), "suffix": "_right"}
    is_fatal: ClassVar[bool] = True

    operator: str
    window: int
    columns: tuple[str, ...]
    suffix: str

    def message(self) -> str:
        names = ", ".join(map(repr, self.columns))
        return (
            f"operator {self.operator!r}: in window {self.window}, both sides have {names}, even with the suffix {self.suffix!r} "
            "of the right side\n"
            '  help: set another suffix (suffix="_of_right"), or rename or drop the columns before the join'
        )


@error(kw_only=True)
class JoinColumnsUnknown(RunError, ValueError):
    """A join has to emit nulls for the columns of a side, and does not know them, since it got no record there."""

    code: ClassVar[str] = "DF388"
    example = {"operator": "join", "window": 3, "side": "right", "partition": 0, "partitions": 2}
    is_fatal: ClassVar[bool] = True

    operator: str
    window: int
    side: str
    partition: int
    partitions: int

    def message(self) -> str:
        declare = 'declare them, right_columns="name: string, people: int64"; or ' if self.side == "right" else ""
        return (
            f"operator {self.operator!r}: in window {self.window}, no record arrived on the {self.side} side in partition "
            f"{self.partition} of {self.partitions}, and the columns of its records are not declared\n"
            f"  help: {declare}annotate the function that makes these records"
        )


@error(kw_only=True)
class JoinKeyRefused(RunError, TypeError):
    """Rows cannot be joined by a column of lists or structs. `side` is `left` or `right`."""

    code: ClassVar[str] = "DF392"
    example = {"operator": "join", "side": "left", "column": "tags", "type": "list<item: string>"}
    is_fatal: ClassVar[bool] = True

    operator: str
    side: str
    column: str
    type: str

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: rows cannot be joined by the column {self.column!r} of the {self.side} side: "
            f"its values are {self.type}, which cannot be keys\n"
            f"  help: join records: combine=…, and as the key a function, lambda record: tuple(record.{self.column})"
        )


@error(kw_only=True)
class JoinColumnsDiffer(RunError, ValueError):
    """The right side of a join does not have the columns of `right_columns`.

    Attributes:
        found, said: names and types of the columns that arrive, and of `right_columns`.
    """

    code: ClassVar[str] = "DF393"
    example = {"operator": "join", "window": 3, "found": (("city", "string"),), "said": (("town", "string"),)}
    is_fatal: ClassVar[bool] = True

    operator: str
    window: int
    found: tuple[tuple[str, str], ...]
    said: tuple[tuple[str, str], ...]

    def message(self) -> str:
        found, said = (", ".join(f"{name}: {kind}" for name, kind in columns) for columns in (self.found, self.said))
        return (
            f"operator {self.operator!r}: in window {self.window}, the right side does not have the columns of right_columns\n"
            f"  right_columns  {said}\n"
            f"  arrived        {found}\n"
            "  help: declare the columns that arrive, or change them: with Map, or with columns and schema of the reader"
        )


@error(kw_only=True)
class JoinColumnChanged(RunError, TypeError):
    """A side of a join has a column of another type than before. `side` is `left` or `right`."""

    code: ClassVar[str] = "DF793"
    example = {"side": "left", "column": "price", "before": "int64", "now": "double"}
    is_fatal: ClassVar[bool] = True

    side: str
    column: str
    before: str
    now: str

    def message(self) -> str:
        return (
            f"the column {self.column!r} of the {self.side} side is {self.now}, and was {self.before} before: "
            "it cannot be kept with earlier rows\n"
            f"  help: give the reader one type for it: ScanReader(…, schema={{{self.column!r}: {self.now!r}}})"
        )


@error(kw_only=True)
class JoinRecordNotKept(RunError, TypeError):
    """A join cannot keep a record over windows. `what` is `record` or `key`."""

    code: ClassVar[str] = "DF794"
    example = {"operator": "join", "what": "record", "reason": "a key or a value of type Town cannot be kept over windows"}
    is_fatal: ClassVar[bool] = True

    operator: str
    what: str
    reason: str

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: a {self.what} cannot be kept for later windows: {self.reason}\n"
            "  help: annotate the functions that make the records with an attrs class whose fields are plain data, and let the key\n"
            '        be plain data; or join the records of each window only: scope="window"'
        )


@error(kw_only=True)
class JoinKeysDiffer(RunError, TypeError):
    """A row of the right side without a partner has a key that the column of the left side does not hold. `types`: of both."""

    code: ClassVar[str] = "DF795"
    example = {"operator": "join", "column": "id", "types": ("int64", "double")}
    is_fatal: ClassVar[bool] = True

    operator: str
    column: str
    types: tuple[str, str]

    def message(self) -> str:
        left, right = self.types
        return (
            f"operator {self.operator!r}: the key {self.column!r} is {left} on the left side, and {right} on the right side, whose\n"
            "  rows come without a partner too: the column cannot have the values of both\n"
            f"  help: give both sides a type that holds all keys: ScanReader(…, schema={{{self.column!r}: …}}),\n"
            f"        or Select('*', {self.column}=col({self.column!r}).cast(…)) before the join"
        )

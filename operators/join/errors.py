"""Errors of joins."""

from __future__ import annotations

from dagflow.errors import RunError, error

LARGEST = (1 << 31) - 1
"""The most bytes that a string column of Arrow holds in one piece, and so the largest side of a join."""


@error("DF386", kw_only=True, is_fatal=True)
class JoinSideTooLarge(RunError):
    """A side of a join has more records in one partition than the limits of memory allow.

    Attributes:
        side: `left` or `right`.
        unit: `records` or `bytes`.
        most, found: the limit, and the amount that had arrived when it was exceeded.
    """

    operator: str
    window: int
    side: str
    unit: str
    most: int
    found: int
    partition: int
    partitions: int
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


@error("DF387", kw_only=True, is_fatal=True)
class JoinColumnsClash(RunError, ValueError):
    """Columns of both sides have the same name, even with the suffix of the right side."""

    operator: str
    window: int
    columns: tuple[str, ...]
    suffix: str
    template = (
        "operator {operator!r}: in window {window}, both sides have {columns!r}, "
        "even with the suffix {suffix!r} of the right side\n"
        '  help: set another suffix (suffix="_of_right"), or rename or drop the columns before the join'
    )
    example = {"operator": "join", "window": 3, "columns": ("city_right",), "suffix": "_right"}


@error("DF388", kw_only=True, is_fatal=True)
class JoinColumnsUnknown(RunError, ValueError):
    """A join has to emit nulls for the columns of a side, and does not know them, since it got no record there."""

    operator: str
    window: int
    side: str
    partition: int
    partitions: int
    template = (
        "operator {operator!r}: in window {window}, no record arrived on the {side} side in partition {partition} of "
        "{partitions}, and the columns of its records are not declared\n"
        '  help: {side:=right?declare them, right_columns="name: string, people: int64"; or }annotate the function that makes '
        "these records"
    )
    example = {"operator": "join", "window": 3, "side": "right", "partition": 0, "partitions": 2}


@error("DF392", kw_only=True, is_fatal=True)
class JoinKeyRefused(RunError, TypeError):
    """Rows cannot be joined by a column of lists or structs. `side` is `left` or `right`."""

    operator: str
    side: str
    column: str
    type: str
    template = (
        "operator {operator!r}: rows cannot be joined by the column {column!r} of the {side} side: its values are {type}, "
        "which cannot be keys\n"
        "  help: join records: combine=…, and as the key a function, lambda record: tuple(record.{column})"
    )
    example = {"operator": "join", "side": "left", "column": "tags", "type": "list<item: string>"}


@error("DF393", kw_only=True, is_fatal=True)
class JoinColumnsDiffer(RunError, ValueError):
    """The right side of a join does not have the columns of `right_columns`.

    Attributes:
        found, said: names and types of the columns that arrive, and of `right_columns`.
    """

    operator: str
    window: int
    found: tuple[tuple[str, str], ...]
    said: tuple[tuple[str, str], ...]
    example = {"operator": "join", "window": 3, "found": (("city", "string"),), "said": (("town", "string"),)}

    def message(self) -> str:
        arrived, said = (", ".join(f"{name}: {kind}" for name, kind in columns) for columns in (self.found, self.said))
        return (
            f"operator {self.operator!r}: in window {self.window}, the right side does not have the columns of right_columns\n"
            f"  right_columns  {said}\n"
            f"  arrived        {arrived}\n"
            "  help: declare the columns that arrive, or change them: with Map, or with columns and schema of the reader"
        )


@error("DF793", kw_only=True, is_fatal=True)
class JoinColumnChanged(RunError, TypeError):
    """A side of a join has a column of another type than before. `side` is `left` or `right`."""

    side: str
    column: str
    before: str
    now: str
    template = (
        "the column {column!r} of the {side} side is {now}, and was {before} before: it cannot be kept with earlier rows\n"
        "  help: give the reader one type for it: ScanReader(…, schema={{{column!r}: {now!r}}})"
    )
    example = {"side": "left", "column": "price", "before": "int64", "now": "double"}


@error("DF794", kw_only=True, is_fatal=True)
class JoinRecordNotKept(RunError, TypeError):
    """A join cannot keep a record over windows. `what` is `record` or `key`."""

    operator: str
    what: str
    reason: str
    template = (
        "operator {operator!r}: a {what} cannot be kept for later windows: {reason}\n"
        "  help: annotate the functions that make the records with an attrs class whose fields are plain data, and let the key\n"
        '        be plain data; or join the records of each window only: scope="window"'
    )
    example = {"operator": "join", "what": "record", "reason": "a key or a value of type Town cannot be kept over windows"}


@error("DF795", kw_only=True, is_fatal=True)
class JoinKeysDiffer(RunError, TypeError):
    """A row of the right side without a partner has a key that the column of the left side does not hold. `types`: of both."""

    operator: str
    column: str
    types: tuple[str, str]
    example = {"operator": "join", "column": "id", "types": ("int64", "double")}

    def message(self) -> str:
        left, right = self.types
        return (
            f"operator {self.operator!r}: the key {self.column!r} is {left} on the left side, and {right} on the right side, whose\n"
            "  rows come without a partner too: the column cannot have the values of both\n"
            f"  help: give both sides a type that holds all keys: ScanReader(…, schema={{{self.column!r}: …}}),\n"
            f"        or Select('*', {self.column}=col({self.column!r}).cast(…)) before the join"
        )

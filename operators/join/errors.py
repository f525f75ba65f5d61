"""Errors of joins."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import RunError, error

LARGEST = (1 << 31) - 1
"""The most bytes that a string column of Arrow holds in one piece, and so the largest side of a join."""


@error(kw_only=True)
class JoinSideTooLarge(RunError):
    """The right side of a join has more records in one partition than the limits of memory allow.

    Attributes:
        setting: the property of the operator: `max_right_rows` or `max_right_bytes`.
        most, found: the limit, and the amount that had arrived when it was exceeded; in records, or in bytes.
    """

    code: ClassVar[str] = "DF386"
    example = {
        "operator": "join",
        "window": 3,
        "setting": "max_right_rows",
        "most": 5_000_000,
        "found": 5_000_001,
        "partition": 0,
        "partitions": 2,
    }
    is_fatal: ClassVar[bool] = True

    operator: str
    window: int
    setting: str
    most: int
    found: int
    partition: int
    partitions: int

    def message(self) -> str:
        unit = "records" if self.setting == "max_right_rows" else "bytes"
        room = f"; or, if memory allows, raise {self.setting}" if self.most < LARGEST or unit == "records" else ""
        return (
            f"operator {self.operator!r}: in window {self.window}, the right side has more than {self.most:,} {unit} "
            f"in partition {self.partition} of {self.partitions}, which keeps them in memory ({self.found:,} so far)\n"
            "  help: connect the smaller stream to `right`; or spread it over more partitions,\n"
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
    """A left join got no record on the right side, so it does not know the columns there."""

    code: ClassVar[str] = "DF388"
    example = {"operator": "join", "window": 3, "partition": 0, "partitions": 2}
    is_fatal: ClassVar[bool] = True

    operator: str
    window: int
    partition: int
    partitions: int

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: in window {self.window}, no record arrived on the right side in partition "
            f"{self.partition} of {self.partitions}, and the columns of its records are not declared\n"
            '  help: declare them, right_columns="name: string, people: int64"; or annotate the function that makes these records'
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

"""What can be wrong with a join.

RunError
├── JoinSideTooLarge     DF460
├── JoinColumnsClash     DF461   also a ValueError
└── JoinColumnsUnknown   DF462   also a ValueError
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from dagflow.errors import RunError


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class JoinSideTooLarge(RunError):
    """A partition has more rows on the right side of a join than it is to keep in memory.

    Attributes:
        most: how many rows it may be.
    """

    code: ClassVar[str] = "DF460"
    is_fatal: ClassVar[bool] = True

    operator: str
    most: int
    partition: int
    partitions: int

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: the right side has more than {self.most:,} records in partition {self.partition} of "
            f"{self.partitions}, which keeps them in memory\n"
            "  help: connect the smaller stream to `right`; or share it among more partitions,\n"
            f"        -D operator.{self.operator}.partitioner={max(4 * self.partitions, 8)}; or, where there is room, set "
            "most_right_rows"
        )


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class JoinColumnsClash(RunError, ValueError):
    """Columns of both sides have the same name, also with the suffix of the right side."""

    code: ClassVar[str] = "DF461"
    is_fatal: ClassVar[bool] = True

    operator: str
    columns: tuple[str, ...]
    suffix: str

    def message(self) -> str:
        names = ", ".join(map(repr, self.columns))
        return (
            f"operator {self.operator!r}: both sides have {names}, also with the suffix {self.suffix!r} of the right side\n"
            '  help: set another suffix (suffix="_of_right"), or rename or drop the columns before the join'
        )


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class JoinColumnsUnknown(RunError, ValueError):
    """A left join has no record on the right side, and nothing says which columns these have: which nulls to write."""

    code: ClassVar[str] = "DF462"
    is_fatal: ClassVar[bool] = True

    operator: str

    def message(self) -> str:
        return (
            f"operator {self.operator!r}: no record came on the right side, and nothing tells which columns its records have\n"
            '  help: say them, right_columns="name: string, people: int64"; or annotate the function that makes these records'
        )

"""What can be wrong with the keys of groups.

RunError
└── KeyColumnRefused   DF463   also a TypeError
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from dagflow.errors import RunError


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class KeyColumnRefused(RunError, TypeError):
    """Records are to be grouped by a column of lists or structs, which are no keys."""

    code: ClassVar[str] = "DF463"
    is_fatal: ClassVar[bool] = True

    column: str
    type: str

    def message(self) -> str:
        return (
            f"records cannot be grouped by the column {self.column!r}: its values are {self.type}, which are no keys\n"
            f"  help: give a function that makes text or a tuple of it: by=lambda record: tuple(record.{self.column})"
        )

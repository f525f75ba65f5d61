"""What can be wrong with a pyarrow expression.

RunError
└── ExpressionRefused   DF332   also a ValueError
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from dagflow.errors import RunError


@attrs.define(slots=False, eq=False, str=False, repr=False, kw_only=True)
class ExpressionRefused(RunError, ValueError):
    """An expression does not fit the batches that arrive.

    `columns` are the names and types of what arrived; `help` is what to do, empty where there is nothing to say.
    """

    code: ClassVar[str] = "DF332"
    is_fatal: ClassVar[bool] = True

    operator: str
    expression: str
    reason: str
    columns: tuple[tuple[str, str], ...]
    help: str = ""

    def message(self) -> str:
        lines = [
            f"{self.operator}: {self.reason}",
            f"  expression  {self.expression}",
            f"  columns     {', '.join(f'{name} ({kind})' for name, kind in self.columns) or 'none'}",
        ]
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)

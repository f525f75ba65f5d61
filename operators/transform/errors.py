"""Errors of pyarrow expressions and of functions of records."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import RunError, error


@error(kw_only=True)
class ExpressionRefused(RunError, ValueError):
    """An expression does not fit the batches that arrive.

    `columns`: the names and types of the columns that arrived; `help`: the remedy, may be empty.
    """

    code: ClassVar[str] = "DF332"
    example = {
        "operator": "filter",
        "expression": '(contry == "DE")',
        "reason": "there is no column 'contry'",
        "columns": (("country", "string"),),
        "help": 'write pc.field("country")',
    }
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


@error(kw_only=True)
class NotSeveral(RunError, TypeError):
    """The function of a `FlatMap` returned a string, or a value that is not iterable."""

    code: ClassVar[str] = "DF384"
    example = {"function": "split()", "got": "the str 'a b'"}

    function: str
    got: str

    def message(self) -> str:
        return (
            f"the function of a FlatMap must return several records, but {self.function} returned {self.got}\n"
            "  help: return a list, which may be empty, or yield; use Map where every record becomes exactly one"
        )

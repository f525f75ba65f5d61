"""What can be wrong with what sinks are given.

RunError
├── FileNameRefused          DF333   also a ValueError
├── NotText                  DF334   also a TypeError
├── PartitionColumnRefused   DF335   also a ValueError
├── ColumnsChanged           DF336   also a TypeError
├── TypeNotWritable          DF337   also a TypeError
├── ValueNotWritable         DF338   also a ValueError
└── RowsNotWritable          DF654   also a ValueError
"""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import RunError, error


@error(kw_only=True)
class FileNameRefused(RunError, ValueError):
    """A record is to be written to a file that does not belong into the output folder. `given_by`: what has named it."""

    code: ClassVar[str] = "DF333"

    operator: str
    name: str
    reason: str
    given_by: str = "get_file_name()"

    def message(self) -> str:
        return (
            f"{self.operator}: {self.given_by} gave {self.name!r}: {self.reason}\n"
            "  help: name files relative to the output folder, 'errors.txt' or '2026/errors.txt', no part with _ or . before it"
        )


@error(kw_only=True)
class NotText(RunError, TypeError):
    """A sink of text was given something else. `got` names it, `method` what could be overridden instead."""

    code: ClassVar[str] = "DF334"

    operator: str
    got: str
    method: str = "get_bytes_for_tuple"

    def message(self) -> str:
        return (
            f"{self.operator} writes str, bytes and ReaderRecords of these; it was given {self.got}\n"
            f"  help: put Map(…) before it, which makes text of the record, or override {self.method}(record)"
        )


@error(kw_only=True)
class PartitionColumnRefused(RunError, ValueError):
    """Folders cannot be named by a column. `known`: the columns that there are, where it is none of them."""

    code: ClassVar[str] = "DF335"
    is_fatal: ClassVar[bool] = True

    operator: str
    column: str
    reason: str
    known: tuple[str, ...] = ()

    def message(self) -> str:
        advice = f"there are {', '.join(self.known)}" if self.known else "take it out of partition_columns, or cast it before"
        return f"{self.operator}: no folders can be named by column {self.column!r}: {self.reason}\n  help: {advice}"


@error(kw_only=True)
class ColumnsChanged(RunError, TypeError):
    """A batch has other columns than those before it in the same window. `differences`: each a phrase."""

    code: ClassVar[str] = "DF336"
    is_fatal: ClassVar[bool] = True

    operator: str
    file: str
    differences: tuple[str, ...]

    def message(self) -> str:
        return (
            f"{self.operator}: a batch does not fit the columns of {self.file}: {'; '.join(self.differences)}\n"
            "  help: give the reader a schema, so that all batches have the same columns; or let each set of columns\n"
            "        have files of its own: on_schema_change='new_file'"
        )


@error(kw_only=True)
class TypeNotWritable(RunError, TypeError):
    """A column's type has no form in the file's format. `help`: what to do instead."""

    code: ClassVar[str] = "DF337"
    is_fatal: ClassVar[bool] = True

    operator: str
    column: str
    type: str
    format: str
    help: str

    def message(self) -> str:
        what = f"column {self.column!r} is of type {self.type}"
        return f"{self.operator}: {what}, which {self.format} has no form for\n  help: {self.help}"


@error(kw_only=True)
class ValueNotWritable(RunError, ValueError):
    """A value has no form in the file's format. `help`: what to do instead."""

    code: ClassVar[str] = "DF338"

    operator: str
    column: str
    value: str
    format: str
    help: str

    def message(self) -> str:
        return (
            f"{self.operator}: column {self.column!r} has {self.value}, which {self.format} has no form for\n  help: {self.help}"
        )


@error(kw_only=True)
class RowsNotWritable(RunError, ValueError):
    """Arrow cannot write rows that wait. `file`: what they were to be in; `columns`: their types; `reason`: what Arrow says."""

    code: ClassVar[str] = "DF654"
    is_fatal: ClassVar[bool] = True

    operator: str
    file: str
    columns: str
    reason: str

    def message(self) -> str:
        return (
            f"{self.operator}: rows of {self.file} ({self.columns}) cannot be written: {self.reason}\n"
            "  help: cast the column, or leave such rows out, before they come here"
        )

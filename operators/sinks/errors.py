"""Errors of records that a sink cannot write."""

from __future__ import annotations

from typing import ClassVar

from dagflow.errors import RunError, error


@error(kw_only=True)
class FileNameRefused(RunError, ValueError):
    """A record would go to a file outside the output folder, or with a reserved name. `given_by`: the source of the name."""

    code: ClassVar[str] = "DF333"
    example = {"operator": "sink", "name": "../a.txt", "reason": "it leads out of the output folder"}

    operator: str
    name: str
    reason: str
    given_by: str = "get_file_name()"

    def message(self) -> str:
        return (
            f"{self.operator}: {self.given_by} gave {self.name!r}: {self.reason}\n"
            "  help: name files relative to the output folder, 'errors.txt' or '2026/errors.txt', no part begins with _ or ."
        )


@error(kw_only=True)
class NotText(RunError, TypeError):
    """A sink of text got a record that is not text. `got`: the record; `method`: the method that may be overridden to write it."""

    code: ClassVar[str] = "DF334"
    example = {"operator": "sink", "got": "7, an int"}

    operator: str
    got: str
    method: str = "get_bytes_for_tuple"

    def message(self) -> str:
        advice = f"put Map(…) before it to turn each record into a string, or override {self.method}(record)"
        if self.got.startswith("None "):
            advice = "a function before it returns None: let it return the record that is to be written"
        return f"{self.operator} writes str, bytes and ReaderRecords of these, but got {self.got}\n  help: {advice}"


@error(kw_only=True)
class PartitionColumnRefused(RunError, ValueError):
    """A column cannot name folders. `known`: the existing columns, if it is not one of them."""

    code: ClassVar[str] = "DF335"
    example = {"operator": "sink", "column": "contry", "reason": "there is no such column", "known": ("country", "city")}
    is_fatal: ClassVar[bool] = True

    operator: str
    column: str
    reason: str
    known: tuple[str, ...] = ()

    def message(self) -> str:
        advice = (
            f"the columns are {', '.join(self.known)}" if self.known else "remove it from partition_columns, or cast it upstream"
        )
        return f"{self.operator}: folders cannot be named by column {self.column!r}: {self.reason}\n  help: {advice}"


@error(kw_only=True)
class ColumnsChanged(RunError, TypeError):
    """A batch has other columns than earlier ones of the same window. `differences`: a phrase for each."""

    code: ClassVar[str] = "DF336"
    example = {"operator": "sink", "file": "part-3.parquet", "differences": ("count is string, not int64",)}
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
class ColumnNamesClash(RunError, TypeError):
    """Rows have two columns of one name. `target`: the file or table that has one column for a name."""

    code: ClassVar[str] = "DF720"
    example = {"operator": "sink", "columns": ("id", "ID"), "target": "Delta"}
    is_fatal: ClassVar[bool] = True

    operator: str
    columns: tuple[str, str]
    target: str

    def message(self) -> str:
        first, second = self.columns
        what = f"two columns are named {first!r}" if first == second else f"columns {first!r} and {second!r} are one column"
        return f"{self.operator}: {what}, for {self.target}\n  help: rename one of them, or leave it out, before it comes here"


@error(kw_only=True)
class TypeNotWritable(RunError, TypeError):
    """The format of a file does not support the type of a column. `help`: what to do instead."""

    code: ClassVar[str] = "DF337"
    example = {
        "operator": "sink",
        "column": "tags",
        "type": "list<item: string>",
        "format": "CSV",
        "help": "turn it into text with Map(…)",
    }
    is_fatal: ClassVar[bool] = True

    operator: str
    column: str
    type: str
    format: str
    help: str

    def message(self) -> str:
        what = f"column {self.column!r} is of type {self.type}"
        return f"{self.operator}: {what}, which {self.format} does not support\n  help: {self.help}"


@error(kw_only=True)
class ValueNotWritable(RunError, ValueError):
    """The format of a file does not support a value. `help`: what to do instead."""

    code: ClassVar[str] = "DF338"
    example = {
        "operator": "sink",
        "column": "ratio",
        "value": "nan",
        "format": "JSON",
        "help": "leave such rows out with Filter(…)",
    }

    operator: str
    column: str
    value: str
    format: str
    help: str

    def message(self) -> str:
        return (
            f"{self.operator}: column {self.column!r} has {self.value}, which {self.format} does not support\n  help: {self.help}"
        )


@error(kw_only=True)
class RowsNotWritable(RunError, ValueError):
    """Arrow cannot write the rows of a file. `columns`: names and types; `reason`: Arrow's message."""

    code: ClassVar[str] = "DF654"
    example = {"operator": "sink", "file": "part-3.parquet", "columns": "when: timestamp[ns]", "reason": "a time is out of range"}
    is_fatal: ClassVar[bool] = True

    operator: str
    file: str
    columns: str
    reason: str

    def message(self) -> str:
        return (
            f"{self.operator}: rows of {self.file} ({self.columns}) cannot be written: {self.reason}\n"
            "  help: cast the column or leave such rows out upstream"
        )

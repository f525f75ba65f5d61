"""Errors of records that a sink cannot write."""

from __future__ import annotations

from dagflow.errors import RunError, error


@error("DF333", kw_only=True)
class FileNameRefused(RunError, ValueError):
    """A record would go to a file outside the output folder, or with a reserved name. `given_by`: the source of the name."""

    operator: str
    name: str
    reason: str
    given_by: str = "get_file_name()"
    template = (
        "{operator}: {given_by} gave {name!r}: {reason}\n"
        "  help: name files relative to the output folder, 'errors.txt' or '2026/errors.txt', no part begins with _ or ."
    )
    example = {"operator": "sink", "name": "../a.txt", "reason": "it leads out of the output folder"}


@error("DF334", kw_only=True)
class NotText(RunError, TypeError):
    """A sink of text got a record that is not text. `got`: the record; `method`: the method that may be overridden to write it."""

    operator: str
    got: str
    method: str = "get_bytes_for_tuple"
    example = {"operator": "sink", "got": "7, an int"}

    def message(self) -> str:
        advice = f"put Map(…) before it to turn each record into a string, or override {self.method}(record)"
        if self.got.startswith("None "):
            advice = "a function before it returns None: let it return the record that is to be written"
        return f"{self.operator} writes str, bytes and ReaderRecords of these, but got {self.got}\n  help: {advice}"


@error("DF335", kw_only=True, is_fatal=True)
class PartitionColumnRefused(RunError, ValueError):
    """A column cannot name folders. `known`: the existing columns, if it is not one of them."""

    operator: str
    column: str
    reason: str
    known: tuple[str, ...] = ()
    template = (
        "{operator}: folders cannot be named by column {column!r}: {reason}\n"
        "  help: {known:?the columns are {known}|remove it from partition_columns, or cast it upstream}"
    )
    example = {"operator": "sink", "column": "contry", "reason": "there is no such column", "known": ("country", "city")}


@error("DF336", kw_only=True, is_fatal=True)
class ColumnsChanged(RunError, TypeError):
    """A batch has other columns than earlier ones of the same window. `differences`: a phrase for each."""

    operator: str
    file: str
    differences: tuple[str, ...]
    template = (
        "{operator}: a batch does not fit the columns of {file}: {differences:; }\n"
        "  help: give the reader a schema, so that all batches have the same columns; or let each set of columns\n"
        "        have files of its own: on_schema_change='new_file'"
    )
    example = {"operator": "sink", "file": "part-3.parquet", "differences": ("count is string, not int64",)}


@error("DF720", kw_only=True, is_fatal=True)
class ColumnNamesClash(RunError, TypeError):
    """Rows have two columns of one name. `target`: the file or table that has one column for a name."""

    operator: str
    columns: tuple[str, str]
    target: str
    example = {"operator": "sink", "columns": ("id", "ID"), "target": "Delta"}

    def message(self) -> str:
        first, second = self.columns
        what = f"two columns are named {first!r}" if first == second else f"columns {first!r} and {second!r} are one column"
        return f"{self.operator}: {what}, for {self.target}\n  help: rename one of them, or leave it out, before it comes here"


@error("DF337", kw_only=True, is_fatal=True)
class TypeNotWritable(RunError, TypeError):
    """The format of a file does not support the type of a column. `help`: what to do instead."""

    operator: str
    column: str
    type: str
    format: str
    help: str
    template = "{operator}: column {column!r} is of type {type}, which {format} does not support\n  help: {help}"
    example = {
        "operator": "sink",
        "column": "tags",
        "type": "list<item: string>",
        "format": "CSV",
        "help": "turn it into text with Map(…)",
    }


@error("DF338", kw_only=True)
class ValueNotWritable(RunError, ValueError):
    """The format of a file does not support a value. `help`: what to do instead."""

    operator: str
    column: str
    value: str
    format: str
    help: str
    template = "{operator}: column {column!r} has {value}, which {format} does not support\n  help: {help}"
    example = {
        "operator": "sink",
        "column": "ratio",
        "value": "nan",
        "format": "JSON",
        "help": "leave such rows out with Filter(…)",
    }


@error("DF654", kw_only=True, is_fatal=True)
class RowsNotWritable(RunError, ValueError):
    """Arrow cannot write the rows of a file. `columns`: names and types; `reason`: Arrow's message."""

    operator: str
    file: str
    columns: str
    reason: str
    template = (
        "{operator}: rows of {file} ({columns}) cannot be written: {reason}\n"
        "  help: cast the column or leave such rows out upstream"
    )
    example = {"operator": "sink", "file": "part-3.parquet", "columns": "when: timestamp[ns]", "reason": "a time is out of range"}

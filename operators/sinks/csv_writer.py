"""CsvWriter: writes tables to CSV files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import OperatorContext
from dagflow.config import one_of
from operators.problems import all_problems
from operators.sinks.encoding.csv_rows import CsvEncoder, Quoting, check_types
from operators.sinks.file_sink import DIGITS
from operators.sinks.files.packed_files import PACKED, packed_files
from operators.sinks.table_writer import TableWriter

T = TypeVar("T", default=Any)


@attrs.define
class CsvWriter(TableWriter[T], Generic[T]):
    r"""Write tables to CSV files (RFC 4180, UTF-8) in the folder `path`. `TableWriter` explains folders, `FileSink` full files.

    A field is quoted if it holds a quote, a delimiter or a line end, or if it equals `null`. So an empty string is `""`, and a
    missing value is nothing at all. Times with a zone are written in UTC, durations as numbers of their unit.

    Args:
        delimiter: one character between fields. For tabs, name the files `.tsv`: `suffix=".tsv"`.
        header: whether each file begins with the names of its columns.
        quote: one character around fields; within a field it is doubled.
        quoting: `minimal`; `all` quotes every field that is not null; with `none`, a field that needs quotes is an error.
        null: the text of a missing value.
        terminator: the end of a row, `\n` or `\r\n`.
        max_file_bytes: before compression, with the header. The row that reaches it is the file's last.
        compression: `none`, `gzip`, `bgzf`, `bz2`, `xz` or `zstd`. Its suffix is added to all names.

    Raises TypeNotWritable for columns of bytes, lists and structs, ValueNotWritable, ColumnsChanged, PartitionColumnRefused.

    >>> import pathlib, tempfile
    >>> from dagflow.testing import run_operator
    >>> @attrs.frozen
    ... class Town:
    ...     name: str | None
    ...     people: int | None
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run_operator(CsvWriter[Town](folder), {"input": [Town("Lund, Skåne", 94_703), Town(None, 3), Town("", None)]})
    ...     print(*(file.read_text() for file in pathlib.Path(folder).glob("part-*")))
    {}
    name,people
    "Lund, Skåne",94703
    ,3
    "",
    """

    compressions: ClassVar[Mapping[str, range]] = PACKED

    suffix: str = attrs.field(default=".csv", kw_only=True, validator=attrs.validators.instance_of(str))
    delimiter: str = attrs.field(default=",", kw_only=True)
    header: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))
    quote: str = attrs.field(default='"', kw_only=True)
    quoting: Quoting = attrs.field(default="minimal", kw_only=True, validator=one_of(("minimal", "all", "none")))
    null: str = attrs.field(default="", kw_only=True, validator=attrs.validators.instance_of(str))
    terminator: str = attrs.field(default="\n", kw_only=True, validator=one_of(("\n", "\r\n")))

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            for name in ("delimiter", "quote"):
                mark = getattr(self, name)
                if len(mark) != 1 or mark.isalnum() or mark in "+-.:\r\n":
                    problems.append(f"{name} is {mark!r}, and must be one character that no number, date or line end has in it")
            if self.delimiter == self.quote:
                problems.append(f"delimiter and quote are both {self.quote!r}")
            if any(mark in self.null for mark in (self.delimiter, self.quote, "\r", "\n")):
                problems.append(f"null is {self.null!r}: it cannot have a delimiter, quote or line end in it")

    def written_format(self) -> dict[str, Any]:
        """Return the dialect."""
        return {"kind": "csv", "delimiter": self.delimiter, "quote": self.quote, "null": self.null, "header": self.header}

    def setup(self, context: OperatorContext) -> None:
        """Make the set of open files. Raises PackageMissing."""
        super().setup(context)
        self._files = packed_files(self, context, DIGITS)
        self._rows = CsvEncoder(type(self).__name__, self.delimiter, self.quote, self.quoting, self.null)

    def check_schema(self, schema: pa.Schema) -> None:
        """Raise TypeNotWritable."""
        check_types(schema, type(self).__name__, "CSV")

    def prepared(self, batch: pa.RecordBatch) -> Any:
        """Return the header and the rows of a batch. Raises ValueNotWritable."""
        header = self._rows.header(batch.schema.names) if self.header else None
        return header, self._rows.rows(batch)

    def write_part(self, key: tuple[str, int], part: Any) -> None:
        """Append rows to the file of their folder and schema."""
        header, rows = part
        end = self.terminator.encode()
        self._files.append_column(self.name_of(key), rows, end, b"" if header is None else header + end)

    def end_window(self) -> None:
        """Write what is pending and close the files."""
        self._files.close()

"""JsonLinesWriter: writes tables as lines of JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic

import attrs
import pyarrow as pa
from typing_extensions import TypeVar

from dagflow import OperatorContext
from operators.sinks.encoding.json_rows import JsonEncoder, check_types
from operators.sinks.file_sink import DIGITS
from operators.sinks.files.packed_files import PACKED, packed_files
from operators.sinks.table_writer import TableWriter

T = TypeVar("T", default=Any)


@attrs.define
class JsonLinesWriter(TableWriter[T], Generic[T]):
    r"""Write tables as lines of JSON objects in the folder `path`. `TableWriter` explains folders, `FileSink` full files.

    Every object has all columns, with `null` for a missing value. Structs, and maps with string keys, are objects; lists are
    arrays. Dates and times are strings as in ISO 8601, those with a zone in UTC. Durations are numbers of their unit. A float has
    a `.` or an `e`, so that it is read as a float.

    Args:
        max_file_bytes: before compression. The row that reaches it is the file's last.
        compression: `none`, `gzip`, `bgzf`, `bz2`, `xz` or `zstd`. Its suffix is added to all names.

    Raises TypeNotWritable for columns of bytes, ValueNotWritable for NaN and infinity, ColumnsChanged, PartitionColumnRefused.

    >>> import pathlib, tempfile
    >>> from dagflow.testing import run_operator
    >>> @attrs.frozen
    ... class Town:
    ...     name: str
    ...     area: float | None
    ...     codes: list[int]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run_operator(JsonLinesWriter[Town](folder), {"input": [Town("Malmö", 77.0, [200, 205]), Town("Lund", None, [])]})
    ...     print(*(file.read_text() for file in pathlib.Path(folder).glob("part-*")))
    {}
    {"name":"Malmö","area":77.0,"codes":[200,205]}
    {"name":"Lund","area":null,"codes":[]}
    """

    compressions: ClassVar[Mapping[str, range]] = PACKED

    suffix: str = attrs.field(default=".jsonl", kw_only=True, validator=attrs.validators.instance_of(str))

    def written_format(self) -> dict[str, Any]:
        """Return JSON lines, whatever the suffix is."""
        return {"kind": "json"}

    def setup(self, context: OperatorContext) -> None:
        """Make the set of open files. Raises PackageMissing."""
        super().setup(context)
        self._files = packed_files(self, context, DIGITS)
        self._rows = JsonEncoder(type(self).__name__)

    def check_schema(self, schema: pa.Schema) -> None:
        """Raise TypeNotWritable."""
        check_types(schema, type(self).__name__)

    def prepared(self, batch: pa.RecordBatch) -> Any:
        """Return the rows of a batch. Raises ValueNotWritable."""
        return self._rows.rows(batch)

    def write_part(self, key: tuple[str, int], part: Any) -> None:
        """Append rows to the file of their folder and schema."""
        self._files.append_column(self.name_of(key), part, b"\n")

    def end_window(self) -> None:
        """Write what is pending and close the files."""
        self._files.close()

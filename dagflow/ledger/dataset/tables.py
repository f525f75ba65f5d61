"""Files of a dataset as tables: what Arrow reads by itself, and what is read whole, as its ledger says that it was written."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any, cast

import attrs

from dagflow.storage import MAGIC, PACKED, file_system, is_local, local_path

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = {
    "parquet": "parquet",
    "csv": "csv",
    "arrow": "ipc",
    "feather": "ipc",
    "orc": "orc",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
}


def kind_of_file(path: str) -> str:
    """Return the kind of a file by its name: one of `KINDS`' values, or `text`.

    >>> kind_of_file("a/part-000000-0000.csv.gz"), kind_of_file("part-000000-0000")
    ('csv', 'text')
    """
    name = path.rpartition("/")[2].lower().removesuffix(packing_of(path)[0])
    return KINDS.get(name.rpartition(".")[2], "text")


def packing_of(path: str) -> tuple[str, str | None]:
    """Return the suffix that says how a file is packed, and the codec."""
    return next(((suffix, packing) for suffix, packing in PACKED.items() if path.lower().endswith(suffix)), ("", None))


@attrs.frozen
class FileGroup:
    """Files that are read in one way, in the order of their rows.

    Attributes:
        kind: one of `KINDS`' values, or `text`.
        paths: by path or URL.
        folder: the dataset's; folders `key=value` below it are columns. None: there are none.
        schema: of the rows, with such columns; None: what the files say.
        written: how they were written, where the ledger says it; see `SetSchema`.
        names: the columns that there were then, those that folders are among them; for files that do not name them.
        sizes: of the files, in bytes, as the ledger has them; none where they do not matter.
    """

    kind: str
    paths: Sequence[str]
    folder: str | None = None
    schema: pa.Schema | None = None
    written: Mapping[str, Any] = attrs.field(factory=dict)
    names: tuple[str, ...] = ()
    sizes: Sequence[int] = ()

    def dataset(self) -> Any:
        """Return the dataset of the files: read when it is used, where Arrow can do that, else held in memory."""
        import pyarrow.dataset as ds

        if self.kind == "text":
            return ds.dataset([lines(path) for path in self.paths])
        is_packed = any(packing_of(path)[1] is not None for path in self.paths)
        if self.kind in ("csv", "json") and (is_packed or (self.kind == "json" and self.schema is not None)):
            return ds.dataset([table for path in self.paths if (table := self._table(path, content(path))).num_rows])
        return self._lazily()

    def first(self, most: int) -> pa.Table:
        """Return the first rows of the first file, without reading the rest where its form allows that."""
        path = self.paths[0]
        if self.kind == "text":
            import pyarrow as pa

            return pa.Table.from_batches([_lines(beginning(path, most))])
        if self.kind == "json":
            return self._table(path, beginning(path, most))
        if self.kind == "csv" and packing_of(path)[1] is not None:
            return self._table(path, content(path)).slice(0, most)  # a line end may be within a value
        return self._lazily().head(most)

    def _lazily(self) -> Any:
        import pyarrow.dataset as ds
        import pyarrow.fs

        keys = list(self._folders(self.paths[0]))
        paths: Sequence[Any] = self.paths
        base = self.folder
        if is_local(paths[0]):
            system: Any = pyarrow.fs.LocalFileSystem()
            paths, base = [local_path(path) for path in paths], local_path(base) if base is not None else None
        else:
            system, _ = pyarrow.fs.FileSystem.from_uri(paths[0])
            paths = [pyarrow.fs.FileSystem.from_uri(path)[1] for path in paths]
            base = pyarrow.fs.FileSystem.from_uri(base)[1] if base is not None else None
        options = self._csv(keys) if self.kind == "csv" else None
        return ds.dataset(
            paths,
            schema=self.schema,
            format=self.kind if options is None else ds.CsvFileFormat(**options),
            filesystem=system,
            partitioning=self._partitioning(keys) if keys else None,
            partition_base_dir=base if keys else None,
        )

    def _folders(self, path: str) -> Mapping[str, str | None]:
        """Return the columns that the folders of a file stand for, and their values: `{"year": "2026"}` of `year=2026/part`."""
        from dagflow.scan import FileFacts

        return {} if self.folder is None else FileFacts.of(path.removeprefix(self.folder).strip("/"), "").keys

    def _partitioning(self, keys: Sequence[str]) -> Any:
        import pyarrow as pa
        import pyarrow.dataset as ds

        known = () if self.schema is None else self.schema.names
        types = [(key, self.schema.field(key).type if self.schema and key in known else pa.string()) for key in keys]
        return ds.partitioning(pa.schema(types), flavor="hive")

    def _csv(self, keys: Sequence[str]) -> dict[str, Any] | None:
        """Return the options for Arrow's CSV reader; None for its defaults."""
        import pyarrow.csv as c

        if self.schema is None and not self.written:
            return None
        types = {field.name: field.type for field in self.schema or () if field.name not in keys}
        written = {"delimiter": ",", "quote": '"', "null": "", "header": True, **self.written}
        names = None if written["header"] or not types else [name for name in self.names or types if name not in keys]
        return {
            "read_options": c.ReadOptions(column_names=names, autogenerate_column_names=not written["header"] and not types),
            "parse_options": c.ParseOptions(delimiter=written["delimiter"], quote_char=written["quote"], newlines_in_values=True),
            "convert_options": c.ConvertOptions(
                column_types=types,
                null_values=[written["null"]],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        }

    def _table(self, path: str, data: bytes) -> pa.Table:
        """Return the rows of a file of CSV or JSON lines."""
        import pyarrow as pa
        import pyarrow.csv
        import pyarrow.json

        folders = self._folders(path)
        if self.kind == "csv":
            table = pyarrow.csv.read_csv(io.BytesIO(data), **(self._csv(list(folders)) or {}))
        elif self.schema is None:
            table = pyarrow.json.read_json(_objects(data))
        else:
            table = json_table(data, pa.schema([field for field in self.schema if field.name not in folders]))
        for name, value in folders.items():
            kind = pa.string() if self.schema is None else self.schema.field(name).type
            column = pa.array([value], pa.string()).cast(kind)[0]
            table = table.append_column(pa.field(name, kind), pa.repeat(column, table.num_rows))
        if self.schema is None:
            return table
        return pa.concat_tables([self.schema.empty_table(), table], promote_options="default").select(self.schema.names)


def content(path: str) -> bytes:
    """Return the bytes of a file, unpacked."""
    with _unpacked(path) as stream:
        data: bytes = stream.read()
    return data


def beginning(path: str, lines: int) -> bytes:
    """Return the first lines of a file, unpacked. No more of it is read than is needed for them."""
    with _unpacked(path) as stream:
        return b"".join(itertools.islice(stream, lines))


@contextlib.contextmanager
def _unpacked(path: str) -> Iterator[IO[bytes]]:
    """Open a file for reading its unpacked bytes, forwards."""
    import pyarrow as pa

    with io.BufferedReader(cast("Any", file_system(path).open(path)), 1 << 20) as stream:
        packing = packing_of(path)[1]
        if packing is None or not stream.peek(6).startswith(MAGIC[packing]):
            yield stream
        elif packing == "xz":
            with lzma.open(stream) as unpacked:
                yield unpacked
        else:
            with pa.CompressedInputStream(stream, packing) as native:
                yield io.BufferedReader(native)


def lines(path: str) -> pa.RecordBatch:
    """Read a file of text: one row per line."""
    return _lines(content(path))


def _lines(data: bytes) -> pa.RecordBatch:
    import pyarrow as pa

    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    texts = pa.array([line.removesuffix(b"\r") for line in lines], pa.binary())
    return pa.RecordBatch.from_arrays([texts.cast(pa.string())], names=["value"])


def json_table(data: bytes, schema: pa.Schema) -> pa.Table:
    r"""Read lines of JSON as a table: with Arrow's own reader, but for columns of types that it does not know.

    >>> import pyarrow as pa
    >>> json_table(b'{"at":"11:00:00"}\n{}\n', pa.schema({"at": pa.time64("us")}))["at"].to_pylist()
    [datetime.time(11, 0), None]
    """
    import pyarrow as pa
    import pyarrow.json as pj
    import pyarrow.types as t

    is_text = {field.name: t.is_date(field.type) or t.is_time(field.type) for field in schema}
    explicit = pa.schema([field.with_type(pa.string()) if is_text[field.name] else field for field in schema])
    lines = _objects(data)
    try:
        table = pj.read_json(lines, parse_options=pj.ParseOptions(explicit_schema=explicit, unexpected_field_behavior="ignore"))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        rows = [json.loads(line, parse_float=Decimal) for line in data.split(b"\n") if line]
        return pa.Table.from_arrays([_column([row.get(f.name) for row in rows], f.type) for f in schema], schema=schema)
    for at, field in enumerate(schema):
        if is_text[field.name]:
            table = table.set_column(at, field, _of_text(table.column(at).combine_chunks(), field.type))
    return table


def _objects(data: bytes) -> io.BytesIO:
    r"""Return lines of JSON for Arrow's reader, which crashes where the first is `null`. Raises ArrowInvalid for such lines.

    >>> _objects(b'null\n{"a": 1}\n')
    Traceback (most recent call last):
    ...
    pyarrow.lib.ArrowInvalid: JSON parse error: a line is not an object: b'null'
    """
    import pyarrow as pa

    odd = next((line for line in data.split(b"\n") if line.strip() and not line.startswith(b"{")), None)
    if odd is not None:
        raise pa.ArrowInvalid(f"JSON parse error: a line is not an object: {odd[:100]!r}")
    return io.BytesIO(data)


def _column(values: Sequence[Any], kind: Any) -> Any:
    """Return values of parsed JSON as a column of a type."""
    import pyarrow as pa
    import pyarrow.types as t

    if t.is_struct(kind):
        parts = [_column([None if value is None else value.get(f.name) for value in values], f.type) for f in kind]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=pa.array([value is None for value in values]))
    if t.is_nested(kind):
        starts = itertools.accumulate((len(value or ()) for value in values), initial=0)
        offsets = pa.array(
            [None if value is None else start for start, value in zip(starts, [*values, ()], strict=True)], pa.int32()
        )
        parts = [part for value in values for part in value or ()]
        if not t.is_map(kind):
            return pa.ListArray.from_arrays(offsets, _column(parts, kind.value_type)).cast(kind)
        items = [item for value in values if value for item in value.values()]
        return pa.MapArray.from_arrays(offsets, _column(parts, kind.key_type), _column(items, kind.item_type))
    if t.is_floating(kind):
        values = [None if value is None else float(value) for value in values]
    return _of_text(pa.array(values), kind) if t.is_temporal(kind) and not t.is_duration(kind) else pa.array(values, kind)


def _of_text(texts: Any, kind: Any) -> Any:
    """Return dates or times from their texts. Raises ArrowInvalid for what is none."""
    import pyarrow as pa

    from dagflow.scan import converted

    column, bad = converted(texts, kind)
    if bad is not None:
        raise pa.ArrowInvalid(f"{texts.filter(bad)[0]} is not a value of the type {kind}")
    return column

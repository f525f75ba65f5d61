"""Parquet, read by row groups."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dagflow.scan import (
    FileFacts,
    FileSchemaNegotiator,
    Format,
    ManagedReader,
    ResultSetLoader,
    RowOrigin,
    plain_batch,
    plain_schema,
)
from operators.formats.binary.arrow_file import ArrowFile, StreamSealed, is_of_storage
from operators.formats.binary.counting import count_rows
from operators.formats.binary.int96 import beyond_years, int96_columns
from operators.formats.errors import FileCutShort, FileDamaged, FormatUnsupported, NotOfFormat
from operators.formats.predicates import Predicate, located, predicates, type_at

if TYPE_CHECKING:
    from dagflow.storage import BinaryReader

MAGIC = b"PAR1"
ENCRYPTED = b"PARE"
PAGES_BYTES = 1 << 20
"""The bytes of a column chunk that are read at a time."""
BATCH_BYTES = 8 << 20
"""The encoded bytes of a batch, roughly."""
DECODED_BYTES = 256 << 20
"""The bytes of a column with a dictionary in a batch, at most."""


@attrs.define
class ParquetFormat(Format):
    """Parquet. Readers share a file by row groups: a row group belongs to the block that has its first byte.

    Columns that are not needed are not read; to count rows, only the metadata is read. Columns are matched by name: files may
    have them in any order, lack some, or have other types that convert. An empty file has no rows.

    Args:
        where: conditions on the rows to read: `[("day", ">=", "2026-01-31"), ("country", "in", ["se", "no"])]`. All must hold.
            Row groups without such a row, by their statistics, are skipped (counter `row_groups_pruned`). Operators are `=`,
            `!=`, `<`, `<=`, `>`, `>=`, `in`, `not in`, `is null` and `is not null`. Only `is null` holds for nulls. A column is
            null if neither the file nor its folders (`country=se`) have it (counter `files_lacking_where`, of blocks); a column
            that no file has is refused. A field of a struct is `("customer.country", "=", "se")`. Values are compared exactly,
            also those that the column's type cannot hold. Strings may stand for dates and times.
        verify_checksums: verify the checksums of pages, where a file has them. False: damaged pages may give wrong values.

    Timestamps of the old type INT96 are read to the microsecond, as in Spark.

    Raises NotOfFormat, FileCutShort, FileDamaged and FormatUnsupported, which name file and byte, and ValueMisfit.

    >>> import pathlib, tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> from dagflow.testing import scan_table
    >>> from operators import ParquetFormat, ScanReader
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "a.parquet")
    ...     pq.write_table(pa.table({"n": [1, 2, 3], "text": ["one", "two", "three"]}), path, row_group_size=2)
    ...     scan_table(ScanReader(ParquetFormat(where=[("n", ">", 1)]), columns=["text"]), path).to_pylist()
    [{'text': 'two'}, {'text': 'three'}]
    """

    cuts: ClassVar[Literal["any", "none"]] = "any"
    suffixes: ClassVar[tuple[str, ...]] = ("parquet", "parq", "pq")
    leaves_out_columns: ClassVar[bool] = True

    where: tuple[Any, ...] = attrs.field(default=(), kw_only=True, converter=predicates)
    verify_checksums: bool = attrs.field(default=True, kw_only=True, validator=attrs.validators.instance_of(bool))

    @property
    def tested_columns(self) -> tuple[str, ...]:
        """The columns of `where`."""
        return tuple(predicate.column for predicate in self.where)

    def make_reader(self) -> ParquetReader:
        """Return a reader for one block."""
        return ParquetReader()

    def sample_schema(self, stream: BinaryReader, path: str, length: int) -> pa.Schema | None:
        """Return the columns of the footer."""
        return None if not length else opened(stream, path, length).schema_arrow


def opened(stream: BinaryReader, path: str, length: int, *, verify_checksums: bool = True) -> pq.ParquetFile:
    """Open a Parquet file, and read its footer. Raises NotOfFormat, FileCutShort, FileDamaged, FormatUnsupported."""
    file = ArrowFile(stream, length)
    head = file.read(64)
    if head[:4] == ENCRYPTED:
        reason = "it is encrypted"
        raise FormatUnsupported(path=path, format="Parquet", position=0, part="the footer", reason=reason)
    if head[:4] != MAGIC:
        raise NotOfFormat(path=path, format="Parquet", head=head)
    file.seek(max(4, length - 8))
    tail = file.read(8)
    if len(tail) < 8 or tail[4:] != MAGIC:
        raise FileCutShort(path=path, format="Parquet", position=length, missing="its footer")
    begin = length - 8 - int.from_bytes(tail[:4], "little")
    if begin < 4:
        reason = f"it says that it is {length - 8 - begin} bytes long, more than there are before it"
        raise FileDamaged(path=path, format="Parquet", position=length - 8, part="the footer", reason=reason)
    file.seek(0)
    with damage(path, begin, "the footer"):
        metadata = _checked(file)
        parquet = _opened(file, metadata, verify_checksums)
        _ = parquet.schema_arrow.names  # which Arrow decodes only now
        return parquet


def _opened(
    file: ArrowFile, metadata: pq.FileMetaData, verify_checksums: bool, dictionaries: Sequence[str] = ()
) -> pq.ParquetFile:
    """Open a file whose metadata is known. `dictionaries`: the columns that are read as dictionaries, as the file has them."""
    return pq.ParquetFile(
        file,
        metadata=metadata,
        read_dictionary=list(dictionaries),
        buffer_size=PAGES_BYTES,
        pre_buffer=False,
        coerce_int96_timestamp_unit="us",
        page_checksum_verification=verify_checksums,
    )


def _checked(file: ArrowFile) -> pq.FileMetaData:
    """Return the metadata of a file and its column chunks. Raises the errors of Arrow.

    pyarrow's accessors (`row_group(n).column(m)`) abort the process if a chunk's metadata contradict the schema. Preparing a read
    of all row groups finds that out: Arrow computes the places of all chunks before it reads any of them.
    """
    asked = pq.ParquetFile(file, pre_buffer=True)
    file.is_sealed = True
    try:
        asked.read_row_groups(range(asked.num_row_groups), use_threads=False)
    except StreamSealed as error:
        # Arrow keeps the error in the file, whose traceback leads to the file: a cycle that Python does not see
        traceback.clear_frames(error.__traceback__)
    finally:
        file.is_sealed = False
    file.seek(0)
    metadata = asked.metadata
    del asked  # for the same reason: this frame stays as long as the error does
    return metadata


def check_content(batch: pa.RecordBatch) -> None:
    """Raise ArrowInvalid for text that is not UTF-8, at which Arrow does not look, and other values that no file may have.

    A time of day outside of a day is none of them: writers write it, and Arrow's type has it.
    """
    for column in batch.columns:
        kind = _without_days(column.type)
        (column if kind.equals(column.type) else column.view(kind)).validate(full=True)


def _without_days(kind: Any) -> Any:
    """Return a type with integers in place of times of day."""
    types = pa.types
    if types.is_time(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    if types.is_struct(kind):
        return pa.struct([field.with_type(_without_days(field.type)) for field in kind])
    if types.is_map(kind):
        return pa.map_(_without_days(kind.key_type), _without_days(kind.item_type))
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        item = kind.value_field.with_type(_without_days(kind.value_type))
        if types.is_fixed_size_list(kind):
            return pa.list_(item, kind.list_size)
        return (pa.large_list if types.is_large_list(kind) else pa.list_)(item)
    return kind


@contextmanager
def damage(path: str, position: int, part: str) -> Iterator[None]:
    """Turn an error of Arrow about bytes that it cannot read into FileDamaged, or FormatUnsupported."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if is_of_storage(error):
            raise
        reason = str(error).strip().rstrip(".")
        if isinstance(error, pa.ArrowNotImplementedError) or "decrypt" in reason:
            reason = "it has encrypted columns" if "decrypt" in reason else reason
            raise FormatUnsupported(path=path, format="Parquet", position=position, part=part, reason=reason) from error
        raise FileDamaged(path=path, format="Parquet", position=position, part=part, reason=reason) from error


@attrs.define(eq=False)
class ParquetReader(ManagedReader[FileSchemaNegotiator]):
    """Reads the row groups that begin in a range."""

    _groups: Iterator[tuple[int, int]] = attrs.field(init=False, factory=lambda: iter(()))
    _batches: Iterator[pa.RecordBatch] = attrs.field(init=False, factory=lambda: iter(()))
    _position: int = attrs.field(init=False, default=0)
    _group: int = attrs.field(init=False, default=0)
    _left: int = attrs.field(init=False, default=0)
    """The number of rows of the row group at hand that are still to come."""
    _next_row: int = attrs.field(init=False, default=0)
    """The number of the first of these in the file."""
    _filter: Any = attrs.field(init=False, default=None)

    def open(self, negotiator: FileSchemaNegotiator) -> bool:
        """Read the footer, which has the columns and the positions of the row groups."""
        split, options = negotiator.split, negotiator.options
        assert isinstance(options, ParquetFormat)
        if not split.file_length:
            return False
        self._negotiator = negotiator
        self._file = opened(negotiator.stream, split.path, split.file_length, verify_checksums=options.verify_checksums)
        schema = self._schema = plain_schema(self._file.schema_arrow)
        negotiator.set_table_schema(schema, complete=True)
        self._loader: ResultSetLoader = negotiator.build()
        self._columns = [name for name in schema.names if negotiator.is_projected(name)]
        self._int96 = int96_columns(self._file.metadata, self._columns)
        with damage(split.path, split.file_length - 8, "the footer"):
            groups = self._groups_in(split.start, split.stop)
        if options.where:
            tested = [predicate for predicate in options.where if located(schema, predicate.column, split.path)]
            folders = FileFacts.of(split.path, "", empty_is_null=split.block.empty_is_null).keys
            if any(each.column not in folders for each in options.where if each not in tested):
                negotiator.context.count("files_lacking_where")
            if not all(each.holds_for(folders.get(each.column)) for each in options.where if each not in tested):
                negotiator.context.count("row_groups_pruned", len(groups))
                groups = []
            elif tested:
                self._filter = _all(predicate.expression(schema, split.path) for predicate in tested)
                self._columns = list(
                    dict.fromkeys([*self._columns, *(".".join(located(schema, each.column, split.path)) for each in tested)])
                )
                groups = self._unpruned(groups, tested)
        if repeating := self._repeating(groups):  # each value is decoded, and looked at, once
            file = ArrowFile(negotiator.stream, split.file_length)
            self._file = _opened(file, self._file.metadata, options.verify_checksums, repeating)
        self._groups = iter(groups)
        return True

    def next(self) -> bool:
        """Load a batch of the current row group, or go to the next one."""
        path = self._negotiator.source
        with damage(path, self._position, f"row group {self._group}"):
            batch = next(self._batches, None)
            if batch is not None:
                check_content(batch)
            self._check_rows(0 if batch is None else batch.num_rows)
        if batch is not None:
            self._check_years(batch)
            first_row, self._next_row = self._next_row, self._next_row + batch.num_rows
            if self._filter is None:
                self._load(batch, first_row)
            else:
                self._load(plain_batch(batch).filter(self._filter), None)
            return True
        split = next(self._groups, None)
        if split is None or not self._negotiator.claim([split[0]]):
            return False
        self._position, self._group = split
        group = self._file.metadata.row_group(self._group)
        if self._filter is None and not self._columns:
            with damage(path, self._position, f"row group {self._group}"):
                rows = self._rows_of(group)
            count_rows(self._loader, rows, self._position)
            return True
        with damage(path, self._position, f"row group {self._group}"):
            self._left = self._rows_of(group)
            self._next_row = sum(self._file.metadata.row_group(n).num_rows for n in range(self._group))
            rows = max(1, min(65_536, group.num_rows * BATCH_BYTES // max(1, self._size(group))))
            self._batches = _decodable(self._file.iter_batches(rows, [self._group], self._columns, use_threads=False))
        return True

    def close(self) -> None:
        """Drop the current pages."""
        self._batches = iter(())

    def _check_rows(self, rows: int) -> None:
        """Raise ArrowInvalid where a batch has more rows than the row group has left, or the last one has come too soon."""
        self._left -= rows
        if self._left < 0 or (not rows and self._left):
            total = self._file.metadata.row_group(self._group).num_rows
            raise pa.ArrowInvalid(f"it should have {total} rows, but its columns together give {total - self._left}")

    def _check_years(self, batch: pa.RecordBatch) -> None:
        column = beyond_years(batch, self._int96) if self._int96 else None
        if column is not None:
            raise FormatUnsupported(
                path=self._negotiator.source,
                format="Parquet",
                position=self._position,
                part=f"row group {self._group}",
                reason=f"column {column!r} has INT96 timestamps that are not of the years 1 to 9999",
            )

    def _load(self, batch: pa.RecordBatch, first_row: int | None) -> None:
        """Load a batch; `first_row`: the number of its first row in the file, None where rows were left out."""
        position = self._position

        def origin(row: int) -> RowOrigin:
            return RowOrigin(position, row=None if first_row is None else first_row + row)

        positions = pa.RunEndEncodedArray.from_arrays([batch.num_rows], [position]) if batch.num_rows else None
        self._loader.add_batch(batch, origin, positions)

    def _groups_in(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Return the row groups that begin in a range: their places and numbers. Raises ArrowInvalid."""
        metadata = self._file.metadata
        groups = [(metadata.row_group(n), n) for n in range(metadata.num_row_groups)]
        rows = sum(group.num_rows for group, _ in groups)
        if metadata.num_rows not in (rows, 0):  # some writers leave it 0
            raise pa.ArrowInvalid(f"it says that there are {metadata.num_rows} rows, but its row groups have {rows}")
        begins = [(_begin(group), n) for group, n in groups if group.num_rows]
        return sorted((position, n) for position, n in begins if start <= position < stop)

    def _unpruned(self, groups: Sequence[tuple[int, int]], tested: Sequence[Predicate]) -> list[tuple[int, int]]:
        """Return the row groups that may have rows for which all conditions hold, by their statistics."""
        metadata = self._file.metadata
        numbers = {metadata.schema.column(n).path: n for n in range(metadata.num_columns)}

        def may_hold(predicate: Predicate, group: Any) -> bool:
            steps = located(self._schema, predicate.column, self._negotiator.source)
            number = numbers.get(".".join(steps))
            statistics = None if number is None else _statistics(group.column(number), metadata.schema.column(number))
            kind = type_at(self._schema, steps)
            return statistics is None or predicate.may_hold(statistics, group.num_rows, kind)

        left = []
        for at, n in groups:
            with damage(self._negotiator.source, at, f"the statistics of row group {n}"):
                if all(may_hold(predicate, metadata.row_group(n)) for predicate in tested):
                    left.append((at, n))
        self._negotiator.context.count("row_groups_pruned", len(groups) - len(left))
        return left

    def _chunks(self, group: Any) -> Iterator[tuple[int, Any]]:
        """Return the chunks of the needed columns of a row group, by number; of all columns if none is needed."""
        wanted = set(self._columns)
        for n in range(group.num_columns):
            chunk = group.column(n)
            if not wanted or chunk.path_in_schema in wanted or chunk.path_in_schema.partition(".")[0] in wanted:
                yield n, chunk

    def _repeating(self, groups: Sequence[tuple[int, int]]) -> list[str]:
        """Return the columns of text or bytes with dictionaries: a plain value would have four bytes for its length alone."""
        metadata, names = self._file.metadata, []
        kinds = {field.name: field.type for field in self._schema}
        for n in range(metadata.num_columns):
            name = metadata.schema.column(n).path
            if name in self._columns and kinds.get(name) in (pa.string(), pa.binary()):
                chunks = [metadata.row_group(group).column(n) for _, group in groups]
                if chunks and all(chunk.total_uncompressed_size < 3 * chunk.num_values for chunk in chunks):
                    names.append(name)
        return names

    def _size(self, group: Any) -> int:
        """Return the number of bytes the wanted columns of a row group have, as they are encoded."""
        return sum(int(chunk.total_uncompressed_size) for _, chunk in self._chunks(group))

    def _rows_of(self, group: Any) -> int:
        """Return the number of rows a row group has. Raises ArrowInvalid where a column has another number of values."""
        schema = self._file.metadata.schema
        for n, chunk in self._chunks(group):
            if schema.column(n).max_repetition_level == 0 and chunk.num_values != group.num_rows:
                reason = f"its column {chunk.path_in_schema!r} has {chunk.num_values} values"
                raise pa.ArrowInvalid(f"it should have {group.num_rows} rows, but {reason}")
        return int(group.num_rows)


def _decodable(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches in pieces whose dictionaries can be decoded: an array of text has less than 2 GiB."""
    for batch in batches:
        lengths = [pc.max(pc.binary_length(c.dictionary)).as_py() for c in batch.columns if isinstance(c, pa.DictionaryArray)]
        rows = max(1, DECODED_BYTES // max((length or 1 for length in lengths), default=1))
        if batch.num_rows <= rows:
            yield batch
        else:
            yield from (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def _begin(group: Any) -> int:
    """Return the start of a row group."""
    chunks = (group.column(n) for n in range(group.num_columns))
    return min(int(min(c.data_page_offset, c.dictionary_page_offset or c.data_page_offset)) for c in chunks)


def _statistics(chunk: Any, column: Any) -> Any:
    """Return a column chunk's statistics. Raises ArrowInvalid if they are of another type: there Arrow aborts the process."""
    if chunk.physical_type != column.physical_type:
        raise pa.ArrowInvalid(f"column {column.path} is {column.physical_type}, its values are {chunk.physical_type}")
    return chunk.statistics


def _all(expressions: Iterator[Any]) -> Any:
    whole = next(expressions)
    for each in expressions:
        whole &= each
    return whole

"""The columns of a file of delimited text, told from its beginning."""

# pyright: reportAttributeAccessIssue=false
# The functions of pyarrow.compute are made at run time.

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from dagflow import FileBlockMetadata
from dagflow.config import MiB
from dagflow.scan import NumberText
from operators.compression import DecompressingContext
from operators.contexts.errors import RecordTooLong
from operators.contexts.piece import Piece
from operators.formats.delimited.context import DelimitedContext
from operators.formats.delimited.errors import QuoteLeftOpen
from operators.formats.delimited.reader import context_of, header_names
from operators.formats.delimited.rows import RowParser
from operators.formats.delimited.text import PieceText

if TYPE_CHECKING:
    from dagflow.storage import BinaryReader
    from operators.formats.csv import CsvFormat

SAMPLE_RECORD_BYTES = 16 * MiB

_NANOSECONDS = r"\.[0-9]{7,}"
_TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[-+][0-9]{2}:?[0-9]{2})?$"


def sample_schema(format: CsvFormat, stream: BinaryReader, path: str, length: int) -> pa.Schema | None:
    """Return the columns of a file: names from the header, types from the rows that begin in the first MiB.

    None for an empty file, and without a header. All columns are strings if types are not inferred. Raises NotDelimited,
    HeaderBad. Bad rows are reported when they are read.
    """
    inner = context_of(format, SAMPLE_RECORD_BYTES)
    context = DecompressingContext(inner)
    block = FileBlockMetadata(1, path, start=0, stop=min(length, MiB), file_length=length)
    context.initialize(stream, block, False)
    try:
        names = header_names(format, inner, path)
        if names is None:
            return None
        if not format.infer_types:
            return pa.schema([(name, pa.string()) for name in names])
        parser = RowParser(PieceText(format.dialect), names, dict.fromkeys(names, pa.string()), format.nulls)
        batches = [parser.rows(piece).batch for piece in _first_pieces(context, inner)]
        columns = {name: [batch.column(name) for batch in batches] or [pa.nulls(0, pa.string())] for name in names}
        return pa.schema([(name, inferred_type(pa.concat_arrays(cells), format.numbers)) for name, cells in columns.items()])
    finally:
        context.close()


def _first_pieces(context: DecompressingContext, inner: DelimitedContext) -> Iterator[Piece]:
    """Yield the rows that begin in the first MiB, also a last one without a line end, up to one that cannot be read."""
    size = 0
    try:
        while size < MiB and (piece := context.next_piece()) is not None:
            if inner.opened is not None:  # a quote that is never closed: the piece is one bad row
                return
            size += piece.used_bytes
            yield piece
            inner.max_record_bytes = MiB  # a longer row behind others is not worth its memory
    except (RecordTooLong, QuoteLeftOpen):
        return


def inferred_type(cells: pa.Array, numbers: NumberText) -> pa.DataType:
    """Return the type of the texts of a column, without nulls and blank ones; `pa.null()` if there are no others.

    >>> numbers = NumberText(is_inferred=True)
    >>> [str(inferred_type(pa.array(texts), numbers)) for texts in (["1", "-2", None], ["007", "1"], ["2026-11-20 10:00"])]
    ['int64', 'string', 'timestamp[us]']
    """
    stripped = pc.utf8_trim(cells.drop_null(), " \t")
    texts = stripped.filter(pc.binary_length(stripped).cast(pa.bool_()))  # a comparison with "" would load pandas
    if not len(texts):
        return pa.null()
    number = numbers.inferred_type(texts)
    if number is not None:
        return number
    rows = b"".join(b'"%s"\n' % text.replace('"', '""').encode() for text in texts.to_pylist())
    read = arrow_csv.ReadOptions(use_threads=False, block_size=len(rows) + 1, column_names=["value"])
    convert = arrow_csv.ConvertOptions(
        null_values=[], true_values=["true", "True", "TRUE"], false_values=["false", "False", "FALSE"]
    )
    parse = arrow_csv.ParseOptions(newlines_in_values=True)
    kind = arrow_csv.read_csv(pa.BufferReader(rows), read, parse, convert).column(0).type
    if pa.types.is_string(kind):
        return _microseconds(texts)
    if pa.types.is_timestamp(kind) and not pc.any(pc.match_substring_regex(texts, _NANOSECONDS)).as_py():
        return pa.timestamp("us", kind.tz)
    return kind if pa.types.is_temporal(kind) or pa.types.is_boolean(kind) else pa.string()  # numbers are all known


def _microseconds(texts: pa.Array) -> pa.DataType:
    """Return the type of times beyond the range of nanoseconds, some with fractions: pyarrow parses them as text."""
    if pc.all(pc.match_substring_regex(texts, _TIME)).as_py():
        for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
            try:
                pc.cast(texts, kind)
            except pa.ArrowInvalid:
                continue
            return kind
    return pa.string()

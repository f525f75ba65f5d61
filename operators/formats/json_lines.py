"""JSON lines: an object a line."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, ClassVar, Literal

import attrs

from dagflow.scan import FileSchemaNegotiator, Format, ResultSetLoader
from dagflow.storage import read_fully
from operators.contexts import Piece
from operators.formats.lines import LinesReader

if TYPE_CHECKING:
    import pyarrow as pa

    from dagflow.storage import BinaryReader

SAMPLE_BYTES = 1 << 20


@attrs.define
class JsonLinesFormat(Format):
    """JSON lines: each line is an object, whose members are columns; objects within are structs, arrays are lists.

    Files can be cut at any byte.
    """

    cuts: ClassVar[Literal["any", "none"]] = "any"
    suffixes: ClassVar[tuple[str, ...]] = ("jsonl", "ndjson", "json")

    def make_reader(self) -> JsonLinesReader:
        """A reader for one block."""
        return JsonLinesReader()

    def sample_schema(self, stream: BinaryReader, path: str, length: int) -> pa.Schema | None:
        """The columns of the first lines of a file (1 MiB)."""
        stream.seek(0)
        data = read_fully(stream, min(length, SAMPLE_BYTES))
        end = data.rfind(b"\n") + 1 or len(data)
        return _parsed(data[:end]).schema if data.strip() else None


@attrs.define(eq=False)
class JsonLinesReader(LinesReader):
    """Reads the lines of a block."""

    _loader: ResultSetLoader | None = attrs.field(init=False, default=None)

    def begin(self, negotiator: FileSchemaNegotiator) -> None:
        """Late schema: the lines say what columns there are."""
        self._loader = negotiator.build()

    def load(self, piece: Piece) -> None:
        """Parses a piece."""
        assert self._loader is not None
        batch = _parsed(piece.data[piece.begin : piece.end], self._negotiator.provided_schema)
        self._loader.add_batch(batch, lambda row: self.origin(piece, row))


def _parsed(data: bytes, schema: pa.Schema | None = None) -> pa.RecordBatch:
    import pyarrow as pa
    import pyarrow.json as pj

    options = pj.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
    table = pj.read_json(
        io.BytesIO(data), pj.ReadOptions(use_threads=False, block_size=max(len(data) + 1, 1 << 20)), options
    ).combine_chunks()
    batches = table.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)

"""BlockReader: files of text, or of any records."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Generic

import attrs

from dagflow import FileBlockMetadata, RenamedProperty
from dagflow.config import one_of
from operators.compression import COMPRESSIONS, DecompressingContext
from operators.compression.formats import Compression
from operators.contexts import BadText, Piece, ReadAheadLineReaderContext, ReaderContext, decode_text, text_codec
from operators.contexts.lines import LinesContext
from operators.problems import all_problems, problems_of
from operators.readers.abstract_block_reader import R, a_context
from operators.readers.fs_block_reader import AbstractFSBlockReader

if TYPE_CHECKING:
    import pyarrow as pa


def known_policy(_: object, attribute: attrs.Attribute[Any], value: str) -> None:
    """Validates the name of a policy for bad bytes, as `bytes.decode` takes it."""
    try:
        codecs.lookup_error(value)
    except (LookupError, TypeError):
        raise ValueError(
            f"{attribute.name} is {value!r}, but must be 'strict', 'replace', 'ignore' or 'backslashreplace'"
        ) from None


@attrs.define
class BlockReader(AbstractFSBlockReader[R], Generic[R]):
    r"""Reads blocks of files: lines of text by default, whole wherever the files were cut, each line once.

    `convert_to_record` makes records of another type of each line's bytes; other `reader_context`s find other records.

    Compressed files are decompressed: gzip, bzip2, xz and zstd, told by their first bytes, not by their names. BGZF (what
    `bgzip` writes) is read by blocks like plain text; of any other compressed file the first block has all records, and its
    other blocks, if the splitter made any, have none (counter `blocks_unsplittable`). See DecompressingContext for positions.

    Args:
        encoding, encoding_errors: how bytes become text, as in `bytes.decode`. "strict": bad bytes raise BadText.
        compression: "auto"; "none" reads files as they are; "gzip", "bgzf", "bz2", "xz" or "zstd": they must be that ("gzip" also
            reads BGZF, as one stream).

    Counters of compressed files: `bytes` counts the files' bytes, so that it adds up to what was planned, `bytes_unpacked` what
    the records use. `bgzf_without_end_mark`: BGZF files that lack the empty member at the end, and may have been cut off there.

    >>> import pathlib, tempfile
    >>> from dagflow.testing import read_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "numbers")
    ...     _ = path.write_bytes(b"1\r\n22\n\n333")
    ...     read_file(BlockReader(), str(path), block_size=3)
    ...     read_file(BlockReader(int, on_error="skip"), str(path))
    ['1', '22', '', '333']
    [1, 22, 333]
    """

    reader_context: ReaderContext = attrs.field(factory=ReadAheadLineReaderContext, kw_only=True, validator=a_context)
    encoding: str = attrs.field(default="utf-8", kw_only=True, validator=attrs.validators.instance_of(str))
    encoding_errors: str = attrs.field(default="strict", kw_only=True, validator=known_policy)

    text_errors = RenamedProperty("encoding_errors")

    compression: Compression = attrs.field(default="auto", kw_only=True, validator=one_of(COMPRESSIONS))

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            problems.extend(problems_of(lambda: text_codec(self.encoding, isinstance(self.reader_context, LinesContext))))

    def convert_to_record(self, data: bytes) -> R | None:
        """The text of a record, unless a function was given."""
        if self.converter is not None:
            return self.converter(data)
        return data.decode(self.encoding, self.encoding_errors)  # type: ignore[return-value]  # R is str then

    def record_at(self, block: FileBlockMetadata, position: int) -> bytes | None:
        """The bytes that the record at a position uses (of a compressed file: decompressed ones); None when none starts there."""
        stream, finder = self.setup_stream(block), self._make_finder()
        try:
            finder.initialize(stream, block, False)
            if not isinstance(finder, DecompressingContext) or not finder.unit:
                return super().record_at(block, position)
            if finder.can_be_cut():  # then the member in which it starts is enough
                start = finder.claimed_at(position)
                finder.initialize(stream, attrs.evolve(block, start=start, stop=start + 1), False)
            while (found := finder.next()) is not None and found.position < position:
                pass
            return finder.bytes_at(found) if found is not None and found.position == position else None
        finally:
            finder.close()
            self.close_stream(stream)

    def _make_finder(self) -> ReaderContext:
        if self.compression == "none":
            return self.reader_context
        return DecompressingContext(self.reader_context, self.compression)

    def _found(self, block: FileBlockMetadata, is_consecutive: bool) -> Iterator[Any]:
        yield from super()._found(block, is_consecutive)
        if isinstance(self._finder, DecompressingContext):
            for name, count in self._finder.counts_at_end().items():
                self._task.context.count(name, count)

    def _count_bytes(self, used: int) -> None:
        finder = self._finder
        if isinstance(finder, DecompressingContext) and finder.unit:
            self._task.context.count("bytes_unpacked", used)
            used = finder.newly_consumed()
        super()._count_bytes(used)

    def _column(self, piece: Piece) -> pa.Array:
        return piece.string_array(self.encoding, self.encoding_errors)

    def _values(self, piece: Piece) -> list[str]:
        return piece.text_list(self.encoding, self.encoding_errors)

    def _explained(self, error: Exception, data: bytes, path: str | None, position: int) -> Exception:
        if isinstance(error, UnicodeDecodeError) and self.converter is None:
            try:
                decode_text(data, self.encoding, self.encoding_errors, path=path or "", position=position)
            except ValueError as explained:
                if isinstance(explained, BadText) and isinstance(self._finder, DecompressingContext):
                    explained.unit = self._finder.unit
                return explained
        return error

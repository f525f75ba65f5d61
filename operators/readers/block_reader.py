"""BlockReader: files of text, or of any records."""

from __future__ import annotations

import codecs
from typing import Any, Generic

import attrs

from dagflow import OperatorContext
from dagflow.config import one_of
from operators.compression import COMPRESSIONS, DecompressingContext
from operators.compression.formats import Compression
from operators.contexts import ReadAheadLineReaderContext, ReaderContext, text_codec
from operators.contexts.lines import LinesContext
from operators.problems import all_problems, problems_of
from operators.readers.abstract_block_reader import R, a_context
from operators.readers.fs_block_reader import AbstractFSBlockReader
from operators.readers.reading.conversion import BytesConversion, TextConversion
from operators.readers.reading.record_finder import FileRecordFinder, RecordFinder


def known_policy(_: object, attribute: attrs.Attribute[Any], value: str) -> None:
    """Validate the name of a policy for bad bytes, as `bytes.decode` takes it."""
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

    Compressed files are decompressed: gzip, bzip2, xz and zstd, recognised by their first bytes, not by their names. BGZF (what
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

    compression: Compression = attrs.field(default="auto", kw_only=True, validator=one_of(COMPRESSIONS))

    def check(self) -> None:
        """Raise ValueError where properties contradict each other."""
        with all_problems(super().check) as problems:
            problems.extend(problems_of(lambda: text_codec(self.encoding, isinstance(self.reader_context, LinesContext))))

    def convert_to_record(self, data: bytes) -> R | None:
        """Return the text of a record, or the result of the function given."""
        if self.converter is not None:
            return self.converter(data)
        return data.decode(self.encoding, self.encoding_errors)  # type: ignore[return-value]  # R is str then

    def make_finder(self, context: OperatorContext) -> RecordFinder:
        """Return the object that finds the records in files, which may be compressed."""
        if self.compression == "none":
            return super().make_finder(context)
        return FileRecordFinder(DecompressingContext(self.reader_context, self.compression), context, self.length_by_now)

    def make_conversion(self) -> BytesConversion:
        """Return the object that converts records into text, unless `convert_to_record` is the user's."""
        if self.converter is not None:
            return super().make_conversion()
        is_overridden = type(self).convert_to_record is not BlockReader.convert_to_record
        return TextConversion(self.convert_to_record, is_overridden, self.encoding, self.encoding_errors)

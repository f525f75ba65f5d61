"""BlockReader: files of text, or of any records."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Any, Generic

import attrs

from operators.contexts import Piece, ReadAheadLineReaderContext, ReaderContext, decode_text, text_codec
from operators.contexts.lines import LinesContext
from operators.problems import all_problems, told_in
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

    Args:
        encoding, text_errors: how bytes become text, as in `bytes.decode`. "strict": bad bytes raise BadText.

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
    text_errors: str = attrs.field(default="strict", kw_only=True, validator=known_policy)

    def check(self) -> None:
        """Raises ValueError where the properties do not fit together."""
        with all_problems() as problems:
            with told_in(problems):
                super().check()
            with told_in(problems):
                text_codec(self.encoding, isinstance(self.reader_context, LinesContext))

    def convert_to_record(self, data: bytes) -> R | None:
        """The text of a record, unless a function was given."""
        if self.converter is not None:
            return self.converter(data)
        return data.decode(self.encoding, self.text_errors)  # type: ignore[return-value]  # R is str then

    def _column(self, piece: Piece) -> pa.Array:
        return piece.string_array(self.encoding, self.text_errors)

    def _values(self, piece: Piece) -> list[str]:
        return piece.text_list(self.encoding, self.text_errors)

    def _explained(self, error: Exception, data: bytes, path: str | None, position: int) -> Exception:
        if isinstance(error, UnicodeDecodeError) and self.converter is None:
            try:
                decode_text(data, self.encoding, self.text_errors, path=path or "", position=position)
            except ValueError as explained:
                return explained
        return error

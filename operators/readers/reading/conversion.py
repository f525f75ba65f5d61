"""Conversions of the bytes of records into the values that a reader emits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pyarrow as pa
from typing_extensions import override

from operators.contexts import Piece, decode_text
from operators.contexts.piece import without_mark
from operators.contexts.text import MARK


@attrs.frozen
class BytesConversion:
    """Converts records with `convert`; without a custom one, into the bytes that they are, all records of a piece at once.

    `is_custom`: `convert` is a function that the user gave, or a method of the user's class. It is called for each record.
    """

    convert: Callable[[bytes], Any]
    is_custom: bool

    def column(self, piece: Piece) -> pa.Array:
        """Return the values of a piece as a column, in which `convert` is not called."""
        return piece.binary_array()

    def values(self, piece: Piece) -> list[Any]:
        """Return the values of a piece as a list, for which `convert` is not called."""
        return piece.bytes_list()

    def explain(self, error: Exception, data: bytes, path: str, position: int) -> Exception:
        """Return the error to report where `convert` raised one."""
        return error


@attrs.frozen
class TextConversion(BytesConversion):
    """Converts records with `convert`; without a custom one, into text, all records of a piece at once.

    A byte order mark before the first line of a file is not a part of it.
    """

    encoding: str
    encoding_errors: str

    @override
    def column(self, piece: Piece) -> pa.Array:
        return without_mark(piece, piece.string_array(self.encoding, self.encoding_errors))

    @override
    def values(self, piece: Piece) -> list[str]:
        texts = piece.text_list(self.encoding, self.encoding_errors)
        if piece.position == 0 and piece.layout is not None and texts:
            texts[0] = texts[0].removeprefix(MARK)
        return texts

    @override
    def explain(self, error: Exception, data: bytes, path: str, position: int) -> Exception:
        """Return BadText, which names the place of the first bad byte, where bytes are not text."""
        if isinstance(error, UnicodeDecodeError):
            try:
                decode_text(data, self.encoding, self.encoding_errors, path=path, position=position)
            except ValueError as bad_text:
                return bad_text
        return error

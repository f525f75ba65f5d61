"""Reader contexts: how the bytes of a block become records."""

from operators.contexts.entity import BinaryStream, Entity, PieceReaderContext, ReaderContext
from operators.contexts.errors import BadText, FileShortened, PartialRecord, RecordTooLong
from operators.contexts.fixed_bytes import FixedBytesReaderContext
from operators.contexts.fixed_records import FixedRecordsReaderContext
from operators.contexts.line import LineReaderContext
from operators.contexts.piece import Piece
from operators.contexts.read_ahead_line import ReadAheadLineReaderContext
from operators.contexts.text import decode_text, text_codec

__all__ = [
    "BadText",
    "BinaryStream",
    "Entity",
    "FileShortened",
    "FixedBytesReaderContext",
    "FixedRecordsReaderContext",
    "LineReaderContext",
    "PartialRecord",
    "Piece",
    "PieceReaderContext",
    "ReadAheadLineReaderContext",
    "ReaderContext",
    "RecordTooLong",
    "decode_text",
    "text_codec",
]

"""Reader contexts, which find the records in the bytes of a block.

Read in this order:

1. `entity`: `ReaderContext`, the class to derive from, and the records that it yields.
2. `fixed_bytes`, `fixed_records`: the simplest contexts.
3. `line`, `read_ahead_line`: the contexts of lines, on their base in `lines`.
4. `piece`: a run of consecutive records, which a context yields at once.
5. `source`: reads of a stream piece by piece.
6. `terminators`, `search`: the ends of records, and the search for a byte.
7. `text`: the encodings of text.
8. `errors`: the errors of bytes.
"""

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

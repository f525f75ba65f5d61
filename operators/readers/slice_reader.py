"""FSSliceReader: slices of files."""

from __future__ import annotations

import attrs

from operators.contexts import FixedBytesReaderContext, ReaderContext
from operators.readers.abstract_block_reader import a_context
from operators.readers.fs_block_reader import AbstractFSBlockReader


@attrs.define
class FSSliceReader(AbstractFSBlockReader[bytes]):
    """Reads blocks of files as slices of `reader_context.length` bytes that never cross a block's end.

    A block's last slice is what remains. Batches are made over the bytes as they were read, nothing is copied.

    >>> import pathlib, tempfile
    >>> from dagflow.testing import read_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "digits")
    ...     _ = path.write_bytes(b"0123456789")
    ...     read_file(FSSliceReader(reader_context=FixedBytesReaderContext(length=4)), str(path), block_size=6)
    [b'0123', b'45', b'6789']
    """

    reader_context: ReaderContext = attrs.field(factory=FixedBytesReaderContext, kw_only=True, validator=a_context)
